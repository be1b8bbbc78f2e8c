package redact

import (
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// An index knows patterns by their first bytes, and by the length and a hash of the remaining bytes. It does not store the patterns, so its size does
// not depend on the length of secrets, and a text is read once for all secrets.
type index struct {
	base   uint64 // the base of the hash: it is secret, since otherwise authors could make two texts with the same hash
	groups map[uint64]group
	filter []uint64 // a filter that wrongly passes one in 16 texts of eight bytes
	shift  int
}

// A group has the patterns with the same first bytes: the hashes of the remaining bytes by their length, and the lengths.
type group struct {
	rests   map[rest]bool
	lengths []length
}

type rest struct {
	length int
	hash   uint64
}

// A length is how many bytes some patterns have after the first ones, with base to the power of that number.
type length struct {
	n     int
	power uint64
}

func newBase() uint64 { return rand.Uint64N(prime-1<<32) + 1<<32 }

func newIndex(base uint64) index { return index{base: base, groups: map[uint64]group{}} }

// prime is the modulus of the hash. Two texts of n bytes have the same hash for at most n of the possible bases.
const prime = 1<<61 - 1

// times returns a*b modulo prime.
func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return plus(high<<3|low>>61, low&prime)
}

// plus returns a+b modulo prime.
func plus(a, b uint64) uint64 {
	if a += b; a >= prime {
		a -= prime
	}
	return a
}

// add adds a pattern in plain form, unless it is too short.
func (x *index) add(pattern []byte) {
	if len(pattern) < shortest {
		return
	}
	first := uint64(0)
	for _, c := range pattern[:shortest] {
		first = first<<8 | uint64(c)
	}
	hash, power := uint64(0), uint64(1)
	for _, c := range pattern[shortest:] {
		hash, power = plus(times(hash, x.base), uint64(c)), times(power, x.base)
	}
	g, ok := x.groups[first]
	if !ok {
		g.rests = map[rest]bool{}
	}
	n := len(pattern) - shortest
	g.rests[rest{n, hash}] = true
	if l := (length{n, power}); !slices.Contains(g.lengths, l) {
		g.lengths = append(g.lengths, l)
	}
	x.groups[first] = g
}

// join adds the patterns of an index with the same base. A group that both have is copied, but only once: copied holds the groups that have been
// copied. Other groups are shared, since nobody changes an index that is in use.
func (x *index) join(other index, copied map[uint64]bool) {
	if x.base != other.base {
		panic("redact: redactors of two families are joined")
	}
	for first, more := range other.groups {
		g, ok := x.groups[first]
		if !ok {
			x.groups[first] = more
			continue
		}
		if !copied[first] {
			g.rests, g.lengths, copied[first] = maps.Clone(g.rests), slices.Clone(g.lengths), true
		}
		maps.Copy(g.rests, more.rests)
		for _, l := range more.lengths {
			if !slices.Contains(g.lengths, l) {
				g.lengths = append(g.lengths, l)
			}
		}
		x.groups[first] = g
	}
}

// fill sets the filter.
func (x *index) fill() {
	size := 6
	for 1<<size < len(x.groups)*16 {
		size++
	}
	x.filter, x.shift = make([]uint64, 1<<(size-6)), 64-size
	for first := range x.groups {
		at := x.slot(first)
		x.filter[at>>6] |= 1 << (at & 63)
	}
}

func (x *index) slot(first uint64) uint64 { return first * 0x9e3779b97f4a7c15 >> x.shift }

// A search looks for the patterns of an index in one view of a text.
type search struct {
	*index
	read    int    // bytes since the view began
	window  uint64 // the last eight bytes
	begins  [shortest]int
	hash    uint64 // the hash of all bytes since the first possible find
	pending []begun
	found   []span
}

// A begun is a possible find: a text that begins like some patterns.
type begun struct {
	due   int // the value of read at its last byte
	begin int // where the find begins in the text
	first uint64
	hash  uint64 // the value of hash before the remaining bytes
	length
}

// add takes the next byte of the view. In the text, that byte is written from begin to end.
func (s *search) add(c byte, begin, end int) {
	s.read++
	s.window = s.window<<8 | uint64(c)
	s.begins[s.read%shortest] = begin
	if len(s.pending) > 0 {
		s.hash = plus(times(s.hash, s.base), uint64(c))
		for len(s.pending) > 0 && s.pending[0].due == s.read {
			s.judge(end)
		}
	}
	if at := s.slot(s.window); s.filter[at>>6]&(1<<(at&63)) != 0 && s.read >= shortest {
		s.begin(end)
	}
}

// skip says that the next byte does not continue the last one.
func (s *search) skip() { s.read, s.window, s.pending = 0, 0, s.pending[:0] }

// begin adds possible finds: some patterns begin with the last eight bytes.
func (s *search) begin(end int) {
	g, ok := s.groups[s.window]
	if !ok {
		return
	}
	begin := s.begins[(s.read+1)%shortest]
	for _, l := range g.lengths {
		if l.n == 0 {
			s.found = append(s.found, span{begin, end})
		} else {
			s.push(begun{s.read + l.n, begin, s.window, s.hash, l})
		}
	}
}

// judge removes the possible finds that end here from pending, and keeps those that really are finds.
func (s *search) judge(end int) {
	b := s.pop()
	if hash := plus(s.hash, prime-times(b.hash, b.power)); s.groups[b.first].rests[rest{b.n, hash}] {
		s.found = append(s.found, span{b.begin, end})
	}
}

// push and pop keep pending as a heap, with the one that ends next at the top.
func (s *search) push(b begun) {
	s.pending = append(s.pending, b)
	for i := len(s.pending) - 1; i > 0; {
		above := (i - 1) / 2
		if s.pending[above].due <= s.pending[i].due {
			return
		}
		s.pending[above], s.pending[i] = s.pending[i], s.pending[above]
		i = above
	}
}

func (s *search) pop() begun {
	top, last := s.pending[0], len(s.pending)-1
	s.pending[0] = s.pending[last]
	s.pending = s.pending[:last]
	for i := 0; ; {
		least := i
		for below := 2*i + 1; below <= 2*i+2 && below < last; below++ {
			if s.pending[below].due < s.pending[least].due {
				least = below
			}
		}
		if least == i {
			return top
		}
		s.pending[least], s.pending[i] = s.pending[i], s.pending[least]
		i = least
	}
}
