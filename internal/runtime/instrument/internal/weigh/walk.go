package weigh

import (
	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// A Scale weighs the functions of one module, one after the other. What it allocates for one it uses for the next.
type Scale struct {
	m      *Module
	widest Signature // the most that a type of the module has
	r      wasmbin.Reader
	in     wasmbin.Instruction // the current one
	frames []frame
	blocks []block
	locals []local
	loops  []loop
	inside []int32   // open loops, by their index in loops
	diff   []int32   // locals that become live in a block, less those whose life ends
	carry  []float64 // of each block: values that loops above keep alive

	place
	height int
	count  Count
	sets   int   // locals set so far
	serial int32 // of the frame that was opened last
	nested int   // loops that were open at most
	stamp  int   // number of the current block
}

// A place is where in the control flow an instruction stands, as far as the compiler's costs depend on it.
type place struct {
	depth  int32 // blocks above it in the dominator tree
	chain  int32 // blocks since the last that is reached from several
	known  int32 // addresses that are known to be in bounds
	part   int32 // number of the last block that is reached from several
	header int32 // block that heads the innermost loop above it in the dominator tree, or -1
	sets   int32 // of locals before that loop
	low    int32 // the operand stack's least height since then
}

// A block is a basic block.
type block struct {
	height int32
	preds  int32
	params int32   // of its type
	sets   int32   // of locals since the way here parted
	fresh  int32   // of a loop: values that are not live where the loop above it begins, at most
	header int32   // of the loop above it, or -1
	split  int32   // of preds: those on whose way the compiler puts a block
	chains float64 // of those that lead here
	loop   bool
}

// A frame is an open block, loop, if or the function.
type frame struct {
	op      byte
	serial  int32 // no other frame, and no other branch of an if, has it
	base    int   // height below the parameters
	params  int
	results int
	sets    int
	entry   place // of an if, of its head
	block   int32 // a loop's

	preds  int32 // that lead to its end so far
	split  int32
	chains float64
	depths float64
	least  place
}

// NewScale returns a scale for functions of m.
func NewScale(m *Module) *Scale {
	s := &Scale{m: m}
	for _, t := range m.Types {
		s.widest.Params, s.widest.Results = max(s.widest.Params, t.Params), max(s.widest.Results, t.Results)
	}
	return s
}

// Count counts what is in a function. The indices in its body must be valid, and its blocks balanced. An instruction that can't
// be read is an error.
func (s *Scale) Count(t Signature, body []byte) (Count, error) {
	s.r = wasmbin.Reader{Data: body, End: len(body)}
	locals := t.Params
	for range s.r.U32("the number of runs of locals") {
		locals += int(s.r.U32("a number of locals"))
		s.r.Byte("the type of locals")
	}
	s.frames, s.blocks, s.loops, s.inside = s.frames[:0], s.blocks[:0], s.loops[:0], s.inside[:0]
	if cap(s.locals) < locals {
		s.locals = make([]local, locals)
	}
	s.locals = s.locals[:locals]
	clear(s.locals)
	s.count, s.height, s.sets, s.serial, s.nested = Count{Work: float64(locals) + float64(s.m.Globals)/4}, 0, 0, 0, 0
	s.place = place{header: -1}
	s.begin(block{preds: 1, header: -1})
	s.diff = append(s.diff[:0], make([]int32, len(body)+3)...) // there are no more blocks than bytes
	s.frames = append(s.frames, frame{op: opcode.Block, results: t.Results, least: unreached})
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

// mostBlocks is how many blocks of a function are counted: more than anybody compiles, since they take half a gigabyte, and each takes
// a scale 100 bytes.
const mostBlocks = 1 << 20

var unreached = place{depth: 1 << 30, known: 1 << 30, header: 1 << 30}

// begin begins a basic block.
func (s *Scale) begin(b block) {
	b.height, b.header = int32(s.height), s.header
	s.blocks = append(s.blocks, b)
	s.stamp = len(s.blocks)
	s.count.Known += float64(s.known)
	s.count.Dominate += float64(s.depth)
}

// next begins a basic block that only the current one leads to.
func (s *Scale) next() {
	s.depth++
	s.chain++
	s.begin(block{preds: 1, chains: float64(s.chain)})
}

func (s *Scale) instruction() {
	if s.in.Read(&s.r); s.r.Err != nil {
		return
	}
	top := &s.frames[len(s.frames)-1]
	switch s.in.Op {
	case opcode.Block, opcode.Loop:
		s.open(byte(s.in.Op), s.blockType())
	case opcode.If:
		s.height--
		s.open(opcode.If, s.blockType())
	case opcode.Else:
		s.otherwise(top)
	case opcode.End:
		s.end()
	case opcode.Br:
		s.branch(s.in.A, 0)
		s.count.Work += 3 * workOne
		s.skip()
	case opcode.BrIf:
		s.height--
		s.branchIf(s.in.A)
	case opcode.BrTable:
		s.height--
		n := s.in.A
		args := 0
		labels := s.in.Labels(s.r.Data)
		for range int64(n) + 1 {
			args = s.branch(labels.U32("a label"), 1)
		}
		s.count.Blocks += float64(n) + 1
		s.count.Work += float64(n+1) * float64(3+args) * workOne
		s.skip()
	case opcode.Return:
		s.count.Work += float64(3+s.frames[0].results) * workOne
		s.count.Blocks++
		s.skip()
	case opcode.Unreachable:
		s.count.Work += 2 * workOne
		s.skip()
	case opcode.Call:
		f := s.in.A
		t := s.m.Types[s.m.Functions[f]]
		s.call(t)
		if int(f) < s.m.Imported {
			s.count.Work += 8*workOne + float64(f)/32 // wazero counts the imports up to it
		}
	case opcode.CallIndirect:
		s.height--
		s.call(s.m.Types[s.in.A])
		s.count.Work += 30 * workOne
	case opcode.LocalGet:
		s.get(&s.locals[s.in.A])
		s.height++
	case opcode.LocalSet:
		s.set(&s.locals[s.in.A])
		s.height--
		s.dip(s.height)
	case opcode.LocalTee:
		s.set(&s.locals[s.in.A])
	case opcode.MemoryFill, opcode.TableFill:
		s.fill()
	default:
		s.plain()
	}
}

// fill counts a memory.fill or table.fill, which the compiler turns into a loop with a call, behind a branch where there is nothing to
// fill. The loop passes on its progress.
func (s *Scale) fill() {
	s.height -= 3
	s.dip(s.height)
	s.count.Work += workBulk
	s.open(opcode.Block, Signature{})
	s.branchIf(0)
	s.height++
	s.open(opcode.Loop, Signature{Params: 1})
	s.branchIf(0)
	s.branch(1, 1) // measured: where many locals are live, a fill takes as much as one more way to its end would
	s.height--
	s.end()
	s.end()
}

// branchIf counts a branch to a label, and begins the block that follows where it is not taken.
func (s *Scale) branchIf(label uint32) {
	s.branch(label, 1)
	s.count.Work += 4 * workOne
	s.count.Blocks++ // its edge is split
	s.next()
}

// plain counts an instruction that neither branches nor calls.
func (s *Scale) plain() {
	e := effectOf(s.in.Op)
	switch s.in.Op {
	case opcode.GlobalGet, opcode.GlobalSet, opcode.TableGet, opcode.TableSet, opcode.RefFunc:
		s.count.Steps += float64(s.chain) + 1
	}
	if e.memory {
		s.known++
		s.count.Steps += float64(2*s.chain + 1)
	}
	s.height += int(e.height)
	s.dip(s.height - 1)
	s.count.Work += float64(e.work)
}

func (s *Scale) call(t Signature) {
	s.height += t.Results - t.Params
	s.dip(s.height - t.Results)
	s.count.Work += float64(6+2*(t.Params+t.Results)) * workOne
	s.count.Reloads += float64(s.m.Mutable + 2)
}

// dip notes that the operand stack was no higher than that for a moment.
func (s *Scale) dip(height int) { s.low = min(s.low, int32(height)) }

// open opens a block, loop or if of that type.
func (s *Scale) open(op byte, t Signature) {
	s.serial++
	f := frame{op: op, serial: s.serial, params: t.Params, results: t.Results, sets: s.sets, least: unreached}
	f.base = s.height - t.Params
	switch op {
	case opcode.Loop:
		s.count.Work += float64(4+2*t.Params) * workOne
		chain := s.chain
		s.depth++
		s.chain = 0
		s.part = int32(s.stamp) + 1
		f.block = int32(len(s.blocks))
		s.begin(block{preds: 1, params: int32(t.Params), chains: float64(chain), loop: true, fresh: int32(s.sets) - s.place.sets + int32(s.height) - s.low})
		s.header, s.place.sets, s.low = f.block, int32(s.sets), int32(s.height)
		s.inside = append(s.inside, int32(len(s.loops)))
		s.loops = append(s.loops, loop{from: int32(s.stamp)})
		s.nested = max(s.nested, len(s.inside))
	case opcode.If:
		s.count.Work += 4 * workOne
		f.entry = s.place
		s.next()
	}
	s.frames = append(s.frames, f)
}

// branch counts an edge to a label, on which the compiler puts that many extra blocks. It returns how many values it passes.
func (s *Scale) branch(label uint32, extra int32) int {
	f := &s.frames[len(s.frames)-1-int(label)]
	s.count.Dominate += float64(s.depth)
	if f.op == opcode.Loop {
		b := &s.blocks[f.block]
		b.preds++
		b.split += extra
		b.chains += float64(s.chain + extra)
		return f.params
	}
	s.leave(f, extra)
	return f.results
}

// leave counts an edge to the end of a frame.
func (s *Scale) leave(f *frame, extra int32) {
	f.preds++
	f.split += extra
	f.chains += float64(s.chain + extra)
	f.depths += float64(s.depth)
	f.least.depth = min(f.least.depth, s.depth)
	f.least.known = min(f.least.known, s.known)
	switch {
	case s.header < f.least.header:
		f.least.header, f.least.sets, f.least.low = s.header, s.place.sets, s.low
	case s.header == f.least.header:
		f.least.low = min(f.least.low, s.low)
	}
	f.least.chain, f.least.part = s.chain, s.part
}

// otherwise ends the first branch of an if, at its else.
func (s *Scale) otherwise(f *frame) {
	s.leave(f, 0)
	s.other(f)
}

// other begins the other branch of an if.
func (s *Scale) other(f *frame) {
	s.serial++
	f.op, f.serial = opcode.Else, s.serial
	s.height = f.base + f.params
	s.place = f.entry
	s.dip(s.height - f.params)
	s.next()
}

// end closes the innermost frame.
func (s *Scale) end() {
	f := &s.frames[len(s.frames)-1]
	s.leave(f, 0)
	if f.op == opcode.If {
		s.absent(f)
	}
	s.close()
}

// absent counts the missing branch of an if without an else. In it, the compiler forgets the addresses that it knows.
func (s *Scale) absent(f *frame) {
	s.other(f)
	s.known = 0
	s.leave(f, 0)
}

// close closes the innermost frame and begins the block that follows it.
func (s *Scale) close() {
	f := s.frames[len(s.frames)-1]
	s.frames = s.frames[:len(s.frames)-1]
	if f.op == opcode.Loop {
		s.blocks[f.block].sets = int32(s.sets - f.sets)
		s.loops[s.inside[len(s.inside)-1]].to = int32(s.stamp)
		s.inside = s.inside[:len(s.inside)-1]
	}
	s.count.Work += float64(2+2*f.results) * workOne
	s.height = f.base + f.results
	switch {
	case len(s.frames) == 0:
		s.count.Preds += float64(f.preds) * float64(f.preds)
	case f.preds == 0:
		s.skip()
	case f.preds == 1:
		s.place = f.least
		s.dip(f.base)
		s.next()
	default:
		s.place = f.least
		if f.op == opcode.Else {
			s.depth, s.header, s.place.sets, s.low = f.entry.depth, f.entry.header, f.entry.sets, f.entry.low
		}
		s.dip(f.base)
		s.depth++
		s.chain = 0
		s.part = int32(s.stamp) + 1
		s.count.Dominate += f.depths
		s.begin(block{preds: f.preds, split: f.split, params: int32(f.results), sets: int32(s.sets - f.sets), chains: f.chains})
	}
}

// skip passes over unreachable code, up to an else or end of the innermost frame. No code is made of it, but its types are checked: what is
// moved counts, and a result takes memory until the end of the frame.
func (s *Scale) skip() {
	for nested := 0; s.r.Left() > 0; {
		if s.in.Read(&s.r); s.r.Err != nil {
			return
		}
		switch s.in.Op {
		case opcode.Block, opcode.Loop, opcode.If:
			s.move(s.blockType())
			nested++
		case opcode.Call:
			s.move(s.m.Types[s.m.Functions[s.in.A]])
		case opcode.CallIndirect:
			s.move(s.m.Types[s.in.A])
		case opcode.Br, opcode.BrIf, opcode.Return: // where to is not worth knowing
			s.move(s.widest)
		case opcode.BrTable:
			for range 1 + s.in.A/16 { // to look at one is less than to move it
				s.move(s.widest)
			}
		case opcode.Else:
			if nested == 0 {
				s.other(&s.frames[len(s.frames)-1])
				return
			}
		case opcode.End:
			if nested > 0 {
				nested--
				continue
			}
			if f := &s.frames[len(s.frames)-1]; f.op == opcode.If {
				s.absent(f)
			}
			s.close()
			return
		}
	}
}

// move counts the values of an instruction that is only checked.
func (s *Scale) move(t Signature) { s.count.Work += float64(t.Params+t.Results) * workNone }

// blockType returns the type of the block that the current instruction opens.
func (s *Scale) blockType() Signature { return s.m.block(&s.in) }

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
