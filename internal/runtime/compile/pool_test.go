package compile_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
	"github.com/toolsrv/toolsrv/internal/runtime/compile"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestPool compares the code that other processes make with the code that this process makes.
// Proves: Compiling is bounded
func TestPool(t *testing.T) {
	t.Parallel()
	p, dir := pool(t, plenty, "well"), t.TempDir()
	for n := range 5 {
		want, err := compile.Here(t.TempDir(), module(n), 1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Compile(dir, module(n), much)
		if err != nil || got.Name != want.Name || !bytes.Equal(got.Code, want.Code) {
			t.Errorf("got %s of %d bytes, %v, want %s of %d", got.Name, len(got.Code), err, want.Name, len(want.Code))
		}
	}
	if running := left(t, dir); len(running) != 1 {
		t.Errorf("got the directories %v, want one process's", running)
	}
	if f, err := p.Compile("", module(1), much); err != nil || f.Name != "" || f.Code != nil {
		t.Errorf("got %s of %d bytes, %v, want a module that was only tried", f.Name, len(f.Code), err)
	}
	if _, err := p.Compile(dir, []byte("no module"), much); err == nil || !strings.Contains(err.Error(), "invalid magic number") {
		t.Errorf("got %v, want an error that says what is wrong with the module", err)
	}
	p.Close()
	if stale := left(t, dir); len(stale) != 0 {
		t.Errorf("%v is left", stale)
	}
	if _, err := p.Compile(dir, module(1), much); !errors.Is(err, compile.ErrClosed) {
		t.Errorf("got %v, want %v", err, compile.ErrClosed)
	}
	p.Close()
}

// TestBombs compiles a bomb, which must be refused for the right reason, while good modules are compiled at the same time.
// Proves: Compiling is bounded
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		memory int64
		most   compile.Limit
		says   string
	}{
		"time":       {plenty, compile.Limit{CPU: 500 * time.Millisecond}, "takes more than 500ms of processor time: split its largest functions"},
		"memory":     {80 << 20, much, "takes more than 80 MiB of memory, which is all that this machine or its container has for that: give it more"},
		"its memory": {plenty, compile.Limit{CPU: time.Minute, Bytes: 90 << 20}, "takes more than 90 MiB of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "time" && testkit.Race(t) {
				t.Skip("the race detector takes more than that")
			}
			p, dir := pool(t, c.memory, "well"), t.TempDir()
			if _, err := p.Compile(dir, module(0), much); err != nil { // so that the bomb gets a process that was used before
				t.Fatal(err)
			}
			var beside sync.WaitGroup
			for n := range 4 {
				beside.Go(func() {
					for i := range 5 {
						if _, err := p.Compile(dir, module(n*5+i), much); err != nil {
							t.Errorf("while the bomb is compiled: %v", err)
						}
					}
				})
			}
			_, err := p.Compile(dir, bomb(), c.most)
			beside.Wait()
			if _, ok := errors.AsType[*compile.TooMuch](err); !ok || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if _, err := p.Compile(dir, module(1), much); err != nil {
				t.Errorf("after the bomb: %v", err)
			}
		})
	}
}

// TestFails has processes that misbehave. Each time there is an error that does not blame the module, and nothing is left behind.
// Proves: Compiling is bounded
func TestFails(t *testing.T) {
	t.Parallel()
	for how, says := range map[string]string{
		"says nothing":          "it did not begin",
		"says no":               "no such luck",
		"writes else":           "it did not begin",
		"greets wrongly":        "it did not begin",
		"dies":                  "ended twice before it was done",
		"is killed":             "signal: killed",
		"answers another":       "it answered a different question",
		"writes half":           "it says that it left 13 bytes",
		"lies about the size":   "it says that it left 1125899906842624 bytes",
		"lies about the digest": "the code that it left is not the code that it announced",
		"writes nothing":        "no such file",
		"points out":            "it says that it left",
		"leaves a link":         "it says that it left",
		"says much":             "ended twice before it was done",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p, dir := pool(t, plenty, how), t.TempDir()
			f, err := p.Compile(dir, module(1), much)
			if f.Code != nil || err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got %d bytes, %v; want an error with %q", len(f.Code), err, says)
			}
			if _, ok := errors.AsType[*compile.TooMuch](err); ok {
				t.Errorf("%v is blamed on the module", err)
			}
			if system := errors.Is(err, compile.ErrLost); system != (how == "is killed") {
				t.Errorf("got %v; it blames the system: %v", err, system)
			}
			if unavailable := errors.Is(err, compile.ErrUnavailable); unavailable != (how[0] == 's' && how != "says much" || how == "writes else" || how == "greets wrongly") {
				t.Errorf("got %v; it says that no process can be used: %v", err, unavailable)
			}
			if stale := left(t, dir); len(stale) != 0 {
				t.Errorf("%v is left", stale)
			}
		})
	}
	missing, err := compile.NewPool(compile.Config{Command: []string{filepath.Join(t.TempDir(), "missing")}})
	if err != nil {
		t.Skip(err)
	}
	defer missing.Close()
	if _, err := missing.Compile(t.TempDir(), module(1), much); !errors.Is(err, compile.ErrUnavailable) {
		t.Errorf("without such a program: got %v, want %v", err, compile.ErrUnavailable)
	}
}

