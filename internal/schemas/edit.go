package schemas

import (
	"slices"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// An edit is a change of a body: a default that goes in, or an integer that is written differently.
type edit struct {
	start, end int // offsets of what goes; equal for a default, which goes in before its object's closing brace
	text       string
	name       string // of the default
	first      bool   // the object has no member before it
}

// maxDigits is the longest integer that is written out. No number of 64 bits has more, with or without a fraction, so that
// hardly a reader can tell what a longer one is.
const maxDigits = 309

// writeOut has the integer at, which is written as 1.0, 1e2 or -0, written as 1, 100 or 0: languages with types of their own
// for integers do not read it otherwise.
func (r *run) writeOut(at int32, d *jsontree.Decimal) {
	v := &r.tree.Values[at]
	text, ok := d.Text(maxDigits)
	if _, known := r.written[at]; !ok || known || v.Start < 0 || text == v.Text {
		return
	}
	if r.room -= max(0, len(text)-len(v.Text)); r.room < 0 {
		r.work = -1
		return
	}
	if !r.take(perEdit + int64(len(text))) {
		return
	}
	if r.written == nil {
		r.written = map[int32]struct{}{}
	}
	r.written[at] = struct{}{}
	r.edits = append(r.edits, edit{start: int(v.Start), end: int(v.Start) + len(v.Text), text: text})
}

// splice returns body with all edits, and all else as it is.
func (r *run) splice(body []byte) []byte {
	slices.SortStableFunc(r.edits, func(a, b edit) int { return a.start - b.start })
	size := len(body)
	for _, e := range r.edits {
		size += len(e.name) + len(e.text) + 4
	}
	out := make([]byte, 0, size)
	done := 0
	for _, e := range r.edits {
		out = append(out, body[done:e.start]...)
		if done = e.end; e.start == e.end {
			if !e.first {
				out = append(out, ',')
			}
			out = append(append(out, jsontree.Quote(e.name)...), ':')
		}
		out = append(out, e.text...)
	}
	return append(out, body[done:]...)
}
