package weigh

// A Scale weighs functions of one module, one after the other. It keeps what it allocates for the next one.
type Scale struct {
	m      *Module
	r      reader
	frames []frame
	blocks []block
	locals []local
	loops  []int32 // last block of each outermost loop
	diff   []int32 // locals that begin to be live in a block, less those that ended
	carry  []int64 // of each block: values that loops above keep alive

	place
	height int
	count  Count
	sets   int // locals set so far
	defs   int // values defined so far, of the stack and of locals
	outer  int // index of the outermost open loop in loops, or -1
	open   int // loops that are open
	nested int // loops that were open at most
	stamp  int // number of the current block
}

// A place is where in the control flow an instruction stands, as far as the compiler's costs depend on it.
type place struct {
	depth  int32 // blocks above it in the dominator tree
	chain  int32 // blocks since the last that is reached from several
	known  int32 // addresses that are known to be in bounds
	part   int32 // number of the last block that is reached from several
	header int32 // block that heads the innermost loop above it in the dominator tree, or -1
	defs   int32 // values defined where that loop begins
}

// A block is a basic block.
type block struct {
	height int32
	preds  int32
	params int32 // of its type
	sets   int32 // of locals since the way here parted
	defs   int32 // of values since the loop above began
	header int32 // of the loop above it, or -1
	split  int32 // of preds: those on whose way the compiler puts a block
	chains int64 // of those that lead here
	loop   bool
}

// A frame is an open block, loop, if or the function.
type frame struct {
	op      byte
	dead    bool // begun in code that nothing reaches
	outer   bool // an outermost loop
	base    int  // height below the parameters
	params  int
	results int
	sets    int
	entry   place // of an if, of its head
	block   int32 // a loop's

	preds  int32 // that lead to its end so far
	split  int32
	chains int64
	depths int64
	least  place
}

// A local is a local variable.
type local struct {
	set   int32 // block in which it was last set, plus 1
	first int32 // block in which it was first set, plus 1
	from  int32 // first block in which it is live, plus 1; 0: in none
	to    int32
	loop  int32 // outermost loop in which it is read, plus 1
	part  int32 // place.part in which it was last read
	links int32 // such parts in a row
}

// NewScale returns a scale for functions of m.
func NewScale(m *Module) *Scale { return &Scale{m: m} }

// Weigh returns what compiling a function takes, whose body has been checked.
func (s *Scale) Weigh(t Signature, body []byte) Weight {
	c := s.Count(t, body)
	return c.weight()
}

// Count is Weigh before it is made time and bytes.
func (s *Scale) Count(t Signature, body []byte) Count {
	s.r = reader{data: body}
	locals := t.Params
	for range s.r.u32() {
		locals += int(s.r.u32())
		s.r.pos++
	}
	s.frames, s.blocks, s.loops = s.frames[:0], s.blocks[:0], s.loops[:0]
	if cap(s.locals) < locals {
		s.locals = make([]local, locals)
	}
	s.locals = s.locals[:locals]
	clear(s.locals)
	s.count, s.height, s.sets, s.defs, s.outer, s.open, s.nested = Count{Work: int64(locals)}, 0, 0, 0, -1, 0, 0
	s.place = place{header: -1}
	s.begin(block{preds: 1, header: -1})
	for i := range t.Params {
		s.locals[i].set, s.locals[i].first = 1, 1
	}
	s.frames = append(s.frames, frame{op: opBlock, results: t.Results, least: unreached})
	for len(s.frames) > 0 && s.r.pos < len(body) {
		s.instruction()
	}
	s.finish()
	return s.count
}

var unreached = place{depth: 1 << 30, known: 1 << 30, header: 1 << 30}

// begin begins a basic block.
func (s *Scale) begin(b block) {
	b.height, b.header = int32(s.height), s.header
	s.blocks = append(s.blocks, b)
	s.stamp = len(s.blocks)
	s.count.Known += int64(s.known)
	s.count.Dominate += int64(s.depth)
}

// next begins a basic block that only the current one leads to.
func (s *Scale) next() {
	s.depth++
	s.chain++
	s.begin(block{preds: 1, chains: int64(s.chain)})
}