// TestKilledOnce kills a process, as the system does when it lacks memory: the module is tried again.
// Proves: Compiling is bounded
func TestKilledOnce(t *testing.T) {
	t.Parallel()
	p := pool(t, plenty, "at first is killed", filepath.Join(t.TempDir(), "started"))
	if f, err := p.Compile(t.TempDir(), module(1), much); err != nil || len(f.Code) == 0 {
		t.Errorf("got %d bytes, %v", len(f.Code), err)
	}
}

// TestLarge compiles a large module on two processors, where memory is ample. The result is the same as with one. Two processors take more memory, so
// if a process lacks memory, that is not yet the module's fault.
func TestLarge(t *testing.T) {
	t.Parallel()
	want, err := compile.Here(t.TempDir(), large(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		how    string
		memory int64
		module []byte
		good   bool
	}{
		{"at first well", apart.Ample, large(), true},
		{"at first lacks memory", apart.Ample, large(), true},
		{"at first lacks memory", apart.Ample, module(1), false},
		{"at first lacks memory", plenty, large(), false},
	} {
		f, err := pool(t, c.memory, c.how, filepath.Join(t.TempDir(), "started")).Compile(t.TempDir(), c.module, much)
		if c.good && (err != nil || f.Name != want.Name || !bytes.Equal(f.Code, want.Code)) {
			t.Errorf("%s, with %d MiB and %d bytes: got %d bytes of code, %v, want what one processor makes", c.how, c.memory>>20, len(c.module), len(f.Code), err)
		}
		if _, refused := errors.AsType[*compile.TooMuch](err); refused == c.good {
			t.Errorf("%s, with %d MiB and %d bytes: got %v, want it to be the module's fault: %v", c.how, c.memory>>20, len(c.module), err, !c.good)
		}
	}
}

// TestScratchRemoved removes the directory that a process uses, as somebody who cleans up might do.
func TestScratchRemoved(t *testing.T) {
	t.Parallel()
	p, dir := pool(t, plenty, "well"), t.TempDir()
	for n := range 3 {
		if _, err := p.Compile(dir, module(n), much); err != nil {
			t.Errorf("time %d: %v", n, err)
		}
		for _, of := range left(t, dir) {
			if err := os.RemoveAll(of); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := p.Compile(filepath.Join(dir, "missing"), module(9), much); !errors.Is(err, compile.ErrDisk) {
		t.Errorf("got %v, want %v", err, compile.ErrDisk)
	}
}

// TestReady starts a process before the first module needs it. No second one is started.
// Proves: Compiling is bounded
func TestReady(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	p, dir := pool(t, plenty, "counted", started), t.TempDir()
	scratch := func() (string, error) { return dir, nil }
	for range 3 {
		p.Ready(scratch)
	}
	for n := range 3 {
		if _, err := p.Compile(dir, module(n), much); err != nil {
			t.Error(err)
		}
		p.Ready(scratch)
	}
	if starts, err := os.ReadFile(started); err != nil || string(starts) != "." {
		t.Errorf("%d processes were started, %v, want one", len(starts), err)
	}
	p.Close()
	p.Ready(scratch)
	if stale := left(t, dir); len(stale) != 0 {
		t.Errorf("%v is left", stale)
	}
	closed := pool(t, plenty, "well") // while it starts
	closed.Ready(scratch)
	closed.Close()
	if stale := left(t, dir); len(stale) != 0 {
		t.Errorf("%v is left", stale)
	}
}

// begins waits until a process that will hang has begun.
func begins(t *testing.T, dir string) {
	t.Helper()
	for end := time.Now().Add(testkit.Patience); ; runtime.Gosched() {
		if code, _ := filepath.Glob(filepath.Join(dir, "*", "code")); len(code) == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the process does not begin")
		}
	}
}

// TestClose closes the pool while one process hangs and another module waits for room.
// Proves: Compiling is bounded
func TestClose(t *testing.T) {
	t.Parallel()
	p, dir := pool(t, plenty, "hangs"), t.TempDir()
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := p.Compile(dir, module(1), much)
			ended <- err
		}()
	}
	begins(t, dir)
	p.Close()
	for range 2 {
		if err := <-ended; !errors.Is(err, compile.ErrClosed) {
			t.Errorf("got %v, want %v", err, compile.ErrClosed)
		}
	}
	if stale := left(t, dir); len(stale) != 0 {
		t.Errorf("%v is left", stale)
	}
}

