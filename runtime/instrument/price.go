package instrument

import (
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/runtime/wasmbin/opcode"
)

// weight is what the instruction costs in units of fuel: about the time that it takes at most, in instructions of the
// common kind. What depends on an operand is charged at run time.
func weight(in *wasmbin.Instruction) int {
	switch op := in.Op; {
	case op == 0x01, op == opcode.Block, op == opcode.Loop, op == opcode.Else, op == opcode.End, op == 0x1a, op == opcode.LocalGet, op == opcode.I32Const:
		return 0 // no machine code, or part of what uses it
	case op >= 0x28 && op <= 0x3e: // loads and stores
		return 4
	case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82: // integer division
		return 8
	case op == 0x91, op == 0x95, op == 0x9f, op == 0xa3: // square roots, float division
		return 6
	case op == opcode.Call, op == opcode.BrTable:
		return 4
	case op == opcode.CallIndirect:
		return 8
	case op == opcode.MemoryGrow: // calls the host, and the host the operating system
		return 500
	case op == opcode.TableGrow:
		return 500
	case op >= opcode.MemoryInit && op <= opcode.TableFill:
		return 32
	case op>>8 == 0xfd:
		return 4
	}
	return 1
}