func (s *Scale) instruction() {
	op := s.r.byte()
	top := &s.frames[len(s.frames)-1]
	switch op {
	case opBlock, opLoop, opIf:
		s.enter(op)
	case opElse:
		s.otherwise(top)
	case opEnd:
		s.end()
	case opBr:
		s.branch(s.r.u32(), 0)
		s.count.Work += 3 * workOne
		s.skip()
	case opBrIf:
		s.height--
		s.branch(s.r.u32(), 1)
		s.count.Work += 4 * workOne
		s.count.Blocks++ // its edge is split
		s.next()
	case opBrTable:
		s.height--
		n := s.r.u32()
		args := 0
		for i := uint32(0); i <= n; i++ {
			args = s.branch(s.r.u32(), 1)
		}
		s.count.Blocks += int64(n) + 1
		s.count.Work += int64(n+1) * int64(3+args) * workOne
		s.skip()
	case opReturn:
		s.count.Work += int64(3+s.frames[0].results) * workOne
		s.count.Blocks++
		s.skip()
	case opUnreachable:
		s.count.Work += 2 * workOne
		s.skip()
	case opCall:
		f := s.r.u32()
		t := s.m.Types[s.m.Functions[f]]
		s.call(t)
		if int(f) < s.m.Imported {
			s.count.Work += 8*workOne + int64(f)/32 // wazero counts the imports up to it
		}
	case opCallIndirect:
		t := s.m.Types[s.r.u32()]
		s.r.u32()
		s.height--
		s.call(t)
		s.count.Work += 30 * workOne
	case opLocalGet:
		s.get(&s.locals[s.r.u32()])
		s.height++
	case opLocalSet:
		s.set(&s.locals[s.r.u32()])
		s.height--
	case opLocalTee:
		s.set(&s.locals[s.r.u32()])
	default:
		s.plain(op)
	}
}

// plain takes in an instruction that neither branches nor calls.
func (s *Scale) plain(op byte) {
	e := effects[op]
	switch {
	case op >= opLoad && op < opMemorySize:
		s.r.memory()
	case op == 0x41, op == 0x42:
		s.r.skip()
	case op == 0x43:
		s.r.pos += 4
	case op == 0x44:
		s.r.pos += 8
	case op == opGlobalGet, op == opGlobalSet, op == 0x25, op == 0x26, op == 0xd2:
		s.r.u32()
		s.count.Steps += int64(s.chain) + 1
	case op == 0x1c:
		s.r.pos += 2
	case op == opMemorySize, op == opMemoryGrow, op == 0xd0:
		s.r.pos++
	case op == 0xfc:
		sub := s.r.byte()
		s.r.bulk(sub)
		e = bulkEffect(sub)
	case op == 0xfd:
		sub := s.r.byte()
		s.r.vector(sub)
		e = vectorEffect(sub)
	}
	if e.memory {
		s.known++
		s.count.Steps += 2*int64(s.chain) + 1
	}
	s.height += int(e.height)
	s.defs++
	s.count.Work += int64(e.work)
}

func (s *Scale) call(t Signature) {
	s.height += t.Results - t.Params
	s.defs += t.Results
	s.count.Work += int64(6+2*(t.Params+t.Results)+s.m.Mutable+2) * workOne
}

// get takes in that a local is read.
func (s *Scale) get(l *local) {
	s.count.Work += workNone
	if l.set == int32(s.stamp) {
		return
	}
	s.count.Steps += int64(s.chain) + 1
	if l.part != s.part {
		l.part = s.part
		l.links++
	}
	s.count.Alias += int64(l.links)
	now := int32(s.stamp)
	if l.from == 0 {
		l.from = max(l.first, 1)
	}
	l.to = max(l.to, now)
	if s.open > 0 {
		l.loop = int32(s.outer) + 1
		l.from = min(l.from, s.loops[s.outer])
	}
}

// set takes in that a local is set.
func (s *Scale) set(l *local) {
	s.count.Work += workNone
	s.sets++
	s.defs++
	l.set, l.links = int32(s.stamp), 0
	if l.first == 0 {
		l.first = l.set
	}
}

// enter opens a block, loop or if.
func (s *Scale) enter(op byte) {
	t := s.blockType()
	f := frame{op: op, params: t.Params, results: t.Results, sets: s.sets, least: unreached}
	if op == opIf {
		s.height--
	}
	f.base = s.height - t.Params
	switch op {
	case opLoop:
		s.count.Work += int64(4+2*t.Params) * workOne
		chain := s.chain
		s.depth++
		s.chain = 0
		s.part = int32(s.stamp) + 1
		f.block = int32(len(s.blocks))
		s.begin(block{preds: 1, params: int32(t.Params), chains: int64(chain), loop: true, defs: int32(s.defs) - s.place.defs})
		s.header, s.place.defs = f.block, int32(s.defs)
		if s.open == 0 {
			f.outer = true
			s.outer = len(s.loops)
			s.loops = append(s.loops, int32(s.stamp))
		}
		s.open++
		s.nested = max(s.nested, s.open)
	case opIf:
		s.count.Work += 4 * workOne
		f.entry = s.place
		s.next()
	}
	s.frames = append(s.frames, f)
}

// branch takes in an edge to a label, on which the compiler puts extra blocks. It returns how many values go along.
func (s *Scale) branch(label uint32, extra int32) int {
	f := &s.frames[len(s.frames)-1-int(label)]
	s.count.Dominate += int64(s.depth)
	if f.op == opLoop {
		b := &s.blocks[f.block]
		b.preds++
		b.split += extra
		b.chains += int64(s.chain + extra)
		return f.params
	}
	s.leave(f, extra)
	return f.results
}

