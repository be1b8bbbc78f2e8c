// Package commands_test runs the commands of docs/commands.md, and compares what they print with what the page shows.
package commands_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// toolJSON is the manifest that the page shows before it uses it; the test fails where the page shows another.
const toolJSON = `{"abi": 1, "namespace": "texts", "tools": [{"name": "echo", "description": "Return the arguments.",
  "parameters": {"type": "object", "required": ["text"],
    "properties": {"text": {"type": "string"}, "times": {"type": "integer", "default": 1, "maximum": 9}}}}]}
`

func TestCommandsDoc(t *testing.T) {
	t.Parallel()
	if testkit.Race || testing.Short() {
		t.Skip("builds WebAssembly modules: not with -race or -short")
	}
	for _, program := range []string{"go", "sh", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the page's commands need %s", program)
		}
	}
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	steps := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for _, step := range strings.Split(strings.TrimPrefix(block[1], "$ "), "\n$ ") {
			command, want, _ := strings.Cut(step, "\n")
			got := s.run(command)
			if !pattern(want).MatchString(got) {
				t.Errorf("docs/commands.md says\n$ %s\n%s\nbut it prints\n%s", command, want, got)
			}
			steps++
		}
	}
	if steps < 15 {
		t.Errorf("the page has %d commands; is it the right one?", steps)
	}
}

// pattern returns what an output has to match: the text, where "..." stands for anything, and space before it, too.
func pattern(text string) *regexp.Regexp {
	parts := strings.Split(strings.TrimSpace(text), "...")
	for i, part := range parts {
		if i < len(parts)-1 {
			part = strings.TrimRight(part, " ")
		}
		if i > 0 {
			part = strings.TrimLeft(part, " ")
		}
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile(`(?s)^\s*` + strings.Join(parts, ".*") + `\s*$`)
}

// A shell runs commands in a folder with the files that the page speaks of.
type shell struct {
	t   *testing.T
	dir string
	env []string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, dir: t.TempDir(), env: append(os.Environ(), "GOWORK=off")}
	bin := t.TempDir()
	s.build(root, nil, "-ldflags", "-X 'github.com/toolsrv/toolsrv/cmd/toolsrv/command.sdk="+root+"/sdk'", "-o", filepath.Join(bin, "toolsrv"), "./cmd/toolsrv")
	s.build(filepath.Join(root, "examples"), []string{"GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-mod=mod"},
		"-trimpath", "-ldflags=-s", "-buildmode=c-shared", "-o", filepath.Join(s.dir, "math.wasm"), "./math")
	s.env = append(s.env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "GOFLAGS=-mod=mod", "GOPROXY=off")

	echo, err := os.ReadFile(filepath.Join(root, "testdata", "wat", "good", "command.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(toolJSON, `"parameters"`, `"examples": [{"arguments": {"text": "a"}, "result": {"text": "a", "times": 2}}], "parameters"`, 1)
	packed, err := wasmbin.SetCustom(echo, wasmtools.ManifestSection, []byte(wrong))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"echo.wasm": echo, "wrong.wasm": packed, "tool.json": []byte(toolJSON)} {
		if err := os.WriteFile(filepath.Join(s.dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.dir, "tools"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shell) build(dir string, env []string, args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "go", append([]string{"build"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(s.env[:len(s.env):len(s.env)], env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("go build %q: %v\n%s", args, err, out)
	}
}

// run returns what a command prints, the two outputs as a terminal shows them. It may fail: the page shows that, too.
func (s *shell) run(command string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		s.t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}
