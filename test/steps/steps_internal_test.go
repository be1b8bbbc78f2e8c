package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// checkout returns a ci over a repository with these files, which has make called as made says, and what it was called with.
func checkout(t *testing.T, files map[string]string, made func(arguments []string) error) (*ci, *[]string, *bytes.Buffer) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	root := t.TempDir()
	git := exec.Command("git", "init", "--quiet")
	git.Dir = root
	if err := git.Run(); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		testkit.Put(t, root, name, text)
	}
	var calls []string
	out := &bytes.Buffer{}
	c := &ci{out: out, today: "2026-01-02", found: func(program string) bool { return program == "cat" }, make: func(arguments []string) error {
		calls = append(calls, strings.Join(arguments, " "))
		return made(arguments)
	}}
	reopen(t, c, root)
	return c, &calls, out
}

func reopen(t *testing.T, c *ci, root string) {
	t.Helper()
	var err error
	if c.tree, err = openTree(root); err != nil {
		t.Fatal(err)
	}
}

func well([]string) error { return nil }

var example = map[string]string{
	"Makefile":             "rust:\n\tcargo test\n",
	".ci/steps.txt":        "# Steps\nrust FLAG=1\n\trust/src *.lock\ngo\n\tgo:pkg\nemulated\n\tMakefile needs:qemu needs:emu\nfuzz F=@\n\tgo:@ needs:cat\n",
	"a.lock":               "1",
	"rust/src/lib.rs":      "fn main() {}",
	"rust/README.md":       "# Rust",
	"go.mod":               "module example.com/m\n\ngo 1.24\n",
	"pkg/pkg.go":           "package pkg\n",
	"pkg/pkg_test.go":      "package pkg\n\nimport (\n\t_ \"example.com/m/imported\"\n\t\"testing\"\n)\n\nfunc FuzzIt(f *testing.F) {}\n",
	"pkg/testdata/x":       "x",
	"imported/imported.go": "package imported\n",
	"imported/x_test.go":   "package imported\n",
	"other/other.go":       "package other\n",
}

// TestRun changes one file after the other: a step runs again where it reads the file, and only there.
func TestRun(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go")
	c, calls, out := checkout(t, example, well)
	all := []string{"rust FLAG=1", "go", "fuzz F=pkg"}
	for _, change := range []struct {
		name, file, text string
		want             []string
	}{
		{"nothing has passed", "rust/README.md", "# Rust", all},
		{"nothing has changed", "rust/README.md", "# Rust", nil},
		{"what no step reads", "rust/README.md", "# More", nil},
		{"a package that is not imported", "other/other.go", "package other\n\nvar X int\n", nil},
		{"a file", "rust/src/lib.rs", "fn other() {}", []string{"rust FLAG=1"}},
		{"a new file in a folder", "rust/src/deep/new.rs", "", []string{"rust FLAG=1"}},
		{"a file that a pattern matches", "b.lock", "", []string{"rust FLAG=1"}},
		{"a package", "pkg/pkg.go", "package pkg\n\nvar X int\n", []string{"go", "fuzz F=pkg"}},
		{"what its tests read", "pkg/testdata/x", "y", []string{"go", "fuzz F=pkg"}},
		{"what its tests import", "imported/imported.go", "package imported\n\nvar X int\n", []string{"go", "fuzz F=pkg"}},
		{"the modules", "go.mod", "module example.com/m\n\ngo 1.25\n", []string{"go", "fuzz F=pkg"}},
		{"the recipes", "Makefile", "rust:\n\tcargo check\n", all},
		{"what a step reads", ".ci/steps.txt", strings.Replace(example[".ci/steps.txt"], "*.lock", "a.lock", 1), []string{"rust FLAG=1"}},
		{"a damaged line", passedFile, "2026-01-02 abc go\nrust", all},
	} {
		testkit.Put(t, c.tree.root, change.file, change.text)
		reopen(t, c, c.tree.root)
		*calls = nil
		out.Reset()
		if err := c.run(false); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(*calls, change.want) {
			t.Errorf("%s: made %q, want %q", change.name, *calls, change.want)
		}
		if left := strings.Count(out.String(), "NOT RUN AGAIN: make "); left != len(all)-len(change.want) {
			t.Errorf("%s: %d steps are told to be left out:\n%s", change.name, left, out)
		}
		if !strings.Contains(out.String(), "NOT RUN AT ALL: make emulated: there is no qemu or emu in PATH") {
			t.Errorf("%s: nothing is said of the step whose program is missing:\n%s", change.name, out)
		}
	}
	*calls = nil
	if err := c.run(true); err != nil || !slices.Equal(*calls, all) {
		t.Errorf("all: made %q, %v", *calls, err)
	}
}

