package schemas

// marks are the members or items of one value that a schema has evaluated, for the unevaluated keywords.
type marks struct {
	run *run
	all bool
	set map[int32]struct{}
}

// newMarks returns empty marks. drop gives their memory back.
func newMarks(r *run) *marks {
	r.take(perMarks)
	return &marks{run: r}
}

func (m *marks) drop() {
	if m != nil {
		m.run.memory += perMarks + perMark*int64(len(m.set))
	}
}

func (m *marks) mark(at int32) {
	if m == nil || m.all {
		return
	}
	if m.set == nil {
		m.set = map[int32]struct{}{}
	}
	if n := len(m.set); m.run.memory >= 0 {
		m.set[at] = struct{}{}
		m.run.take(perMark * int64(len(m.set)-n))
	}
}

func (m *marks) has(at int32) bool {
	_, ok := m.set[at]
	return ok || m.all
}

// branch returns marks for an alternative that may fail, or nil if no marks are needed.
func (m *marks) branch() *marks {
	if m == nil {
		return nil
	}
	return newMarks(m.run)
}

// merge adds the marks of other, which must not be used afterwards.
func (m *marks) merge(other *marks) {
	if m == nil || other == nil {
		return
	}
	m.all = m.all || other.all
	if m.set == nil {
		m.set, other.set = other.set, nil
	}
	for at := range other.set {
		m.mark(at)
	}
}
