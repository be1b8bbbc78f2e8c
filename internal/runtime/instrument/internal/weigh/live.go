package weigh

import (
	"math/bits"

	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
)

// count counts the values of locals that take a slot. If it finds that more locals are live at the beginning of a loop than it knew, it sweeps again.
func (r *Ruler) count() bool {
	heads := make([]uint64, r.loops*r.words)
	depth := int32(0)
	for i := range r.scopes {
		depth = max(depth, r.scopes[i].depth+1)
	}
	if need := (int(depth)*4 + 2) * r.words; need > maxMeasured/8 {
		return false
	} else if len(r.sweeps) < need {
		r.sweeps = make([]uint64, need)
	}
	r.endings = r.endings[:0]
	for i := range int(depth) {
		sets := r.sweeps[i*4*r.words:]
		set := func(n int) []uint64 { return sets[n*r.words:][:r.words] }
		r.endings = append(r.endings, ending{set(0), set(1), set(2), set(3)})
	}
	for work := 0; ; {
		once := (len(r.steps) + len(r.scopes)) * max(r.words, 1)
		work += once
		r.spent += once
		if work > maxMeasured || r.spent > maxMeasuredTotal {
			return false
		}
		if !r.sweep(heads) {
			return true
		}
	}
}

// sweep goes over all steps backwards. heads are the locals that are live where each loop begins; it reports whether it found more.
func (r *Ruler) sweep(heads []uint64) (more bool) {
	n := r.words
	free := r.sweeps[len(r.sweeps)-2*n:]
	live, kept := free[:n], free[n:][:n] // locals with a value that is needed later, and locals with a value that takes a slot
	clear(live)
	clear(kept)
	r.frame.locals = 0
	begin := func(w int, bits uint64) { // values that take a slot begin here
		r.frame.locals += r.bytes(w, bits&kept[w])
		kept[w] &^= bits
	}
	for i := len(r.steps) - 1; i >= 0; i-- {
		s := &r.steps[i]
		switch s.kind {
		case stepGet:
			live[s.at/64] |= 1 << (s.at % 64)
		case stepSet:
			bit := uint64(1) << (s.at % 64)
			begin(int(s.at/64), bit)
			live[s.at/64] &^= bit
		case stepCall:
			unite(kept, live)
		case stepStop:
			clear(live)
			clear(kept)
		case stepClose:
			sc := &r.scopes[s.at]
			if sc.joins > 1 && sc.op != opcode.Loop {
				sc.moved = 0
				for w, set := range r.of(s.at) { // where paths join, a local that was set on one of them holds a new value
					sc.moved += int32(bits.OnesCount64(set & live[w]))
					begin(w, set)
				}
			}
			copy(r.endings[sc.depth].live, live)
			copy(r.endings[sc.depth].kept, kept)
		case stepBranch:
			if sc := &r.scopes[s.at]; sc.op == opcode.Loop {
				unite(live, heads[int(sc.loop)*n:][:n])
			} else {
				unite(live, r.endings[sc.depth].live)
				unite(kept, r.endings[sc.depth].kept)
			}
		case stepElse:
			e := &r.endings[r.scopes[s.at].depth]
			copy(e.elseLive, live)
			copy(e.elseKept, kept)
			copy(live, e.live)
			copy(kept, e.kept)
		case stepOpen:
			sc := &r.scopes[s.at]
			switch e := &r.endings[sc.depth]; sc.op {
			case opcode.Loop:
				sc.moved = 0
				for w, set := range r.of(s.at) {
					sc.moved += int32(bits.OnesCount64(set & live[w]))
					begin(w, set)
				}
				more = unite(heads[int(sc.loop)*n:][:n], live) || more
			case opcode.If:
				unite(live, e.live)
				unite(kept, e.kept)
			case opcode.Else:
				unite(live, e.elseLive)
				unite(kept, e.elseKept)
			}
		}
		r.press(int(s.height), live, kept)
	}
	for w := range kept {
		begin(w, kept[w])
	}
	return more
}

// press marks locals as kept if there are more values than registers.
func (r *Ruler) press(height int, live, kept []uint64) {
	over := height - registers
	for w := range live {
		over += bits.OnesCount64(live[w] &^ kept[w])
	}
	for w := 0; w < len(live) && over > 0; w++ {
		for free := live[w] &^ kept[w]; free != 0 && over > 0; free &= free - 1 {
			kept[w] |= free & -free
			over--
		}
	}
}

// bytes returns how many bytes the values in one word of a set take.
func (r *Ruler) bytes(word int, set uint64) int {
	return 4*bits.OnesCount64(set) + 4*bits.OnesCount64(set&r.large[word])
}

// unite adds the locals of one set to another, and reports whether the latter has grown.
func unite(to, from []uint64) (more bool) {
	for w := range to {
		both := to[w] | from[w]
		more = more || both != to[w]
		to[w] = both
	}
	return more
}
