package wasmbin

import (
	"time"

	"github.com/toolsrv/toolsrv/runtime/wasmbin/weigh"
)

// What compiling may take, as package weigh predicts it. Nothing can stop wazero's compiler, and a function of 28 KB can
// have it take a gigabyte. Of hostile functions that are within these bounds, none takes more than 5 s or 512 MB. A
// module of 20 MB takes 16 s and 350 MB with nothing in it that is hostile, so each megabyte has its share.
const (
	maxNanos      = 3_000_000_000 // of a function
	maxBytes      = 384 << 20
	maxBytesTotal = 512 << 20 // of the dearest function, and of bytesCode for each byte of code
	bytesCode     = 14
	maxNanosBase  = 3_500_000_000 // of all functions together, and for each byte of code
	maxNanosByte  = 1_200
	maxNesting    = 20_000
	maxLoopsTotal = 1 << 24
)

// A scope is what is open while a body is read: the function, a block, a loop, or a branch of an if.
type scope struct {
	op     byte // opBlock, opLoop, opIf, opElse; opBlock for the function, too
	loop   int  // index in rewriter.loops of the innermost loop, or -1
	params int
	result int
	// What meter keeps of a scope.
	level   int  // index of the innermost charged level
	least   int  // smallest credit of those who branch to its end
	before  int  // credit at the if
	labels  int  // that are open in what is written, with its own
	refills bool // a loop with a place outside for the case that the fuel is used up
}

// A loop is one in a body. A body's loops are numbered as they begin.
type loop struct {
	cost  int  // of the instructions in it, and of what loops in it begin with
	short bool // it is written several times over
}

// begin is the credit with which a loop begins.
func (l *loop) begin() int {
	if l.short {
		return l.cost * unrolled
	}
	return min(l.cost, chargeMost)
}

// A function is one that the module declares.
type function struct {
	start, end int // offsets of the body, beginning with its locals
	code       int // offset of the first instruction
	results    []ValueType
	locals     int  // with the parameters
	loops      int  // index of its first loop in rewriter.loops
	edges      int  // index of its first edge in rewriter.edges
	cost       int  // of the instructions that are in no loop, and of what loops begin with
	indirect   bool // it holds an indirect call
	frame      int  // bytes of call stack that an activation takes at most, about
	stack      int  // bytes that it charges for the call stack, 0 if it does not
}

// flatCost is the most that a function costs which is charged where it is called.
const flatCost = 24

// analyse reads the body of function number f, checks every index in it and takes in what the metering needs.
func (w *rewriter) analyse(r *reader, f *function) {
	f.loops, f.edges = len(w.loops), len(w.edges)
	scopes := append(w.scopes[:0], scope{op: opBlock, loop: -1, result: len(f.results)})
	calls, sets, count := 0, 0, 0
	wide := 0 // 16 instead of 8 bytes for a value
	f.cost = 1 + f.locals/4
	var in instruction
	for r.err == nil && len(scopes) > 0 {
		in.read(r)
		count++
		top := &scopes[len(scopes)-1]
		inLoop := top.loop
		switch in.op {
		case opBlock, opLoop, opIf:
			params, results := w.arity(r, &in)
			s := scope{op: byte(in.op), loop: top.loop, params: params, result: results}
			if in.op == opLoop {
				s.loop = len(w.loops)
				ahead := *r
				cost, _ := unroll(&ahead, &in, scopes)
				w.loops = append(w.loops, loop{short: cost > 0})
			}
			scopes = append(scopes, s)
		case opElse:
			if top.op != opIf {
				r.fail(in.start, "else without if")
			}
			top.op = opElse
		case opEnd:
			closed := *top
			scopes = scopes[:len(scopes)-1]
			if len(scopes) > 0 && closed.op == opLoop {
				w.pay(f, scopes[len(scopes)-1].loop, w.loops[closed.loop].begin())
			}
		case opBr, opBrIf:
			w.checkLabel(r, &in, scopes, in.a)
		case opBrTable:
			labels := &reader{data: r.data, pos: in.table, end: r.pos}
			for range int64(in.a) + 1 {
				if w.checkLabel(r, &in, scopes, labels.u32("a label")); r.err != nil {
					break
				}
			}
		case opCall:
			calls++
			if int64(in.a) >= int64(len(w.m.functions)) {
				r.fail(in.start, "function %d is not declared: there are %d", in.a, len(w.m.functions))
				break
			}
			w.edge(int(in.a))
		case opCallIndirect:
			calls++
			if int64(in.a) >= int64(len(w.m.types)) {
				r.fail(in.start, "type %d is not declared: there are %d", in.a, len(w.m.types))
				break
			}
			w.table(r, &in, in.b)
			w.edge(len(w.m.functions) + w.canonical[in.a])
			f.indirect = true
		case opLocalGet, opLocalSet, opLocalTee:
			if int64(in.a) >= int64(f.locals) {
				r.fail(in.start, "local %d is not declared: there are %d", in.a, f.locals)
			}
			if in.op != opLocalGet {
				sets++
			}
		default:
			w.check(r, &in)
			if in.op>>8 == 0xfd {
				wide = 1
			}
		}
		if r.err == nil {
			w.pay(f, inLoop, w.price(&in, scopes, f))
		}
		if len(scopes) > maxNesting {
			r.fail(in.start, "blocks are nested deeper than %d", maxNesting)
		}
	}
	w.scopes = scopes[:0]
	if r.err == nil && r.left() > 0 {
		r.fail(r.pos, "%d bytes are left over behind the last end", r.left())
	}
	if len(w.loops) > maxLoopsTotal {
		r.fail(f.start, "more than %d loops in a module", maxLoopsTotal)
	}
	// The compiler keeps a slot for each value that outlives a call, and uses none twice. How many do is not known; by
	// this a frame of a usual function is charged twice over, and one made for the purpose a fifth at least.
	f.frame = (48 + 4*(f.locals+sets+calls) + count/2) << wide
}

