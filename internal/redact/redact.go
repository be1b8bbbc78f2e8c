// Package redact removes secrets from bytes, so that neither an answer of a server nor the output of a guest shows one.
//
// A [Redactor] finds a secret as it is, and in the forms in which programs write what they were sent: in base64, base32, hexadecimal, lists and dumps
// of numbers, UTF-16 and quoted-printable, and with the escapes of URLs, JSON, HTML and most programming languages; also with different line breaks.
// A secret of 16 bytes to 4 KiB is also found in two of these encodings within each other. A secret of several lines is also found by each of its
// long lines.
//
// A find is all or nothing. Somebody who can have texts redacted, and sees the result, can test whether a text contains the secret. If pieces of the
// secret were found, too, they could guess it piece by piece: its first letters and then the next one, with some 25 tries for each letter. So only
// the whole secret is found, in exactly its letters, and exactly the find is replaced, whatever is around it. The price is that a piece of a secret
// is not found, such as one that a server has cut or written in a column. Neither is a secret that somebody has disguised on purpose: reversed,
// encrypted, or in another encoding.
package redact

import "slices"

// Mark replaces every find. It is no longer than the shortest find, so that a text never gets longer.
const Mark = "[secret]"

// shortest is the size in bytes of the shortest pattern. A shorter one would be found in texts that have nothing to do with it.
const shortest = 8

// A Redactor finds a set of secrets. It never changes, and is safe for concurrent use. A nil Redactor finds nothing.
type Redactor struct {
	index
	folded *Redactor // finds the secrets in any case: patterns and texts are in lower case
}

// Findable reports whether a Redactor looks for a secret: the secret must have eight bytes other than line breaks and backslashes, which encodings
// add and remove.
func Findable(secret string) bool { return len(plainOf(secret)) >= shortest }

// New returns a Redactor that finds the secrets that are Findable. It takes 3 to 25 KB for each secret of one line, and half a millisecond.
func New(secrets ...string) *Redactor { return NewFamily().New(secrets...) }

// A Family makes Redactors that can be joined. Joining takes a hundredth of the time of making a new Redactor.
type Family struct{ base uint64 }

// NewFamily returns a new Family.
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

// Join returns a Redactor that finds what any of the given ones finds. This Family must have made them. A nil Redactor finds nothing.
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

// Empty reports whether the Redactor finds nothing.
func (r *Redactor) Empty() bool { return r == nil || len(r.groups) == 0 }

// Bytes returns b with Mark in place of each find: b itself if there is none, and a new slice otherwise. b is not changed. It takes a few nanoseconds
// for each byte, whatever is in b.
func (r *Redactor) Bytes(b []byte) []byte {
	found := r.find(b)
	if found == nil {
		return b
	}
	return replace(b, found)
}

// replace returns b with Mark in place of each find.
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

// Name is String for the name of a header. Servers and clients change its case, so a secret is found in any case, as it is or in one encoding, but
// not in two within each other.
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

// lower returns a text of the same length with ASCII letters in lower case.
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

// find returns the finds in b, in order and without overlaps.
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
