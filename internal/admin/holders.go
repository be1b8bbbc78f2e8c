package admin

import (
	"cmp"
	"slices"

	"github.com/toolsrv/toolsrv/internal/core"
)

// A Holder holds a part of a limited resource.
type Holder struct {
	Tools  []string `json:"tools,omitempty" description:"The paths of tools of one program, or of those that share an engine: at most three."`
	Others int      `json:"others,omitempty" description:"How many other tools it has, besides those listed."`
	Caller string   `json:"caller,omitempty" description:"The caller's name, or the address of a caller without one."`
	Held   int64    `json:"held" description:"How much."`
}

const (
	mostHolders = 5 // how many are listed
	mostTools   = 3 // the tools listed of each holder
)

// holdersOf fills in which tools hold the most.
func (l *Limits) holdersOf(all []*core.Holder) {
	for _, part := range []struct {
		of   *Use
		held func(*core.Holder) int64
	}{
		{&l.Memory, func(h *core.Holder) int64 { return h.Memory }},
		{&l.Code, func(h *core.Holder) int64 { return h.Code }},
		{&l.Mappings, func(h *core.Holder) int64 { return h.Mappings }},
	} {
		slices.SortFunc(all, func(a, b *core.Holder) int {
			return cmp.Or(cmp.Compare(part.held(b), part.held(a)), slices.Compare(a.Tools, b.Tools))
		})
		for _, h := range all[:min(len(all), mostHolders)] {
			if held := part.held(h); held > 0 {
				shown := min(len(h.Tools), mostTools)
				part.of.By = append(part.of.By, Holder{Tools: h.Tools[:shown], Others: len(h.Tools) - shown, Held: held})
			}
		}
	}
}

// CallersOf returns the callers that hold the most, given how much each holds.
func CallersOf(by map[string]int64) (all []Holder) {
	for caller, held := range by {
		all = append(all, Holder{Caller: caller, Held: held})
	}
	slices.SortFunc(all, func(a, b Holder) int { return cmp.Or(cmp.Compare(b.Held, a.Held), cmp.Compare(a.Caller, b.Caller)) })
	return all[:min(len(all), mostHolders)]
}