// scale returns what weighs the functions as they are written. own are the types of those that are added.
func (w *rewriter) scale(own []uint32) *weigh.Scale {
	m := &weigh.Module{Imported: w.m.imported + added, Mutable: w.mutable + addedGlobals}
	for _, t := range w.m.types {
		m.Types = append(m.Types, weigh.Signature{Params: len(t.Params), Results: len(t.Results)})
	}
	m.Types = append(m.Types, weigh.Signature{}, weigh.Signature{Params: 1, Results: 1}, weigh.Signature{Params: 1}, weigh.Signature{Params: 3})
	m.Functions = append(m.Functions, w.m.functions[:w.m.imported]...)
	for range added {
		m.Functions = append(m.Functions, w.types+typeMap)
	}
	m.Functions = append(append(m.Functions, w.m.functions[w.m.imported:]...), own...)
	w.compiled = m
	return weigh.NewScale(m)
}

// weigh adds what a function takes to compile whose body has been written, and refuses what takes too much.
func (w *rewriter) weigh(s *weigh.Scale, r *reader, f *function, body []byte) {
	if len(w.compiled.Types) < int(w.types)+addedTypes+len(w.blockAt) { // the block that the function's body became
		w.compiled.Types = append(w.compiled.Types, weigh.Signature{Results: len(f.results)})
	}
	t := w.m.types[w.m.functions[w.m.imported+w.current]]
	count := s.Count(weigh.Signature{Params: len(t.Params), Results: len(t.Results)}, body)
	weight := count.Weight()
	if alone := weight.Grow(); alone.Nanos > maxNanos || alone.Bytes > maxBytes {
		r.fail(f.start, "compiling the function would take too much, about %s and %d MB, since %s: split it, or have a compiler or wasm-opt optimise it",
			alone.Time().Round(100*time.Millisecond), alone.Bytes>>20, count.Cause(alone.Bytes/maxBytes > alone.Nanos/maxNanos))
	}
	w.out.Weight = w.out.Weight.Add(weight)
}

// total finishes the module's weight, whose code takes so many bytes, and refuses one that takes too much.
func (w *rewriter) total(r *reader, code int) {
	w.out.Weight = w.out.Weight.Grow()
	w.out.Weight.Bytes += bytesCode * int64(code)
	if w.out.Weight.Nanos > maxNanosBase+maxNanosByte*int64(code) || w.out.Weight.Bytes > maxBytesTotal {
		r.fail(r.end, "compiling the module's %d functions would take too much, about %s and %d MB: split the module, or have a compiler or wasm-opt optimise it",
			len(w.bodies), w.out.Weight.Time().Round(100*time.Millisecond), w.out.Weight.Bytes>>20)
	}
}

// pay adds to the cost of the innermost loop, or of the function.
func (w *rewriter) pay(f *function, loop, cost int) {
	if loop < 0 {
		f.cost += cost
	} else {
		w.loops[loop].cost += cost
	}
}

