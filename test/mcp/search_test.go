package mcp_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// TestSearch lets a client search for a tool and call it when the list has only the two tools for searching
// and calling.
func TestSearch(t *testing.T) {
	t.Parallel()
	s := prepare(t, "", "[mcp]\nsearch = \"always\"\n")
	if err := s.put(filepath.Join(setting(t, "TOOLS"), "math.wasm"), "math.wasm"); err != nil {
		t.Fatal(err)
	}
	command := s.stdio(t)
	for name, server := range map[string]map[string]any{
		"HTTP":  {"type": "streamable-http", "url": s.start(t, nil) + "/mcp"},
		"stdio": {"type": "stdio", "command": command[0], "args": command[1:]},
	} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(era+" over "+name, func(t *testing.T) {
				i := newInspector(t, era, server)
				var list struct {
					Result struct{ Tools []struct{ Name string } }
				}
				text, _ := i.do(t, 0, "--method", "tools/list")
				if err := json.Unmarshal([]byte(text), &list); err != nil {
					t.Fatal(err)
				}
				if tools := list.Result.Tools; len(tools) != 2 || tools[0].Name != "call_tool" || tools[1].Name != "search_tools" {
					t.Fatalf("the list has %v, want call_tool and search_tools", tools)
				}
				var found struct {
					Result struct {
						StructuredContent struct{ Tools []struct{ Name string } }
					}
				}
				text, _ = i.do(t, 0, "--method", "tools/call", "--tool-name", "search_tools", "--tool-args-json", `{"query": "add two numbers"}`)
				if err := json.Unmarshal([]byte(text), &found); err != nil {
					t.Fatal(err)
				}
				tools := found.Result.StructuredContent.Tools
				if len(tools) == 0 || tools[0].Name != "math-add" {
					t.Fatalf("found %v, want math-add first", tools)
				}
				text, _ = i.do(t, 0, "--method", "tools/call", "--tool-name", "call_tool",
					"--tool-args-json", `{"name": "math-add", "arguments": {"a": 2, "b": 3}}`)
				var sum struct {
					Result struct{ Content []struct{ Text string } }
				}
				if err := json.Unmarshal([]byte(text), &sum); err != nil || len(sum.Result.Content) != 1 || sum.Result.Content[0].Text != "5" {
					t.Errorf("the sum is %s, %v", text, err)
				}
				// Errors about the arguments are the same as in a direct call of the tool.
				i.do(t, toolFailed, "--method", "tools/call", "--tool-name", "call_tool", "--tool-args-json", `{"name": "math-add", "arguments": {"a": 2}}`)
			})
		}
	}
}
