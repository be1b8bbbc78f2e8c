package instrument

import (
	"github.com/toolsrv/toolsrv/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// chunk is how many bytes a bulk instruction works on between two looks at the fuel: four pages. A page takes up to 30 µs
// where a virtual machine has to fetch it from its host. Copying a chunk takes 2 µs, compared to which a look takes little.
const chunk = 16 << 10

// quarter is by how many bits a number of bytes or table elements is shifted to the right to give units of fuel.
const quarter = 2

// shortConstant is the longest memory.fill or memory.copy of a constant length, in bytes, that stays as it is.
const shortConstant = 256

// The functions that are added, in their order. Those that need no memory are added even if the module has no use for
// them: a fixed order is worth more than a few bytes.
const (
	ownSlow   = iota // () -> (): asks the host for fuel or call stack
	ownCharge        // (n i32): charges for an instruction that does n of something
	ownGrow          // memory.grow, these three where there is a memory
	ownFill
	ownCopy
	ownInit // memory.init of the first long data segment; the other long ones' follow
)

// ownFunction is the index of a function that is added.
func (w *rewriter) ownFunction(number int) uint32 {
	return uint32(len(w.functions) + added + number)
}

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

// chargeOperand charges for the number on top of the stack, and leaves it there.
func (m *meter) chargeOperand(in *wasmbin.Instruction) {
	m.flush(in.Start)
	m.index(opcode.LocalTee, m.temp)
	m.callOwn(ownCharge)
	m.index(opcode.LocalGet, m.temp)
}

// ownFunctions returns the types and the bodies of the functions that are added.
func (w *rewriter) ownFunctions() (types []uint32, bodies [][]byte) {
	add := func(kind int, body []byte) {
		types = append(types, w.addedType(uint32(kind)))
		bodies = append(bodies, body)
	}
	add(typeNothing, w.slow())
	add(typeTake, w.chargeFunction())
	if len(w.memories) == 0 {
		return types, bodies
	}
	add(typeMap, w.growFunction())
	add(typeThree, w.chunked(opcode.Bulk, byte(opcode.MemoryFill&0xff), 0))
	add(typeThree, w.chunked(opcode.Bulk, byte(opcode.MemoryCopy&0xff), 0, 0))
	for _, segment := range w.longOrder {
		add(typeThree, w.chunked(append(wasmbin.AppendU32([]byte{opcode.Bulk, byte(opcode.MemoryInit & 0xff)}, segment), 0)...))
	}
	return types, bodies
}

func (w *rewriter) ownBody(locals int) *meter {
	m := &meter{w: w}
	if locals == 0 {
		m.op(0)
	} else {
		m.op(1, byte(locals), byte(wasmbin.I32))
	}
	return m
}

// slow asks the host for fuel, or tells it that the call stack is used up.
func (w *rewriter) slow() []byte {
	m := w.ownBody(0)
	m.global(opcode.GlobalGet, globalStack)
	m.constant(0)
	m.op(opcode.I32LtS, opcode.If, opcode.BlockEmpty)
	m.global(opcode.GlobalGet, globalStack)
	m.index(opcode.Call, uint32(w.imported)+importOverflow)
	m.global(opcode.GlobalSet, globalStack)
	m.global(opcode.GlobalGet, globalStack)
	m.constant(0)
	m.op(opcode.I32LtS, opcode.If, opcode.BlockEmpty, opcode.Unreachable, opcode.End, opcode.End)
	m.global(opcode.GlobalGet, globalFuel)
	m.constant(0)
	m.op(opcode.I32LtS, opcode.If, opcode.BlockEmpty)
	m.global(opcode.GlobalGet, globalFuel)
	m.index(opcode.Call, uint32(w.imported)+importRefill)
	m.global(opcode.GlobalSet, globalFuel)
	m.op(opcode.End, opcode.End)
	return m.out
}

// take charges the i32 on top of the stack, which is 1<<24 at most.
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

// chargeFunction charges a quarter of its operand, but no more than for the longest table or chunk: what is longer than that
// traps or fails at once.
func (w *rewriter) chargeFunction() []byte {
	const longest = max(maxTable, chunk)
	m := w.ownBody(0)
	m.index(opcode.LocalGet, 0)
	m.constant(longest)
	m.op(opcode.I32GtU, opcode.If, opcode.BlockEmpty)
	m.constant(longest)
	m.index(opcode.LocalSet, 0)
	m.op(opcode.End)
	m.index(opcode.LocalGet, 0)
	m.constant(quarter)
	m.op(opcode.I32ShrU)
	m.take(0)
	m.op(opcode.End)
	return m.out
}

// growFunction grows the memory, and counts the failures.
func (w *rewriter) growFunction() []byte {
	m := w.ownBody(0)
	m.index(opcode.LocalGet, 0)
	m.op(opcode.MemoryGrow, 0)
	m.index(opcode.LocalTee, 0)
	m.constant(-1)
	m.op(opcode.I32Eq, opcode.If, opcode.BlockEmpty)
	m.global(opcode.GlobalGet, globalRefused)
	m.constant(1)
	m.op(opcode.I32Add)
	m.global(opcode.GlobalSet, globalRefused)
	m.op(opcode.End)
	m.index(opcode.LocalGet, 0)
	m.op(opcode.End)
	return m.out
}

// chunked returns the body of a function (to, from or value, length) that does what the instruction does, one chunk at a time,
// and charges for it. Where the instruction would trap, it writes nothing.
func (w *rewriter) chunked(instruction ...byte) []byte {
	const to, from, length, temp = 0, 1, 2, 3
	kind := opcode.Bulk<<8 | uint16(instruction[1])
	m := w.ownBody(1)
	get := func(locals ...uint32) {
		for _, l := range locals {
			m.index(opcode.LocalGet, l)
		}
	}
	add := func(local uint32, n int) {
		get(local)
		m.constant(n)
		m.op(opcode.I32Add)
		m.index(opcode.LocalSet, local)
	}
	sum := func(local uint32) {
		get(local, length)
		m.op(opcode.I32Add)
	}
	long := func() { // reports whether more than one chunk is left
		get(length)
		m.constant(chunk)
		m.op(opcode.I32GtU)
	}
	// One chunk: forwards from the beginning, or backwards from the end.
	step := func(forwards bool) {
		m.op(opcode.Loop, opcode.BlockEmpty)
		m.constant(chunk >> quarter)
		m.take(temp)
		add(length, -chunk)
		if forwards {
			get(to, from)
		} else {
			sum(to)
			sum(from)
		}
		m.constant(chunk)
		m.op(instruction...)
		if forwards {
			add(to, chunk)
			if kind != opcode.MemoryFill {
				add(from, chunk)
			}
		}
		long()
		m.op(opcode.BrIf, 0, opcode.End)
	}

	long()
	m.op(opcode.If, opcode.BlockEmpty)
	// If an end wraps around, the whole instruction is executed, and traps. If an end is out of bounds, an empty instruction at
	// the ends traps.
	sum(to)
	get(to)
	m.op(opcode.I32LtU)
	if kind != opcode.MemoryFill {
		sum(from)
		get(from)
		m.op(opcode.I32LtU, opcode.I32Or)
	}
	m.op(opcode.If, opcode.BlockEmpty)
	get(to, from, length)
	m.op(instruction...)
	m.op(opcode.Unreachable, opcode.End)
	sum(to)
	if kind == opcode.MemoryFill {
		get(from)
	} else {
		sum(from)
	}
	m.constant(0)
	m.op(instruction...)
	if kind == opcode.MemoryCopy {
		get(from, to) // if the source is before the target, the end has to be copied first
		m.op(opcode.I32LtU, opcode.If, opcode.BlockEmpty)
		step(false)
		m.op(opcode.Else)
		step(true)
		m.op(opcode.End)
	} else {
		step(true)
	}
	m.op(opcode.End)

	get(length)
	m.constant(quarter)
	m.op(opcode.I32ShrU)
	m.take(temp)
	get(to, from, length)
	m.op(instruction...)
	m.op(opcode.End)
	return m.out
}
