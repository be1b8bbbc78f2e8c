package instrument

import (
	"cmp"
	"slices"
	"sort"

	"github.com/toolsrv/toolsrv/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// Where ways join, at the end of a block or the beginning of a loop, the compiler moves a value on each way for each local that is needed there and was
// set on one of them. A few find registers. Each of the others is a load and a store, which take about a nanosecond: 3,072 vectors that are set
// where a function hardly ever comes made each pass by that place take 4 µs. So whoever gets to a join pays for the locals beyond freeMoves.
const (
	freeMoves = 16
	moves     = 4 // for a unit
)

// A join is what it costs to get to where ways join: the end of the block or if, or the beginning of the loop, that the instruction at an offset opens.
type join struct{ at, cost uint32 }

// mark notes that a local is set, in the scopes that are open. scope.sets of the innermost is the number of locals that are set in it, once it is closed
// and those of scopes inside have been added.
func (w *rewriter) mark(scopes []scope, local uint32) {
	if int64(local) >= int64(len(w.marks)) {
		w.marks = append(w.marks, make([]int, int(local)+1-len(w.marks))...)
	}
	last := w.marks[local]
	w.marks[local] = w.serial
	scopes[len(scopes)-1].sets++
	if last > scopes[0].serial { // it counts already in the scopes that were open then
		scopes[sort.Search(len(scopes), func(i int) bool { return scopes[i].serial >= last })-1].sets--
	}
}

// unmark notes that a scope has been closed.
func (w *rewriter) unmark(scopes []scope, closed *scope) {
	if len(scopes) == 0 { // the function: only results get out of it
		return
	}
	scopes[len(scopes)-1].sets += closed.sets
	if closed.sets > freeMoves {
		w.joins = append(w.joins, join{uint32(closed.start), uint32(closed.sets)})
	}
}

// measure has the function's frame measured, and how many locals are moved in it, if one of the two seems to be much. joins are the number of those in
// w.joins before the function.
func (w *rewriter) measure(f *function, joins, wide int) {
	own := w.joins[joins:]
	slices.SortFunc(own, func(a, b join) int { return cmp.Compare(a.at, b.at) })
	if f.frame > roughFrame || len(own) > 0 {
		frame, measured, ok := w.ruler.Measure(w.types[w.functions[w.imported+w.current]], w.data[f.start:f.end], freeMoves)
		if ok && f.frame > roughFrame {
			f.frame = max(frame<<wide, f.frame/roughFactor)
		}
		if ok {
			w.joins = w.joins[:joins]
			for _, j := range measured {
				w.joins = append(w.joins, join{uint32(f.start + j.At), uint32(j.Moved)})
			}
			own = w.joins[joins:]
		}
	}
	for i := range own {
		own[i].cost = (own[i].cost - freeMoves + moves - 1) / moves
	}
}

// joinAt returns what it costs to get to the join of the scope that the instruction opens.
func (m *meter) joinAt(in *wasmbin.Instruction) int {
	for m.join < len(m.w.joins) && int(m.w.joins[m.join].at) < in.Start {
		m.join++
	}
	if m.join < len(m.w.joins) && int(m.w.joins[m.join].at) == in.Start {
		return int(m.w.joins[m.join].cost)
	}
	return 0
}

// moved returns what it costs that an instruction leads to where ways join.
func (m *meter) moved(in *wasmbin.Instruction) int {
	switch in.Op {
	case opcode.Loop:
		return 2 * m.joinAt(in) // there is another loop around it, which calls the host for fuel
	case opcode.If:
		return m.joinAt(in) // the way past an if without an else
	case opcode.Else, opcode.End:
		if s := &m.scopes[len(m.scopes)-1]; s.op != opcode.Loop {
			return s.join
		}
	case opcode.Br, opcode.BrIf:
		return m.scopeAt(in.A).join
	case opcode.BrTable:
		most := 0
		labels := in.Labels(m.r.Data)
		for range int64(in.A) + 1 {
			most = max(most, m.scopeAt(labels.U32("a label")).join)
		}
		return most
	}
	return 0
}
