// Package commands_test runs the commands of docs/commands.md, and compares what they print with what the
// pages show.
package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/pagetest"
)

// toolJSON is the manifest that the page shows before its commands use it. The test fails if the page shows a different one.
const toolJSON = `{"abi": 1, "namespace": "texts", "tools": [{"name": "echo", "description": "Return the arguments.",
  "parameters": {"type": "object", "required": ["text"],
    "properties": {"text": {"type": "string"}, "times": {"type": "integer", "default": 1, "maximum": 9}}}}]}
`

func TestCommandsDoc(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go", "sh", "bash")
	s := newShell(t)
	steps := 0
	for _, block := range pagetest.Blocks(string(testkit.Read(t, "../../docs/commands.md"))) {
		if block.Language != "console" {
			continue
		}
		for _, step := range pagetest.Steps(block.Text) {
			s.Compare("commands.md", step[0], step[1])
			steps++
		}
	}
	if steps < 15 {
		t.Errorf("docs/commands.md has %d commands; is it the right page?", steps)
	}
}

// newShell returns a shell in a folder with the files that the page mentions.
func newShell(t *testing.T) *pagetest.Shell {
	t.Helper()
	s := pagetest.NewShell(t)
	math := testkit.Guest(t, "../../examples", "go", "build", "-trimpath", "-ldflags=-s", "-buildmode=c-shared", "-o", "@", "./math")
	echo := testkit.Read(t, "../../testdata/wat/good/command.wasm")
	wrong := strings.Replace(toolJSON, `"parameters"`, `"examples": [{"arguments": {"text": "a"}, "result": {"text": "a", "times": 2}}], "parameters"`, 1)
	packed, err := wasmbin.SetCustom(echo, manifest.Section, []byte(wrong))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"math.wasm": math, "echo.wasm": echo, "wrong.wasm": packed, "tool.json": []byte(toolJSON)} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.Dir, "tools"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}