// check checks the indices of what neither branches nor calls.
func (w *rewriter) check(r *reader, in *instruction) {
	switch in.op {
	case opGlobalGet, opGlobalSet:
		if int64(in.a) >= int64(w.m.globals) {
			r.fail(in.start, "global %d is not declared: there are %d", in.a, w.m.globals)
		}
	case opRefFunc:
		if int64(in.a) >= int64(len(w.m.functions)) {
			r.fail(in.start, "function %d is not declared: there are %d", in.a, len(w.m.functions))
		} else if !w.declared[in.a] {
			r.fail(in.start, "function %d is in no element segment, global or export, which ref.func asks for", in.a)
		} else if _, known := w.refs[in.a]; !known {
			w.taken[in.a] = true
			w.refs[in.a] = len(w.refOrder)
			w.refOrder = append(w.refOrder, in.a)
			if len(w.refs) > mostGlobals {
				r.fail(in.start, "ref.func names more than %d functions", mostGlobals)
			}
		}
	case opMemoryInit, opDataDrop:
		if w.m.announced < 0 || int64(in.a) >= int64(w.m.announced) {
			r.fail(in.start, "data segment %d is not announced: %d are", in.a, max(0, w.m.announced))
		}
		w.dataUsed = true
		if in.op == opDataDrop {
			w.notFresh("data.drop")
		} else if _, known := w.long[in.a]; !known && r.err == nil && w.segments[in.a] > chunk {
			w.long[in.a] = len(w.longOrder)
			w.longOrder = append(w.longOrder, in.a)
		}
	case opTableGet, opTableSize:
		w.table(r, in, in.a)
	case opTableSet, opTableGrow, opTableFill:
		w.table(r, in, in.a)
		w.notFresh(map[uint16]string{opTableSet: "table.set", opTableGrow: "table.grow", opTableFill: "table.fill"}[in.op])
	case opTableCopy:
		w.table(r, in, in.a)
		w.table(r, in, in.b)
		w.notFresh("table.copy")
	case opTableInit, opElemDrop:
		if int64(in.a) >= int64(w.elements) {
			r.fail(in.start, "element segment %d is not declared: there are %d", in.a, w.elements)
		}
		if in.op == opElemDrop {
			w.notFresh("elem.drop")
			break
		}
		w.table(r, in, in.b)
		w.notFresh("table.init")
	}
	if in.needsMemory() && len(w.m.memories) == 0 {
		r.fail(in.start, "there is no memory")
	}
}

// needsMemory reports whether the instruction is valid in a module with a memory only.
func (in *instruction) needsMemory() bool {
	switch op := in.op; {
	case op >= 0x28 && op <= opMemoryGrow, op == opMemoryInit, op == opMemoryCopy, op == opMemoryFill:
		return true
	case op>>8 == 0xfd:
		sub := op & 0xff
		return sub <= 11 || sub >= 84 && sub <= 93
	}
	return false
}

func (w *rewriter) table(r *reader, in *instruction, index uint32) {
	if int64(index) >= int64(len(w.m.tables)) {
		r.fail(in.start, "table %d is not declared: there are %d", index, len(w.m.tables))
	}
}

// arity returns how many parameters and results a block has.
func (w *rewriter) arity(r *reader, in *instruction) (params, results int) {
	switch {
	case in.block == blockEmpty-0x80:
		return 0, 0
	case in.block < 0:
		return 0, 1
	case in.block >= int64(len(w.m.types)):
		r.fail(in.start, "type %d is not declared: there are %d", in.block, len(w.m.types))
		return 0, 0
	}
	t := w.m.types[in.block]
	return len(t.Params), len(t.Results)
}

// checkLabel checks a label.
func (w *rewriter) checkLabel(r *reader, in *instruction, scopes []scope, depth uint32) {
	if int64(depth) >= int64(len(scopes)) {
		r.fail(in.start, "label %d is not declared: there are %d", depth, len(scopes))
	}
}

// price is what the instruction, whose indices have been checked, costs where it stands: its weight, and the values
// that it moves.
func (w *rewriter) price(in *instruction, scopes []scope, f *function) int {
	cost := in.weight()
	moved := func(depth uint32) int {
		s := &scopes[len(scopes)-1-int(depth)]
		if s.op == opLoop {
			return s.params
		}
		return s.result
	}
	switch in.op {
	case opBlock, opLoop, opIf:
		params, results := w.arity(&reader{}, in)
		return cost + params + results
	case opBr, opBrIf:
		return cost + moved(in.a)
	case opBrTable:
		most := 0
		labels := &reader{data: w.m.data, pos: in.table, end: len(w.m.data)}
		for range int64(in.a) + 1 {
			most = max(most, moved(labels.u32("a label")))
		}
		return cost + most
	case opReturn:
		return cost + len(f.results)
	case opCall:
		t := w.m.types[w.m.functions[in.a]]
		cost += len(t.Params) + len(t.Results) + w.flatAt(in.a)
		if int(in.a) < w.m.imported {
			cost += 100
		}
	case opCallIndirect:
		t := w.m.types[in.a]
		cost += len(t.Params) + len(t.Results) + flatCost
	}
	return cost
}

// flatAt is what a call of the function costs beside the call if the function does not charge for itself.
func (w *rewriter) flatAt(index uint32) int {
	if int(index) < w.m.imported {
		return 0
	}
	return int(w.flat[int(index)-w.m.imported])
}

// measureFlat returns what the function costs if it has neither loops nor calls nor anything that costs much, or 0.
func measureFlat(r *reader, locals int) int {
	if r.left() > 4*flatCost {
		return 0
	}
	cost := 1 + locals/4
	var in instruction
	for r.left() > 0 {
		in.read(r)
		switch in.op {
		case opLoop, opCall, opCallIndirect, opBrTable, opMemoryGrow, opRefFunc:
			return 0
		case opBlock, opIf:
			if in.block >= 0 {
				return 0
			}
		}
		if in.op >= 0xfc08 && in.op <= 0xfcff {
			return 0
		}
		cost += in.weight()
	}
	if r.err != nil || cost > flatCost {
		return 0
	}
	return cost
}
