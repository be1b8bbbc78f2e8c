// Package reach finds out everything that callers can reach: what each tool does for them outside its sandbox, by itself and through the tools that
// it calls.
//
// It relies only on what is enforced. The values that a tool's calls get say what the tool itself reaches. A tool calls other tools on behalf of its
// caller, and so only those that the caller may call.
package reach

import (
	"cmp"
	"slices"
	"strings"

	inner "github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// A Tool is a tool that can be called: it is enabled, and lacks no grant.
type Tool struct {
	wasmtools.Route
	// Reaches are what the tool itself reaches, including other tools.
	Reaches []capability.Reached
}

// A Way is how a caller reaches something.
type Way struct {
	// Principal is the name of the caller, and Tool the path of the tool that is called, such as "weather/now".
	Principal string `json:"principal" description:"The caller."`
	Tool      string `json:"tool" description:"The tool that the caller calls."`
	// Through are the paths of the tools that are called on a shortest way: Tool calls the first one, and each of them calls the next. If empty,
	// Tool reaches it itself.
	Through []string `json:"through,omitempty" description:"The tools called on the way, each by the one before; if empty, the tool reaches it directly."`
	capability.Reached
}

// compare orders ways by caller, tool and what is reached.
func (w Way) compare(other Way) int {
	return cmp.Or(strings.Compare(w.Principal, other.Principal), strings.Compare(w.Tool, other.Tool), w.Reached.Compare(other.Reached))
}

// Options bound the search of Ways.
type Options struct {
	// First reports whether ways that begin with the tool at a path such as "/weather/now" are wanted. If nil, all are.
	First func(path string) bool
	// Most is how many ways are returned at most. 0 means all.
	Most int
}

// Ways returns how the principals reach something with tools: a shortest way for each combination of principal, tool and what is reached, sorted by
// these three. A way never ends at another tool, but goes on to what that tool reaches. complete is false if there are more than o.Most ways.
func Ways(tools []Tool, o Options, principals ...*wasmtools.Principal) (all []Way, complete bool) {
	byPath := make(graph, len(tools))
	for i := range tools {
		byPath[tools[i].Path] = &tools[i]
	}
	for _, p := range principals {
		for i := range tools {
			if t := &tools[i]; p.MayCall(&t.Route) && (o.First == nil || o.First(t.Path)) {
				if all = byPath.from(all, p, t); o.Most > 0 && len(all) > o.Most {
					return nil, false
				}
			}
		}
	}
	slices.SortStableFunc(all, Way.compare)
	return all, true
}

// A graph is the tools that may call each other, by their paths.
type graph map[string]*Tool

// A visit is a called tool on a shortest way.
type visit struct {
	tool *Tool
	by   *visit // nil: the caller
}

// from adds the ways that begin with a tool. It visits each tool once, nearer ones first.
func (g graph) from(all []Way, p *wasmtools.Principal, first *Tool) []Way {
	_, nobody := personal.Of(p)
	seen := map[*Tool]bool{first: true}
	told := map[capability.Reached]bool{}
	level := []*visit{{tool: first}}
	for depth := 0; len(level) > 0; depth++ {
		var next []*visit
		for _, v := range level {
			for _, r := range v.tool.Reaches {
				if r.Capability != "tools" {
					if !told[r] && !(r.Own && nobody != nil) {
						told[r] = true
						all = append(all, Way{Principal: p.String(), Tool: strings.TrimPrefix(first.Path, "/"), Through: v.path(), Reached: r})
					}
					continue
				}
				path := "/" + r.Entry
				if t := g[path]; t != nil && !seen[t] && p.MayCall(&t.Route) && depth < inner.MaxDepth {
					seen[t] = true
					next = append(next, &visit{t, v})
				}
			}
		}
		level = next
	}
	return all
}

// path returns the tools that are called after the first one.
func (v *visit) path() (all []string) {
	for ; v.by != nil; v = v.by {
		all = append(all, strings.TrimPrefix(v.tool.Path, "/"))
	}
	slices.Reverse(all)
	return all
}

// Gained returns the ways that are new in after: in before, the same caller and tool do not reach the same thing.
func Gained(before, after []Way) (gained []Way) {
	known := make(map[key]bool, len(before))
	for _, w := range before {
		known[w.key()] = true
	}
	for _, w := range after {
		if !known[w.key()] {
			gained = append(gained, w)
		}
	}
	return gained
}

// A key is the part of a way that is compared.
type key struct {
	principal, tool string
	reached         capability.Reached
}

func (w Way) key() key { return key{w.Principal, w.Tool, w.Reached} }
