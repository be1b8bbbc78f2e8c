package instrument

import (
	"cmp"
	"slices"
	"sort"

	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

const (
	maxNesting    = 20_000
	maxLoopsTotal = 1 << 20 // most loops in a module: each is kept until the code is written
)

// A scope is a construct that is open while a body is read: the function, a block, a loop, or a branch of an if.
type scope struct {
	op     byte // opcode.Block, Loop, If or Else; Block for the function, too
	loop   int  // index in rewriter.loops of the innermost loop, or -1
	params int
	result int
	// These are used by analyse.
	start  int // offset of the instruction that opens it
	serial int // rewriter.serial when it was opened
	sets   int // locals that are set in it, as mark counts them
	// These are used by meter.
	level   int  // index of the innermost level of charging
	least   int  // smallest credit of the branches to its end
	before  int  // credit at the if
	labels  int  // open labels in the written code, including its own
	refills bool // the written code leaves this loop to call the host for fuel
	join    int  // cost of jumping to its end, or to the beginning of a loop
}

// A loop is a loop of a body. The loops of a body are numbered in the order in which they begin.
type loop struct {
	cost  int  // cost of its instructions, and of entering the loops in it
	short bool // it is unrolled
}

// begin returns the credit with which a loop begins.
func (l *loop) begin() int {
	if l.short {
		return l.cost * unrolled
	}
	return min(l.cost, chargeMost)
}

// A function is a function that the module declares.
type function struct {
	start, end int // offsets of the body, which begins with the locals
	code       int // offset of the first instruction
	results    []wasmbin.ValueType
	locals     int  // with the parameters
	loops      int  // index of its first loop in rewriter.loops
	edges      int  // index of its first edge in rewriter.edges
	cost       int  // cost of the instructions outside of loops, and of entering the loops
	indirect   bool // it contains an indirect call
	frame      int  // estimate of the most bytes of call stack that an activation takes
	stack      int  // bytes of call stack that it charges, 0 if it does not charge
}

// analyse reads the body of a function, checks every index in it, and records what the metering needs.
func (w *rewriter) analyse(r *wasmbin.Reader, f *function) {
	f.loops, f.edges = len(w.loops), len(w.edges)
	w.serial++
	joins := len(w.joins)
	scopes := append(w.scopes[:0], scope{op: opcode.Block, loop: -1, result: len(f.results), serial: w.serial})
	calls, sets, count := 0, 0, 0
	passed := 0 // parameters and results of calls that do not fit into registers
	wide := 0   // values take 16 bytes instead of 8
	f.cost = 1 + f.locals/4
	var in wasmbin.Instruction
	for r.Err == nil && len(scopes) > 0 {
		in.Read(r)
		count++
		w.read++
		w.serial++
		top := &scopes[len(scopes)-1]
		inLoop := top.loop
		switch in.Op {
		case opcode.Block, opcode.Loop, opcode.If:
			params, results := w.arity(r, &in)
			s := scope{op: byte(in.Op), loop: top.loop, params: params, result: results, start: in.Start, serial: w.serial}
			if in.Op == opcode.Loop {
				s.loop = len(w.loops)
				ahead := *r
				cost, _ := unroll(&ahead, &in, scopes)
				if w.loops = append(w.loops, loop{short: cost > 0}); len(w.loops) > maxLoopsTotal {
					r.Fail(in.Start, "more than %d loops in a module", maxLoopsTotal)
				}
			}
			scopes = append(scopes, s)
		case opcode.Else:
			if top.op != opcode.If {
				r.Fail(in.Start, "else without if")
			}
			top.op = opcode.Else
		case opcode.End:
			closed := *top
			scopes = scopes[:len(scopes)-1]
			w.unmark(scopes, &closed)
			if len(scopes) > 0 && closed.op == opcode.Loop {
				w.pay(f, scopes[len(scopes)-1].loop, w.loops[closed.loop].begin())
			}
		case opcode.Br, opcode.BrIf:
			w.checkLabel(r, &in, scopes, in.A)
		case opcode.BrTable:
			labels := in.Labels(r.Data)
			w.read += int(in.A)
			for range int64(in.A) + 1 {
				if w.checkLabel(r, &in, scopes, labels.U32("a label")); r.Err != nil {
					break
				}
			}
		case opcode.Call:
			calls++
			if int64(in.A) >= int64(len(w.functions)) {
				r.Fail(in.Start, "function %d is not declared: there are %d", in.A, len(w.functions))
				break
			}
			w.edge(int(in.A))
			passed += w.passes(w.functions[in.A])
		case opcode.CallIndirect:
			calls++
			if int64(in.A) >= int64(len(w.types)) {
				r.Fail(in.Start, "type %d is not declared: there are %d", in.A, len(w.types))
				break
			}
			w.table(r, &in, in.B)
			w.edge(len(w.functions) + w.canonical[in.A])
			passed += w.passes(in.A)
			f.indirect = true
		case opcode.LocalGet, opcode.LocalSet, opcode.LocalTee:
			if int64(in.A) >= int64(f.locals) {
				r.Fail(in.Start, "local %d is not declared: there are %d", in.A, f.locals)
			} else if in.Op != opcode.LocalGet {
				sets++
				w.mark(scopes, in.A)
			}
		default:
			w.check(r, &in)
			if in.Op>>8 == opcode.Vector {
				wide = 1
			}
		}
		if r.Err == nil {
			w.pay(f, inLoop, w.price(&in, scopes, f))
		}
		if w.read > maxInstructions {
			r.Fail(in.Start, "the module has more than %d instructions: split it, or optimise it with the compiler or wasm-opt", maxInstructions)
		}
		if len(scopes) > maxNesting {
			r.Fail(in.Start, "blocks are nested deeper than %d", maxNesting)
		}
	}
	w.scopes = scopes[:0]
	if r.Err == nil && r.Left() > 0 {
		r.Fail(r.Pos, "%d bytes are left over after the last end", r.Left())
	}
	f.frame = (48 + 4*(f.locals+sets+calls) + 8*passed + count/2) << wide
	if r.Err == nil {
		w.measure(f, joins, wide)
	}
}

// The frame of a function is first estimated from its instructions. The estimate is about twice the frame of an ordinary function, and at least a
// seventh of the frame of one that was made to be large. If it exceeds roughFrame bytes, the frame is measured. An interpreter's loop has thousands
// of instructions and values, but needs few of them at a time: JS_CallInternal of QuickJS is estimated at 23 KB and measured at 11, and has 7.6.
const (
	roughFrame  = 1024
	roughFactor = 6 // a measured frame counts as at least a sixth of the estimate
)

// passes returns how many parameters and results of a call are perhaps not in registers.
func (w *rewriter) passes(t uint32) int {
	return max(0, len(w.types[t].Params)-6) + max(0, len(w.types[t].Results)-1)
}

// pay adds to the cost of the innermost loop or, outside of loops, of the function.
func (w *rewriter) pay(f *function, loop, cost int) {
	if loop < 0 {
		f.cost += cost
	} else {
		w.loops[loop].cost += cost
	}
}

// check checks the indices of an instruction that neither branches nor calls.
func (w *rewriter) check(r *wasmbin.Reader, in *wasmbin.Instruction) {
	switch in.Op {
	case opcode.GlobalGet, opcode.GlobalSet:
		if int64(in.A) >= int64(w.globals) {
			r.Fail(in.Start, "global %d is not declared: there are %d", in.A, w.globals)
		}
	case opcode.RefFunc:
		if int64(in.A) >= int64(len(w.functions)) {
			r.Fail(in.Start, "function %d is not declared: there are %d", in.A, len(w.functions))
		} else if !w.declared[in.A] {
			r.Fail(in.Start, "ref.func names function %d, which is in no element segment, global or export", in.A)
		} else if _, known := w.refs[in.A]; !known {
			w.taken[in.A] = true
			w.refs[in.A] = len(w.refOrder)
			w.refOrder = append(w.refOrder, in.A)
			if len(w.refs) > mostGlobals {
				r.Fail(in.Start, "ref.func names more than %d functions", mostGlobals)
			}
		}
	case opcode.MemoryInit, opcode.DataDrop:
		if int64(in.A) >= int64(w.announced) {
			r.Fail(in.Start, "data segment %d is not declared: the data count section says %d", in.A, w.announced)
		}
		w.dataUsed = true
		if in.Op == opcode.DataDrop {
			w.notFresh("data.drop")
		} else if _, known := w.long[in.A]; !known && r.Err == nil && w.segments[in.A] > chunk {
			w.long[in.A] = len(w.longOrder)
			w.longOrder = append(w.longOrder, in.A)
		}
	case opcode.TableGet, opcode.TableSize:
		w.table(r, in, in.A)
	case opcode.TableSet, opcode.TableGrow, opcode.TableFill:
		w.table(r, in, in.A)
		w.grows = w.grows || in.Op == opcode.TableGrow
		w.notFresh(map[uint16]string{opcode.TableSet: "table.set", opcode.TableGrow: "table.grow", opcode.TableFill: "table.fill"}[in.Op])
	case opcode.TableCopy:
		w.table(r, in, in.A)
		w.table(r, in, in.B)
		w.notFresh("table.copy")
	case opcode.TableInit, opcode.ElemDrop:
		if int64(in.A) >= int64(w.elements) {
			r.Fail(in.Start, "element segment %d is not declared: there are %d", in.A, w.elements)
		}
		if in.Op == opcode.ElemDrop {
			w.notFresh("elem.drop")
			break
		}
		w.table(r, in, in.B)
		w.notFresh("table.init")
	}
	if needsMemory(in) && len(w.memories) == 0 {
		r.Fail(in.Start, "there is no memory")
	}
}

// needsMemory reports whether an instruction is valid only in a module with a memory.
func needsMemory(in *wasmbin.Instruction) bool {
	switch op := in.Op; {
	case op >= opcode.Load && op <= opcode.MemoryGrow, op == opcode.MemoryInit, op == opcode.MemoryCopy, op == opcode.MemoryFill:
		return true
	case op>>8 == opcode.Vector:
		sub := op & 0xff
		return sub <= 11 || sub >= 84 && sub <= 93
	}
	return false
}

func (w *rewriter) table(r *wasmbin.Reader, in *wasmbin.Instruction, index uint32) {
	if int64(index) >= int64(len(w.tables)) {
		r.Fail(in.Start, "table %d is not declared: there are %d", index, len(w.tables))
	}
}

// arity returns how many parameters and results a block has.
func (w *rewriter) arity(r *wasmbin.Reader, in *wasmbin.Instruction) (params, results int) {
	switch {
	case in.Block == wasmbin.EmptyBlock:
		return 0, 0
	case in.Block < 0:
		return 0, 1
	case in.Block >= int64(len(w.types)):
		r.Fail(in.Start, "type %d is not declared: there are %d", in.Block, len(w.types))
		return 0, 0
	}
	t := w.types[in.Block]
	return len(t.Params), len(t.Results)
}

// checkLabel checks a label.
func (w *rewriter) checkLabel(r *wasmbin.Reader, in *wasmbin.Instruction, scopes []scope, depth uint32) {
	if int64(depth) >= int64(len(scopes)) {
		r.Fail(in.Start, "label %d is not declared: there are %d", depth, len(scopes))
	}
}

// price returns the cost of an instruction whose indices have been checked: its weight, and the cost of the values that it moves.
func (w *rewriter) price(in *wasmbin.Instruction, scopes []scope, f *function) int {
	cost := weight(in)
	moved := func(depth uint32) int {
		s := &scopes[len(scopes)-1-int(depth)]
		if s.op == opcode.Loop {
			return s.params
		}
		return s.result
	}
	switch in.Op {
	case opcode.Block, opcode.Loop, opcode.If:
		params, results := w.arity(&wasmbin.Reader{}, in)
		return cost + params + results
	case opcode.Br, opcode.BrIf:
		return cost + moved(in.A)
	case opcode.BrTable:
		most := 0
		labels := in.Labels(w.data)
		for range int64(in.A) + 1 {
			most = max(most, moved(labels.U32("a label")))
		}
		return cost + most
	case opcode.Return:
		return cost + len(f.results)
	case opcode.Call:
		t := w.types[w.functions[in.A]]
		cost += len(t.Params) + len(t.Results) + w.flatAt(in.A)
		if int(in.A) < w.imported {
			cost += 100
		}
	case opcode.CallIndirect:
		t := w.types[in.A]
		cost += len(t.Params) + len(t.Results) + flatCost
	}
	return cost
}

// flatAt returns what a caller is charged for a function that does not charge for itself, and 0 for other functions.
func (w *rewriter) flatAt(index uint32) int {
	if int(index) < w.imported {
		return 0
	}
	return int(w.flat[int(index)-w.imported])
}

// mark records in the open scopes that a local is set. Once a scope is closed and the counts of inner scopes have been added, scope.sets is the
// number of locals that are set in it.
func (w *rewriter) mark(scopes []scope, local uint32) {
	if int64(local) >= int64(len(w.marks)) {
		w.marks = append(w.marks, make([]int, int(local)+1-len(w.marks))...)
	}
	last := w.marks[local]
	w.marks[local] = w.serial
	scopes[len(scopes)-1].sets++
	if last > scopes[0].serial { // it has already been counted in the scopes that were open then
		scopes[sort.Search(len(scopes), func(i int) bool { return scopes[i].serial >= last })-1].sets--
	}
}

// unmark adds a closed scope's count to the scope around it.
func (w *rewriter) unmark(scopes []scope, closed *scope) {
	if len(scopes) == 0 { // the function itself: only results leave it
		return
	}
	scopes[len(scopes)-1].sets += closed.sets
	if closed.sets > freeMoves {
		w.joins = append(w.joins, join{uint32(closed.start), uint32(closed.sets)})
	}
}

// measure measures the function's frame, and how many locals are moved at its joins, if either seems to be large. The function's joins begin at
// w.joins[joins].
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
