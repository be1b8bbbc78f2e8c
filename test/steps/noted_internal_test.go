package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestPart lets a step for two packages fail. A package has passed all the same if, by the step's notes, each of its runs has passed, and
// another run has made up for every test that was left out or checked less with the race detector.
func TestPart(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go")
	const pkg, imported = `"Package":"example.com/m/pkg"`, `"Package":"example.com/m/imported"`
	wrong := errors.New("exit status 2")
	for _, c := range []struct {
		name, before, notes string
		change              string // the file that is changed while the steps run
		again               string // the packages that run again
		want                string // in the error
	}{
		{name: "both", notes: `{"Run":"test",` + pkg + `} {"Run":"test",` + imported + `}`},
		{name: "one failed", notes: `{"Run":"test",` + pkg + `} {"Run":"test",` + imported + `,"Failed":true}`, again: "imported"},
		{name: "one is missing", notes: `{"Run":"test",` + imported + `}`, again: "pkg"},
		{name: "none", again: "imported pkg"},
		{name: "both, before", before: `{"Run":"test",` + pkg + `} {"Run":"test",` + imported + `}`, again: "imported pkg"},
		{name: "a test passed", notes: `{"Run":"test",` + pkg + `,"Test":"TestIt"}`, again: "imported pkg"},
		{name: "a test was skipped in every run", notes: `{"Run":"test",` + pkg + `,"Test":"TestIt","Skipped":true} {"Run":"test",` + pkg + `}`, again: "imported"},
		{name: "one was raced", notes: `{"Run":"race",` + pkg + `,"Test":"TestIt"} {"Run":"race",` + pkg + `}`, again: "imported"},
		{name: "one was raced, but its test was skipped", notes: `{"Run":"race",` + pkg + `,"Test":"TestIt","Skipped":true} {"Run":"race",` + pkg + `}`, again: "imported pkg"},
		{name: "one was raced, but its test checked less", notes: `{"Run":"race",` + pkg + `,"Test":"TestIt","Less":true} {"Run":"race",` + pkg + `}`, again: "imported pkg"},
		{name: "the test checked less, and the rest passed", notes: `{"Run":"race",` + pkg + `,"Test":"TestIt","Less":true} {"Run":"race",` + pkg + `} {"Run":"test",` + pkg + `}`, again: "imported"},
		{name: "the test checked less, and the rest failed", notes: `{"Run":"race",` + pkg + `,"Test":"TestIt","Less":true} {"Run":"race",` + pkg + `} {"Run":"test",` + pkg + `,"Failed":true}`, again: "imported pkg"},
		{name: "one was raced and failed", notes: `{"Run":"race",` + pkg + `,"Failed":true} {"Run":"test",` + pkg + `}`, again: "imported pkg"},
		{name: "another's", notes: `{"Run":"test","Package":"example.com/other/pkg"}`, again: "imported pkg"},
		{name: "notes of a step in parallel", notes: `{"Run":"emulated",` + pkg + `} {"Run":"test",` + imported + `} {"Run":"emulated",` + imported + `,"Failed":true}`, again: "pkg"},
		{name: "torn", notes: `{"Run":"test",` + pkg + `} {"Run":"te`, again: "imported pkg", want: "read which packages have passed"},
		{name: "its files changed", notes: `{"Run":"test",` + pkg + `} {"Run":"test",` + imported + `}`, change: "pkg/pkg.go", again: "imported pkg", want: "has changed while they ran"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var ci *ci
			ci, calls, out := checkout(t, example, func(arguments []string) error {
				if arguments[0] != "test" {
					return nil
				}
				writeNotes(t, ci.noted, c.notes)
				if c.change != "" {
					testkit.Put(t, ci.tree.root, c.change, "package pkg\n")
				}
				return wrong
			})
			ci.noted = filepath.Join(t.TempDir(), "noted")
			writeNotes(t, ci.noted, c.before)
			if err := ci.run(false); !errors.Is(err, wrong) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want make's error, and %q", err, c.want)
			}
			if told := strings.Contains(out.String(), "PASSED, as "); told != (c.again != "imported pkg") {
				t.Errorf("the output says %v that packages have passed:\n%s", told, out)
			}
			if c.change != "" {
				testkit.Put(t, ci.tree.root, c.change, example[c.change])
			}
			reopen(t, ci, ci.tree.root)
			*calls, ci.make = nil, func(_ io.Writer, arguments []string) error {
				*calls = append(*calls, strings.Join(arguments, " "))
				return nil
			}
			if err := ci.run(false); err != nil {
				t.Fatal(err)
			}
			want := []string{"fuzz F=pkg", "serve"} // the packages that run afterwards
			if c.again != "" {
				want = append([]string{"setup", "test P=" + c.again}, want...)
			}
			if !slices.Equal(*calls, want) {
				t.Errorf("then the targets were %q, want %q", *calls, want)
			}
		})
	}
}

// TestSkipsNotes lets test/skips run the tests of three packages, one of which fails, and one does not compile.
func TestSkipsNotes(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go", "make")
	skips := filepath.Join(t.TempDir(), "skips")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", skips, "../skips").CombinedOutput(); err != nil {
		t.Fatalf("build test/skips: %v\n%s", err, out)
	}
	const test = "package a\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) { t.Log(1) }\n"
	c, calls, _ := checkout(t, map[string]string{
		"Makefile":          "test:\n\tSKIPS_RUN=test " + skips + " test $(P:%=./%)\n",
		".ci/steps.txt":     "test P=@...\n\tin:. has:^func.Test\n\tgo:@\n",
		"go.mod":            "module example.com/m\n\ngo 1.24\n",
		"fine/a_test.go":    test,
		"red/a_test.go":     strings.Replace(test, "Log", "Fatal", 1),
		"torn/a_test.go":    strings.Replace(test, "Log", "Lag", 1),
		"skipped/a_test.go": strings.Replace(test, "Log", "Skip", 1),
	}, well)
	c.noted = filepath.Join(t.TempDir(), "noted")
	byMake := func(_ io.Writer, arguments []string) error {
		*calls = append(*calls, strings.Join(arguments, " "))
		cmd := exec.CommandContext(t.Context(), "make", arguments...)
		cmd.Dir, cmd.Env = c.tree.root, append(os.Environ(), "SKIPS="+c.noted, "MAKEFLAGS=", "MFLAGS=")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		return err
	}
	c.make = byMake
	if err := c.run(false); err == nil {
		t.Error("a step has passed although one of its packages fails")
	}
	testkit.Put(t, c.tree.root, "torn/a_test.go", test)
	reopen(t, c, c.tree.root)
	if err := c.run(false); err == nil {
		t.Error("a step has passed although one of its packages still fails")
	}
	testkit.Put(t, c.tree.root, "red/a_test.go", test)
	reopen(t, c, c.tree.root)
	if err := c.run(false); err != nil {
		t.Error(err)
	}
	if want := []string{"test P=fine red skipped torn", "test P=red torn", "test P=red"}; !slices.Equal(*calls, want) {
		t.Errorf("the targets were %q, want %q", *calls, want)
	}
}

// writeNotes adds lines to a file as test/skips does.
func writeNotes(t *testing.T, file, notes string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(notes + "\n"); err != nil {
		t.Fatal(err)
	}
}
