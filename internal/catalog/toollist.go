package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A toolList has the tools that are served, sorted by path. Changes are sorted in when the list is needed, so one change among ten thousand tools
// does not sort all of them again.
type toolList struct {
	sorted  []*wasmtools.Tool
	changes map[*wasmtools.Tool]bool // whether a tool is now in the list, for each change since all was last called
}

func newToolList(tools []*wasmtools.Tool) toolList {
	l := toolList{changes: map[*wasmtools.Tool]bool{}}
	for _, t := range tools {
		l.add(t)
	}
	return l
}

func (l *toolList) add(t *wasmtools.Tool) { l.changes[t] = true }

func (l *toolList) remove(t *wasmtools.Tool) { l.changes[t] = false }

// all returns the tools, in a slice that never changes.
func (l *toolList) all() []*wasmtools.Tool {
	if len(l.changes) == 0 {
		return l.sorted
	}
	type placed struct {
		path string
		tool *wasmtools.Tool
	}
	var added []placed
	for t, isIn := range l.changes {
		if isIn {
			added = append(added, placed{t.Path(), t})
		}
	}
	slices.SortFunc(added, func(a, b placed) int { return cmp.Compare(a.path, b.path) })
	next := make([]*wasmtools.Tool, 0, len(l.sorted)+len(added))
	keep := func(tools []*wasmtools.Tool) {
		for _, t := range tools {
			if _, changed := l.changes[t]; !changed {
				next = append(next, t)
			}
		}
	}
	rest := l.sorted
	for _, a := range added {
		n, _ := slices.BinarySearchFunc(rest, a.path, func(t *wasmtools.Tool, path string) int { return strings.Compare(t.Path(), path) })
		keep(rest[:n])
		next, rest = append(next, a.tool), rest[n:]
	}
	keep(rest)
	l.sorted = next
	clear(l.changes)
	return next
}
