package schemas

import (
	"slices"
	"sort"
	"strings"
)

// newChoice returns the choice of these values. It sorts their canonical texts. expected is for the message.
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
