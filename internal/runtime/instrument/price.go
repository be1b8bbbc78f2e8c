package instrument

import (
	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// flatCost is the highest cost of a function whose callers pay for it.
const flatCost = 24

// measureFlat returns the cost of a function whose callers can pay for it, since it has no loops, no calls and nothing expensive. It returns 0 for
// other functions.
func measureFlat(r *wasmbin.Reader, locals int) int {
	if r.Left() > 4*flatCost {
		return 0
	}
	cost := 1 + locals/4
	var in wasmbin.Instruction
	for r.Left() > 0 {
		in.Read(r)
		switch in.Op {
		case opcode.Loop, opcode.Call, opcode.CallIndirect, opcode.BrTable, opcode.MemoryGrow, opcode.RefFunc:
			return 0
		case opcode.Block, opcode.If:
			if in.Block >= 0 {
				return 0
			}
		}
		if in.Op>>8 == opcode.Bulk && in.Op >= opcode.MemoryInit {
			return 0
		}
		cost += weight(&in)
	}
	if r.Err != nil || cost > flatCost {
		return 0
	}
	return cost
}

// weight returns the cost of an instruction in units of fuel: roughly the longest time that it takes, as a multiple of an ordinary instruction's
// time. Costs that depend on an operand are charged at run time.
func weight(in *wasmbin.Instruction) int {
	switch op := in.Op; {
	case op < 1<<8:
		return int(weights[op])
	case op >= opcode.MemoryInit && op <= opcode.TableFill && op != opcode.TableGrow:
		return 32
	case op == opcode.TableGrow:
		return 500
	case op>>8 == opcode.Vector:
		return vectorWeight(byte(op))
	case op>>8 == opcode.Bulk && op < opcode.MemoryInit: // truncations
		return 3
	}
	return 1
}

// vectorWeight returns the weight of an instruction on vectors.
func vectorWeight(sub byte) int {
	switch {
	case sub == 0xe3, sub == 0xe7, sub == 0xef, sub == 0xf3: // roots, float division
		return 8
	case sub >= 0xe4 && sub <= 0xe6, sub >= 0xf0 && sub <= 0xf2, sub == 0x5e, sub == 0x5f: // float arithmetic, and conversions between floats
		return weightFloat
	}
	return 4
}

// weightFloat is the weight of float arithmetic. On ordinary numbers it takes no longer than any other instruction. But Intel's processors take some
// 150 cycles if an operand or the result is denormal, and a guest can make sure that all are.
const weightFloat = 6

// weights holds the weight of each instruction of one byte.
var weights = func() (table [256]uint16) {
	set := func(weight uint16, ops ...byte) {
		for _, op := range ops {
			table[op] = weight
		}
	}
	for op := range table {
		table[op] = 1
	}
	for op := opcode.Load; op < opcode.MemorySize; op++ {
		table[op] = 4
	}
	// These become no machine code, or part of the instruction that uses their value.
	set(0, opcode.Nop, opcode.Block, opcode.Loop, opcode.Else, opcode.End, opcode.Drop, opcode.LocalGet, opcode.I32Const)
	set(8, 0x6d, 0x6e, 0x6f, 0x70, 0x7f, 0x80, 0x81, 0x82) // integer division
	set(6, 0x91, 0x95, 0x9f, 0xa3)                         // square roots, float division
	set(weightFloat, 0x92, 0x93, 0x94, 0xa0, 0xa1, 0xa2)   // float arithmetic
	set(weightFloat, 0xb6, 0xbb)                           // conversions between floats
	set(3, 0x96, 0x97, 0xa4, 0xa5)                         // float minima and maxima: branches
	set(3, 0xa8, 0xa9, 0xaa, 0xab, 0xae, 0xaf, 0xb0, 0xb1) // truncations: branches
	set(4, opcode.Call, opcode.BrTable)
	set(8, opcode.CallIndirect)
	set(500, opcode.MemoryGrow) // calls the host, which calls the operating system
	return table
}()
