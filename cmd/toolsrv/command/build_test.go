package command_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

const (
	echoManifest = `{"abi": 1, "namespace": "texts", "tools": [
		{"name": "echo", "description": "Say it again.\nAnd again.", "parameters": {"type": "object"}}]}`
	echoSource = `package main

import (
	"io"
	"os"
)

func main() { io.Copy(os.Stdout, os.Stdin) }
`
)

// echo returns a folder with a plain program and a file with this manifest.
func echo(t *testing.T, manifest string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs compilers: not with -short")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command to build with")
	}
	dir := filepath.Join(t.TempDir(), "echo")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module example.com/echo\n\ngo 1.24\n", "main.go": echoSource, "tool.json": manifest} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBuild(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	dir := echo(t, echoManifest)
	file := filepath.Join(dir, "echo.wasm")
	code, stdout, stderr := run("build", dir)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, standard error %q", code, stderr)
	}
	for _, want := range []string{file + ": go, ", " MiB\n", "  /texts/echo  Say it again.\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in %q", want, stdout)
		}
	}

	other := filepath.Join(t.TempDir(), "other.wasm")
	code, stdout, stderr = run("build", dir, "--json", "-o", other)
	if code != 0 || stderr != "" {
		t.Fatalf("--json: exit code %d, standard error %q", code, stderr)
	}
	var got struct {
		File, Language string
		Size           int64
		Tools          []struct{ Name, Path, Description string }
	}
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatalf("--json: %v: %s", err, stdout)
	}
	info, err := os.Stat(other)
	if err != nil {
		t.Fatal(err)
	}
	if got.File != other || got.Language != "go" || got.Size != info.Size() || len(got.Tools) != 1 || got.Tools[0].Path != "/texts/echo" {
		t.Errorf("--json: got %+v; the file has %d bytes", got, info.Size())
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(other); err != nil || string(first) != string(second) {
		t.Errorf("two builds differ: %d and %d bytes, %v", len(first), len(second), err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestBuildKeeps checks that a failed build does not touch the file of the last one.
func TestBuildKeeps(t *testing.T) {
	t.Parallel()
	dir := echo(t, strings.Replace(echoManifest, `{"type": "object"}`, `{"type": "objekt"}`, 1))
	file := filepath.Join(dir, "echo.wasm")
	if err := os.WriteFile(file, []byte("the last one"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run("build", dir)
	if code != 1 || stdout != "" || !strings.Contains(stderr, "compiles, but a server would refuse it") || !strings.Contains(stderr, "parameters: at /type") {
		t.Errorf("exit code %d, standard output %q, standard error %q; want 1, nothing, and the reason", code, stdout, stderr)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "the last one" {
		t.Errorf("the file holds %d bytes, %v", len(text), err)
	}
}

func TestBuildFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"two folders", []string{"a", "b"}, 2, `unexpected argument "b"`},
		{"empty folder name", []string{""}, 2, "the folder's name is empty"},
		{"empty output", []string{dir, "-o", ""}, 2, "name a file or leave it out"},
		{"no folder", []string{filepath.Join(dir, "nowhere")}, 1, "there is no file or folder"},
		{"no source", []string{dir}, 1, "no Go file, no Cargo.toml and no script"},
		{"a folder in place of a file", []string{echo(t, echoManifest), "-o", dir}, 1, "is a folder: name a file, such as"},
		{"a device in place of a file", []string{echo(t, echoManifest), "-o", os.DevNull}, 1, "is not a regular file"},
		{"a folder that does not exist", []string{echo(t, echoManifest), "-o", filepath.Join(dir, "nowhere", "x.wasm")}, 1, "make it first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"build"}, c.args...)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d, nothing, and %q", code, stdout, stderr, c.code, c.says)
			}
		})
	}
}

// TestFolders checks that call and test first build the project in a folder, also in a language that needs a compiler.
func TestFolders(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	dir := echo(t, strings.Replace(echoManifest, `"parameters"`, `"examples": [{"arguments": {"a": 1}, "result": {"a": 1}}], "parameters"`, 1))
	if code, stdout, stderr := run("test", dir); code != 0 || !strings.HasPrefix(stdout, "ok    /texts/echo, example 1 (") {
		t.Errorf("test: exit code %d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, stderr := run("call", dir, `{"b":2}`); code != 0 || strings.TrimSpace(stdout) != `{"b":2}` {
		t.Errorf("call: exit code %d, %q, %q", code, stdout, stderr)
	}
	tool := filepath.Join(dir, "tool.json")
	if err := os.WriteFile(tool, []byte(strings.Replace(echoManifest, `"parameters"`, `"examples": [{"arguments": {"a": 1}, "result": {"a": 2}}], "parameters"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run("build", dir); code != 0 || !strings.Contains(stderr, "warning: /texts/echo, example 1: at a: got 1, want 2") {
		t.Errorf("build with an example that fails: exit code %d, %q, want a warning", code, stderr)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\nfunc main() { misspelled() }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run("test", dir); code != 1 || !strings.Contains(stderr, "undefined: misspelled") {
		t.Errorf("a source with an error: exit code %d, %q, want what the compiler says", code, stderr)
	}
}
