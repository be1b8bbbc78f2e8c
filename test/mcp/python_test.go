package mcp_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// TestPython does the same as TestTypeScript with the Python SDK, in both of its major versions, and with FastMCP's client. client.py has the checks.
func TestPython(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, client, era string }{
		{"SDK v1", "mcp1", "legacy"},
		{"SDK v2 as an older client", "mcp", "legacy"},
		{"SDK v2 negotiates", "mcp", "auto"},
		{"SDK v2 2026-07-28", "mcp", "2026-07-28"},
		{"FastMCP as an older client", "fastmcp", "legacy"},
		{"FastMCP negotiates", "fastmcp", "auto"},
	} {
		for _, transport := range []string{"HTTP", "stdio"} {
			t.Run(test.name+" over "+transport, func(t *testing.T) {
				s := prepare(t, disabled)
				options := map[string]any{"client": test.client, "era": test.era,
					"from": filepath.Join(setting(t, "TOOLS"), "math.wasm"), "to": filepath.Join(s.tools, "math.wasm"), "appears": "math-add"}
				if transport == "HTTP" {
					options["url"] = s.start(t, nil) + "/mcp"
				} else {
					options["command"] = s.stdio(t)
				}
				argument, err := json.Marshal(options)
				if err != nil {
					t.Fatal(err)
				}
				python := setting(t, "PYTHON")
				if test.client == "mcp1" {
					python = setting(t, "PYTHON1")
				}
				stdout, stderr, err := run(t, clientLimit, nil, python, here("client.py"), string(argument))
				report(t, stdout, checks)
				if err != nil || t.Failed() {
					t.Errorf("client.py: %v\nthe server's log and what else was written to stderr:\n%s", err, clip(stderr))
				}
			})
		}
	}
}

// here returns the path of a file of this package.
func here(name string) string {
	path, err := filepath.Abs(name)
	if err != nil {
		panic(err)
	}
	return path
}
