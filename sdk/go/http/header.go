package http

import (
	"slices"
	"strings"
)

// A Header has the fields of a request or an answer, by their names as net/http writes them: "Content-Type". Its methods take
// a name in any case.
type Header map[string][]string

// Get returns the first value of a field, or nothing.
func (h Header) Get(name string) string {
	if values := h.Values(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Values returns all values of a field. The slice is the header's.
func (h Header) Values(name string) []string { return h[canonical(name)] }

// Set sets a field, replacing what it had.
func (h Header) Set(name, value string) { h[canonical(name)] = []string{value} }

// Add adds a value to a field.
func (h Header) Add(name, value string) {
	name = canonical(name)
	h[name] = append(h[name], value)
}

// Del removes a field.
func (h Header) Del(name string) { delete(h, canonical(name)) }

// list returns the fields in the order of their names: the same request is the same bytes each time.
func (h Header) list() [][2]string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	fields := make([][2]string, 0, len(names))
	for _, name := range names {
		for _, value := range h[name] {
			fields = append(fields, [2]string{name, value})
		}
	}
	return fields
}

// canonical returns a name with capitals at the beginning and after each hyphen. It does what net/http does, except that it leaves an invalid name
// for the host to refuse.
func canonical(name string) string {
	const capital = 'a' - 'A'
	upper := true
	var out strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case upper && c >= 'a' && c <= 'z':
			c -= capital
		case !upper && c >= 'A' && c <= 'Z':
			c += capital
		}
		out.WriteByte(c)
		upper = c == '-'
	}
	return out.String()
}
