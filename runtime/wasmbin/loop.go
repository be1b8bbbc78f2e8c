package wasmbin

// Two kinds of loops are so frequent and so small that a charge in each iteration would be felt.

// Short loops that go back at their end only, as most compilers write them, are written several times over, with one
// charge. A product of matrices by Rust takes 0.66 of the original's time with this, 1.25 without.
const (
	unrolled    = 4   // copies
	unrollBytes = 128 // of the longest body
	unrollCost  = 63  // of the dearest body, so that all copies cost no more than chargeMost
)

// unroll reads the loop that in has just opened at r.pos, inside of scopes. If it is a short one, unroll returns its cost,
// the reader stands behind its end, and the branch back at offset branch.
func unroll(r *reader, in *instruction, scopes []scope) (cost, branch int) {
	if in.block != blockEmpty-0x80 {
		return 0, 0
	}
	start := r.pos
	var next instruction
	for {
		next.read(r)
		cost += next.weight()
		if r.err != nil || r.pos-start > unrollBytes || cost > unrollCost {
			return 0, 0
		}
		if next.op == opBrIf && next.a == 0 {
			break
		}
		if !next.straight() && !next.leaves(scopes) {
			return 0, 0
		}
	}
	branch = next.start
	if next.read(r); r.err != nil || next.op != opEnd {
		return 0, 0
	}
	return cost, branch
}

// leaves reports whether the instruction, in a loop inside of scopes, is a conditional branch to the end of one of them.
func (in *instruction) leaves(scopes []scope) bool {
	if in.op != opBrIf || in.a == 0 || int64(in.a) > int64(len(scopes)) {
		return false
	}
	s := &scopes[len(scopes)-int(in.a)]
	return s.op != opLoop && s.result == 0
}

// straight reports whether the instruction leads to the next one or traps, and takes no more than its weight.
func (in *instruction) straight() bool {
	switch op := in.op; {
	case op == 0x1a, op == 0x1b, op == 0x1c: // drop, select
		return true
	case op >= opLocalGet && op <= opGlobalSet, op >= 0x28 && op <= opMemorySize:
		return true
	case op >= opI32Const && op <= 0xc4, op >= 0xfc00 && op <= 0xfc07, op>>8 == 0xfd:
		return true
	}
	return false
}

// writeUnrolled writes the loop that in opens, if it is a short one, whose begin has been paid.
func (m *meter) writeUnrolled(in *instruction) bool {
	r := *m.r
	cost, branch := unroll(&r, in, m.scopes)
	if cost == 0 {
		return false
	}
	m.flush(in.start)
	m.op(opBlock, blockEmpty, opLoop, blockEmpty)
	for n := range unrolled {
		m.unrolledBody(branch)
		if n < unrolled-1 {
			m.op(opI32Eqz)
			m.index(opBrIf, 1)
		}
	}
	m.charge(unrolled * cost)
	m.op(opBrIf, 0, opEnd, opEnd)
	m.r.pos, m.copied = r.pos, r.pos
	m.loop++
	return true
}

// unrolledBody writes the body up to the branch at its end. Labels outside are one block further away.
func (m *meter) unrolledBody(branch int) {
	r := &reader{data: m.r.data, pos: m.r.pos, end: branch}
	m.copied = r.pos
	var in instruction
	for r.left() > 0 {
		if in.read(r); in.op == opBrIf {
			m.flush(in.start)
			m.index(opBrIf, in.a+1)
			m.copied = r.pos
			m.branch(in.a - 1)
		}
	}
	m.flush(branch)
}

// Go's compiler makes of a function one loop that begins with a br_table over a local, and of a jump an assignment to
// that local and a branch to the loop. So a jump forwards, too, passes the loop's head, and would be charged like an
// iteration. Where the assignment stands right before the branch, the block that it leads to is known. If that is still
// open, its end lies ahead, and the branch needs no more credit than one to that block. (To write a branch to that block
// instead saves the jump through the table, but where much is kept in registers, wazero makes code of it that takes twice
// the time.)

// A dispatch is a loop that begins so.
type dispatch struct {
	loop   int // index of its scope
	open   int // number of its blocks that are still open; their scopes stand behind the loop's
	blocks int
	local  uint32
	labels []uint32 // the default last
	cost   int      // of its head
}

// openDispatch takes in the loop that has just been opened, if it is a dispatch.
func (m *meter) openDispatch(in *instruction) {
	if in.block != blockEmpty-0x80 {
		return
	}
	r := &reader{data: m.r.data, pos: m.r.pos, end: m.r.end}
	d := dispatch{loop: len(m.scopes) - 1}
	var next instruction
	for next.read(r); next.op == opBlock && next.block == blockEmpty-0x80; next.read(r) {
		d.blocks++
	}
	if next.op != opLocalGet {
		return
	}
	d.local = next.a
	d.cost = next.weight()
	if next.read(r); next.op != opBrTable || r.err != nil {
		return
	}
	d.cost += next.weight()
	d.open = d.blocks
	d.labels = make([]uint32, 0, next.a+1)
	labels := &reader{data: r.data, pos: next.table, end: r.pos}
	for range int64(next.a) + 1 {
		d.labels = append(d.labels, labels.u32("a label"))
	}
	m.dispatches = append(m.dispatches, d)
}

// closeDispatch takes in that the innermost scope has just been closed.
func (m *meter) closeDispatch() {
	if len(m.dispatches) == 0 {
		return
	}
	d := &m.dispatches[len(m.dispatches)-1]
	switch closed := len(m.scopes); {
	case closed == d.loop:
		m.dispatches = m.dispatches[:len(m.dispatches)-1]
	case closed == d.loop+d.open:
		d.open--
	}
}

// ahead returns the scope of the block that a branch to a dispatch leads to, behind an assignment to its local, and what
// the way there costs. It returns 0 where that is not known, or not open.
func (m *meter) ahead(in, last, before *instruction) (scope, cost int) {
	if in.op != opBr || len(m.dispatches) == 0 || last.op != opLocalSet || before.op != opI32Const {
		return 0, 0
	}
	d := &m.dispatches[len(m.dispatches)-1]
	if last.a != d.local || len(m.scopes)-1-int(in.a) != d.loop {
		return 0, 0
	}
	label := int(d.labels[min(int(before.a), len(d.labels)-1)])
	if scope = d.loop + d.blocks - label; scope <= d.loop || scope > d.loop+d.open {
		return 0, 0
	}
	return scope, d.cost
}
