package capability

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// An Unused is an entry of a grant that no tool which the grant is for declares that it needs: a slip of the pen, or a tool that has
// changed.
type Unused struct {
	// Key is the place of the entry, such as "grant[0].http[1]".
	Key string
	// Entry is the entry.
	Entry string
}

// String says it in a sentence.
func (u Unused) String() string {
	return strconv.Quote(text.Short(u.Entry)) + " is granted, but no tool that the grant matches declares that it needs it: remove it"
}

// UnusedGrants returns the entries of a configuration's grants that nobody needs. tools are all there are. A grant that matches none
// of them is not reported here, but by [config.Config.Unmatched].
func UnusedGrants(c *config.Config, tools []*wasmtools.Tool) (unused []Unused) {
	for i := range c.Grants {
		g := &c.Grants[i]
		matches := func(t *wasmtools.Tool) bool { return pattern.Match(g.Match, t.Path()) }
		if !slices.ContainsFunc(tools, matches) {
			continue
		}
		var needs []wasmtools.Needs
		for _, t := range tools {
			if !t.Needs.IsZero() && matches(t) {
				needs = append(needs, t.Needs)
			}
		}
		check := func(key, entry string, uses func(n wasmtools.Needs) bool) {
			if !slices.ContainsFunc(needs, uses) {
				unused = append(unused, Unused{fmt.Sprintf("grant[%d].%s", i, key), entry})
			}
		}
		for k, entry := range g.HTTP {
			check(fmt.Sprintf("http[%d]", k), entry, func(n wasmtools.Needs) bool { return usesHTTP(entry, n.HTTP) })
		}
		if g.KV > 0 {
			check("kv", text.Size(g.KV), func(n wasmtools.Needs) bool { return n.KV })
		}
		if g.Config != nil {
			check("config", "config", func(n wasmtools.Needs) bool { return n.Config != nil })
		}
		for _, name := range slices.Sorted(maps.Keys(g.Files)) {
			check("files."+name, name, func(n wasmtools.Needs) bool { return slices.Contains(n.Files, name) })
		}
		for k, entry := range g.Tools {
			check(fmt.Sprintf("tools[%d]", k), entry, func(n wasmtools.Needs) bool {
				return slices.ContainsFunc(n.Tools, func(need string) bool { return pattern.Match(entry, need) })
			})
		}
		for k, entry := range g.SecretsVisible {
			check(fmt.Sprintf("secrets_visible[%d]", k), entry, func(n wasmtools.Needs) bool { return slices.Contains(n.Secrets, entry) })
		}
	}
	return unused
}
