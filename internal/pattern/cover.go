package pattern

import (
	"encoding/binary"
	"slices"
	"strings"
)

// maxSteps bounds the work of Cover to about a millisecond. Patterns that people write need hundreds of steps.
const maxSteps = 1 << 13

// Cover reports whether every path that p matches is also matched by a pattern in all. If not, uncovered is a path that is not matched, or empty if
// finding one took too long, as can happen with many asterisks. All patterns must be accepted by Check.
func Cover(all []string, p string) (uncovered string, ok bool) {
	if slices.Contains(all, p) {
		return "", true
	}
	if !strings.Contains(p, "*") { // a pattern that matches this name matches all paths below it
		if slices.ContainsFunc(all, func(one string) bool { return Match(one, p) }) {
			return "", true
		}
		return "/" + strings.TrimPrefix(p, "/"), false
	}
	c := cover{inner: newMachine([]string{p}), outer: newMachine(all), steps: maxSteps, seen: map[string]struct{}{}}
	return c.search(alphabet(append([]string{p}, all...)))
}

// A cover looks for a path that the inner machine accepts and the outer one does not, the shortest first.
type cover struct {
	inner, outer machine
	steps        int
	seen         map[string]struct{}
	queue        []sight
}

// A sight is the places of both machines after a path.
type sight struct {
	path         string
	begins       bool // a name begins here, so the path can't end here
	inner, outer []int32
}

func (c *cover) search(letters []byte) (uncovered string, ok bool) {
	c.add(sight{begins: true, inner: c.inner.begin(), outer: c.outer.begin()})
	for len(c.queue) > 0 {
		at := c.queue[0]
		c.queue = c.queue[1:]
		if c.steps < 0 {
			return "", false
		}
		if !at.begins {
			if c.inner.accepts(at.inner) && !c.outer.accepts(at.outer) {
				return "/" + at.path, false
			}
			c.add(sight{at.path + "/", true, c.inner.next(at.inner), c.outer.next(at.outer)})
		}
		for _, letter := range letters {
			c.add(sight{at.path + string(letter), false, c.inner.step(at.inner, letter), c.outer.step(at.outer, letter)})
		}
	}
	return "", true
}

// add queues a sight, unless it was seen before or can't lead to an uncovered path.
func (c *cover) add(at sight) {
	c.steps -= 1 + len(at.inner) + len(at.outer)
	if len(at.inner) == 0 || slices.ContainsFunc(at.outer, c.outer.isAll) {
		return
	}
	key := make([]byte, 0, 4*(len(at.inner)+len(at.outer))+8)
	for _, places := range [][]int32{at.inner, {-1}, at.outer} {
		for _, place := range places {
			key = binary.LittleEndian.AppendUint32(key, uint32(place))
		}
	}
	if at.begins {
		key = append(key, '/')
	}
	if _, known := c.seen[string(key)]; !known {
		c.seen[string(key)] = struct{}{}
		c.queue = append(c.queue, at)
	}
}

// A machine reads a path letter by letter, like a nondeterministic automaton: it is at several places at once.
type machine []place

// A place is a position within a part of a pattern, or after the last part.
type place struct {
	kind  byte  // a letter, '*', or one of the constants below
	after int32 // the place where the next part begins
	last  bool  // the path may end after this name
}

const (
	placeEnd     = 0   // the end of a part
	placeBetween = '/' // ** matches the whole name
	placeAll     = 1   // all parts have been read: the pattern also matches what follows
)

// newMachine returns the machine of all patterns. Each of its first places leads to the beginning of one pattern.
func newMachine(patterns []string) machine {
	m := make(machine, len(patterns))
	for i, pattern := range patterns {
		parts := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
		m[i].after = int32(len(m))
		for n, part := range parts {
			last := !slices.ContainsFunc(parts[n+1:], func(p string) bool { return p != "**" })
			if part == "**" {
				m = append(m, place{placeBetween, int32(len(m)) + 1, last})
				continue
			}
			after := int32(len(m)+len(part)) + 1
			for _, letter := range []byte(part) {
				m = append(m, place{letter, after, false})
			}
			m = append(m, place{placeEnd, after, last})
		}
		m = append(m, place{kind: placeAll, last: true})
	}
	return m
}

// begin returns the places at the beginning of a path.
func (m machine) begin() (to []int32) {
	for i := int32(0); int(i) < len(m) && m[0].after > i; i++ {
		to = m.enter(to, m[i].after)
	}
	return sorted(to)
}

// enter adds a place, and the places that are reached from it without reading a letter.
func (m machine) enter(to []int32, at int32) []int32 {
	to = append(to, at)
	switch m[at].kind {
	case placeBetween:
		return m.enter(to, m[at].after)
	case '*':
		return m.enter(to, at+1)
	}
	return to
}

// step returns the places after a letter of a name.
func (m machine) step(from []int32, letter byte) (to []int32) {
	for _, at := range from {
		switch kind := m[at].kind; {
		case kind == placeBetween, kind == placeAll:
			to = append(to, at)
		case kind == '*':
			to = m.enter(to, at)
		case kind == letter:
			to = m.enter(to, at+1)
		}
	}
	return sorted(to)
}

// next returns the places where the next name begins.
func (m machine) next(from []int32) (to []int32) {
	for _, at := range from {
		switch m[at].kind {
		case placeAll:
			to = append(to, at)
		case placeBetween:
			to = m.enter(to, at)
		case placeEnd:
			to = m.enter(to, m[at].after)
		}
	}
	return sorted(to)
}

// accepts reports whether the path may end.
func (m machine) accepts(at []int32) bool {
	return slices.ContainsFunc(at, func(i int32) bool { return m[i].last })
}

func (m machine) isAll(at int32) bool { return m[at].kind == placeAll }

func sorted(places []int32) []int32 {
	slices.Sort(places)
	return slices.Compact(places)
}

// alphabet returns the letters that occur in the patterns, and one that stands for all others.
func alphabet(patterns []string) (letters []byte) {
	text := strings.Join(patterns, "")
	other := false
	for _, letter := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") {
		named := strings.IndexByte(text, letter) >= 0
		if named || !other {
			letters = append(letters, letter)
		}
		other = other || !named
	}
	return letters
}
