package weigh

import (
	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// A Ruler measures a module's functions: how much of the native stack an activation takes, and how many values are moved where paths of the control
// flow join. It reuses its memory for the next function.
//
// The compiler keeps a slot for each value that outlives a call or finds no register, and uses no slot twice. Which values
// these are is known only when it is done. A Ruler reads a body once and notes where each local is set and read. Then it goes
// backwards over its notes and finds the values that are needed after each call.
type Ruler struct {
	m       *Module
	steps   []step
	scopes  []scope
	open    []int32  // indexes in scopes of those that are open
	sets    []uint64 // for each scope, the set of locals that are assigned in it
	words   int      // words in a set of locals
	large   []uint64 // the set of locals of 8 bytes or more
	loops   int
	stack   []bool // the operands: true for a constant or a local, which takes no slot of its own
	kept    int    // operands at the bottom that already have a slot
	frame   frameOf
	joins   []Join
	endings []ending
	sweeps  []uint64 // sets of locals for a sweep
	spent   int      // how much of maxMeasuredTotal is used up
}

// frameOf is what a frame consists of, besides the parts that all frames have.
type frameOf struct {
	locals    int // bytes for values of locals
	operands  int // operands that outlive a call, or are more than there are registers
	arguments int // arguments of calls: moving one to its register pushes out what was there
	passed    int // values that the largest call passes on the stack
}

// The figures were fitted to 1,150 functions that compilers made, on amd64. Half of them take less than two thirds of what Measure returns, one in a
// hundred takes more than 1.2 times as much, and none more than twice as much.
const (
	frameBase     = 256
	frameOperand  = 8
	frameArgument = 4
)

const (
	// registers is how many values fit into registers. The compiler needs the other registers itself.
	registers = 6
	// passedRegisters is how many parameters and results a call passes in registers.
	passedRegisters = 6
	// bulkOperands is how many values are kept by the loops that a bulk instruction becomes.
	bulkOperands = 4
	// maxMeasured bounds the work of measuring a function, and maxMeasuredTotal that of all functions of a module. The work is steps × words of a
	// set, summed over all sweeps. That is some 50 ms for a function, and half a second for a module.
	maxMeasured      = 16 << 20
	maxMeasuredTotal = 160 << 20
	// maxWords bounds the locals of a function, in words of 64 locals.
	maxWords = 64
	// maxOperands bounds the operands that a function may have at a time. A call of two bytes can leave a thousand.
	maxOperands = 1 << 16
)

// A step is an instruction that matters to the frame.
type step struct {
	kind   stepKind
	at     int32 // index of a local, or of a scope
	height int32 // of the operand stack
}

type stepKind uint8

const (
	stepGet stepKind = iota
	stepSet
	stepCall
	stepBranch // to the end of a scope, or the beginning of a loop
	stepStop   // the next instruction is not reached from here
	stepOpen
	stepElse
	stepClose
)

// A scope is a block, loop or if, or the function.
type scope struct {
	op      byte // opcode.Else for an if with an else
	depth   int32
	loop    int32 // number among the loops
	base    int32 // height of the operand stack below its parameters
	params  int32
	results int32
	joins   int32 // paths to its end, or to the beginning of a loop
	at      int32 // offset of the instruction that opens it
	moved   int32 // locals that are needed where these paths join, and are set on one of them
}

// A Join is a place where several paths join: the end of a block or if, or the beginning of a loop. At is the offset in the body of the instruction
// that opens it. On each of the paths a value is moved for each of Moved locals.
type Join struct{ At, Moved int }

// An ending is what is known of the locals after a scope, and at the beginning of its else.
type ending struct{ live, kept, elseLive, elseKept []uint64 }

// NewRuler returns a ruler for functions of m.
func NewRuler(m *Module) *Ruler { return &Ruler{m: m} }

// Measure returns about how many bytes an activation of a function takes, and the joins where more than least locals are moved, in the order of their
// offsets. The joins are valid until the next function is measured. It reports false if measuring would take too long. The indices in the body must
// be valid, and its blocks balanced.
func (r *Ruler) Measure(t wasmbin.FuncType, body []byte, least int) (frame int, joins []Join, ok bool) {
	if r.spent > maxMeasuredTotal {
		return 0, nil, false
	}
	in := wasmbin.Reader{Data: body, End: len(body)}
	r.steps, r.scopes, r.open, r.sets, r.stack = r.steps[:0], r.scopes[:0], r.open[:0], r.sets[:0], r.stack[:0]
	r.large, r.loops, r.kept, r.frame = r.large[:0], 0, 0, frameOf{}
	if !r.declare(t.Params, &in) || !r.read(len(t.Results), &in) || !r.count() {
		return 0, nil, false
	}
	r.joins = r.joins[:0]
	for i := range r.scopes {
		if s := &r.scopes[i]; int(s.moved) > least {
			r.joins = append(r.joins, Join{int(s.at), int(s.moved)})
		}
	}
	f := &r.frame
	return frameBase + f.locals*6/5 + frameOperand*(f.operands+f.passed) + frameArgument*f.arguments, r.joins, true
}

// declare reads the types of the locals.
func (r *Ruler) declare(params []wasmbin.ValueType, in *wasmbin.Reader) bool {
	n := 0
	add := func(count int, kind wasmbin.ValueType) bool {
		if n+count > 64*maxWords {
			return false
		}
		for range count {
			if n%64 == 0 {
				r.large = append(r.large, 0)
			}
			if kind != wasmbin.I32 && kind != wasmbin.F32 {
				r.large[n/64] |= 1 << (n % 64)
			}
			n++
		}
		return true
	}
	for _, kind := range params {
		if !add(1, kind) {
			return false
		}
	}
	for range in.U32("the number of runs of locals") {
		count := int(in.U32("a number of locals"))
		if !add(count, in.ValueType("locals")) {
			return false
		}
	}
	r.words = len(r.large)
	return in.Err == nil
}

// read goes over the body, and notes its steps.
func (r *Ruler) read(results int, body *wasmbin.Reader) bool {
	var in wasmbin.Instruction
	r.enter(&in, opcode.Block, Signature{Results: results})
	for len(r.open) > 0 && body.Left() > 0 {
		in.Read(body)
		switch in.Op {
		case opcode.Block, opcode.Loop, opcode.If:
			if in.Op == opcode.If {
				r.pop(1)
			}
			r.enter(&in, byte(in.Op), r.m.block(&in))
			if len(r.sets) > maxMeasured/8 {
				return false
			}
		case opcode.Else, opcode.End:
			r.end(in.Op == opcode.Else)
		case opcode.Br:
			r.branch(in.A)
			r.stop(body)
		case opcode.BrIf:
			r.pop(1)
			r.branch(in.A)
		case opcode.BrTable:
			r.pop(1)
			labels := in.Labels(body.Data)
			for range int64(in.A) + 1 {
				r.branch(labels.U32("a label"))
			}
			r.stop(body)
		case opcode.Return, opcode.Unreachable:
			r.stop(body)
		case opcode.Call:
			r.call(r.m.Types[r.m.Functions[in.A]])
		case opcode.CallIndirect:
			r.pop(1)
			r.call(r.m.Types[in.A])
		case opcode.MemoryGrow:
			r.call(Signature{Params: 1, Results: 1})
		case opcode.TableGrow:
			r.call(Signature{Params: 2, Results: 1})
		case opcode.LocalGet:
			r.note(stepGet, int32(in.A))
			r.push(1, true)
		case opcode.LocalSet:
			r.set(in.A)
		case opcode.LocalTee:
			r.set(in.A)
			r.note(stepGet, int32(in.A))
			r.push(1, true)
		default:
			r.operate(&in)
		}
		if len(r.stack) > maxOperands {
			return false
		}
	}
	return body.Err == nil
}

func (r *Ruler) note(kind stepKind, at int32) {
	r.steps = append(r.steps, step{kind, at, int32(len(r.stack))})
}

func (r *Ruler) enter(in *wasmbin.Instruction, op byte, t Signature) {
	at := int32(len(r.scopes))
	r.note(stepOpen, at)
	s := scope{op: op, at: int32(in.Start), depth: int32(len(r.open)), base: int32(max(0, len(r.stack)-t.Params)), params: int32(t.Params), results: int32(t.Results)}
	if op == opcode.Loop {
		s.loop = int32(r.loops)
		r.loops++
	}
	r.scopes = append(r.scopes, s)
	r.open = append(r.open, at)
	r.sets = append(r.sets, make([]uint64, r.words)...)
}

// end ends a scope, or begins its else.
func (r *Ruler) end(other bool) {
	at := r.open[len(r.open)-1]
	s := &r.scopes[at]
	if r.steps[len(r.steps)-1].kind != stepStop {
		s.joins++
	}
	r.level(int(s.base))
	if other {
		r.push(int(s.params), false)
		r.note(stepElse, at)
		s.op = opcode.Else
		return
	}
	if s.op == opcode.If {
		s.joins++
	}
	r.push(int(s.results), false)
	r.note(stepClose, at)
	r.open = r.open[:len(r.open)-1]
	if n := len(r.open); n > 0 { // what is set in a scope is set in the scope around it
		outer, inner := r.of(r.open[n-1]), r.of(at)
		for w, set := range inner {
			outer[w] |= set
		}
	}
}

// of returns the locals that are set in a scope.
func (r *Ruler) of(scope int32) []uint64 { return r.sets[int(scope)*r.words:][:r.words] }

func (r *Ruler) branch(label uint32) {
	at := r.open[len(r.open)-1-int(label)]
	r.scopes[at].joins++
	r.note(stepBranch, at)
}

func (r *Ruler) set(local uint32) {
	r.pop(1)
	r.note(stepSet, int32(local))
	r.of(r.open[len(r.open)-1])[local/64] |= 1 << (local % 64)
}

// push puts n operands on the stack.
func (r *Ruler) push(n int, plain bool) {
	for range n {
		if r.stack = append(r.stack, plain); !plain && len(r.stack) > registers {
			r.frame.operands++
		}
	}
}

func (r *Ruler) pop(n int) { r.level(len(r.stack) - n) }

// level takes the operand stack down to a height. Types have not been checked, so an operand may be missing.
func (r *Ruler) level(height int) {
	r.stack = r.stack[:min(max(height, 0), len(r.stack))]
	r.kept = min(r.kept, len(r.stack))
}

func (r *Ruler) call(t Signature) {
	below := max(0, len(r.stack)-t.Params)
	for _, plain := range r.stack[below:] {
		if !plain {
			r.frame.arguments++
		}
	}
	r.level(below)
	for ; r.kept < below; r.kept++ {
		if !r.stack[r.kept] {
			r.frame.operands++
		}
	}
	r.note(stepCall, 0)
	r.push(t.Results, false)
	r.frame.passed = max(r.frame.passed, max(0, t.Params-passedRegisters)+max(0, t.Results-passedRegisters))
}

// operate changes the operands as an instruction would. The instruction must neither branch nor call.
func (r *Ruler) operate(in *wasmbin.Instruction) {
	height := int(effectOf(in.Op).height)
	switch {
	case height > 0:
		r.push(height, in.Op >= opcode.I32Const && in.Op <= opcode.F64Const)
	case givesNothing(in.Op):
		r.pop(-height)
		if in.Op>>8 == opcode.Bulk {
			r.frame.operands += bulkOperands
		}
	default: // its result takes the place of its operands
		r.pop(1 - height)
		r.push(1, false)
	}
}

// givesNothing reports whether an instruction has no result.
func givesNothing(op uint16) bool {
	sub := op & 0xff
	switch op >> 8 {
	case 0:
		return op == opcode.Nop || op == opcode.Drop || op == opcode.GlobalSet || op == opcode.TableSet || op >= opcode.Store && op < opcode.MemorySize
	case opcode.Bulk:
		return op >= opcode.MemoryInit && op != opcode.TableGrow && op != opcode.TableSize
	default:
		return sub == 11 || sub >= 88 && sub <= 91 // stores of vectors
	}
}

// stop ends the current path, and skips the unreachable code after it.
func (r *Ruler) stop(body *wasmbin.Reader) {
	r.note(stepStop, 0)
	var in wasmbin.Instruction
	for nested := 0; body.Left() > 0; {
		at := body.Pos
		in.Read(body)
		switch in.Op {
		case opcode.Block, opcode.Loop, opcode.If:
			nested++
		case opcode.Else, opcode.End:
			if nested == 0 {
				body.Pos = at
				return
			}
			if in.Op == opcode.End {
				nested--
			}
		}
	}
}
