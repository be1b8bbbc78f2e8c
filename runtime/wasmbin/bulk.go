package wasmbin

// chunk is the most that a bulk instruction works on between two looks at the fuel, in bytes: four pages, each of which
// takes up to 30 µs where a virtual machine has to fetch it from its host, and 2 µs of copying, of which a look is little.
const chunk = 16 << 10

// quarter turns bytes, and elements of tables, into units of fuel: shifted to the right by it.
const quarter = 2

// shortConstant is the longest memory.fill or memory.copy, in bytes, that may stay where its length is a constant.
const shortConstant = 256

// The functions that are added, in the order in which they are appended. One that the module has no use for is
// there all the same if it needs no memory: order is simpler than a few bytes.
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
	return uint32(len(w.m.functions) + added + number)
}

// bulk writes an instruction whose time depends on an operand.
func (m *meter) bulk(in, last *instruction) {
	short := last.op == opI32Const && last.a <= shortConstant
	switch in.op {
	case opMemoryGrow:
		m.replace(in)
		m.callOwn(ownGrow)
	case opMemoryFill:
		if !short {
			m.replace(in)
			m.callOwn(ownFill)
		}
	case opMemoryCopy:
		if !short {
			m.replace(in)
			m.callOwn(ownCopy)
		}
	case opMemoryInit:
		if at, long := m.w.long[in.a]; long {
			m.replace(in)
			m.callOwn(ownInit + at)
			return
		}
		m.chargeOperand(in)
	case opTableInit, opTableCopy, opTableGrow, opTableFill:
		m.chargeOperand(in)
	}
}

// chargeOperand charges for the number on top of the stack, and leaves it there.
func (m *meter) chargeOperand(in *instruction) {
	m.flush(in.start)
	m.index(opLocalTee, m.temp)
	m.callOwn(ownCharge)
	m.index(opLocalGet, m.temp)
}

// ownFunctions returns the types and the bodies of the functions that are added.
func (w *rewriter) ownFunctions() (types []uint32, bodies [][]byte) {
	add := func(kind int, body []byte) {
		types = append(types, w.types+uint32(kind))
		bodies = append(bodies, body)
	}
	add(typeNothing, w.slow())
	add(typeTake, w.chargeFunction())
	if len(w.m.memories) == 0 {
		return types, bodies
	}
	add(typeMap, w.growFunction())
	add(typeThree, w.chunked(0xfc, byte(opMemoryFill&0xff), 0))
	add(typeThree, w.chunked(0xfc, byte(opMemoryCopy&0xff), 0, 0))
	for _, segment := range w.longOrder {
		add(typeThree, w.chunked(append(appendU32([]byte{0xfc, byte(opMemoryInit & 0xff)}, segment), 0)...))
	}
	return types, bodies
}

func (w *rewriter) ownBody(locals int) *meter {
	m := &meter{w: w}
	if locals == 0 {
		m.op(0)
	} else {
		m.op(1, byte(locals), byte(I32))
	}
	return m
}

// slow asks the host for fuel, or tells it that the call stack is used up.
func (w *rewriter) slow() []byte {
	m := w.ownBody(0)
	m.global(opGlobalGet, globalStack)
	m.constant(0)
	m.op(opI32LtS, opIf, blockEmpty)
	m.global(opGlobalGet, globalStack)
	m.index(opCall, uint32(w.m.imported)+importOverflow)
	m.global(opGlobalSet, globalStack)
	m.global(opGlobalGet, globalStack)
	m.constant(0)
	m.op(opI32LtS, opIf, blockEmpty, opUnreachable, opEnd, opEnd)
	m.global(opGlobalGet, globalFuel)
	m.constant(0)
	m.op(opI32LtS, opIf, blockEmpty)
	m.global(opGlobalGet, globalFuel)
	m.index(opCall, uint32(w.m.imported)+importRefill)
	m.global(opGlobalSet, globalFuel)
	m.op(opEnd, opEnd)
	return m.out
}

