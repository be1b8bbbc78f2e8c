package mcp_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestTypeScript lets the TypeScript SDK list and call tools, pass wrong arguments, call a disabled tool, get an image, follow progress, cancel a
// call, and notice a new tool; over HTTP also with a wrong token, and at the address of a namespace. It tries both major versions of the SDK with
// each version of the protocol, over HTTP and stdio. client.mjs has the checks.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, sdk, era string }{
		{"v1", "v1", "legacy"},
		{"v2 as an older client", "v2", "legacy"},
		{"v2 negotiates", "v2", "auto"},
		{"v2 2026-07-28", "v2", "2026-07-28"},
	} {
		for _, transport := range []string{"HTTP", "stdio"} {
			t.Run(test.name+" over "+transport, func(t *testing.T) {
				s := prepare(t, disabled, withToken)
				options := map[string]any{"sdk": test.sdk, "era": test.era,
					"from": filepath.Join(setting(t, "TOOLS"), "math.wasm"), "to": filepath.Join(s.tools, "math.wasm"), "appears": "math-add"}
				want := checks
				if transport == "HTTP" {
					options["url"], options["token"] = s.start(t, nil), token
					want += 2 // another token, or the address of a namespace
				} else {
					options["command"] = s.stdio(t)
				}
				argument, err := json.Marshal(options)
				if err != nil {
					t.Fatal(err)
				}
				stdout, stderr, err := run(t, clientLimit, nil, node(t), "client.mjs", string(argument))
				report(t, stdout, want)
				if err != nil || t.Failed() {
					t.Errorf("client.mjs: %v\nthe server's log and what else was written to stderr:\n%s", err, clip(stderr))
				}
			})
		}
	}
}

// checks is how many checks a client reports: one that reports fewer has not finished.
const checks = 15

// report makes a subtest of each line that a client wrote, and checks their number.
func report(t *testing.T, stdout string, want int) {
	t.Helper()
	n := 0
	for line := range strings.Lines(stdout) {
		var outcome struct{ Check, Error string }
		if json.Unmarshal([]byte(line), &outcome) != nil {
			t.Errorf("the client wrote %q", line)
			continue
		}
		n++
		t.Run(outcome.Check, func(t *testing.T) {
			if outcome.Error != "" {
				t.Error(outcome.Error)
			}
		})
	}
	if n != want {
		t.Errorf("got %d checks, want %d", n, want)
	}
}