// TestRunFails has a step fail, and one whose files change while it runs: neither has passed.
func TestRunFails(t *testing.T) {
	t.Parallel()
	files := map[string]string{"Makefile": "", ".ci/steps.txt": "first\n\ta\nsecond\n\tb\n", "a": "", "b": ""}
	wrong := errors.New("exit status 2")
	c, calls, _ := checkout(t, files, func(arguments []string) error {
		if arguments[0] == "second" {
			return wrong
		}
		return nil
	})
	if err := c.run(false); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	c.make = func(arguments []string) error {
		*calls = append(*calls, arguments[0])
		testkit.Put(t, c.tree.root, "b", "changed")
		return nil
	}
	if err := c.run(false); err == nil || !strings.Contains(err.Error(), "has changed while it ran") {
		t.Errorf("got %v", err)
	}
	if want := []string{"first", "second", "second"}; !slices.Equal(*calls, want) {
		t.Errorf("made %q, want %q", *calls, want)
	}
}

func TestStepsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\ta\n":            "belongs to no step",
		"one\ntwo\n\ta\n":  "one reads nothing",
		"one\n\tmissing\n": "missing matches no file",
		"one\n\tb/*\n":     "matches no file",
		"one\n\t[\n":       "syntax error in pattern",
	} {
		c, calls, _ := checkout(t, map[string]string{"Makefile": "", ".ci/steps.txt": text, "a": ""}, well)
		if err := c.run(false); err == nil || !strings.Contains(err.Error(), want) || len(*calls) > 0 {
			t.Errorf("%q: made %q, %v; want an error with %q", text, *calls, err, want)
		}
	}
}

// TestRelease has a release need that make ci-long passed with the very tree.
func TestRelease(t *testing.T) {
	t.Parallel()
	c, _, out := checkout(t, map[string]string{"Makefile": "", ".ci/steps.txt": "one\n\ta\n", "a": ""}, well)
	if err := c.release(); err == nil || !strings.Contains(err.Error(), "has never passed") {
		t.Errorf("got %v", err)
	}
	digest, err := c.tree.digest(long)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.remember(long, digest); err != nil {
		t.Fatal(err)
	}
	if err := c.run(false); err != nil { // which keeps the line
		t.Fatal(err)
	}
	reopen(t, c, c.tree.root)
	if err := c.release(); err != nil || !strings.Contains(out.String(), "with this tree on 2026-01-02") {
		t.Errorf("got %v, %s", err, out)
	}
	testkit.Put(t, c.tree.root, "new", "")
	reopen(t, c, c.tree.root)
	if err := c.release(); err == nil || !strings.Contains(err.Error(), "another tree") {
		t.Errorf("after a change: got %v", err)
	}
	if err := c.remember(long, digest); err == nil {
		t.Error("a tree that has changed since it began is remembered")
	}
}

// TestOurSteps holds that each step of this repository is a target of the Makefile, and each pattern matches files.
func TestOurSteps(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go")
	root := "../.."
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("this is not a checkout: ", err)
	}
	tree, err := openTree(root)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := tree.steps()
	if err != nil {
		t.Fatal(err)
	}
	makefile := string(testkit.Read(t, root, "Makefile"))
	names, done := map[string]bool{}, map[string]bool{}
	for _, s := range steps {
		target, _, _ := strings.Cut(s.name, " ")
		if names[s.name] || !strings.Contains(makefile, "\n"+target+":") {
			t.Errorf("%q is twice in %s, or not a target of the Makefile", s.name, stepsFile)
		}
		names[s.name] = true
		if done[target] && target == "fuzz" {
			continue // the patterns are the same for each package
		}
		done[target] = true
		for _, pattern := range s.reads {
			if _, err := tree.match(pattern); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		}
	}
	_, apart, _ := strings.Cut(makefile, "\nAPART := ")
	apart, _, _ = strings.Cut(apart, "\n")
	for folder := range strings.FieldsSeq(apart) {
		if !names["test-apart FOLDER="+folder] {
			t.Errorf("the Makefile sets %s apart, and %s has no step that tests it", folder, stepsFile)
		}
	}
	if apart == "" || len(names) < 20 {
		t.Errorf("got %d steps, want more", len(names))
	}
}
