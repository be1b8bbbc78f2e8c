package weigh

import (
	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// A Scale weighs the functions of one module, one after the other. It reuses its memory for the next function.
type Scale struct {
	m      *Module
	r      wasmbin.Reader
	in     wasmbin.Instruction // the current one
	count  Count
	frames []frame
	blocks []block
	locals []local
	rounds []span  // outermost loops
	begins []int32 // for each block, the locals whose life begins there, less those whose life ends

	place
	height int   // of the operand stack
	sets   int32 // assignments to locals so far
	joins  int32 // blocks so far that are reached from several others
	inside int   // open loops
	nested int   // the most loops that were open at a time
}

// A place is an instruction's place in the control flow, as far as the compiler's costs depend on it.
type place struct {
	dead  bool  // nothing leads there
	depth int32 // blocks above it in the dominator tree
	head  int32 // block that heads the innermost loop above it in that tree, or -1
	chain int32 // blocks since the last one that is reached from several
	known int32 // addresses that are known to be in bounds
}

// meet makes p the place where its path meets another one, which comes from q.
func (p *place) meet(q place) {
	switch {
	case q.dead:
	case p.dead:
		*p = q
	default:
		*p = place{false, min(p.depth, q.depth), min(p.head, q.head), min(p.chain, q.chain), min(p.known, q.known)}
	}
}

// A block is a basic block.
type block struct {
	loop   bool
	head   int32 // place.head
	height int32
	params int32   // of its type
	sets   int32   // assignments to locals since the paths to here parted; for a loop, those in the loop
	preds  int32   // paths to here
	split  int32   // how many of these get a block of their own from the compiler
	before int32   // assignments to locals so far
	chains float64 // sum over the paths
	above  float64 // for a loop, values that are live at the heads of loops above and at its own
}

// A frame is an open block, loop, if or the function.
type frame struct {
	Signature
	op    byte
	base  int   // height below the parameters
	head  int32 // a loop's block
	entry place
	least place // where the paths to its end meet
	end   block // what follows
}

// A span goes from one block to another. Blocks are numbered from 1.
type span struct{ from, to int32 }

// A local is a local variable. It is taken to be live from where it is first set to where it is last read.
type local struct {
	span        // to is 0 while nothing has read it
	set   int32 // block in which it was last set
	round int32 // number of the last of Scale.rounds in which it was read: it is live throughout that loop
	joins int32 // the value of Scale.joins when it was last read
	links int32 // at how many reads since it was set Scale.joins had changed
}

// NewScale returns a scale for functions of m.
func NewScale(m *Module) *Scale { return &Scale{m: m} }

// mostBlocks is how many blocks of a function are counted: more than anybody compiles, since compiling so many takes half a gigabyte. The scale needs
// 50 bytes for each.
const mostBlocks = 1 << 20

// Count counts what is in a function. The indices in its body must be valid, and its blocks balanced. An instruction that can't
// be read is an error.
func (s *Scale) Count(t Signature, body []byte) (Count, error) {
	r := wasmbin.Reader{Data: body, End: len(body)}
	locals := t.Params
	for range r.U32("the number of runs of locals") {
		locals += int(r.U32("a number of locals"))
		r.Byte("the type of locals")
	}
	*s = Scale{
		m: s.m, r: r, frames: s.frames[:0], blocks: s.blocks[:0], locals: append(s.locals[:0], make([]local, locals)...), rounds: s.rounds[:0], begins: s.begins[:0],
		place: place{head: -1},
	}
	s.count[Work] = float64(locals) + float64(s.m.Globals)/4
	s.begin(block{preds: 1})
	s.open(opcode.Block, Signature{Results: t.Results})
	for i := range t.Params {
		s.set(&s.locals[i])
	}
	for len(s.frames) > 0 && s.r.Left() > 0 && len(s.blocks) < mostBlocks {
		s.instruction()
	}
	if s.r.Err != nil {
		return Count{}, s.r.Err
	}
	s.finish()
	return s.count, nil
}

func (s *Scale) instruction() {
	if s.in.Read(&s.r); s.r.Err != nil {
		return
	}
	switch s.in.Op {
	case opcode.Block, opcode.Loop:
		s.open(byte(s.in.Op), s.m.block(&s.in))
	case opcode.If:
		s.height--
		s.open(opcode.If, s.m.block(&s.in))
	case opcode.Else:
		f := &s.frames[len(s.frames)-1]
		s.leave(f, 0)
		s.other(f)
	case opcode.End:
		s.end()
	case opcode.Br:
		s.branch(s.in.A, 0)
		s.dead = true
	case opcode.BrIf:
		s.branchIf(s.in.A)
	case opcode.BrTable:
		labels := s.in.Labels(s.r.Data)
		for range int64(s.in.A) + 1 {
			s.branch(labels.U32("a label"), 1)
		}
		s.dead = true
	case opcode.Return:
		s.count[Work] += float64(3+s.frames[0].Results) * workOne
		s.count[Blocks]++
		s.dead = true
	case opcode.Unreachable:
		s.dead = true
	case opcode.Call:
		s.call(s.m.Types[s.m.Functions[s.in.A]])
		if int(s.in.A) < s.m.Imported {
			s.count[Work] += 8*workOne + float64(s.in.A)/32 // wazero counts the imports up to it
		}
	case opcode.CallIndirect:
		s.height--
		s.call(s.m.Types[s.in.A])
		s.count[Work] += 30 * workOne
	case opcode.LocalGet:
		s.get(&s.locals[s.in.A])
		s.height++
	case opcode.LocalSet:
		s.set(&s.locals[s.in.A])
		s.height--
	case opcode.LocalTee:
		s.set(&s.locals[s.in.A])
	case opcode.MemoryFill, opcode.TableFill:
		s.fill()
	default:
		s.plain()
	}
}

// fill counts a memory.fill or table.fill, which the compiler turns into a loop with a call, behind a branch for when there is nothing to fill. The
// loop passes its progress on to the next iteration.
func (s *Scale) fill() {
	s.height -= 2
	s.count[Work] += workBulk
	s.open(opcode.Block, Signature{})
	s.branchIf(0)
	s.height += 2
	s.open(opcode.Loop, Signature{Params: 1})
	s.branchIf(0)
	s.branch(1, 1) // measured: if many locals are live, a fill takes as much as one more path to its end would
	s.end()
	s.end()
}

// plain counts an instruction that neither branches nor calls.
func (s *Scale) plain() {
	e := effectOf(s.in.Op)
	switch s.in.Op {
	case opcode.GlobalGet, opcode.GlobalSet, opcode.TableGet, opcode.TableSet, opcode.RefFunc:
		s.count[Steps] += float64(s.chain) + 1
	}
	if e.memory {
		s.known++
		s.count[Steps] += float64(2*s.chain + 1)
	}
	s.height += int(e.height)
	s.count[Work] += float64(e.work)
}

func (s *Scale) call(t Signature) {
	s.height += t.Results - t.Params
	s.count[Work] += float64(6+2*(t.Params+t.Results)) * workOne
	s.count[Reloads] += float64(s.m.Mutable + 2)
}

// set counts an assignment to a local.
func (s *Scale) set(l *local) {
	s.count[Work] += workNone
	if s.dead {
		return
	}
	s.sets++
	l.set, l.links = s.now(), 0
	if l.from == 0 {
		l.from = l.set
	}
}

// get counts a read of a local.
func (s *Scale) get(l *local) {
	s.count[Work] += workNone
	if l.to = s.now(); l.set == l.to {
		return
	}
	if l.joins != s.joins {
		l.joins = s.joins
		l.links++
	}
	// Measured: each of l.links takes a seventh of a step, and more if there are too many for the nearest cache.
	s.count[Steps] += float64(s.chain+1) + float64(l.links)/7*(1+min(float64(l.links)/1024, 2))
	if l.from == 0 {
		l.from = 1
	}
	if s.inside > 0 { // its value may come from the previous iteration
		l.round = int32(len(s.rounds))
		l.from = min(l.from, s.rounds[l.round-1].from)
	}
}

// begin begins a basic block.
func (s *Scale) begin(b block) {
	s.depth++
	if s.chain++; b.loop || b.preds > 1 {
		s.chain = 0
		s.joins++
	}
	b.height, b.head, b.before = int32(s.height), s.head, s.sets
	s.blocks = append(s.blocks, b)
	s.count[Known] += float64(s.known)
	s.count[Dominate] += float64(s.depth)
}

// now is the number of the current block.
func (s *Scale) now() int32 { return int32(len(s.blocks)) }

// open opens a block, loop or if of that type.
func (s *Scale) open(op byte, t Signature) {
	f := frame{Signature: t, op: op, base: s.height - t.Params, entry: s.place, least: place{dead: true}, end: block{params: int32(t.Results), sets: s.sets}}
	switch op {
	case opcode.Loop:
		s.count[Work] += float64(4+2*t.Params) * workOne
		f.head = s.now()
		s.begin(block{loop: true, params: int32(t.Params), preds: 1, chains: float64(s.chain)})
		s.head = f.head
		if s.inside++; s.inside == 1 {
			s.rounds = append(s.rounds, span{from: s.now()})
		}
		s.nested = max(s.nested, s.inside)
	case opcode.If:
		s.count[Work] += 4 * workOne
		s.begin(block{preds: 1})
	}
	s.frames = append(s.frames, f)
}

// branchIf counts a branch to a label, and begins the block that follows if it is not taken.
func (s *Scale) branchIf(label uint32) {
	s.height--
	s.branch(label, 1)
	s.begin(block{preds: 1})
}

// branch counts a path to a label. split is how many blocks the compiler puts on that path.
func (s *Scale) branch(label uint32, split int32) {
	f := &s.frames[len(s.frames)-1-int(label)]
	passes := f.Results
	if f.op == opcode.Loop {
		passes = f.Params
		s.way(&s.blocks[f.head], split)
	} else {
		s.leave(f, split)
	}
	s.count[Work] += float64(4+passes) * workOne
	s.count[Blocks] += float64(split)
}

// leave counts a path to the end of a frame.
func (s *Scale) leave(f *frame, split int32) {
	f.least.meet(s.place)
	s.way(&f.end, split)
}

// way counts a path to a block.
func (s *Scale) way(to *block, split int32) {
	if !s.dead {
		to.preds++
		to.split += split
		to.chains += float64(s.chain + split)
		s.count[Dominate] += 2 * float64(s.depth)
	}
}

// other begins the else branch of an if.
func (s *Scale) other(f *frame) {
	f.op = opcode.Else
	s.height, s.place = f.base+f.Params, f.entry
	s.begin(block{preds: 1})
}

// end ends the innermost frame, and begins the block that follows it.
func (s *Scale) end() {
	f := s.frames[len(s.frames)-1]
	s.frames = s.frames[:len(s.frames)-1]
	s.leave(&f, 0)
	if f.op == opcode.If { // in a missing else branch, the compiler forgets which addresses are in bounds
		s.other(&f)
		s.known = 0
		s.leave(&f, 0)
	}
	f.end.sets = s.sets - f.end.sets
	if f.op == opcode.Loop {
		s.blocks[f.head].sets = f.end.sets
		if s.inside--; s.inside == 0 {
			s.rounds[len(s.rounds)-1].to = s.now()
		}
	}
	s.count[Work] += float64(2+2*f.Results) * workOne
	s.height, s.place = f.base+f.Results, f.least
	if f.op == opcode.Else && f.end.preds > 1 {
		s.depth, s.head = f.entry.depth, f.entry.head
	}
	if len(s.frames) > 0 {
		s.begin(f.end)
	} else {
		s.count[Preds] += float64(f.end.preds) * float64(f.end.preds)
	}
}

// block returns the type of the block that an instruction opens.
func (m *Module) block(in *wasmbin.Instruction) Signature {
	switch b := in.Block; {
	case b >= 0:
		return m.Types[b]
	case b == wasmbin.EmptyBlock:
		return Signature{}
	}
	return Signature{Results: 1}
}

// finish sums up the costs that depend on the live locals of each block.
func (s *Scale) finish() {
	// cached is about how many arguments of the paths to one block fit into a processor's cache. With more, each of them costs more.
	const cached = 1 << 18
	s.begins = append(s.begins, make([]int32, len(s.blocks)+2)...)
	for _, l := range s.locals {
		if l.to == 0 {
			continue
		}
		if l.round > 0 {
			l.to = max(l.to, s.rounds[l.round-1].to)
		}
		s.begins[l.from]++
		s.begins[l.to+1]--
	}
	c, running, passes := &s.count, int32(0), float64(s.nested)
	c[Blocks] += float64(len(s.blocks))
	for i, b := range s.blocks {
		running += s.begins[i+1]
		locals, preds, split := float64(running), float64(b.preds), float64(b.split)
		live := locals + float64(max(b.height, 0)) + 2 // types are not checked yet: it may take more operands than there are
		c[Live] += live * (1 + preds + 2*split)
		var head block
		if b.head >= 0 {
			head = s.blocks[b.head]
		}
		if b.loop { // a value that is live here but not at the head above was set between the two, or in the loop
			s.blocks[i].above = head.above + min(live, float64(b.sets+b.before-head.before+b.height))
		}
		c[Above] += head.above * (1 + split)
		if b.preds < 2 && !b.loop {
			continue
		}
		first := locals + float64(b.params)
		moved := min(first, float64(b.sets+b.params))
		again := moved * moved
		if b.loop {
			again += first * first
		}
		c[Joins] += first
		c[Moves] += preds * moved
		c[Steps] += locals * (b.chains + preds)
		c[Argument] += preds * (first*first + again*passes) * (1 + preds*first/cached)
		c[Preds] += preds * preds
	}
}
