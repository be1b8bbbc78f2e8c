package script_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// readBy returns a Builder for an engine, on a machine with that much memory. This program, run with args, reads its scripts. The Builder is closed
// at the end of the test.
func readBy(t *testing.T, language string, machine int64, args ...string) script.Builder {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := script.Builder{Engines: toys(t, language), Readers: script.NewReaders(append([]string{self}, args...), machine, nil)}
	t.Cleanup(func() { b.Readers.Close() })
	return b
}

// small returns the memory of a machine on which one process reads at a time. The race detector and emulators need more.
func small(t *testing.T) int64 {
	t.Helper()
	if testkit.Race(t) || testkit.Emulated() {
		return 4 << 30
	}
	return 256 << 20
}

// helped returns a Builder whose scripts are read as on a server.
func helped(t *testing.T, language string) script.Builder {
	t.Helper()
	return readBy(t, language, 4<<30, "read", os.DevNull)
}

// TestHelper compares what a separate process collects with what this one does.
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

// TestGiven builds scripts whose content is given, while the file on disk is missing, has other content, or is a link. The module is the same as from
// a file with that content.
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
			for how, b := range map[string]script.Builder{"in another process": b, "in this process": {Engines: b.Engines}} {
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

// TestHelperTells compares the error of a helper with this process's.
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

// TestHelperTellsBriefly has an error in a line of a megabyte. The server keeps and logs the error of each script, so it must be short.
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

// TestHelperBounds has scripts that would stop this process if a parser read them here: it would use up the stack, or run for minutes. Good scripts
// are read at the same time and afterwards.
// Proves: Files of others are not trusted
func TestHelperBounds(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	dir := t.TempDir()
	b := helped(t, "javascript")
	good := testkit.Put(t, dir, "good.ts", "export const x: number = 1;")
	want, _, err := b.Build(t.Context(), dir, good, nil)
	if err != nil {
		t.Fatal(err)
	}
	read := func(t *testing.T, when string) {
		t.Helper()
		if made, _, err := b.Build(t.Context(), dir, good, nil); err != nil || !bytes.Equal(joined(t, made), joined(t, want)) {
			t.Errorf("a good script %s: %v", when, err)
		}
	}
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
			read(t, "before it")
			module, _, err := b.Build(t.Context(), dir, file, nil)
			if module.Module != nil || err == nil || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("got %d bytes, %v; want an error that names the script", len(module.Bundle), err)
			}
			if _, ok := errors.AsType[*script.Error](err); !ok {
				t.Errorf("got %T, want an error that blames the script", err)
			}
			read(t, "after it")
		})
	}
}

// badly is a process that misbehaves: for scripts whose name says how, or for all scripts after one whose name begins with "evil". For any other
// script, it returns only the script's name.
func badly(how string, args []string) error {
	poisoned := how == "at once"
	if poisoned {
		how = ""
	}
	type request struct{ Path string }
	type collected struct {
		Files  []engine.File
		Inputs []string
	}
	var kept [][]byte
	return apart.Serve(args, os.Stdin, os.Stdout, apart.Bounds{}, func(r *request, _ []byte, most apart.Limit) *collected {
		does := how
		if !poisoned {
			poisoned, does = strings.HasPrefix(filepath.Base(r.Path), "evil"), ""
		} else if does == "" {
			does = strings.TrimSuffix(filepath.Base(r.Path), ".py")
		}
		self, _ := os.FindProcess(os.Getpid())
		c := &collected{[]engine.File{{Name: "good.py", Data: []byte("1")}}, []string{r.Path}}
		switch does {
		case "exits":
			os.Exit(0)
		case "fails":
			fmt.Fprintln(os.Stderr, "no such luck")
			os.Exit(1)
		case "crashes":
			panic("oh no")
		case "is killed":
			_ = self.Kill()
			select {}
		case "takes time":
			os.Exit(17)
		case "writes else":
			fmt.Println(strings.Repeat("hello world, how do you do? ", 20))
		case "writes much":
			c.Inputs = []string{strings.Repeat("x", 65<<20)}
		case "spins":
			note(r.Path, most.CPU)
			os.Exit(17) // ends as it would at its time limit
		case "thinks":
			if note(r.Path, most.CPU); most.CPU < 5*time.Second {
				os.Exit(17)
			}
		case "hogs":
			note(r.Path, most.Bytes)
			for {
				kept = append(kept, bytes.Repeat([]byte{1}, 1<<20))
			}
		}
		if poisoned && how == "keeps memory" {
			kept = append(kept, bytes.Repeat([]byte{1}, 49<<20))
		}
		if poisoned && how == "goes on" {
			go func() {
				for i := 0; ; i++ {
					kept = append(kept[:0], []byte{byte(i)})
				}
			}()
		}
		return c
	})
}

