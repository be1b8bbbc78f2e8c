package instrument

import (
	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// The host must be called when the fuel is used up at a branch back to a loop's head. If that call were inside the loop, every value that the loop
// keeps in a register could come from two places, and the compiler would load and store it in each iteration. So the branch leaves the loop for the
// call, and the loop is entered again after it:
//
//	block           a loop's end leads here
//	  loop          and the refill here
//	    block       where the fuel is used up
//	      loop
//	        …       charge, br_if 0 while there is fuel, br 1
//	      end
//	      br 2
//	    end
//	    call slow
//	    br 0
//	  end
//	end

// refilledLabels is how many labels such a loop adds.
const refilledLabels = 4

// openRefilled writes the beginning of such a loop with the given block type.
func (m *meter) openRefilled(block ...byte) {
	m.op(append([]byte{opcode.Block}, block...)...)
	m.op(append([]byte{opcode.Loop}, block...)...)
	m.op(opcode.Block, opcode.BlockEmpty)
	m.op(append([]byte{opcode.Loop}, block...)...)
}

// closeRefilled writes what follows the end of such a loop.
func (m *meter) closeRefilled() {
	m.op(opcode.Br, 2, opcode.End)
	m.callOwn(ownSlow)
	m.op(opcode.Br, 0, opcode.End, opcode.End)
}

// back writes a charge and a branch to the head of such a loop, whose label is label.
func (m *meter) back(label uint32, charge int) {
	m.subtract(globalFuel, charge)
	m.global(opcode.GlobalGet, globalFuel)
	m.constant(0)
	m.op(opcode.I32LtS)
	m.index(opcode.BrIf, label+1)
	m.index(opcode.Br, label)
}

// enterLoop writes the beginning of a loop.
func (m *meter) enterLoop(in *wasmbin.Instruction) {
	params, results := m.w.arity(m.r, in)
	s := scope{op: opcode.Loop, loop: m.loop, params: params, result: results, level: len(m.levels), join: m.joinAt(in)}
	labels := 1
	if params == 0 {
		m.replace(in)
		m.openRefilled(m.r.Data[in.Start+1 : m.r.Pos]...)
		s.refills, labels = true, refilledLabels
	}
	m.open(s, labels)
	begin := m.w.loops[m.loop].begin()
	m.levels = append(m.levels, level{begin, begin})
	m.loop++
	m.openDispatch(in)
}

// Two kinds of loops are so frequent and so small that a charge in each iteration would be noticeable.

// Short loops that branch back only at their end, as most compilers write them, are unrolled and charged once for all copies. With this, a product of
// matrices in Rust takes 0.66 of the original's time, without it 1.25.
const (
	unrolled    = 4   // copies
	unrollBytes = 128 // size of the longest body
	unrollCost  = 63  // of the most expensive body, so that all copies cost no more than chargeMost
)

// unroll reads the loop that the instruction in has just opened. scopes are those around the loop. If the loop is short, unroll returns its cost
// and the offset of the branch back, and leaves the reader at its end.
func unroll(r *wasmbin.Reader, in *wasmbin.Instruction, scopes []scope) (cost, branch int) {
	if in.Block != wasmbin.EmptyBlock {
		return 0, 0
	}
	start := r.Pos
	var next wasmbin.Instruction
	for {
		next.Read(r)
		cost += weight(&next)
		if r.Err != nil || r.Pos-start > unrollBytes || cost > unrollCost {
			return 0, 0
		}
		if next.Op == opcode.BrIf && next.A == 0 {
			break
		}
		if !straight(&next) && !leaves(&next, scopes) {
			return 0, 0
		}
	}
	branch = next.Start
	if next.Read(r); r.Err != nil || next.Op != opcode.End {
		return 0, 0
	}
	return cost, branch
}

// leaves reports whether the instruction, in a loop with scopes around it, is a conditional branch to the end of one of them.
func leaves(in *wasmbin.Instruction, scopes []scope) bool {
	if in.Op != opcode.BrIf || in.A == 0 || int64(in.A) > int64(len(scopes)) {
		return false
	}
	s := &scopes[len(scopes)-int(in.A)]
	return s.op != opcode.Loop && s.result == 0
}

// straight reports whether the instruction always goes on to the next one, or traps, and never takes longer than its weight.
func straight(in *wasmbin.Instruction) bool {
	switch op := in.Op; {
	case op == opcode.Drop, op == opcode.Select, op == opcode.SelectTyped:
		return true
	case op >= opcode.LocalGet && op <= opcode.GlobalSet, op >= opcode.Load && op <= opcode.MemorySize:
		return true
	case op >= opcode.I32Const && op <= opcode.I64Extend32S, op >= opcode.Bulk<<8 && op < opcode.MemoryInit, op>>8 == opcode.Vector:
		return true
	}
	return false
}

// writeUnrolled writes the loop that the instruction in opens, if the loop is short. Its first iterations have been paid for.
func (m *meter) writeUnrolled(in *wasmbin.Instruction) bool {
	r := *m.r
	cost, branch := unroll(&r, in, m.scopes)
	if cost == 0 {
		return false
	}
	m.flush(in.Start)
	m.openRefilled(opcode.BlockEmpty)
	m.labels += refilledLabels
	for n := range unrolled {
		m.unrolledBody(branch)
		if n < unrolled-1 {
			m.op(opcode.I32Eqz)
			m.index(opcode.BrIf, refilledLabels-1)
		}
	}
	m.op(opcode.If, opcode.BlockEmpty)
	m.back(1, unrolled*cost)
	m.op(opcode.End, opcode.End)
	m.closeRefilled()
	m.labels -= refilledLabels
	m.r.Pos, m.copied = r.Pos, r.Pos
	m.loop++
	return true
}

// unrolledBody writes one copy of the body, up to the branch at its end.
func (m *meter) unrolledBody(branch int) {
	r := &wasmbin.Reader{Data: m.r.Data, Pos: m.r.Pos, End: branch}
	m.copied = r.Pos
	var in wasmbin.Instruction
	for r.Left() > 0 {
		if in.Read(r); in.Op == opcode.BrIf {
			m.flush(in.Start)
			m.index(opcode.BrIf, m.label(in.A-1))
			m.copied = r.Pos
			m.branch(in.A - 1)
		}
	}
	m.flush(branch)
}

// Go's compiler turns a function into one loop that begins with a br_table on a local. A jump becomes an assignment to that local and a branch to the
// loop. So even a forward jump passes the loop's head, and would be charged like an iteration.
//
// If the assignment is right before the branch, the target block of the jump is known. If that block is still open, its end lies ahead, and the
// branch needs no more credit than a branch to that block. (A direct branch to that block would save the jump through the table. But if many
// registers are in use, wazero's code for that takes twice as long.)

// A dispatch is a loop that begins with such a br_table.
type dispatch struct {
	loop   int // index of its scope
	open   int // number of its blocks that are still open; their scopes follow the loop's
	blocks int
	local  uint32
	labels []uint32 // the default last
	cost   int      // of its head
}

// openDispatch records the loop that has just been opened, if it is a dispatch.
func (m *meter) openDispatch(in *wasmbin.Instruction) {
	if in.Block != wasmbin.EmptyBlock {
		return
	}
	r := &wasmbin.Reader{Data: m.r.Data, Pos: m.r.Pos, End: m.r.End}
	d := dispatch{loop: len(m.scopes) - 1}
	var next wasmbin.Instruction
	for next.Read(r); next.Op == opcode.Block && next.Block == wasmbin.EmptyBlock; next.Read(r) {
		d.blocks++
	}
	if next.Op != opcode.LocalGet {
		return
	}
	d.local = next.A
	d.cost = weight(&next)
	if next.Read(r); next.Op != opcode.BrTable || r.Err != nil {
		return
	}
	d.cost += weight(&next)
	d.open = d.blocks
	d.labels = make([]uint32, 0, next.A+1)
	labels := next.Labels(r.Data)
	for range int64(next.A) + 1 {
		d.labels = append(d.labels, labels.U32("a label"))
	}
	m.dispatches = append(m.dispatches, d)
}

// closeDispatch records that the innermost scope has just been closed.
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

// ahead returns the scope of the block that a branch to a dispatch leads to, after an assignment to its local, and the cost of getting there. It
// returns 0 if the block is not known or not open.
func (m *meter) ahead(in, last, before *wasmbin.Instruction) (scope, cost int) {
	if in.Op != opcode.Br || len(m.dispatches) == 0 || last.Op != opcode.LocalSet || before.Op != opcode.I32Const {
		return 0, 0
	}
	d := &m.dispatches[len(m.dispatches)-1]
	if last.A != d.local || len(m.scopes)-1-int(in.A) != d.loop {
		return 0, 0
	}
	label := int(d.labels[min(int(before.A), len(d.labels)-1)])
	if scope = d.loop + d.blocks - label; scope <= d.loop || scope > d.loop+d.open {
		return 0, 0
	}
	return scope, d.cost + m.scopes[scope].join
}
