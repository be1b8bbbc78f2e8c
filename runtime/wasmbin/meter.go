package wasmbin

// How fuel is charged: in advance. A point of charge takes an amount from the fuel, and if that leaves less than
// nothing, asks the host for more. From there on the code lives on credit: while a body is written, meter follows what
// is left of it on the dearest of all ways that lead to an instruction, and puts another point of charge before an
// instruction that has no credit. Each function that is not flat begins with such a point, and each iteration of a loop:
// what jumps backwards goes through a loop's head, so that one pass over the body suffices.
//
// A point charges what the function or loop costs as a whole, or this much at most. Where a loop jumps into its middle
// (an interpreter's, and every function of Go's compiler) an iteration runs a small part, so it pays a small sum.
const (
	chargeMost     = 256
	chargeDispatch = 64
)

// unreached is the credit of what no way leads to.
const unreached = 1 << 40

// A meter writes one function's body with metering.
type meter struct {
	w      *rewriter
	f      *function
	r      *reader
	out    []byte
	copied int // offset of the first byte of the body that has not been written
	scopes []scope
	levels []level // the function, and each open loop
	temp   uint32  // local: the fuel that is left
	loop   int     // index of the next loop
	entry  int     // what the function's entry has still to charge
}

// A level is the function, or a loop in it, with its own credit.
type level struct {
	credit int
	most   int  // of a charge
	local  bool // temp holds the fuel wherever a charge is in it: there is no call in between
}

// write appends the body to out, with its size before it.
func (m *meter) write(out []byte) []byte {
	m.out = m.out[:0]
	r := m.r
	runs := r.count(maxLocals, "runs of locals")
	m.out = appendU32(m.out, uint32(runs)+1)
	m.out = append(m.out, r.data[r.pos:m.f.code]...)
	m.out = append(m.out, 1, byte(I32))
	r.pos, m.copied = m.f.code, m.f.code
	m.temp, m.loop = uint32(m.f.locals), m.f.loops
	m.levels = append(m.levels[:0], level{most: most(m.f.dispatch), local: !m.f.calls})
	m.levels[0].credit = min(m.f.cost, m.levels[0].most)
	m.entry = m.levels[0].credit
	m.scopes = append(m.scopes[:0], scope{op: opBlock, loop: -1, result: len(m.f.results), least: unreached})
	if m.f.stack > 0 {
		m.enter()
	}
	m.body()
	if m.f.stack > 0 {
		m.global(opGlobalGet, globalStack)
		m.constant(m.f.stack)
		m.op(opI32Add)
		m.global(opGlobalSet, globalStack)
		m.op(opEnd)
	}
	out = appendU32(out, uint32(len(m.out)))
	return append(out, m.out...)
}

func most(dispatch bool) int {
	if dispatch {
		return chargeDispatch
	}
	return chargeMost
}

// body writes the instructions.
func (m *meter) body() {
	var in, last instruction
	for m.r.err == nil && len(m.scopes) > 0 {
		in.read(m.r)
		top := &m.levels[len(m.levels)-1]
		cost := m.w.price(&in, m.scopes, m.f)
		if m.entry > 0 && (!in.straight() || top.credit < cost) {
			m.settle(&in)
		}
		if top.credit < cost {
			m.flush(in.start)
			top.credit = max(top.most, cost)
			m.charge(top.credit, top.local, top.local)
		}
		top.credit -= cost
		m.instruction(&in, &last)
		last = in
	}
	m.flush(m.r.pos)
}

// straight reports whether the instruction leads to the next one, and costs little.
func (in *instruction) straight() bool {
	return in.op == opBlock || in.op >= opLocalGet && in.op <= opGlobalSet || in.op >= opI32Const && in.op <= 0xc4
}

// settle charges for the function's entry, before the first instruction that may not lead to the next one. If that is
// a loop, the loop's head does it.
func (m *meter) settle(in *instruction) {
	if in.op == opLoop && m.entry <= 16 {
		m.levels[0].local = false
		return
	}
	m.charge(m.entry, false, m.levels[0].local)
	m.entry = 0
}

