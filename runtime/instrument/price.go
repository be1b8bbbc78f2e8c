package instrument

import (
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/runtime/wasmbin/opcode"
)

// weight returns the cost of an instruction in units of fuel: about the most time that it takes, in multiples of an ordinary
// instruction's. What depends on an operand is charged at run time.
func weight(in *wasmbin.Instruction) int {
	switch op := in.Op; {
	case op < 1<<8:
		return int(weights[op])
	case op >= opcode.MemoryInit && op <= opcode.TableFill && op != opcode.TableGrow:
		return 32
	case op == opcode.TableGrow:
		return 500
	case op>>8 == opcode.Vector:
		return 4
	}
	return 1
}

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
	// They become no machine code, or part of the instruction that uses their value.
	set(0, opcode.Nop, opcode.Block, opcode.Loop, opcode.Else, opcode.End, opcode.Drop, opcode.LocalGet, opcode.I32Const)
	set(8, 0x6d, 0x6e, 0x6f, 0x70, 0x7f, 0x80, 0x81, 0x82) // integer division
	set(6, 0x91, 0x95, 0x9f, 0xa3)                         // square roots, float division
	set(4, opcode.Call, opcode.BrTable)
	set(8, opcode.CallIndirect)
	set(500, opcode.MemoryGrow) // calls the host, and the host the operating system
	return table
}()
