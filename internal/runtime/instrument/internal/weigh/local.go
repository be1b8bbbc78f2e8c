package weigh

// A local is a local variable. Where it is live is found as one range of blocks after another; blocks are numbered from 1.
type local struct {
	last  setting // the last one
	base  setting // the last one that stands no deeper
	block int32   // in which it was last set
	first int32   // in which it was first set, 0 if it was not yet
	from  int32   // of the range that grows; 0: none does
	to    int32
	loop  int32 // to whose end the range goes, plus 1
	part  int32 // place.part in which it was last read
	links int32 // such parts in a row
}

// A setting is an instruction that sets a local. Until its frame is closed, all that follows is reached through it.
type setting struct {
	frame  int32 // number of frames that are open there
	serial int32 // of the innermost
	loops  int32 // that are open there
	block  int32
}

// A loop is a loop with the blocks in which it begins and ends.
type loop struct{ from, to int32 }

// get counts a read of a local.
func (s *Scale) get(l *local) {
	s.count.Work += workNone
	now := int32(s.stamp)
	if l.block == now {
		return
	}
	s.count.Steps += float64(s.chain + 1)
	if l.part != s.part {
		l.part = s.part
		l.links++
	}
	s.count.Alias += float64(l.links)
	// Where does its being live begin, and which loops read it before they set it?
	from, loops := max(l.first, 1), int32(0)
	for _, at := range [...]*setting{&l.last, &l.base} {
		if at.frame > 0 && int(at.frame) <= len(s.frames) && s.frames[at.frame-1].serial == at.serial {
			from, loops = at.block, at.loops
			break
		}
	}
	through := int32(-1)
	if int(loops) < len(s.inside) {
		through = s.inside[loops]
		from = min(from, s.loops[through].from)
	}
	s.extend(l)
	if l.from > 0 && from > l.to && l.loop == 0 {
		s.live(l)
	}
	if l.from == 0 {
		l.from, l.to = from, now
	}
	l.from, l.to = min(l.from, from), max(l.to, now)
	if through >= 0 && (l.loop == 0 || through < l.loop-1) {
		l.loop = through + 1
	}
}

// extend extends the range of a local to the end of the loop that it is live throughout, if that loop has ended.
func (s *Scale) extend(l *local) {
	if l.loop > 0 && s.loops[l.loop-1].to > 0 {
		l.to = max(l.to, s.loops[l.loop-1].to)
		l.loop = 0
	}
}

// live counts the range in which a local is live.
func (s *Scale) live(l *local) {
	s.diff[l.from]++
	s.diff[l.to+1]--
	l.from = 0
}

// set counts an assignment to a local.
func (s *Scale) set(l *local) {
	s.count.Work += workNone
	s.sets++
	l.block, l.links = int32(s.stamp), 0
	if l.first == 0 {
		l.first = l.block
	}
	depth := len(s.frames)
	l.last = setting{frame: int32(depth), serial: s.frames[depth-1].serial, loops: int32(len(s.inside)), block: l.block}
	if l.base.frame == 0 || int(l.base.frame) >= depth || s.frames[l.base.frame-1].serial != l.base.serial {
		l.base = l.last
	}
}

// finish sums up the costs that depend on the live locals of each block.
func (s *Scale) finish() {
	n := len(s.blocks)
	s.carry = append(s.carry[:0], make([]float64, n)...)
	for i := range s.locals {
		if l := &s.locals[i]; l.from > 0 {
			s.extend(l)
			s.live(l)
		}
	}
	c := &s.count
	c.Blocks += float64(n)
	passes := float64(s.nested)
	running := int32(0)
	for i := range s.blocks {
		b := &s.blocks[i]
		running += s.diff[i+1]
		locals := float64(running)
		live := locals + float64(b.height) + 2
		above := 0.0
		if b.header >= 0 {
			above = s.carry[b.header]
		}
		if b.loop {
			s.carry[i] = above + min(live, float64(b.sets)+float64(b.fresh))
		}
		c.Live += live * float64(1+b.preds+2*b.split)
		c.Above += above * float64(1+b.split)
		if b.preds < 2 && !b.loop {
			continue
		}
		preds := float64(b.preds)
		first := locals + float64(b.params)
		moved := min(first, float64(b.sets+b.params))
		c.Joins += first
		c.Moves += preds * moved
		c.Steps += locals * (b.chains + preds)
		c.Argument += first*first*preds + moved*moved*preds*passes
		if b.loop {
			c.Argument += first * first * preds * passes
		}
		c.Preds += preds * preds
	}
}
