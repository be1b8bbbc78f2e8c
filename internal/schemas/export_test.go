package schemas

// Admits judges any JSON value, where Validate takes objects only.
func (s *Schema) Admits(value string) (bool, error) {
	r := run{work: workBase + workPerByte*len(value), room: maxFilled, memory: 1 << 40}
	if err := r.tree.Read(value); err != nil {
		return false, err
	}
	return r.check(s.root, 0, nil, nil), nil
}
