package schema

import "strings"

// chosen reports whether the value at is one of a choice.
func (r *run) chosen(c *choice, at int32) bool {
	if r.work -= r.comparing(at); r.work < 0 {
		return false
	}
	_, ok := c.canonical[r.tree.Canonical(at)]
	return ok
}

// unique reports whether all items differ.
func (r *run) unique(at int32, rep *report) bool {
	if r.work -= r.comparing(at) + int(r.tree.Values[at].Count); r.work < 0 {
		return false
	}
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