// note writes down the limits that a process has for reading a script.
func note(path string, may any) {
	if f, err := os.OpenFile(filepath.Join(filepath.Dir(path), "tries"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintln(f, may)
		f.Close()
	}
}

// TestHelperFails has processes that misbehave.
// Proves: Files of others are not trusted
func TestHelperFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		command []string // nil: badly
		says    string
		lost    bool // the system is to blame
		blamed  bool // the script is
	}{
		"missing":     {[]string{filepath.Join(dir, "missing")}, "start a process to read scripts: ", false, false},
		"says no":     {[]string{"sh", "-c", "echo no such luck >&2; exit 1", "sh"}, "no such luck", false, false},
		"says else":   {[]string{"echo"}, "it did not begin", false, false},
		"is silent":   {[]string{"true"}, "it did not begin", false, false},
		"is stopped":  {[]string{"sh", "-c", "kill -9 $$", "sh"}, "is stopped.py: it could not be read, and will be tried again: ", true, false},
		"exits":       {nil, "read the script in a separate process: ", false, false},
		"fails":       {nil, "no such luck", false, false},
		"crashes":     {nil, "(exit status 2): panic: oh no): simplify it, or make a tool file of it with toolsrv build", false, true},
		"is killed":   {nil, "is killed.py: it could not be read, and will be tried again: the process was killed from outside", true, false},
		"takes time":  {nil, "takes time.py: reading it takes more than 10 s of processor time", false, true},
		"writes else": {nil, "read the script in a separate process: ", false, false},
		"writes much": {nil, "read the script in a separate process: ", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.command == nil {
				c.command = []string{self, "badly", "at once"}
			}
			b := script.Builder{Engines: toys(t, "python"), Readers: script.NewReaders(c.command, 4<<30, nil)}
			defer b.Readers.Close()
			if module, _, err := b.Build(t.Context(), dir, testkit.Put(t, dir, name+".py", ""), nil); module.Module != nil || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %d bytes, %v; want an error with %q", len(module.Bundle), err, c.says)
			} else {
				_, lost := errors.AsType[*script.LostError](err)
				_, blamed := errors.AsType[*script.Error](err)
				if lost != c.lost || blamed != c.blamed {
					t.Errorf("%v blames the system: %v, and the script: %v", err, lost, blamed)
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	b := script.Builder{Engines: toys(t, "python"), Readers: script.NewReaders([]string{"sh", "-c", "exec sleep 60", "sh"}, 4<<30, nil)}
	defer b.Readers.Close()
	if _, _, err := b.Build(ctx, dir, testkit.Put(t, dir, "hello.py", ""), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want no wait for a process that hangs", err)
	}
	if err := script.Serve(t.Context(), []string{dir}, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
		t.Error("a process takes wrong arguments")
	}
}

// TestNextScript reads a script that leaves its process in a bad state, and then others. Each is read correctly, and none is blamed.
// Proves: Files of others are not trusted
func TestNextScript(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"exits", "fails", "crashes", "is killed", "writes else", "writes much", "hogs", "keeps memory", "goes on"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			b := readBy(t, "python", small(t), "badly", how)
			for _, name := range []string{"good.py", "evil.py", "next.py", "evil2.py", "last.py"} {
				path := testkit.Put(t, dir, name, "")
				if _, inputs, err := b.Build(t.Context(), dir, path, nil); err != nil || !slices.Equal(inputs, []string{path}) {
					t.Errorf("%s: got %q, %v", name, inputs, err)
				}
			}
		})
	}
}

