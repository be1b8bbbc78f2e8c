package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples calls every example tool with its own examples through the TypeScript SDK, in both versions of the protocol: each result fits the
// output schema that the client was shown.
func TestExamples(t *testing.T) {
	t.Parallel()
	type example struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Result    json.RawMessage `json:"result,omitempty"`
	}
	s := prepare(t, "")
	files, err := filepath.Glob(filepath.Join(setting(t, "TOOLS"), "*.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	var calls []example
	for _, file := range files {
		if err := s.put(file, filepath.Base(file)); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, err := run(t, clientLimit, nil, setting(t, "TOOLSRV"), "inspect", "--json", file)
		if err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		var inspected struct {
			Manifest struct {
				Namespace string
				Needs     json.RawMessage
				Tools     []struct {
					Name     string
					Needs    json.RawMessage
					Examples []example
				}
			}
		}
		if err := json.Unmarshal([]byte(stdout), &inspected); err != nil {
			t.Fatal(err)
		}
		for _, tool := range inspected.Manifest.Tools {
			if inspected.Manifest.Needs != nil || tool.Needs != nil {
				continue // this server grants nothing
			}
			for _, e := range tool.Examples {
				e.Name = strings.TrimPrefix(strings.ReplaceAll(inspected.Manifest.Namespace+"/"+tool.Name, "/", "-"), "-")
				calls = append(calls, e)
			}
		}
	}
	if len(calls) < 2*len(files) {
		t.Fatalf("%d files have %d examples, want two each at least", len(files), len(calls))
	}
	text, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "calls.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := run(t, clientLimit, nil, node(t), "examples.mjs", s.start(t, nil)+"/mcp", list); err != nil {
		t.Errorf("%v\n%s", err, clip(stderr))
	}
}
