package command

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

func TestWelcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // parts of the text, in this order
	}{
		{"empty", nil, "is empty.*init *up"},
		{"set up", map[string]string{"toolsrv.toml": "", "tools/a.py": ""}, "has a toolsrv.toml.*up *new *openapi"},
		{"scripts", map[string]string{"a.py": "", "b.ts": "", "test_a.py": ""}, "a.py and b.ts.*up *mcp"},
		{"tools", map[string]string{"tools/a.wasm": ""}, "a.wasm.*up *mcp"},
		{"many", map[string]string{"a.py": "", "b.py": "", "c.py": ""}, "a.py and 2 more.*up"},
		{"source in Go", map[string]string{"main.go": "package main\n"}, "in go.*dev *build"},
		{"other files", map[string]string{"notes.txt": "", "_part.py": ""}, "To begin.*init DIR *up DIR *new *openapi *mcp"},
		{"a name with control characters", map[string]string{"\x1b[31mred.py": ""}, `\u001b[31mred.py.*up`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range c.files {
				testkit.Put(t, dir, name, text)
			}
			got := welcome(dir)
			rest := got
			for _, part := range strings.Split(c.want, "*") {
				part = strings.Trim(part, " .")
				_, after, ok := strings.Cut(rest, part)
				if !ok {
					t.Fatalf("%q is missing, or not in this place, in:\n%s", part, got)
				}
				rest = after
			}
			if lines := strings.Count(got, "\n"); lines > 20 || strings.Contains(got, "\x1b") {
				t.Errorf("%d lines, or control characters:\n%s", lines, got)
			}
			for line := range strings.Lines(got) {
				if len(line) > 100 {
					t.Errorf("a line of %d bytes: %s", len(line), line)
				}
			}
		})
	}
	if got := welcome("nowhere/at/all"); !strings.Contains(got, "toolsrv init") {
		t.Errorf("in a folder that is gone: %s", got)
	}
}
