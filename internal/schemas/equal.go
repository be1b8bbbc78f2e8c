package schemas

import (
	"slices"
	"sort"
	"strings"
)

// newChoice returns the choice of values by their canonical texts, which it sorts. What is expected is for the message.
func newChoice(values []string, expected string) *choice {
	slices.Sort(values)
	values = slices.Compact(values)
	c := &choice{values: strings.Join(values, ""), ends: make([]int32, len(values)), expected: strings.Clone(expected)}
	end := 0
	for i, v := range values {
		end += len(v)
		c.ends[i] = int32(end)
	}
	return c
}

// value returns the canonical text of value number i.
func (c *choice) value(i int) string {
	if i == 0 {
		return c.values[:c.ends[0]]
	}
	return c.values[c.ends[i-1]:c.ends[i]]
}

func (c *choice) has(canonical string) bool {
	i := sort.Search(len(c.ends), func(i int) bool { return c.value(i) >= canonical })
	return i < len(c.ends) && c.value(i) == canonical
}

// chosen reports whether the value at is one of a choice.
func (r *run) chosen(c *choice, at int32) bool {
	if r.work -= r.comparing(at); r.work < 0 {
		return false
	}
	return c.has(r.tree.Canonical(at))
}

// unique reports whether all items differ.
func (r *run) unique(at int32, rep *report) bool {
	if r.work -= r.comparing(at) + int(r.tree.Values[at].Count); r.work < 0 {
		return false
	}
	size := perCompared*int64(r.tree.Values[at].Count) + 2*int64(len(r.tree.Values[at].Text))
	if !r.take(size) {
		return false
	}
	defer func() { r.memory += size }()
	first := make(map[string]int32, r.tree.Values[at].Count)
	for c := r.tree.Values[at].First; c != 0; c = r.tree.Values[c].Next {
		key := r.tree.Canonical(c)
		if i, ok := first[key]; ok {
			return r.repeated(rep, at, i, r.tree.Values[c].Index)
		}
		first[key] = r.tree.Values[c].Index
	}
	return true
}

// comparing is what the canonical text of the value at costs, in units of run.work: the members of objects are sorted.
func (r *run) comparing(at int32) int {
	text := r.tree.Values[at].Text
	if strings.IndexByte(text, '{') < 0 {
		return len(text) / 4
	}
	return 2 * len(text)
}
