package redact

// A Chain is Redactors that look one after the other. What an earlier one has taken out no later one sees. Its size is fixed, so that making one
// takes no memory.
type Chain [3]*Redactor

// Empty reports whether there is nothing to find.
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
