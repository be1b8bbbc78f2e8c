package reach_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin/reach"
	inner "github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// tool returns a tool that reaches what is listed: "http https://a.example", or "tools b/c".
func tool(path string, reaches ...string) reach.Tool {
	t := reach.Tool{Route: wasmtools.Route{Path: "/" + path}}
	for _, r := range reaches {
		kind, entry, _ := strings.Cut(r, " ")
		t.Reaches = append(t.Reaches, capability.Reached{Capability: kind, Entry: entry})
	}
	return t
}

func principal(t *testing.T, name string, scopes ...string) *wasmtools.Principal {
	t.Helper()
	p, err := wasmtools.NewPrincipal(name, "test", scopes...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lines returns ways as text.
func lines(ways []reach.Way) (all []string) {
	for _, w := range ways {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", w.Principal, w.Tool, w.Capability, w.Entry, strings.Join(w.Through, ">"))))
	}
	return all
}

func TestWays(t *testing.T) {
	t.Parallel()
	chain := make([]reach.Tool, inner.MaxDepth+3)
	for i := range chain {
		chain[i] = tool(fmt.Sprintf("c/t%02d", i), fmt.Sprintf("tools c/t%02d", i+1), fmt.Sprintf("kv k%02d", i))
	}
	for _, c := range []struct {
		name   string
		tools  []reach.Tool
		scopes []string
		want   []string
	}{
		{"nothing", []reach.Tool{tool("a/x")}, []string{"*"}, nil},
		{"directly", []reach.Tool{tool("a/x", "http https://a.example")}, []string{"*"}, []string{"p a/x http https://a.example"}},
		{"without a scope", []reach.Tool{tool("a/x", "http https://a.example")}, nil, nil},
		{"through another", []reach.Tool{tool("a/x", "tools b/y"), tool("b/y", "secrets key")}, []string{"*"}, []string{"p a/x secrets key b/y", "p b/y secrets key"}},
		{"not through a tool that the caller may not call", []reach.Tool{tool("a/x", "tools b/y"), tool("b/y", "secrets key")}, []string{"a/*"}, nil},
		{"not through a missing one", []reach.Tool{tool("a/x", "tools b/y")}, []string{"*"}, nil},
		{"the shortest way", []reach.Tool{tool("a/x", "tools b/y", "tools b/z"), tool("b/y", "tools b/z"), tool("b/z", "kv n")}, []string{"a/x", "b/*"},
			[]string{"p a/x kv n b/z", "p b/y kv n b/z", "p b/z kv n"}},
		{"a circle", []reach.Tool{tool("a/x", "tools a/y", "kv x"), tool("a/y", "tools a/x", "kv y")}, []string{"a"},
			[]string{"p a/x kv x", "p a/x kv y a/y", "p a/y kv x a/x", "p a/y kv y"}},
		{"as deep as calls go", chain, []string{"c/t00", "c/*"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ways, complete := reach.Ways(c.tools, reach.Options{}, principal(t, "p", c.scopes...))
			got := lines(ways)
			if c.name == "as deep as calls go" {
				got = slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, "p c/t00 ") })
				if len(got) != inner.MaxDepth+1 {
					t.Errorf("the first tool reaches %d things, not %d:\n%s", len(got), inner.MaxDepth+1, strings.Join(got, "\n"))
				}
				return
			}
			if !complete || !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestWaysAreBounded(t *testing.T) {
	t.Parallel()
	tools := []reach.Tool{tool("a/x", "kv a", "kv b"), tool("a/y", "kv c")}
	p := principal(t, "p", "*")
	if ways, complete := reach.Ways(tools, reach.Options{Most: 3}, p); len(ways) != 3 || !complete {
		t.Errorf("of three ways, %d were returned, complete: %v", len(ways), complete)
	}
	if ways, complete := reach.Ways(tools, reach.Options{Most: 2}, p); ways != nil || complete {
		t.Errorf("instead of none, %d of more than two ways were returned, complete: %v", len(ways), complete)
	}
	first := func(path string) bool { return path == "/a/y" }
	if ways, complete := reach.Ways(tools, reach.Options{Most: 1, First: first}, p); len(ways) != 1 || !complete {
		t.Errorf("of the one way from the first tool, %d were returned, complete: %v", len(ways), complete)
	}
}

func TestGained(t *testing.T) {
	t.Parallel()
	before, _ := reach.Ways([]reach.Tool{tool("a/x", "kv a", "tools a/y"), tool("a/y", "http https://a.example")}, reach.Options{}, principal(t, "p", "*"))
	after, _ := reach.Ways([]reach.Tool{tool("a/x", "kv a", "tools a/z"), tool("a/z", "http https://a.example", "secrets key")}, reach.Options{}, principal(t, "p", "*"))
	want := []string{"p a/x secrets key a/z", "p a/z http https://a.example", "p a/z secrets key"}
	if got := lines(reach.Gained(before, after)); !slices.Equal(got, want) { // another way to the same thing is nothing new
		t.Errorf("gained\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := lines(reach.Gained(after, before)); !slices.Equal(got, []string{"p a/y http https://a.example"}) {
		t.Errorf("lost %q", got)
	}
}

// TestOwn checks that callers' own things are listed only for callers that can have some.
func TestOwn(t *testing.T) {
	t.Parallel()
	tools := []reach.Tool{{Route: wasmtools.Route{Path: "/a/x"}, Reaches: []capability.Reached{{Capability: "secrets", Entry: "key@principal", Own: true}, {Capability: "kv", Entry: "a", Own: true}, {Capability: "http", Entry: "https://a.example"}}}}
	numbered, err := wasmtools.NewPrincipal("token-1", wasmtools.OriginToken, "*")
	if err != nil {
		t.Fatal(err)
	}
	ways, _ := reach.Ways(tools, reach.Options{}, principal(t, "ann", "*"), numbered, wasmtools.Everybody())
	want := []string{"ann a/x http https://a.example", "ann a/x kv a", "ann a/x secrets key@principal", "everybody a/x http https://a.example", "token-1 a/x http https://a.example"}
	if got := lines(ways); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
