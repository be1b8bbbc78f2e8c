package schemas

import (
	"slices"
	"strings"
)

// find returns the index of a name in members, or -1. Bodies often have the order of the schema, so the search begins at guess. That saves half of
// the time for a small body.
func (rules *objectRules) find(name string, guess int) int {
	if guess < len(rules.members) && rules.members[guess].name == name {
		return guess
	}
	if rules.byName == nil {
		return slices.IndexFunc(rules.members, func(m member) bool { return m.name == name })
	}
	i, ok := slices.BinarySearchFunc(rules.byName, name, func(i int32, name string) int { return strings.Compare(rules.members[i].name, name) })
	if !ok {
		return -1
	}
	return int(rules.byName[i])
}

// Among up to fewMembers members, a linear search is faster than a binary one.
const fewMembers = 8

// indexNames prepares find. A map of the names would take as much memory again as the members do.
func (rules *objectRules) indexNames() {
	if len(rules.members) <= fewMembers {
		return
	}
	rules.byName = make([]int32, len(rules.members))
	for i := range rules.byName {
		rules.byName[i] = int32(i)
	}
	slices.SortFunc(rules.byName, func(a, b int32) int { return strings.Compare(rules.members[a].name, rules.members[b].name) })
}
