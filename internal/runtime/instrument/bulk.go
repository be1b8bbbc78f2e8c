package instrument

import (
	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// chunk is how many bytes a bulk instruction processes between two checks of the fuel: four pages. A page takes up to 30 µs if a virtual machine has
// to get it from its host. Copying a chunk takes 2 µs, so a check costs little in comparison.
const chunk = 16 << 10

// quarter is the number of bits by which a number of bytes or table elements is shifted right to get units of fuel.
const quarter = 2

// shortConstant is the greatest constant length of a memory.fill or memory.copy that is left unchanged, in bytes.
const shortConstant = 256

// The added functions, in their order. Those that need no memory are added even if the module does not use them: a fixed order is worth more
// than a few bytes.
const (
	ownSlow   = iota // () -> (): asks the host for fuel or call stack
	ownCharge        // (n i32): charges for an instruction that processes n bytes or elements
	ownGrow          // memory.grow; this one and the next two only if there is a memory
	ownFill
	ownCopy
	ownInit // memory.init of the first long data segment; those of the other long ones follow
)

// bulk writes an instruction whose time depends on an operand.
func (m *meter) bulk(in, last *wasmbin.Instruction) {
	short := last.Op == opcode.I32Const && last.A <= shortConstant
	switch in.Op {
	case opcode.MemoryGrow:
		m.replace(in)
		m.callOwn(ownGrow)
	case opcode.MemoryFill:
		if !short {
			m.replace(in)
			m.callOwn(ownFill)
		}
	case opcode.MemoryCopy:
		if !short {
			m.replace(in)
			m.callOwn(ownCopy)
		}
	case opcode.MemoryInit:
		if at, long := m.w.long[in.A]; long {
			m.replace(in)
			m.callOwn(ownInit + at)
			return
		}
		m.chargeOperand(in)
	case opcode.TableInit, opcode.TableCopy, opcode.TableGrow, opcode.TableFill:
		m.chargeOperand(in)
	}
}

// chargeOperand charges for the number on top of the operand stack, and leaves it there.
func (m *meter) chargeOperand(in *wasmbin.Instruction) {
	m.flush(in.Start)
	m.index(opcode.LocalTee, m.temp)
	m.callOwn(ownCharge)
	m.index(opcode.LocalGet, m.temp)
}

// take charges the i32 on top of the operand stack, which is at most 1<<24.
func (m *meter) take(temp uint32) {
	m.index(opcode.LocalSet, temp)
	m.global(opcode.GlobalGet, globalFuel)
	m.index(opcode.LocalGet, temp)
	m.op(opcode.I32Sub)
	m.index(opcode.LocalTee, temp)
	m.global(opcode.GlobalSet, globalFuel)
	m.index(opcode.LocalGet, temp)
	m.slowBelow()
}
