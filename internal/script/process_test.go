package script_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// helped returns a Builder whose helper is this program.
func helped(t *testing.T, engine string) script.Builder {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return script.Builder{Engines: toys(t, engine), Helper: []string{self, "help"}}
}

// TestHelper has a process of its own collect the same as this one.
func TestHelper(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for engine, file := range map[string]string{
		"python":     testkit.Put(t, dir, "hello.py", "import _part\n"),
		"javascript": testkit.Put(t, dir, "hello.ts", `import { x } from "./_part.ts"; export const y: number = x;`),
	} {
		testkit.Put(t, dir, "_part.py", "x = 1\n")
		testkit.Put(t, dir, "_part.ts", "export const x = 1;")
		b := helped(t, engine)
		want, wantInputs, err := script.Build(t.Context(), file, script.Options{Engines: b.Engines, Root: dir})
		if err != nil {
			t.Fatal(err)
		}
		made, inputs, err := b.Build(t.Context(), dir, file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := joined(t, made); !bytes.Equal(got, want) || !slices.Equal(inputs, wantInputs) {
			t.Errorf("%s: got %d bytes of %q; want %d of %q", engine, len(got), inputs, len(want), wantInputs)
		}
	}
}

// TestGiven builds scripts whose content is given, where nothing lies, another content, or a link: the module is that of a file with the content.
func TestGiven(t *testing.T) {
	t.Parallel()
	for language, c := range map[string]struct{ name, content, part, text string }{
		"python":     {"hello.py", "import _part\n", "_part.py", "import hello\n"},
		"javascript": {"hello.ts", `import { x } from "./_part.ts"; export const y: number = x;`, "_part.ts", `import { y } from "./hello.ts"; export const x = 1; export const z = () => y;`},
	} {
		b := helped(t, language)
		there := t.TempDir()
		testkit.Put(t, there, c.part, c.text)
		want, _, err := b.Build(t.Context(), there, testkit.Put(t, there, c.name, c.content), nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, lie := range map[string]func(path string) error{
			"nothing":     func(string) error { return nil },
			"another one": func(path string) error { return os.WriteFile(path, []byte("!"), 0o600) },
			"a link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
		} {
			dir := t.TempDir()
			path := filepath.Join(dir, c.name)
			testkit.Put(t, dir, c.part, c.text)
			if err := lie(path); err != nil {
				t.Fatal(err)
			}
			for how, b := range map[string]script.Builder{"helper": b, "in this process": {Engines: b.Engines}} {
				made, inputs, err := b.Build(t.Context(), dir, path, []byte(c.content))
				if err != nil {
					t.Errorf("%s, %s, %s: %v", language, name, how, err)
					continue
				}
				if !bytes.Equal(joined(t, made), joined(t, want)) || !slices.Contains(inputs, path) || !slices.Contains(inputs, filepath.Join(dir, c.part)) {
					t.Errorf("%s, %s, %s: another module, of %q", language, name, how, inputs)
				}
			}
			if _, _, err := b.Build(t.Context(), dir, path, make([]byte, 33<<20)); err == nil || !strings.Contains(err.Error(), "has 33 MiB; a script may have 16 MiB") {
				t.Errorf("33 MiB: got %v", err)
			}
		}
	}
	if _, _, err := helped(t, "javascript").Build(t.Context(), "", "hello.js", []byte("x")); err == nil {
		t.Error("a script whose content is given may read everything")
	}
}

// TestHelperTells makes a helper tell of a mistake as this process would.
func TestHelperTells(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := testkit.Put(t, dir, "hello.js", `import "./missing.js";`)
	b := helped(t, "javascript")
	_, _, want := script.Build(t.Context(), file, script.Options{Engines: b.Engines, Root: dir})
	_, inputs, err := b.Build(t.Context(), dir, file, nil)
	if wrong, ok := errors.AsType[*script.Error](err); !ok || wrong.Error() != want.Error() || !slices.Contains(inputs, file) {
		t.Errorf("got %v with the inputs %q, want %v", err, inputs, want)
	}
}

// TestHelperTellsBriefly has a mistake in a line of a megabyte: the server keeps and logs what is wrong with each script.
func TestHelperTellsBriefly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "fast.so", "")
	file := testkit.Put(t, dir, "hello.py", "import fast;"+strings.Repeat("x", 1<<20))
	_, _, err := helped(t, "python").Build(t.Context(), dir, file, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "hello.py:1:8: fast has compiled code") || len(err.Error()) > 10<<10 {
		t.Errorf("got %.200v, want some kilobytes that name the place", err)
	}
}

