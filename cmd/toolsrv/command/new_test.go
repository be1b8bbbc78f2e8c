package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sdks is the folder of the SDKs of this tree.
const sdks = "../../../sdk"

func TestNew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		says []string // what to do next
	}{
		{"go", []string{"--lang", "go"}, []string{"  go test .", " dev .\n", "localhost:8000/greet "}},
		{"tinygo", []string{"--lang", "tinygo"}, []string{"  go test .", " dev .\n"}},
		{"rust", []string{"--lang", "rust"}, []string{"cargo test", " dev .\n"}},
		{"a folder", []string{"--lang", "rust", "--sdk", sdks}, []string{"cargo test", " dev .\n"}},
		{"namespace", []string{"--lang", "rust", "--namespace", "texts/loud"}, []string{"localhost:8000/texts/loud/greet "}},
		{"published", []string{"--lang", "go", "--sdk="}, []string{"go mod tidy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "it's mine", "greet")
			code, stdout, stderr := run(append([]string{"new", dir + "/"}, c.args...)...)
			if code != 0 || stderr != "" {
				t.Fatalf("exit code %d, standard error %q", code, stderr)
			}
			for _, want := range append(c.says, `cd '`, `it'\''s mine/greet'`, " build .") {
				if !strings.Contains(stdout, want) {
					t.Errorf("no %q in %q", want, stdout)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
				t.Error(err)
			}
			code, _, stderr = run(append([]string{"new", dir}, c.args...)...)
			if code != 1 || !strings.Contains(stderr, "already contains files") {
				t.Errorf("once more: exit code %d, standard error %q; want 1 and that there are files", code, stderr)
			}
		})
	}
}

// TestNewNamespace checks that the folders of a relative name are the namespace, unless the name begins with a dot or a flag says otherwise. The
// printed commands must work as they are: a program that is not in PATH is named by its path.
func TestNewNamespace(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", "")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		args       []string
	}{
		{"invoice/total", "/invoice/total", nil},
		{"a/b/c/", "/a/b/c", nil},
		{"plain", "/plain", nil},
		{"./shop/cart", "/cart", nil},
		{"../" + filepath.Base(dir) + "/up/here", "/here", nil},
		{filepath.Join(dir, "abs", "olute"), "/olute", nil},
		{"work/shout", "/texts/shout", []string{"--namespace", "texts"}},
		{"work/bare", "/bare", []string{"--namespace="}},
	} {
		code, stdout, stderr := run(append([]string{"new", c.name, "--lang", "go"}, c.args...)...)
		if code != 0 || !strings.Contains(stdout, "localhost:8000"+c.path+" ") || !strings.Contains(stdout, "\n  "+own+" dev .\n") {
			t.Errorf("%s: exit code %d, %s%s; want %s and %s", c.name, code, stdout, stderr, c.path, own)
		}
		readme, err := os.ReadFile(filepath.Join(c.name, "README.md"))
		if err != nil || !strings.Contains(string(readme), "localhost:8000"+c.path+" ") {
			t.Errorf("%s: its README does not call %s (%v)", c.name, c.path, err)
		}
	}
	if code, _, stderr := run("new", "texts/greet", "--lang", "Python"); code != 2 || !strings.Contains(stderr, "python, javascript or typescript\n") {
		t.Errorf("a wrong language: exit code %d, %s; want 2, and nothing about folders", code, stderr)
	}
	for name, says := range map[string]string{
		"my tools/greet": "(for folders that are not a namespace, write './my tools/greet')",
		"admin/greet":    "path /admin/greet is reserved for the service: choose another namespace or name (for folders that are not a namespace, write ./admin/greet)",
		"texts/é":        "characters A-Z a-z 0-9 _ -\nRun ",
	} {
		if code, _, stderr := run("new", name, "--lang", "go"); code != 2 || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d, %s; want 2 and %s", name, code, stderr, says)
		}
	}
}

// TestNewHere makes a project in the current folder, whose name is the tool's.
func TestNewHere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "greet")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	code, stdout, stderr := run("new", ".", "--lang", "go")
	if code != 0 || !strings.Contains(stdout, "Made "+dir+". Next:") || !strings.Contains(stdout, "localhost:8000/greet ") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat("main.go"); err != nil {
		t.Error(err)
	}
}

func TestNewFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no name", []string{"--lang", "go"}, 2, "the name of the tool is missing"},
		{"empty name", []string{"", "--lang", "go"}, 2, "the name of the tool is missing"},
		{"two names", []string{"a", "b", "--lang", "go"}, 2, `unexpected argument "b"`},
		{"no language", []string{filepath.Join(dir, "greet")}, 2, "--lang is missing: choose go, tinygo, rust, python, javascript or typescript"},
		{"empty language", []string{filepath.Join(dir, "greet"), "--lang="}, 2, "--lang is missing"},
		{"unknown language", []string{filepath.Join(dir, "greet"), "--lang", "cobol"}, 2, "choose go, tinygo, rust, python, javascript or typescript"},
		{"language in capitals", []string{filepath.Join(dir, "greet"), "--lang", "Go"}, 2, "choose go, tinygo, rust, python, javascript or typescript"},
		{"bad name", []string{filepath.Join(dir, "my tool"), "--lang", "go"}, 2, "is not a valid name"},
		{"here, among files", []string{".", "--lang", "go"}, 1, "command already contains files"},
		{"bad namespace", []string{filepath.Join(dir, "greet"), "--lang", "go", "--namespace", "/texts"}, 2, "namespace"},
		{"no SDK", []string{filepath.Join(dir, "greet"), "--lang", "go", "--sdk", dir}, 1, "has no SDK for go"},
		{"a digit first", []string{filepath.Join(dir, "2fast"), "--lang", "go"}, 2, "must begin with a letter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"new"}, c.args...)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d, nothing, and %q", code, stdout, stderr, c.code, c.says)
			}
		})
	}
}
