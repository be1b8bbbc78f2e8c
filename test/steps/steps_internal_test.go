package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// checkout returns a ci for a repository with these files. It calls made in place of make, and records the arguments.
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
	c := &ci{out: out, today: "2026-01-02", found: func(program string) bool { return program == "cat" }, make: func(_ io.Writer, arguments []string) error {
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
	"Makefile": "FLAGS = -v\nOTHER = 1\nrust: lib\n\tcargo test $(FLAGS)\nlib:\n\tcargo fetch\nunused:\n\ttrue\n",
	".ci/steps.txt": "# Steps\nrust FLAG=1\n\trust *.lock docs/a.md\ntest P=@...\n\tin:. has:^func.Test\n\tgo:@ first:setup\ntest P=pkg\n\tdocs/b.md\n" +
		"emulated\n\tMakefile needs:qemu needs:emu\nfuzz F=@\n\tin:. has:^func.Fuzz\n\tgo:@ needs:cat\nserve\n\tcode:pkg make:lib\n",
	"a.lock":                    "1",
	"rust/src/lib.rs":           "fn main() {}",
	"rust/README.md":            "# Rust",
	"docs/a.md":                 "# A",
	"docs/b.md":                 "# B",
	"go.mod":                    "module example.com/m\n\ngo 1.24\n",
	"pkg/pkg.go":                "package pkg\n\nimport _ \"embed\"\n\n//go:embed page.md\nvar page string\n",
	"pkg/page.md":               "# Page",
	"pkg/README.md":             "# Read",
	"pkg/pkg_test.go":           "package pkg\n\nimport (\n\t_ \"example.com/m/imported\"\n\t\"testing\"\n)\n\nfunc FuzzIt(f *testing.F) {}\nfunc TestIt(t *testing.T) { Fixture(t, \"wat/a\"); read(\"../shared/x.txt\", \"../named/\") }\n",
	"pkg/testdata/x":            "x",
	"imported/imported.go":      "package imported\n",
	"imported/imported_test.go": "package imported\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n",
	"imported/testdata/x":       "x",
	"other/other.go":            "package other\n",
	"shared/x.txt":              "x",
	"shared/y.txt":              "y",
	"testdata/wat/a.wasm":       "a",
	"testdata/wat/b.wasm":       "b",
	"named/x.txt":               "x",
	"named/x.md":                "x",
	"nested/go.mod":             "module example.com/m/nested\n\ngo 1.24\n",
	"nested/n_test.go":          "package nested\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n",
}

// TestRun changes one file after another: exactly the steps that read the file run again.
func TestRun(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go")
	c, calls, out := checkout(t, example, well)
	const rust, fuzz, serve = "rust FLAG=1", "fuzz F=pkg", "serve"
	tested := func(folders string) []string { return []string{"setup", "test P=" + folders} }
	all := slices.Concat([]string{rust}, tested("imported pkg"), []string{fuzz, serve})
	steps := 5
	for _, change := range []struct {
		name, file, text string
		want             []string
	}{
		{"nothing has passed", "rust/README.md", "# Rust", all},
		{"nothing has changed", "rust/README.md", "# Rust", nil},
		{"a page in a folder", "rust/README.md", "# More", nil},
		{"a page beside a package", "pkg/README.md", "# More", nil},
		{"an embedded page", "pkg/page.md", "# More", slices.Concat(tested("pkg"), []string{fuzz, serve})},
		{"a page that steps.txt names", "docs/a.md", "# More", []string{rust}},
		{"a file that one package's step reads in addition", "docs/b.md", "# More", tested("pkg")},
		{"a package that is not imported", "other/other.go", "package other\n\nvar X int\n", nil},
		{"a package of another module", "nested/n_test.go", "package nested\n", nil},
		{"a file", "rust/src/lib.rs", "fn other() {}", []string{rust}},
		{"a new file in a folder", "rust/src/deep/new.rs", "", []string{rust}},
		{"a file that a pattern matches", "b.lock", "", []string{rust}},
		{"a package", "pkg/new.go", "package pkg\n", slices.Concat(tested("pkg"), []string{fuzz, serve})},
		{"a file that a package's tests read", "pkg/testdata/x", "y", slices.Concat(tested("pkg"), []string{fuzz})},
		{"a file outside the package that its tests name", "shared/x.txt", "z", slices.Concat(tested("pkg"), []string{fuzz})},
		{"a file outside the package that they don't name", "shared/y.txt", "z", nil},
		{"a fixture that the tests name", "testdata/wat/a.wasm", "z", slices.Concat(tested("pkg"), []string{fuzz})},
		{"a fixture that the tests don't name", "testdata/wat/b.wasm", "z", nil},
		{"a file in a folder that the tests name", "named/x.txt", "z", slices.Concat(tested("pkg"), []string{fuzz})},
		{"a page in that folder", "named/x.md", "z", nil},
		{"a package that the tests import", "imported/imported.go", "package imported\n\nvar X int\n", slices.Concat(tested("imported pkg"), []string{fuzz})},
		{"the tests of a package that the tests import", "imported/imported_test.go", example["imported/imported_test.go"] + "\n", tested("imported")},
		{"what these read", "imported/testdata/x", "y", tested("imported")},
		{"the modules", "go.mod", "module example.com/m\n\ngo 1.25\n", slices.Concat(tested("imported pkg"), []string{fuzz, serve})},
		{"another target", "Makefile", strings.Replace(example["Makefile"], "true", "false", 1), nil},
		{"a recipe", "Makefile", strings.Replace(example["Makefile"], "cargo test", "cargo check", 1), []string{rust}},
		{"a prerequisite of a recipe", "Makefile", strings.Replace(example["Makefile"], "fetch", "fetch -q", 1), []string{rust, serve}},
		{"the patterns of a step", ".ci/steps.txt", strings.Replace(example[".ci/steps.txt"], "*.lock", "a.lock", 1), []string{rust}},
		{"a setting for all commands", "Makefile", "export FLAGS_OF_ALL := $(OTHER)\n" + example["Makefile"], all},
		{"a variable in that setting", "Makefile", "export FLAGS_OF_ALL := $(OTHER)\n" + strings.Replace(example["Makefile"], "OTHER = 1", "OTHER = 2", 1), all},
		{"a damaged line", passedFile, "2026-01-02 abc serve\nrust", all},
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
		if told := strings.Count(out.String(), " s  make "); told != len(change.want) {
			t.Errorf("%s: the output says how long %d steps took:\n%s", change.name, told, out)
		}
		if left := strings.Contains(out.String(), "NOT RUN AGAIN: make "); left != (len(change.want) < steps) {
			t.Errorf("%s: the output says %v that steps are left out:\n%s", change.name, left, out)
		}
		if !strings.Contains(out.String(), "NOT RUN AT ALL: make emulated: there is no qemu or emu in PATH") {
			t.Errorf("%s: the output does not mention the step whose program is missing:\n%s", change.name, out)
		}
	}
	if want := "NOT RUN AGAIN: make test P=… for 2 of 2 packages: since it passed on 2026-01-02, nothing"; true {
		out.Reset()
		if err := c.run(false); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("got %v, %s, want %q", err, out, want)
		}
	}
	*calls = nil
	if err := c.run(true); err != nil || !slices.Equal(*calls, all) {
		t.Errorf("all: made %q, %v", *calls, err)
	}
}

