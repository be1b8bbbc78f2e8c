package command_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// packed returns the paths of the tools in the manifest that is embedded in a module.
func packed(t *testing.T, content []byte) string {
	t.Helper()
	r, err := toolfile.Inspect(content)
	if err != nil || r.Manifest == nil {
		t.Fatalf("the module has no manifest: %v", err)
	}
	var names []string
	for _, tool := range r.Manifest.Tools {
		names = append(names, r.Manifest.Namespace+"/"+tool.Name)
	}
	return strings.Join(names, " ")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestPack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bare := testkit.Fixture(t, "e2e/guest")
	manifest := testkit.Put(t, dir, "tool.json", []byte(manifestOf("shop", "echo")))

	file := testkit.Put(t, dir, "a.wasm", bare)
	code, stdout, stderr := run("pack", file, "--manifest", manifest)
	if code != 0 || stdout != "" || stderr != file+": 1 tool: /shop/echo\n" {
		t.Errorf("in place: exit code %d, standard output %q, standard error %q", code, stdout, stderr)
	}
	if got := packed(t, read(t, file)); got != "shop/echo" {
		t.Errorf("in place: got the tools %s", got)
	}
	if code, stdout, _ := run("call", file, order); code != 0 || stdout != order+"\n" {
		t.Errorf("the tool that was packed: exit code %d, standard output %q", code, stdout)
	}

	file = testkit.Put(t, dir, "b.wasm", bare)
	code, stdout, stderr = run("pack", file, "--manifest", manifest, "-o", "-")
	if code != 0 || stderr != "" || packed(t, []byte(stdout)) != "shop/echo" || string(read(t, file)) != string(bare) {
		t.Errorf("to standard output: exit code %d, %d bytes, standard error %q", code, len(stdout), stderr)
	}
	out := filepath.Join(dir, "out.wasm")
	code, _, stderr = runWith(manifestOf("read", "echo", "refuse"), "pack", file, "--manifest", "-", "-o", out)
	if code != 0 || packed(t, read(t, out)) != "read/echo read/refuse" || string(read(t, file)) != string(bare) {
		t.Errorf("from standard input: exit code %d, standard error %q", code, stderr)
	}
	if code, _, stderr = run("pack", testkit.Put(t, dir, "c.wasm", testkit.Fixture(t, "catalog/described")), "-o", out); code != 0 || packed(t, read(t, out)) != "/told" {
		t.Errorf("with the manifest that the module returns: exit code %d, standard error %q", code, stderr)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %q, %v", left, err)
	}
}

// TestPackKeeps checks that a replaced file keeps its mode, and a link stays a link.
func TestPackKeeps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	manifest := testkit.Put(t, dir, "tool.json", []byte(manifestOf("shop", "echo")))
	file := testkit.Put(t, dir, "v1/a.wasm", testkit.Fixture(t, "e2e/guest"))
	link := filepath.Join(dir, "a.wasm")
	if err := errors.Join(os.Chmod(file, 0o640), os.Symlink(filepath.Join("v1", "a.wasm"), link)); err != nil {
		t.Skip(err)
	}
	if code, _, stderr := run("pack", link, "--manifest", manifest); code != 0 {
		t.Fatalf("exit code %d, standard error %q", code, stderr)
	}
	if to, err := os.Readlink(link); err != nil || to != filepath.Join("v1", "a.wasm") {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o640 || packed(t, read(t, file)) != "shop/echo" {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
}

func TestPackRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bare := testkit.Fixture(t, "e2e/guest")
	good := testkit.Put(t, dir, "good.json", []byte(manifestOf("shop", "echo")))
	for _, c := range []struct {
		name string
		args []string // after the file
		code int
		says string
	}{
		{"nothing to embed", nil, 1, "name that with --manifest"},
		{"no such manifest", []string{"--manifest", dir + "/nowhere.json"}, 1, "nowhere.json"},
		{"a folder", []string{"--manifest", dir}, 1, "read the manifest: "},
		{"no JSON", []string{"--manifest", testkit.Put(t, dir, "bad.json", []byte("{\n  abi: 1}"))}, 1, "manifest: line 2, column 3"},
		{"an empty manifest", []string{"--manifest", testkit.Put(t, dir, "empty.json", "")}, 1, "manifest: line 1"},
		{"a wrong member", []string{"--manifest", testkit.Put(t, dir, "wrong.json", []byte(strings.Replace(manifestOf("", "x"), "parameters", "paramters", 1)))}, 1, `tools[0].paramters: unknown member; did you mean "parameters"?`},
		{"a wrong schema", []string{"--manifest", testkit.Put(t, dir, "schema.json", []byte(strings.Replace(manifestOf("", "x"), `"minimum":1`, `"minimum":"1"`, 1)))}, 1, "tool x: parameters: at /properties/count/minimum"},
		{"too large", []string{"--manifest", testkit.Put(t, dir, "large.json", []byte(strings.Repeat("1", 2<<20)))}, 1, "1048576"},
		{"into a folder", []string{"--manifest", good, "-o", dir}, 1, "write the module: "},
		{"into no folder", []string{"--manifest", good, "-o", dir + "/no/where.wasm"}, 1, "write the module: there is no folder " + dir + "/no: make it first"},
		{"no name", []string{"--manifest="}, 2, "it is empty"},
		{"no output", []string{"-o", ""}, 2, "it is empty"},
		{"two files", []string{good}, 2, "takes one file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := testkit.Put(t, t.TempDir(), "shop.wasm", bare)
			code, stdout, stderr := run(append([]string{"pack", file}, c.args...)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d, nothing, and %q", code, stdout, stderr, c.code, c.says)
			}
			if string(read(t, file)) != string(bare) {
				t.Error("the file has changed")
			}
		})
	}
}
