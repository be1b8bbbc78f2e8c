package schemas

// Admits checks any JSON value, whereas Validate accepts only objects.
func (s *Schema) Admits(value string) (bool, error) {
	r := run{work: workBase + workPerByte*len(value), room: maxFilled, memory: 1 << 40}
	if err := r.tree.Read(value); err != nil {
		return false, err
	}
	return r.check(s.root, 0, nil, nil), nil
}