// TestMerged has the lines of both sides of a merge: a step has passed if one of them matches, and then has one line.
func TestMerged(t *testing.T) {
	t.Parallel()
	c, calls, _ := checkout(t, map[string]string{"Makefile": "", ".ci/steps.txt": "one\n\ta\ntwo\n\tb\n", "a": "", "b": ""}, well)
	if err := c.run(false); err != nil {
		t.Fatal(err)
	}
	ours := string(testkit.Read(t, c.tree.root, passedFile))
	testkit.Put(t, c.tree.root, passedFile, strings.ReplaceAll(ours, "2026-01-02 ", "2026-01-01 0")+ours+"2026-01-03 abc one\n2026-01-03 abc gone\n")
	if err := c.run(false); err != nil || len(*calls) != 2 {
		t.Errorf("made %q, %v", *calls, err)
	}
	testkit.Put(t, c.tree.root, "a", "changed")
	reopen(t, c, c.tree.root)
	if err := c.run(false); err != nil || !slices.Equal((*calls)[2:], []string{"one"}) {
		t.Errorf("made %q, %v", *calls, err)
	}
	text := string(testkit.Read(t, c.tree.root, passedFile))
	if strings.Count(text, " one\n") != 1 || strings.Contains(text, "gone") || !strings.Contains(text, " two\n") {
		t.Errorf("got\n%s", text)
	}
}

// TestRunFails has a step that fails, and one whose files change while it runs: neither has passed.
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
	c.make = func(_ io.Writer, arguments []string) error {
		*calls = append(*calls, arguments[0])
		testkit.Put(t, c.tree.root, "b", "changed")
		return nil
	}
	if err := c.run(false); err == nil || !strings.Contains(err.Error(), "has changed while they ran") {
		t.Errorf("got %v", err)
	}
	if want := []string{"first", "second", "second"}; !slices.Equal(*calls, want) {
		t.Errorf("made %q, want %q", *calls, want)
	}
}