// TestManyThatNeverEnd has an author upload scripts that use up their time. Each of them gets a process that has read a good script before.
// Each takes eleven seconds altogether, one of them in the room for small scripts, and none is read a third time. A script that only takes
// a while is read.
// Proves: Files of others are not trusted
// Proves: Limits hold, one by one and in sum
func TestManyThatNeverEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := readBy(t, "python", small(t), "badly", "at once")
	for n := range 5 {
		good := testkit.Put(t, dir, "good.py", "")
		if _, inputs, err := b.Build(t.Context(), dir, good, nil); err != nil || !slices.Equal(inputs, []string{good}) {
			t.Fatalf("a good script: got %q, %v", inputs, err)
		}
		own := filepath.Join(dir, fmt.Sprint(n))
		_, _, err := b.Build(t.Context(), dir, testkit.Put(t, own, "spins.py", fmt.Sprint("# ", n)), nil)
		if _, blamed := errors.AsType[*script.Error](err); !blamed || !strings.Contains(err.Error(), "reading it takes more than 10 s of processor time") {
			t.Errorf("got %v, want an error that says the script takes too long", err)
		}
		if got, err := os.ReadFile(filepath.Join(own, "tries")); err != nil || string(got) != "1s\n10s\n" {
			t.Errorf("the processes' limits for it were %q, %v", got, err)
		}
	}
	slow := testkit.Put(t, dir, "thinks.py", "")
	if _, inputs, err := b.Build(t.Context(), dir, slow, nil); err != nil || !slices.Equal(inputs, []string{slow}) {
		t.Errorf("a script that takes a while: got %q, %v", inputs, err)
	}
}

// TestManyScripts has one process read many scripts, good and bad ones, in three languages. The results are the same as in this process.
func TestManyScripts(t *testing.T) {
	t.Parallel()
	dir, starts := t.TempDir(), filepath.Join(t.TempDir(), "starts")
	b := readBy(t, "javascript", small(t), "read", starts)
	for n := range 30 {
		testkit.Put(t, dir, fmt.Sprintf("_part%d.js", n), fmt.Sprintf("export const x = %d;", n))
		for name, text := range map[string]string{
			"good%d.js":    `import { x } from "./_part%d.js"; export const y = x;`,
			"typed%d.ts":   `import { x } from "./_part%d.js"; export const y: number = x;`,
			"wrong%d.js":   `let = %d`,
			"missing%d.js": `import "./missing%d.js";`,
		} {
			path := testkit.Put(t, dir, fmt.Sprintf(name, n), fmt.Sprintf(text, n))
			want, wantInputs, wrong := script.Build(t.Context(), path, script.Options{Engines: b.Engines, Root: dir})
			made, inputs, err := b.Build(t.Context(), dir, path, nil)
			if fmt.Sprint(err) != fmt.Sprint(wrong) || !slices.Equal(inputs, wantInputs) || err == nil && !bytes.Equal(joined(t, made), want) {
				t.Errorf("%s: got %q, %v; want %q, %v", name, inputs, err, wantInputs, wrong)
			}
		}
	}
	if started, err := os.ReadFile(starts); !testkit.Race(t) && apart.Supported && !testkit.Emulated() && (err != nil || len(started) > 5) {
		t.Errorf("%d processes read 120 scripts, %v", len(started), err)
	}
}

// TestHelperHasNothing checks that a process has an empty environment: whatever a parser can be made to do, it finds no secrets.
// Proves: Files of others are not trusted
func TestHelperHasNothing(t *testing.T) {
	t.Setenv("SECRET", "s3cret")
	dir := t.TempDir()
	b := script.Builder{Engines: toys(t, "python"), Readers: script.NewReaders([]string{"/bin/sh", "-c", "env >" + filepath.Join(dir, "env"), "sh"}, 4<<30, nil)}
	defer b.Readers.Close()
	_, _, _ = b.Build(t.Context(), dir, testkit.Put(t, dir, "hello.py", ""), nil)
	text, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Skip(err)
	}
	if bytes.Contains(text, []byte("s3cret")) {
		t.Errorf("a process has the environment %s", text)
	}
}