// take charges amounts, an i32 on top of the stack that is 1<<24 at most.
func (m *meter) take(temp uint32) {
	m.index(opLocalSet, temp)
	m.global(opGlobalGet, globalFuel)
	m.index(opLocalGet, temp)
	m.op(opI32Sub)
	m.index(opLocalTee, temp)
	m.global(opGlobalSet, globalFuel)
	m.index(opLocalGet, temp)
	m.slowBelow()
}

// chargeFunction charges a quarter of its operand, but no more than for a table or chunk at its longest: what is longer
// than that traps or fails at once.
func (w *rewriter) chargeFunction() []byte {
	const longest = max(maxTable, chunk)
	m := w.ownBody(0)
	m.index(opLocalGet, 0)
	m.constant(longest)
	m.op(opI32GtU, opIf, blockEmpty)
	m.constant(longest)
	m.index(opLocalSet, 0)
	m.op(opEnd)
	m.index(opLocalGet, 0)
	m.constant(quarter)
	m.op(opI32ShrU)
	m.take(0)
	m.op(opEnd)
	return m.out
}

// growFunction grows the memory, and counts where that is refused.
func (w *rewriter) growFunction() []byte {
	m := w.ownBody(0)
	m.index(opLocalGet, 0)
	m.op(opMemoryGrow, 0)
	m.index(opLocalTee, 0)
	m.constant(-1)
	m.op(opI32Eq, opIf, blockEmpty)
	m.global(opGlobalGet, globalRefused)
	m.constant(1)
	m.op(opI32Add)
	m.global(opGlobalSet, globalRefused)
	m.op(opEnd)
	m.index(opLocalGet, 0)
	m.op(opEnd)
	return m.out
}

// chunked returns the body of a function (to, from or value, length) that does what the instruction does, but charges
// for it, and at most a chunk at a time. Where the instruction would trap, nothing is written.
func (w *rewriter) chunked(instruction ...byte) []byte {
	const to, from, length, temp = 0, 1, 2, 3
	kind := uint16(0xfc00) | uint16(instruction[1])
	m := w.ownBody(1)
	get := func(locals ...uint32) {
		for _, l := range locals {
			m.index(opLocalGet, l)
		}
	}
	add := func(local uint32, n int) {
		get(local)
		m.constant(n)
		m.op(opI32Add)
		m.index(opLocalSet, local)
	}
	sum := func(local uint32) {
		get(local, length)
		m.op(opI32Add)
	}
	long := func() { // whether more than one chunk is left
		get(length)
		m.constant(chunk)
		m.op(opI32GtU)
	}
	// One chunk: forwards from the beginning, or backwards from the end.
	step := func(forwards bool) {
		m.op(opLoop, blockEmpty)
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
			if kind != opMemoryFill {
				add(from, chunk)
			}
		}
		long()
		m.op(opBrIf, 0, opEnd)
	}

	long()
	m.op(opIf, blockEmpty)
	// If an end wraps around, the whole instruction traps. If an end lies outside, an empty one at the ends does.
	sum(to)
	get(to)
	m.op(opI32LtU)
	if kind != opMemoryFill {
		sum(from)
		get(from)
		m.op(opI32LtU, opI32Or)
	}
	m.op(opIf, blockEmpty)
	get(to, from, length)
	m.op(instruction...)
	m.op(opUnreachable, opEnd)
	sum(to)
	if kind == opMemoryFill {
		get(from)
	} else {
		sum(from)
	}
	m.constant(0)
	m.op(instruction...)
	if kind == opMemoryCopy {
		get(from, to) // where the source lies before the target, the end has to be copied first
		m.op(opI32LtU, opIf, blockEmpty)
		step(false)
		m.op(opElse)
		step(true)
		m.op(opEnd)
	} else {
		step(true)
	}
	m.op(opEnd)

	get(length)
	m.constant(quarter)
	m.op(opI32ShrU)
	m.take(temp)
	get(to, from, length)
	m.op(instruction...)
	m.op(opEnd)
	return m.out
}