// TestPairs runs steps two at a time, beginning with those that wait. Only steps that wait run in parallel with a step that
// uses the whole machine.
func TestPairs(t *testing.T) {
	t.Parallel()
	const steps = "lint\n\ta\nrace\n\ta fills:\nbench\n\ta\nclients\n\ta\nnats\n\ta waits:\nmcp\n\ta\n"
	for _, fails := range []string{"", "bench", "clients"} {
		t.Run("fails "+fails, func(t *testing.T) {
			t.Parallel()
			ci, _, out := checkout(t, map[string]string{"Makefile": "", ".ci/steps.txt": steps, "a": ""}, well)
			ci.pairs = true
			var mu sync.Mutex
			running, calls := map[string]bool{}, []string(nil)
			met := map[string]chan bool{"lint nats": make(chan bool), "race nats": make(chan bool), "bench clients": make(chan bool)}
			meet := func(pair string) { // waits for the other
				select {
				case met[pair] <- true:
				case <-met[pair]:
				case <-time.After(testkit.Patience):
					t.Errorf("%s do not run at the same time", pair)
				}
			}
			ci.make = func(out io.Writer, arguments []string) error {
				name := arguments[0]
				mu.Lock()
				calls, running[name] = append(calls, name), true
				for other := range running {
					if pair := name + " " + other; other != name && strings.Contains(pair, "race") && !strings.Contains(pair, "nats") {
						t.Errorf("%s runs in parallel with %s", name, other)
					}
				}
				mu.Unlock()
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					delete(running, name)
				}()
				switch name {
				case "lint":
					meet("lint nats")
				case "nats":
					fmt.Fprintln(out, "nats begins")
					meet("lint nats")
					meet("race nats")
					fmt.Fprintln(out, "nats ends")
				case "race":
					meet("race nats")
				case "bench", "clients":
					meet("bench clients")
				}
				if name == fails {
					return errors.New("exit status 2")
				}
				for fails == "bench" && name == "clients" || fails == "clients" && name == "bench" {
					if ci.failed.Load() {
						break
					}
					runtime.Gosched() // until the test has checked that
				}
				return nil
			}
			if err := ci.run(false); (err != nil) != (fails != "") {
				t.Errorf("got %v", err)
			}
			want := []string{"bench", "clients", "lint", "mcp", "nats", "race"}
			if fails != "" {
				want = slices.DeleteFunc(want, func(name string) bool { return name == "mcp" })
			}
			if slices.Sort(calls); !slices.Equal(calls, want) {
				t.Errorf("%q have begun, want %q", calls, want)
			}
			if whole := "nats begins\nnats ends\n"; !strings.Contains(out.String(), whole) {
				t.Errorf("the output of the second of two steps is interleaved:\n%s", out)
			}
		})
	}
}

// TestWaits runs steps that wait in parallel with the others: the output of each is in one piece, a common prerequisite is made once, and after a
// failed step no other one begins.
func TestWaits(t *testing.T) {
	t.Parallel()
	const steps = "nats\n\ta waits: first:setup\nlint\n\ta\nbrowser\n\ta waits: first:setup\ntest\n\ta first:setup\n"
	wrong := errors.New("exit status 2")
	for _, c := range []struct {
		name, fails string
		want        []string // that have passed
		never       string   // begins
	}{
		{name: "all pass", want: []string{"browser", "lint", "nats", "test"}},
		{name: "a step that waits fails", fails: "nats", want: []string{"lint"}, never: "browser"},
		{name: "another fails", fails: "lint", want: []string{"nats"}, never: "test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ci, _, out := checkout(t, map[string]string{"Makefile": "", ".ci/steps.txt": steps, "a": ""}, well)
			begun := map[string]chan bool{"nats": make(chan bool), "lint": make(chan bool)}
			var mu sync.Mutex
			var calls []string
			ci.make = func(out io.Writer, arguments []string) error {
				name := arguments[0]
				mu.Lock()
				calls = append(calls, name)
				mu.Unlock()
				other := map[string]string{"nats": "lint", "lint": "nats"}[name]
				if other == "" {
					return nil
				}
				close(begun[name])
				if name == "nats" {
					fmt.Fprintln(out, "nats begins")
				}
				select { // each of these two runs until the other has begun
				case <-begun[other]:
				case <-time.After(testkit.Patience):
					t.Errorf("%s does not begin while %s runs", other, name)
				}
				if name == "nats" {
					fmt.Fprintln(out, "nats ends")
				}
				if name == c.fails {
					return wrong
				}
				for c.fails == other && !ci.failed.Load() {
					runtime.Gosched() // until the test has checked that
				}
				return nil
			}
			if err := ci.run(false); errors.Is(err, wrong) != (c.fails != "") || err != nil && c.fails == "" {
				t.Errorf("got %v", err)
			}
			if c.never != "" && slices.Contains(calls, c.never) {
				t.Errorf("%s has begun after %s failed: %q", c.never, c.fails, calls)
			}
			if n := strings.Count(strings.Join(calls, " "), "setup"); n != 1 {
				t.Errorf("the steps' prerequisite was made %d times: %q", n, calls)
			}
			if whole := "nats begins\nnats ends\n"; !strings.Contains(out.String(), whole) {
				t.Errorf("the output of a step that waits is interleaved:\n%s", out)
			}
			passes, err := ci.tree.passed()
			if err != nil {
				t.Fatal(err)
			}
			var passed []string
			for _, p := range passes {
				passed = append(passed, p.name)
			}
			if !slices.Equal(passed, c.want) {
				t.Errorf("%q have passed, want %q", passed, c.want)
			}
		})
	}
}

func TestStepsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\ta\n":                     "belongs to no step",
		"one\ntwo\n\ta\n":           "one reads nothing",
		"one\n\tmissing\n":          "missing matches no file",
		"one\n\tb/*\n":              "matches no file",
		"one\n\t[\n":                "syntax error in pattern",
		"one F=@\n\ta\n":            "say for which packages an @ stands",
		"one\n\ta in:. has:x\n":     "say for which packages an @ stands",
		"one F=@\n\ta in:. has:(\n": "missing closing )",
		"one F=@\n\ta\tin:. has:x\none F=gone\n\tgo:gone\n": "gone",
	} {
		c, calls, _ := checkout(t, map[string]string{"Makefile": "", ".ci/steps.txt": text, "a": ""}, well)
		if err := c.run(false); err == nil || !strings.Contains(err.Error(), want) || len(*calls) > 0 {
			t.Errorf("%q: the targets were %q, %v; want an error with %q", text, *calls, err, want)
		}
	}
}

// TestOurSteps checks that each step of this repository is a target of the Makefile, and each pattern matches files.
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
	names := map[string]bool{}
	for _, s := range steps {
		target, _, _ := strings.Cut(s.name, " ")
		if names[s.name] || !strings.Contains(makefile, "\n"+target+":") {
			t.Errorf("%q is twice in %s, or not a target of the Makefile", s.name, stepsFile)
		}
		names[s.name] = true
		for _, pattern := range s.reads {
			if strings.HasPrefix(pattern, "make:") {
				continue
			}
			if _, err := tree.match(pattern); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		}
	}
	if len(names) < 100 {
		t.Errorf("got %d steps, want more", len(names))
	}
}

// TestMade checks that make skips targets that were made before in the same folder, and only there.
func TestMade(t *testing.T) {
	t.Parallel()
	ci, _, _ := checkout(t, map[string]string{"Makefile": "", ".ci/steps.txt": "one\n\ta first:tools\ntwo\n\ta first:tools\n", "a": ""}, well)
	var made []string
	ci.make = func(io.Writer, []string) error {
		all := ci.environment()
		made = append(made, all[len(all)-1])
		return nil
	}
	if err := ci.run(false); err != nil {
		t.Fatal(err)
	}
	after := "MADE=" + filepath.Join(ci.tree.root, "tools")
	if want := []string{"MADE=", after, after}; !slices.Equal(made, want) {
		t.Errorf("got %q, want %q", made, want)
	}
	for variable, want := range map[string]bool{after: true, "MADE=": false, "MADE=/elsewhere/tools": false} {
		cmd := exec.Command("make", "-n", "tools", variable)
		cmd.Dir = "../.."
		if variable == after {
			root, err := filepath.EvalSymlinks(testkit.Root(t))
			if err != nil {
				t.Fatal(err)
			}
			cmd.Args[3] = "MADE=" + filepath.Join(root, "tools")
		}
		out, err := cmd.CombinedOutput()
		if skips := !strings.Contains(string(out), "toolsrv build"); err != nil || skips != want {
			t.Errorf("%s: %v, make skips the target: %v, want %v\n%s", cmd, err, skips, want, out)
		}
	}
}
