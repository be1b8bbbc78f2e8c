package sandbox

import "github.com/toolsrv/toolsrv/runtime/hostabi"

// A filter is what takes out of a guest's words what must not leave the host.
type filter []hostabi.Filter

// filterOf returns the filter of those values of grants that are one.
func filterOf(grants []any) (f filter) {
	for _, value := range grants {
		if one, ok := value.(hostabi.Filter); ok {
			f = append(f, one)
		}
	}
	return f
}

// bytes returns what is left of b.
func (f filter) bytes(b []byte) []byte {
	for _, one := range f {
		b = one.Filter(b)
	}
	return b
}

// text is bytes for a string.
func (f filter) text(s string) string {
	if f == nil {
		return s
	}
	return string(f.bytes([]byte(s)))
}
