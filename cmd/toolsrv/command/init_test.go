package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestInit checks that init prints what it has made and what to type next.
func TestInit(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", "")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"a new folder", []string{"texts"}, "Made texts/tools/greet.py, texts/.gitignore and texts/toolsrv.toml.\n\nNext:\n\n  OWN up texts\n\n" +
			"and, in another terminal:\n\n  curl -s localhost:8000/greet -H 'Content-Type: application/json' -d '{\"name\": \"Ada\"}'\n"},
		{"a name with a space", []string{"my texts", "--lang", "rust"}, "Made my texts/greet, my texts/tools, my texts/.gitignore and my texts/toolsrv.toml.\n\nNext:\n\n" +
			"  OWN build 'my texts/greet' -o 'my texts/tools/greet.wasm'\n  OWN up 'my texts'\n"},
		{"here", nil, "Made .gitignore and toolsrv.toml.\ntools already contains files, which are kept: no first tool was added.\n" +
			"Only files in tools are served: move beside.py there to serve it, too.\n\nNext:\n\n  OWN up\n"},
	} {
		if c.args == nil {
			testkit.Put(t, dir, "tools/mine.py", "")
			testkit.Put(t, dir, "beside.py", "")
		}
		code, stdout, stderr := run(append([]string{"init"}, c.args...)...)
		if got := filepath.ToSlash(strings.ReplaceAll(stdout, own, "OWN")); code != 0 || stderr != "" || got != c.want {
			t.Errorf("%s: exit code %d, %s\ngot\n%s\nwant\n%s", c.name, code, stderr, got, c.want)
		}
	}
	if code, _, stderr := run("init", "texts"); code != 1 || !strings.Contains(stderr, "texts has a toolsrv.toml already, so nothing was changed") {
		t.Errorf("once more: exit code %d, %s", code, stderr)
	}
}

func TestInitFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"two folders", []string{dir, dir}, 2, "unexpected argument"},
		{"an empty name", []string{""}, 2, "the folder's name is empty"},
		{"an unknown language", []string{dir, "--lang", "cobol"}, 2, "choose go, tinygo, rust, python, javascript or typescript"},
		{"a language that is empty", []string{dir, "--lang="}, 2, "choose go"},
		{"a file", []string{testkit.Put(t, t.TempDir(), "file", "")}, 1, "is not a folder"},
	} {
		code, stdout, stderr := run(append([]string{"init"}, c.args...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d, standard output %q, standard error %q; want %d, nothing, and %q", c.name, code, stdout, stderr, c.code, c.says)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v (%v)", left, err)
	}
}
