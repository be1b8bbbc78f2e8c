package weigh

import "github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"

// An effect describes an instruction that neither branches nor calls: how it changes the operand stack, and what it takes to compile.
type effect struct {
	height int8  // values that it adds to the operand stack, or takes from it
	work   uint8 // machine-independent instructions that the compiler makes of it, in quarters
	memory bool  // whether it checks an address
}

// What most instructions cost, in quarters of an instruction.
const (
	workNone    = 1
	workOne     = 4
	workAddress = 24 // a bounds check and the access
	workBulk    = 120
)

// effects holds the effects of one-byte instructions, or of those with the vector prefix.
type effects [256]effect

var plain, vectors = plainEffects(), vectorEffects()

// set changes the effects of ranges of instructions. A range is a pair: its first and its last instruction.
func (e *effects) set(change func(*effect), ranges ...byte) {
	for ; len(ranges) > 0; ranges = ranges[2:] {
		for op := int(ranges[0]); op <= int(ranges[1]); op++ {
			change(&e[op])
		}
	}
}

func height(n int8) func(*effect) { return func(e *effect) { e.height = n } }
func work(n uint8) func(*effect)  { return func(e *effect) { e.work = n } }
func address(e *effect)           { e.work, e.memory = workAddress, true }

func plainEffects() (e effects) {
	e.set(work(workOne), 0x00, 0xff)
	e.set(work(workNone), opcode.Nop, opcode.Nop, opcode.Drop, opcode.Drop)
	e.set(address, opcode.Load, opcode.MemorySize-1)
	e.set(work(40), opcode.TableGet, opcode.TableSet)
	e.set(work(80), opcode.MemoryGrow, opcode.MemoryGrow)
	e.set(work(12), opcode.MemorySize, opcode.MemorySize)
	e.set(work(44), 0x6d, 0x70, 0x7f, 0x82)                                     // divisions
	e.set(work(28), 0x96, 0x98, 0xa4, 0xa6, 0xb5, 0xb5, 0xba, 0xba, 0xd2, 0xd2) // min, max, copysign, convert_i64_u, ref.func
	e.set(work(64), 0xa8, 0xab, 0xae, 0xb1)                                     // truncations
	e.set(height(1), opcode.GlobalGet, opcode.GlobalGet, opcode.MemorySize, opcode.MemorySize, opcode.I32Const, opcode.F64Const, 0xd0, 0xd0, 0xd2, 0xd2)
	e.set(height(-1), opcode.Drop, opcode.Drop, opcode.GlobalSet, opcode.GlobalSet, 0x46, 0x4f, 0x51, 0x66, 0x6a, 0x78, 0x7c, 0x8a, 0x92, 0x98, 0xa0, 0xa6)
	e.set(height(-2), opcode.Select, opcode.SelectTyped, opcode.TableSet, opcode.TableSet, opcode.Store, opcode.MemorySize-1)
	return e
}

func vectorEffects() (e effects) {
	e.set(work(16), 0, 255)
	e.set(address, 0, 11, 84, 93)                                                                           // loads and stores
	e.set(work(workAddress+8), 0, 10, 84, 93)                                                               // all of them except v128.store do more
	e.set(work(workOne), 12, 12)                                                                            // constant
	e.set(work(24), 13, 13, 107, 109, 127, 127, 156, 159, 188, 191, 213, 213, 232, 233, 244, 245, 248, 255) // shuffle, shifts of bytes, extmul, i64x2.mul, min, max, conversions
	e.set(work(32), 98, 98, 220, 223)                                                                       // i8x16.popcnt, i64x2.extmul
	e.set(height(-1), 13, 255)
	e.set(height(-2), 11, 11, 82, 82, 88, 91) // stores, bitselect
	e.set(height(1), 12, 12)
	e.set(height(0), 15, 22, 24, 25, 27, 27, 29, 29, 31, 31, 33, 33, 77, 77, 83, 83, 92, 100, 103, 106, 116, 117, 122, 122, 124, 129, 131, 132, 135, 138, 148, 148,
		160, 164, 167, 170, 192, 196, 199, 202, 224, 227, 236, 239, 248, 255) // splats, lanes, and instructions with one operand
	return e
}

// effectOf returns the effect of an instruction that neither branches nor calls.
func effectOf(op uint16) effect {
	switch op >> 8 {
	case 0:
		return plain[op]
	case opcode.Vector:
		return vectors[byte(op)]
	}
	switch op {
	case opcode.DataDrop, opcode.ElemDrop:
		return effect{work: 24}
	case opcode.TableGrow:
		return effect{height: -1, work: 80}
	case opcode.TableSize:
		return effect{height: 1, work: 12}
	}
	if op < opcode.MemoryInit { // truncations
		return effect{work: 40}
	}
	return effect{height: -3, work: workBulk}
}
