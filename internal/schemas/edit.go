package schemas

import (
	"slices"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// An edit is a change of a body: a default that is inserted, or an integer that is written differently.
type edit struct {
	start, end int // offsets of the replaced text; equal for a default, which is inserted before its object's closing brace
	text       string
	name       string // name of the member that gets the default
	first      bool   // the object has no member before it
}

// maxDigits is the length of the longest integer that is written out. No 64-bit number, integer or float, has more digits, so hardly any reader can
// represent a longer one.
const maxDigits = 309

// writeOut changes the integer with the index at, which is written as 1.0, 1e2 or -0, into 1, 100 or 0, since languages with separate integer
// types don't read the other forms.
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

// splice returns body with all edits applied, and everything else unchanged.
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