// instruction writes one, whose cost has been paid.
func (m *meter) instruction(in, last *instruction) {
	depth := len(m.levels) - 1
	credit := &m.levels[depth].credit
	switch in.op {
	case opBlock, opIf:
		params, results := m.w.arity(m.r, in)
		m.scopes = append(m.scopes, scope{op: byte(in.op), params: params, result: results, level: depth, least: unreached, before: *credit})
	case opLoop:
		m.enterLoop(in)
	case opElse:
		s := &m.scopes[len(m.scopes)-1]
		s.least, s.op = min(s.least, *credit), opElse
		*credit = s.before
	case opEnd:
		s := m.scopes[len(m.scopes)-1]
		m.scopes = m.scopes[:len(m.scopes)-1]
		switch s.op {
		case opLoop:
			m.levels = m.levels[:depth]
		case opIf:
			*credit = min(*credit, s.least, s.before)
		default:
			*credit = min(*credit, s.least)
		}
	case opBr:
		m.branch(in.a)
		*credit = unreached
	case opBrIf:
		m.branch(in.a)
	case opBrTable:
		labels := &reader{data: m.r.data, pos: in.table, end: m.r.pos}
		for range int64(in.a) + 1 {
			m.branch(labels.u32("a label"))
		}
		*credit = unreached
	case opUnreachable:
		*credit = unreached
	case opReturn:
		*credit = unreached
		if m.f.stack > 0 {
			m.replace(in)
			m.index(opBr, uint32(len(m.scopes)-1))
		}
	case opCall, opRefFunc:
		m.replace(in)
		m.index(byte(in.op), m.w.shift(in.a))
	default:
		m.bulk(in, last)
	}
}

// branch takes the credit of a branch along to its label. A loop's head needs none.
func (m *meter) branch(depth uint32) {
	s := &m.scopes[len(m.scopes)-1-int(depth)]
	s.least = min(s.least, m.levels[s.level].credit)
}

func (m *meter) enterLoop(in *instruction) {
	l := &m.w.loops[m.loop]
	params, results := m.w.arity(m.r, in)
	m.scopes = append(m.scopes, scope{op: opLoop, loop: m.loop, params: params, result: results, level: len(m.levels)})
	m.loop++
	inner := level{most: most(l.dispatch), local: !l.calls}
	inner.credit = min(l.cost, inner.most)
	if inner.local && !m.levels[len(m.levels)-1].local {
		m.flush(in.start)
		m.global(opGlobalGet, globalFuel)
		m.index(opLocalSet, m.temp)
	}
	m.levels = append(m.levels, inner)
	m.flush(m.r.pos)
	m.charge(inner.credit+m.entry, inner.local, inner.local)
	m.entry = 0
}

// charge writes a point of charge. If known, temp holds the fuel before it, and if keep, it must do so behind it: so a
// loop that makes no call waits for no load from memory.
func (m *meter) charge(amount int, known, keep bool) {
	if known {
		m.index(opLocalGet, m.temp)
	} else {
		m.global(opGlobalGet, globalFuel)
	}
	m.constant(amount)
	m.op(opI32Sub)
	m.index(opLocalTee, m.temp)
	m.global(opGlobalSet, globalFuel)
	m.index(opLocalGet, m.temp)
	m.constant(0)
	m.op(opI32LtS)
	m.op(opIf, blockEmpty)
	m.index(opCall, m.w.helper(helperSlow))
	if keep {
		m.global(opGlobalGet, globalFuel)
		m.index(opLocalSet, m.temp)
	}
	m.op(opEnd)
}

// enter writes the entry of a function that charges for its call stack. What follows is a block, so that each way out
// of the function leads to the block's end, where the charge is given back.
func (m *meter) enter() {
	m.global(opGlobalGet, globalStack)
	m.constant(m.f.stack)
	m.op(opI32Sub)
	m.index(opLocalTee, m.temp)
	m.global(opGlobalSet, globalStack)
	m.index(opLocalGet, m.temp)
	m.constant(0)
	m.op(opI32LtS)
	m.op(opIf, blockEmpty)
	m.index(opCall, m.w.helper(helperSlow))
	m.op(opEnd, opBlock)
	m.out = append(m.out, m.w.blockOf(m.f.results)...)
}

// flush writes the body up to offset to.
func (m *meter) flush(to int) {
	m.out = append(m.out, m.r.data[m.copied:to]...)
	m.copied = to
}

// replace writes what stands before the instruction and leaves the instruction out.
func (m *meter) replace(in *instruction) {
	m.flush(in.start)
	m.copied = m.r.pos
}

func (m *meter) op(ops ...byte) { m.out = append(m.out, ops...) }

func (m *meter) index(op byte, index uint32) { m.out = appendU32(append(m.out, op), index) }

func (m *meter) constant(n int) { m.out = appendS32(append(m.out, opI32Const), int32(n)) }

// global writes an access to one of the globals that the rewriter adds.
func (m *meter) global(op byte, which uint32) { m.index(op, uint32(m.w.m.globals)+which) }