// leave takes in an edge to the end of a frame.
func (s *Scale) leave(f *frame, extra int32) {
	f.preds++
	f.split += extra
	f.chains += int64(s.chain + extra)
	f.depths += int64(s.depth)
	f.least.depth = min(f.least.depth, s.depth)
	f.least.known = min(f.least.known, s.known)
	if s.header < f.least.header {
		f.least.header, f.least.defs = s.header, s.place.defs
	}
	f.least.chain, f.least.part = s.chain, s.part
}

// otherwise takes in an else.
func (s *Scale) otherwise(f *frame) {
	s.leave(f, 0)
	s.other(f)
}

// other begins the other branch of an if.
func (s *Scale) other(f *frame) {
	f.op = opElse
	s.height = f.base + f.params
	s.place = f.entry
	s.next()
}

// end closes the innermost frame.
func (s *Scale) end() {
	f := &s.frames[len(s.frames)-1]
	s.leave(f, 0)
	if f.op == opIf {
		s.absent(f)
	}
	s.close()
}

// absent passes over the other branch of an if that has none. The compiler forgets there what addresses it knows.
func (s *Scale) absent(f *frame) {
	s.other(f)
	s.known = 0
	s.leave(f, 0)
}

// close begins what follows on the innermost frame.
func (s *Scale) close() {
	f := s.frames[len(s.frames)-1]
	s.frames = s.frames[:len(s.frames)-1]
	if f.op == opLoop {
		s.blocks[f.block].sets = int32(s.sets - f.sets)
		s.open--
		if f.outer {
			s.loops[s.outer] = int32(s.stamp)
		}
	}
	s.count.Work += int64(2+2*f.results) * workOne
	s.height = f.base + f.results
	s.defs += f.results
	switch {
	case len(s.frames) == 0:
		s.count.Preds += int64(f.preds) * int64(f.preds)
	case f.preds == 0:
		s.skip()
	case f.preds == 1:
		s.place = f.least
		s.next()
	default:
		s.place = f.least
		if f.op == opElse {
			s.depth, s.header, s.place.defs = f.entry.depth, f.entry.header, f.entry.defs
		}
		s.depth++
		s.chain = 0
		s.part = int32(s.stamp) + 1
		s.count.Dominate += f.depths
		s.begin(block{preds: f.preds, split: f.split, params: int32(f.results), sets: int32(s.sets - f.sets), chains: f.chains})
	}
}

// skip passes over what nothing reaches, up to an else or end of the innermost frame.
func (s *Scale) skip() {
	for nested := 0; s.r.pos < len(s.r.data); {
		op := s.r.byte()
		switch op {
		case opBlock, opLoop, opIf:
			s.r.skip()
			nested++
		case opElse:
			if nested == 0 {
				s.other(&s.frames[len(s.frames)-1])
				return
			}
		case opEnd:
			if nested > 0 {
				nested--
				continue
			}
			if f := &s.frames[len(s.frames)-1]; f.op == opIf {
				s.absent(f)
			}
			s.close()
			return
		default:
			s.r.pass(op)
		}
	}
}

// blockType reads a block's type.
func (s *Scale) blockType() Signature {
	b := s.r.data[s.r.pos]
	switch {
	case b == 0x40:
		s.r.pos++
		return Signature{}
	case b&0xc0 == 0x40:
		s.r.pos++
		return Signature{Results: 1}
	}
	return s.m.Types[s.r.u32()]
}

// finish sums up what depends on which locals are live in which blocks.
func (s *Scale) finish() {
	n := len(s.blocks)
	if cap(s.diff) < n+2 {
		s.diff = make([]int32, n+2)
		s.carry = make([]int64, n+2)
	}
	s.diff, s.carry = s.diff[:n+2], s.carry[:n+2]
	clear(s.diff)
	for i := range s.locals {
		l := &s.locals[i]
		if l.from == 0 {
			continue
		}
		if l.loop > 0 {
			l.to = max(l.to, s.loops[l.loop-1])
		}
		s.diff[l.from]++
		s.diff[l.to+1]--
	}
	c := &s.count
	c.Blocks += int64(n)
	locals := int64(0)
	for i := range s.blocks {
		b := &s.blocks[i]
		locals += int64(s.diff[i+1])
		live := locals + int64(b.height) + 2
		above := int64(0)
		if b.header >= 0 {
			above = s.carry[b.header]
		}
		if b.loop {
			s.carry[i] = above + min(live, int64(b.sets+b.defs))
		}
		c.Live += (live + above) * int64(1+b.preds+2*b.split)
		if b.preds < 2 && !b.loop {
			continue
		}
		preds, passes := int64(b.preds), int64(s.nested)
		first := locals + int64(b.params)
		params := first
		if !b.loop {
			params = min(first, int64(b.sets+b.params))
		}
		c.Joins += locals + preds*params
		c.Steps += locals * (b.chains + preds)
		c.Argument += first*first*preds + params*params*preds*passes
		c.Preds += preds * preds
	}
}