// TestSmallOnesGoOn lets modules that may take much memory wait for each other, while small ones are compiled.
// Proves: Compiling is bounded
func TestSmallOnesGoOn(t *testing.T) {
	t.Parallel()
	p, dir := pool(t, plenty, "hangs with large ones"), t.TempDir()
	var large sync.WaitGroup
	for range 3 {
		large.Go(func() {
			if _, err := p.Compile(dir, module(1), much); !errors.Is(err, compile.ErrClosed) {
				t.Errorf("got %v, want %v", err, compile.ErrClosed)
			}
		})
	}
	begins(t, dir)
	if _, err := p.Compile(dir, module(2), compile.Limit{CPU: time.Minute, Bytes: 1}); err == nil || err.Error() != "refused" {
		t.Errorf("got %v, want a small module compiled while a large one is", err)
	}
	if code, _ := filepath.Glob(filepath.Join(dir, "*", "code")); len(code) != 2 { // one process is for the small modules
		t.Errorf("%d processes began, want one large module at a time", len(code))
	}
	p.Close()
	large.Wait()
}

// TestBoundsOfTheSystem sets limits of the system that are below the pool's. Processes still compile. If the system refuses memory that the pool
// allows, the module is not blamed.
// Proves: Compiling is bounded
func TestBoundsOfTheSystem(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	testkit.SkipEmulated(t, "the test can't start the process that compiles")
	if testkit.Race(t) {
		t.Skip("the race detector takes address space of its own")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, limits := range map[string]string{
		"files":     "ulimit -n 64; ulimit -f 20000; ulimit -c 0",
		"data":      "ulimit -d 400000",
		"addresses": "ulimit -v 2000000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := compile.NewPool(compile.Config{Command: []string{"/bin/sh", "-c", limits + ` && exec "$0" serve well "$@"`, self}, Each: 4 << 30})
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(p.Close)
			dir := t.TempDir()
			if f, err := p.Compile(dir, module(1), much); err != nil || len(f.Code) == 0 {
				t.Errorf("got %d bytes, %v", len(f.Code), err)
			}
			if name == "files" {
				return
			}
			// Either there is no memory for the heap of the process, which ends the process, or there is none for the code.
			if _, err := p.Compile(dir, bomb(), much); !errors.Is(err, compile.ErrLost) && !errors.Is(err, compile.ErrNoMemory) {
				t.Errorf("got %v, want %v or %v", err, compile.ErrLost, compile.ErrNoMemory)
			}
		})
	}
}

// TestNothing checks that a process has an empty environment.
// Proves: Compiling is bounded
func TestNothing(t *testing.T) {
	t.Setenv("SECRET", "s3cret")
	file := filepath.Join(t.TempDir(), "env")
	p, err := compile.NewPool(compile.Config{Command: []string{"/bin/sh", "-c", "env >" + file, "sh"}})
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	_, _ = p.Compile(t.TempDir(), module(1), much)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Skip(err)
	}
	if bytes.Contains(text, []byte("s3cret")) {
		t.Errorf("a process has the environment %s", text)
	}
}

// BenchmarkCompile compares a process that has already been started with this one.
func BenchmarkCompile(b *testing.B) {
	b.Run("apart", func(b *testing.B) {
		p, dir := pool(b, plenty, "well"), b.TempDir()
		for i := 0; b.Loop(); i++ {
			if _, err := p.Compile(dir, module(i), much); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("here", func(b *testing.B) {
		dir := b.TempDir()
		for i := 0; b.Loop(); i++ {
			if _, err := compile.Here(dir, module(i), 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}
