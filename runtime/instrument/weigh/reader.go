package weigh

import "github.com/toolsrv/toolsrv/runtime/wasmbin/opcode"

// A reader reads code that has been checked.
type reader struct {
	data []byte
	pos  int
}

func (r *reader) byte() byte {
	b := r.data[r.pos]
	r.pos++
	return b
}

func (r *reader) u32() uint32 {
	b := r.byte()
	if b < 0x80 {
		return uint32(b)
	}
	value := uint32(b & 0x7f)
	for shift := 7; b >= 0x80; shift += 7 {
		b = r.byte()
		value |= uint32(b&0x7f) << shift
	}
	return value
}

// skip passes over a number.
func (r *reader) skip() {
	for r.byte() >= 0x80 {
	}
}

// memory passes over what follows a load or a store.
func (r *reader) memory() {
	r.skip()
	r.skip()
}

// bulk passes over what follows on the prefix 0xfc and sub.
func (r *reader) bulk(sub byte) {
	switch sub {
	case 8, 10, 12, 14: // memory.init, memory.copy, table.init, table.copy
		r.memory()
	case 9, 11, 13, 15, 16, 17:
		r.skip()
	}
}

// vector passes over what follows on the prefix 0xfd and sub, which takes a second byte from 128 on.
func (r *reader) vector(sub byte) {
	if sub >= 0x80 {
		r.pos++
	}
	switch {
	case sub <= 11, sub == 92, sub == 93:
		r.memory()
	case sub == 12, sub == 13:
		r.pos += 16
	case sub >= 21 && sub <= 34:
		r.pos++
	case sub >= 84 && sub <= 91:
		r.memory()
		r.pos++
	}
}

// pass passes over what follows an opcode that opens and closes nothing.
func (r *reader) pass(op byte) {
	switch {
	case op == opcode.Br, op == opcode.BrIf, op == opcode.Call, op >= opcode.LocalGet && op <= 0x26, op == 0x41, op == 0x42, op == 0xd2:
		r.skip()
	case op == opcode.BrTable:
		for n := r.u32(); ; n-- {
			r.skip()
			if n == 0 {
				return
			}
		}
	case op == opcode.CallIndirect:
		r.memory()
	case op >= opcode.Load && op < opcode.MemorySize:
		r.memory()
	case op == opcode.MemorySize, op == opcode.MemoryGrow, op == 0xd0:
		r.pos++
	case op == 0x43:
		r.pos += 4
	case op == 0x44:
		r.pos += 8
	case op == 0x1c:
		r.pos += 2
	case op == 0xfc:
		r.bulk(r.byte())
	case op == 0xfd:
		r.vector(r.byte())
	}
}
