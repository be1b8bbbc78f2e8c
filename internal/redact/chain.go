package redact

// A Chain applies several Redactors one after another. A later one does not see what an earlier one has removed. Its size is fixed, so that making a
// Chain allocates nothing.
type Chain [3]*Redactor

// Empty reports whether the Chain finds nothing.
func (c Chain) Empty() bool {
	for _, r := range c {
		if !r.Empty() {
			return false
		}
	}
	return true
}

// Bytes is [Redactor.Bytes] of all of them.
func (c Chain) Bytes(b []byte) []byte {
	for _, r := range c {
		b = r.Bytes(b)
	}
	return b
}

// String is [Redactor.String] of all of them.
func (c Chain) String(s string) string {
	for _, r := range c {
		s = r.String(s)
	}
	return s
}

// Name is [Redactor.Name] of all of them.
func (c Chain) Name(s string) string {
	for _, r := range c {
		s = r.Name(s)
	}
	return s
}