// TestHelperBounds has scripts that would stop this process if a parser read them: it would use up the stack, or go on for minutes.
// Proves: Files of others are not trusted
func TestHelperBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"power.ts":   "x=2" + strings.Repeat("**2", 600_000),
		"new.js":     "x=" + strings.Repeat("new ", 400_000) + "a",
		"else.js":    "if(a){}" + strings.Repeat("else if(a){}", 150_000),
		"chain.mjs":  "a" + strings.Repeat(".b", 900_000),
		"assign.mts": strings.Repeat("(a=", 15_000) + "1" + strings.Repeat(")", 15_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := testkit.Put(t, dir, name, text)
			module, _, err := helped(t, "javascript").Build(t.Context(), dir, file, nil)
			if module.Module != nil || err == nil || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("got %d bytes, %v; want an error that names the script", len(module.Bundle), err)
			}
			if _, ok := errors.AsType[*script.Error](err); !ok {
				t.Errorf("got %T, want that the script is to blame", err)
			}
		})
	}
}

// TestHelperFails has helpers that are none.
// Proves: Files of others are not trusted
func TestHelperFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := testkit.Put(t, dir, "hello.py", "")
	b := script.Builder{Engines: toys(t, "python")}
	for name, c := range map[string]struct {
		helper []string
		says   string
	}{
		"missing":     {[]string{filepath.Join(dir, "missing")}, "start a process to read scripts: "},
		"says no":     {[]string{"sh", "-c", "echo no such luck >&2; exit 1", "sh"}, "in a process of its own: no such luck"},
		"writes else": {[]string{"echo"}, "read the answer of the process"},
		"is silent":   {[]string{"true"}, "read the answer of the process"},
		"is killed":   {[]string{"sh", "-c", "kill -9 $$", "sh"}, "hello.py: it could not be read, and is tried again: the process was ended from outside"},
		"is ended":    {[]string{"sh", "-c", "kill -TERM $$", "sh"}, "hello.py: it could not be read, and is tried again: the process was ended from outside"},
		"takes time":  {[]string{"sh", "-c", "kill -XCPU $$", "sh"}, "hello.py: reading it takes more than 10 s of a processor"},
		"writes much": {[]string{"sh", "-c", "exec cat /dev/zero | head -c 100000000", "sh"}, "read the answer of the process"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := b
			b.Helper = c.helper
			if module, _, err := b.Build(t.Context(), dir, file, nil); module.Module != nil || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %d bytes, %v; want an error with %q", len(module.Bundle), err, c.says)
			} else {
				_, lost := errors.AsType[*script.LostError](err)
				_, blamed := errors.AsType[*script.Error](err)
				if lost != (name == "is killed" || name == "is ended") || blamed != (name == "takes time") {
					t.Errorf("%v blames the system: %v, and the script: %v", err, lost, blamed)
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	b.Helper = []string{"sh", "-c", "exec sleep 60", "sh"}
	if _, _, err := b.Build(ctx, dir, file, nil); err == nil {
		t.Error("a helper that hangs is waited for")
	}
	if err := script.Help(t.Context(), []string{dir}, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
		t.Error("a helper takes wrong arguments")
	}
}

// TestHelperHasNothing makes a helper begin with no environment: whatever a parser can be led to, it finds no secrets.
// Proves: Files of others are not trusted
func TestHelperHasNothing(t *testing.T) {
	t.Setenv("SECRET", "s3cret")
	dir := t.TempDir()
	b := script.Builder{Engines: toys(t, "python"), Helper: []string{"/bin/sh", "-c", "env >" + filepath.Join(dir, "env"), "sh"}}
	_, _, _ = b.Build(t.Context(), dir, testkit.Put(t, dir, "hello.py", ""), nil)
	text, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Skip(err)
	}
	if bytes.Contains(text, []byte("s3cret")) {
		t.Errorf("a helper has the environment %s", text)
	}
}
