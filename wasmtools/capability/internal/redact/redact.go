// Package redact takes secrets out of bytes, so that what a server sends back, or a guest says, shows none.
//
// A [Redactor] finds a secret as it is, and as servers and programs write what they were sent: in base64, hexadecimal digits,
// UTF-16, with the escapes of URLs, JSON and HTML, in all of these within each other, in capitals, in lines, and cut off or sliced.
// It can't find what somebody has disguised on purpose: reversed, encrypted, or cut into small pieces.
package redact

import (
	"math/rand/v2"
	"slices"
)

// Mark stands in the place of what was taken out, whatever that was. It is no longer than the shortest find, so that a text never
// gets longer.
const Mark = "[secret]"

// shortest is the size in bytes of the shortest pattern. A shorter one would be found in texts that have nothing to do with it.
const shortest = 8

// widths are the widths of windows, and how long the patterns are at least that are looked for by them. A narrower window would find
// more of a secret that was cut, but also words that a long one has from the language.
var widths = [...]struct{ width, least int }{{widest, 32}, {12, 16}, {shortest, shortest}}

const widest = 16

// A Redactor finds some secrets. It does not change, and is safe for concurrent use. A nil Redactor finds nothing.
type Redactor struct {
	patterns [][]byte // in plain form
	indexes  []index
}

// An index finds patterns by windows of one width. It knows of each pattern the windows at all multiples of half the width, and the
// last. So whatever has one and a half widths of a pattern has one of its windows; the rest is found by comparing.
type index struct {
	width  int
	base   uint64 // of the rolling hash: odd, and not known to those who write texts
	weight uint64 // base to the power of width: that of what leaves the window
	filter []uint64
	places map[uint64]place
}

// A place is where in the patterns a window is.
type place struct{ pattern, offset int }

// Findable reports whether a Redactor looks for a secret: whether it has eight bytes that are neither ends of lines nor
// backslashes, which encodings add and leave out.
func Findable(secret string) bool { return len(plainOf(secret)) >= shortest }

// New returns a Redactor that finds the secrets, but those that are not Findable. It takes some 50 bytes for each byte of the
// secrets.
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	known := map[string]bool{}
	for _, s := range secrets {
		if !Findable(s) {
			continue
		}
		patterns := [][]byte{verbatim(s)}
		for _, form := range forms(s) {
			patterns = append(patterns, plainOf(form))
		}
		for _, p := range patterns {
			if len(p) >= shortest && !known[string(p)] {
				known[string(p)] = true
				r.patterns = append(r.patterns, p)
			}
		}
	}
	for _, w := range widths {
		width := w.width
		x := index{width: width, base: rand.Uint64() | 1, weight: 1, places: map[uint64]place{}}
		for range width {
			x.weight *= x.base
		}
		for n, p := range r.patterns {
			if width == widthFor(p) {
				x.add(n, p)
			}
		}
		if len(x.places) > 0 {
			x.fill()
			r.indexes = append(r.indexes, x)
		}
	}
	return r
}

func widthFor(pattern []byte) int {
	for _, w := range widths {
		if len(pattern) >= w.least {
			return w.width
		}
	}
	return shortest
}

// add indexes the windows of pattern number n.
func (x *index) add(n int, pattern []byte) {
	last := len(pattern) - x.width
	for offset := 0; ; offset = min(offset+x.width/2, last) {
		h := uint64(0)
		for _, c := range pattern[offset : offset+x.width] {
			h = h*x.base + uint64(c) + 1
		}
		if _, ok := x.places[h]; !ok {
			x.places[h] = place{n, offset}
		}
		if offset == last {
			return
		}
	}
}

// fill makes the filter, which lets one of 16 windows through that are not of a pattern.
func (x *index) fill() {
	words := 1
	for words*4 < len(x.places) {
		words *= 2
	}
	x.filter = make([]uint64, words)
	for h := range x.places {
		x.filter[h>>6&uint64(words-1)] |= 1 << (h & 63)
	}
}

// Empty reports whether there is nothing to find.
func (r *Redactor) Empty() bool { return r == nil || len(r.indexes) == 0 }

// Bytes returns b with Mark in the place of each find: b itself where there is none, and a new slice otherwise. b is not changed.
// It takes some nanoseconds for each byte, whatever is in b.
func (r *Redactor) Bytes(b []byte) []byte {
	found := r.find(b)
	if found == nil {
		return b
	}
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

// A span is a part of a text.
type span struct{ begin, end int }

// find returns the finds in b in order, none of which touches another.
func (r *Redactor) find(b []byte) []span {
	if r.Empty() {
		return nil
	}
	p := plain{}
	found := r.look(b, &p, nil)
	if p.undone { // what looks like an escape may be the begin of a secret, after a sign of the text
		p = plain{asItIs: true}
		found = r.look(b, &p, found)
	}
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b span) int { return a.begin - b.begin })
	merged := found[:1]
	for _, s := range found[1:] {
		if last := &merged[len(merged)-1]; s.begin <= last.end {
			last.end = max(last.end, s.end)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

// look adds to found what is in b, read by p.
func (r *Redactor) look(b []byte, p *plain, found []span) []span {
	var searches [len(widths)]search
	for i := range r.indexes {
		searches[i] = search{index: &r.indexes[i], patterns: r.patterns}
	}
	for p.read(b) {
		for i := range r.indexes {
			found = searches[i].look(p, found)
		}
	}
	return found
}

// A search looks for the patterns of one index in a text, block by block.
type search struct {
	*index
	patterns [][]byte
	hash     uint64 // of the window that ends here
	match    []byte // what the last find would go on with, if it did
	last     int    // number of that find
}

// look adds to found what is in the new part of a block. A find is a window and whatever precedes and follows it as in its pattern.
func (s *search) look(p *plain, found []span) []span {
	h, mask, width := s.hash, uint64(len(s.filter)-1), s.width
	for i := p.old; i < p.size; i++ {
		c := p.bytes[i]
		h = h*s.base + uint64(c) + 1
		if gone := p.bytes[i-width]; i-width >= p.first {
			h -= (uint64(gone) + 1) * s.weight
		}
		if len(s.match) > 0 {
			if c == s.match[0] {
				s.match = s.match[1:]
				found[s.last].end = p.ends[i]
				continue
			}
			s.match = nil
		}
		if s.filter[h>>6&mask]&(1<<(h&63)) == 0 || i+1-width < p.first {
			continue
		}
		at, ok := s.places[h]
		if !ok {
			continue
		}
		pattern, from, to := s.patterns[at.pattern], at.offset, at.offset+width
		begin := i + 1 - width
		if string(p.bytes[begin:i+1]) != string(pattern[from:to]) {
			continue
		}
		for from > 0 && begin > p.first && p.bytes[begin-1] == pattern[from-1] {
			begin--
			from--
		}
		s.match, s.last = pattern[to:], len(found)
		found = append(found, span{p.begins[begin], p.ends[i]})
	}
	s.hash = h
	return found
}
