// Package redact takes secrets out of bytes, so that what a server sends back, or a guest says, shows none.
//
// A [Redactor] finds a secret as it is, and as servers and programs write what they were sent: in base64, base32, hexadecimal digits,
// lists and dumps of numbers, UTF-16, quoted-printable, with the escapes of URLs, JSON, HTML and most programming languages, and, of 16
// bytes to 4 KiB, in two of these within each other; with lines broken elsewhere. A secret of several lines is also found by each of its lines that is long.
//
// A find is all or nothing. Somebody who can have texts redacted, and sees the result, can ask whether a text has the secret.
// If a piece of it were found, too, they could ask for it piece by piece: its first letters and a guess of the next one, some 25 times for
// each. So nothing is found but the whole, in exactly the secret's letters, and exactly what was found is replaced, whatever stands around
// it. The price is that a piece of a secret is not found: one that a server has cut, or written in a column. Nor is what somebody has
// disguised on purpose: reversed, encrypted, or in encodings that are not named above.
package redact

import "slices"

// Mark replaces what was taken out, whatever that was. It is no longer than the shortest find, so that a text never gets longer.
const Mark = "[secret]"

// shortest is the size in bytes of the shortest pattern. A shorter one would be found in texts that have nothing to do with it.
const shortest = 8

// A Redactor finds some secrets. It does not change, and is safe for concurrent use. A nil Redactor finds nothing.
type Redactor struct {
	index
	folded *Redactor // finds them in lower case, whatever case they have
}

// Findable reports whether a Redactor looks for a secret: whether it has eight bytes that are neither ends of lines nor
// backslashes, which encodings add and leave out.
func Findable(secret string) bool { return len(plainOf(secret)) >= shortest }

// New returns a Redactor that finds the secrets that are Findable. It takes 3 to 25 KB for each secret of one line, and half a millisecond.
func New(secrets ...string) *Redactor { return NewFamily().New(secrets...) }

// A Family makes Redactors that can be joined, which takes a hundredth of the time of making one anew.
type Family struct{ base uint64 }

// NewFamily returns another Family than all others.
func NewFamily() Family { return Family{newBase()} }

// New is like the function New.
func (f Family) New(secrets ...string) *Redactor {
	r := &Redactor{newIndex(f.base), &Redactor{index: newIndex(f.base)}}
	for _, s := range secrets {
		if !Findable(s) {
			continue
		}
		for _, whole := range wholes(s) {
			for form := range forms(whole) {
				r.add(verbatim(form))
				r.add(plainOf(form))
			}
			for _, form := range append(append(codes(whole), inBase32(whole)...), whole) {
				r.folded.add(verbatim(lower(form)))
				r.folded.add(lower(plainOf(form)))
			}
		}
	}
	r.fill()
	r.folded.fill()
	return r
}

// Join returns a Redactor that finds what all of them find, which this Family has made. A nil one finds nothing.
func (f Family) Join(all ...*Redactor) *Redactor {
	joined := &Redactor{newIndex(f.base), &Redactor{index: newIndex(f.base)}}
	copied, folded := map[uint64]bool{}, map[uint64]bool{}
	for _, r := range all {
		if !r.Empty() {
			joined.join(r.index, copied)
			joined.folded.join(r.folded.index, folded)
		}
	}
	joined.fill()
	joined.folded.fill()
	return joined
}

// Empty reports whether there is nothing to find.
func (r *Redactor) Empty() bool { return r == nil || len(r.groups) == 0 }

// Bytes returns b with Mark in the place of each find: b itself if there is none, and a new slice otherwise. b is not changed.
// It takes some nanoseconds for each byte, whatever is in b.
func (r *Redactor) Bytes(b []byte) []byte {
	found := r.find(b)
	if found == nil {
		return b
	}
	return replace(b, found)
}

// replace returns b with Mark in the place of each find.
func replace(b []byte, found []span) []byte {
	clean := make([]byte, 0, len(b))
	next := 0
	for _, s := range found {
		clean = append(clean, b[next:s.begin]...)
		clean = append(clean, Mark...)
		next = s.end
	}
	return append(clean, b[next:]...)
}

// String is Bytes for a string.
func (r *Redactor) String(s string) string {
	if r.Empty() {
		return s
	}
	b := []byte(s)
	if clean := r.Bytes(b); len(b) > 0 && &clean[0] != &b[0] {
		return string(clean)
	}
	return s
}

// Name is String for the name of a header. Servers and clients change its case, so a find has the secret's letters in whatever case, as it is
// or in an encoding of [New]'s that isn't within another.
func (r *Redactor) Name(s string) string {
	if r.Empty() {
		return s
	}
	s = r.String(s)
	if found := r.folded.find(lower([]byte(s))); found != nil {
		return string(replace([]byte(s), found))
	}
	return s
}

// lower returns a text with the letters of ASCII in lower case, and of the same length.
func lower[T string | []byte](s T) T {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return T(b)
}

// A span is a part of a text.
type span struct{ begin, end int }

// find returns the finds in b in order, none of which overlaps another.
func (r *Redactor) find(b []byte) []span {
	if r.Empty() {
		return nil
	}
	found := r.inViews(b)
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b span) int { return a.begin - b.begin })
	merged := found[:1]
	for _, s := range found[1:] {
		if last := &merged[len(merged)-1]; s.begin < last.end {
			last.end = max(last.end, s.end)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}
