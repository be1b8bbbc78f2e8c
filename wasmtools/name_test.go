package wasmtools_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
)

func TestToolCheck(t *testing.T) {
	t.Parallel()
	without := func(change func(*wasmtools.Tool)) *wasmtools.Tool {
		made := tool("math", "add")
		change(made)
		return made
	}
	long := strings.Repeat("a", 32)
	for name, c := range map[string]struct {
		tool *wasmtools.Tool
		want string // empty if nothing is wrong
	}{
		"right":                    {tool("math", "add"), ""},
		"at the top":               {tool("", "add"), ""},
		"below a page":             {tool("tools", "add"), ""},
		"a name like a tree":       {tool("", "administer"), ""},
		"an id of 64":              {tool(long, long[:31]), ""},
		"an id of 65":              {tool(long, long), "has 65 characters; at most 64 are allowed: shorten the namespace or the name"},
		"a bad namespace":          {tool("a//b", "add"), `namespace "a//b": "" is not a valid name`},
		"a bad name":               {tool("math", "a b"), `"a b" is not a valid name: use 1 to 64 of the characters`},
		"no name":                  {tool("math", ""), `"" is not a valid name`},
		"/tools":                   {tool("", "tools"), "path /tools is reserved for the service: choose another namespace or name"},
		"/docs":                    {tool("", "docs"), "path /docs is reserved for the service"},
		"/redoc":                   {tool("", "redoc"), "path /redoc is reserved for the service"},
		"/healthz":                 {tool("", "healthz"), "path /healthz is reserved for the service"},
		"/readyz":                  {tool("", "readyz"), "path /readyz is reserved for the service"},
		"/metrics":                 {tool("", "metrics"), "path /metrics is reserved for the service"},
		"/mcp":                     {tool("", "mcp"), "path /mcp is reserved for the service"},
		"/mcp/x":                   {tool("mcp", "x"), "path /mcp/x is reserved for the service"},
		"/events":                  {tool("", "events"), "path /events is reserved for the service"},
		"/admin":                   {tool("", "admin"), "path /admin is reserved for the service"},
		"/admin/x":                 {tool("admin", "x"), "path /admin/x is reserved for the service"},
		"/console/x/y":             {tool("console/x", "y"), "path /console/x/y is reserved for the service"},
		"without parameters":       {without(func(t *wasmtools.Tool) { t.Parameters = nil }), "tool /math/add has no Parameters"},
		"without a caller":         {without(func(t *wasmtools.Tool) { t.Caller = nil }), "tool /math/add has no Caller"},
		"an endless namespace":     {tool(strings.Repeat("a/", 100000)+"b", "c"), "characters; at most 64 are allowed"},
		"a namespace of one piece": {tool(strings.Repeat("a", 100000), "c"), "is not a valid name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.tool.Check()
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got the error %v, want %q in it", err, c.want)
			}
			if len(err.Error()) > 500 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestConflict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, second *wasmtools.Tool
		want          string
	}{
		"none":        {from("a.wasm", "math", "add"), from("b.wasm", "math", "sub"), ""},
		"prefix":      {from("a.wasm", "", "math"), from("b.wasm", "math", "sub"), ""},
		"path":        {from("a.wasm", "math", "add"), from("b.wasm", "math", "add"), "path /math/add is taken: a.wasm and b.wasm both declare it; rename one"},
		"one file":    {from("a/b.wasm", "", "add"), from("a/b.wasm", "", "add"), "path /add is taken: a/b.wasm has it twice, or is served twice, as when one source's directory is inside another's"},
		"no file":     {tool("", "add"), from("b.wasm", "", "add"), "path /add is taken: the program and b.wasm both declare it"},
		"operationId": {from("a.wasm", "a/b", "c"), from("b.wasm", "a", "b-c"), `operation id "a-b-c" is taken: /a/b/c of a.wasm and /a/b-c of b.wasm both have it; rename one`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := wasmtools.Conflict(c.first, c.second)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
