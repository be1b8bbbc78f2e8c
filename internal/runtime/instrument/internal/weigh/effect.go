package weigh

import "github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"

// An effect is what compiling an instruction that neither branches nor calls does.
type effect struct {
	height int8  // values that it adds to the operand stack, or takes from it
	work   uint8 // machine-independent instructions that are made of it, in quarters
	memory bool  // it checks an address
}

// What most instructions cost, in quarters of an instruction.
const (
	workNone    = 1
	workOne     = 4
	workAddress = 24 // a bounds check and the access
	workBulk    = 120
)

// effects holds what instructions of one byte do.
var effects = func() (table [256]effect) {
	set := func(from, to int, height int8, work uint8) {
		for op := from; op <= to; op++ {
			table[op] = effect{height: height, work: work}
		}
	}
	set(0, 255, 0, workOne)
	set(0x01, 0x01, 0, workNone)  // nop
	set(0x1a, 0x1a, -1, workNone) // drop
	set(0x1b, 0x1c, -2, workOne)  // select
	set(0x25, 0x25, 0, 40)        // table.get
	set(0x26, 0x26, -2, 40)       // table.set
	for op := opcode.Load; op < opcode.Store; op++ {
		table[op] = effect{height: 0, work: workAddress, memory: true}
	}
	for op := opcode.Store; op < opcode.MemorySize; op++ {
		table[op] = effect{height: -2, work: workAddress, memory: true}
	}
	set(opcode.MemorySize, opcode.MemorySize, 1, 12)
	set(opcode.MemoryGrow, opcode.MemoryGrow, 0, 80)
	set(0x41, 0x44, 1, workOne)  // constants
	set(0x46, 0x4f, -1, workOne) // comparisons
	set(0x51, 0x66, -1, workOne) // comparisons
	set(0x6a, 0x78, -1, workOne) // i32
	set(0x7c, 0x8a, -1, workOne) // i64
	set(0x92, 0x98, -1, workOne) // f32
	set(0xa0, 0xa6, -1, workOne) // f64
	set(0x6d, 0x6d, -1, 44)      // i32.div_s
	set(0x6e, 0x70, -1, 32)      // divisions
	set(0x7f, 0x7f, -1, 44)      // i64.div_s
	set(0x80, 0x82, -1, 32)      // divisions
	set(0x96, 0x97, -1, 28)      // f32.min, f32.max
	set(0x98, 0x98, -1, 20)      // f32.copysign
	set(0xa4, 0xa5, -1, 28)      // f64.min, f64.max
	set(0xa6, 0xa6, -1, 20)      // f64.copysign
	set(0xa8, 0xab, 0, 64)       // truncations
	set(0xae, 0xb1, 0, 64)       // truncations
	set(0xb5, 0xb5, 0, 28)       // f32.convert_i64_u
	set(0xba, 0xba, 0, 28)       // f64.convert_i64_u
	set(0xd0, 0xd0, 1, workOne)  // ref.null
	set(0xd2, 0xd2, 1, 24)       // ref.func
	set(opcode.GlobalGet, opcode.GlobalGet, 1, workOne)
	set(opcode.GlobalSet, opcode.GlobalSet, -1, workOne)
	return table
}()

// effectOf returns the effect of an instruction that neither branches nor calls.
func effectOf(op uint16) effect {
	switch op >> 8 {
	case opcode.Bulk:
		return bulkEffect(byte(op))
	case opcode.Vector:
		return vectorEffect(byte(op))
	}
	return effects[op]
}

// bulkEffect is the effect of an instruction with the prefix 0xfc.
func bulkEffect(sub byte) effect {
	switch sub {
	case 0, 1, 2, 3, 4, 5, 6, 7: // truncations
		return effect{work: 40}
	case 9, 13: // data.drop, elem.drop
		return effect{work: 24}
	case 15: // table.grow
		return effect{height: -1, work: 80}
	case 16: // table.size
		return effect{height: 1, work: 12}
	}
	return effect{height: -3, work: workBulk}
}

// vectorEffect is the effect of an instruction with the prefix 0xfd.
func vectorEffect(sub byte) effect {
	switch {
	case sub <= 10, sub == 92, sub == 93: // loads
		return effect{work: workAddress + 8, memory: true}
	case sub == 11: // store
		return effect{height: -2, work: workAddress, memory: true}
	case sub == 12: // constant
		return effect{height: 1, work: workOne}
	case sub >= 84 && sub <= 87: // loads of lanes
		return effect{height: -1, work: workAddress + 8, memory: true}
	case sub >= 88 && sub <= 91: // stores of lanes
		return effect{height: -2, work: workAddress + 8, memory: true}
	case sub == 82: // bitselect
		return effect{height: -2, work: 16}
	case vectorUnary(sub):
		return effect{work: vectorWork(sub)}
	}
	return effect{height: -1, work: vectorWork(sub)}
}

// vectorWork is the work of an instruction on vectors that neither loads nor stores.
func vectorWork(sub byte) uint8 {
	switch {
	case sub == 98, sub >= 220 && sub <= 223: // i8x16.popcnt, i64x2.extmul
		return 32
	case sub == 13, sub >= 107 && sub <= 109, sub == 127, sub >= 156 && sub <= 159, sub >= 188 && sub <= 191, sub == 213: // shuffle, shifts of bytes, extmul, i64x2.mul
		return 24
	case sub == 232, sub == 233, sub == 244, sub == 245, sub >= 248: // min, max, truncations and conversions
		return 24
	}
	return 16
}

// vectorUnary reports whether the instruction takes as many operands as it gives.
func vectorUnary(sub byte) bool {
	switch {
	case sub >= 15 && sub <= 22, sub == 24, sub == 25, sub == 27, sub == 29, sub == 31, sub == 33: // splats, lanes
		return true
	case sub == 77, sub == 83, sub >= 94 && sub <= 100, sub >= 103 && sub <= 106:
		return true
	case sub == 116, sub == 117, sub == 122, sub >= 124 && sub <= 129, sub == 131, sub == 132, sub >= 135 && sub <= 138, sub == 148:
		return true
	case sub >= 160 && sub <= 164, sub >= 167 && sub <= 170, sub >= 192 && sub <= 196, sub >= 199 && sub <= 202:
		return true
	case sub >= 224 && sub <= 227, sub >= 236 && sub <= 239, sub >= 248:
		return true
	}
	return false
}
