package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestSettledAt makes reading files take as long as the test wants. Meanwhile only the paths that one of these files could have are unsettled.
func TestSettledAt(t *testing.T) {
	t.Parallel()
	m := newMemory()
	begun, free := make(chan struct{}, 10), make(chan struct{})
	// slow lists a file whose content comes when free is called.
	slow := func(name string, content []byte) {
		m.set(name, content, func(f *stored) {
			f.open = func(ctx context.Context) (io.ReadCloser, error) {
				begun <- struct{}{}
				select {
				case <-free:
				case <-ctx.Done():
				}
				return io.NopCloser(bytes.NewReader(content)), nil
			}
		})
	}
	wait := func(what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatalf("%s: waited in vain", what)
		}
	}
	slow("a/one.wasm", version(t, "v0001", "", "one"))
	m.set("two.wasm", version(t, "v0001", "b", "two"), nil)
	c, _ := openMemory(t, m, catalog.Start)
	check := func(when string, want map[string]bool) {
		t.Helper()
		for path, synced := range want {
			if got := c.SyncedAt(path); got != synced {
				t.Errorf("%s: %s is in step: %t, want %t", when, path, got, synced)
			}
		}
	}
	wait("the first file", begun)
	check("at the start", map[string]bool{"/a/x": false, "/b/x": false, "/z/x": false, "/x": false})
	free <- struct{}{}
	if err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	settles := func(when string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !c.Synced(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: never in step", when)
			}
		}
		check(when, map[string]bool{"/a/x": true, "/b/x": true, "/z/x": true, "/x": true})
	}
	settles("after the start")
	// A read begins a moment before the catalog reports that something is under way.
	unsettles := func() {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); c.Synced(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the catalog is in step while a file is read")
			}
		}
	}
	for i, test := range []struct {
		file, namespace string
		want            map[string]bool
	}{
		{"a/one.wasm", "", map[string]bool{"/a/x": false, "/b/x": true, "/z/x": true, "/x": true}},
		{"two.wasm", "b", map[string]bool{"/a/x": true, "/b/x": false, "/z/x": true, "/x": false}},
		{"c/d/new.wasm", "", map[string]bool{"/a/x": true, "/c/d/x": false, "/c/x": true, "/x": true}},
		{"new.wasm", "q", map[string]bool{"/a/x": false, "/b/x": false, "/q/x": false}},
		{"new.wasm", "r", map[string]bool{"/a/x": true, "/q/x": false, "/r/x": true}},
	} {
		slow(test.file, version(t, fmt.Sprintf("v%04d", i+2), test.namespace, fmt.Sprint("t", i)))
		m.tell()
		wait(test.file, begun)
		unsettles()
		check(test.file, test.want)
		free <- struct{}{}
		settles(test.file)
	}
	// A tool that is gone may come back from another file, which is still being read.
	slow("e/new.wasm", version(t, "v0009", "b", "t1"))
	m.remove("two.wasm") // removed last, since the catalog may look in between
	m.tell()
	wait("e/new.wasm", begun)
	unsettles()
	await(t, c, "a generation without it", func(g *wasmtools.Generation) bool {
		_, ok := g.Lookup("/b/t1")
		return !ok
	})
	check("a tool that has moved", map[string]bool{"/b/t1": false, "/b/x": true, "/e/x": false})
	free <- struct{}{}
	settles("a tool that has moved")
}

// TestOvertaken makes a file change each time it is read, except the last. Until then it is neither served nor refused: a start waits for it,
// and its paths are not in step, not even between two reads.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	const overtaken = 2 // reads
	content := version(t, "v0001", "", "x")
	for _, when := range []string{"start", "later"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			m := newMemory()
			m.set("n/y.wasm", version(t, "v0001", "", "y"), nil)
			var reads atomic.Int32
			var first atomic.Pointer[time.Time] // when the file was first read
			begun, free := make(chan struct{}), make(chan struct{})
			change := func(f *stored) {
				f.open = func(context.Context) (io.ReadCloser, error) { // called one at a time
					now := time.Now()
					first.CompareAndSwap(nil, &now)
					if reads.Add(1) <= overtaken {
						return nil, catalog.ErrChanged
					}
					close(begun)
					<-free
					return io.NopCloser(bytes.NewReader(content)), nil
				}
			}
			if when == "start" {
				m.set("n/x.wasm", content, change)
			}
			c := of(t, m, options{Engine: sandboxtest.Engine(t, sandbox.Config{}), Poll: 10 * time.Second}, catalog.Start) // the catalog waits 60 times as long
			if when == "later" {
				if err := c.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				m.listing(func(context.Context) error {
					n, synced := reads.Load(), c.SyncedAt("/n/x")
					if 0 < n && n <= overtaken && synced && time.Since(*first.Load()) < time.Second/2 { // clients are asked to wait for a second
						t.Errorf("the path is in step after read %d", n)
					}
					return nil
				})
				m.set("n/x.wasm", content, change)
			}
			select {
			case <-begun:
			case <-time.After(time.Minute):
				t.Fatal("the file is not read again")
			}
			if err := c.Ready(); (err != nil) != (when == "start") {
				t.Errorf("while the file is read again: Ready returns %v", err)
			}
			if c.SyncedAt("/n/x") {
				t.Error("the path is in step while the file is read again")
			}
			close(free)
			if err := c.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			awaitTable(t, c, []string{"/n/x", "/n/y"}, nil)
		})
	}
}

// TestCompiled checks that Compiled reports when everything is compiled, and is false while a new file is read.
func TestCompiled(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for i := range 3 {
		m.set(fmt.Sprint("n/", i, ".wasm"), version(t, fmt.Sprintf("v%04d", i), "n", fmt.Sprint("t", i)), nil)
	}
	c, _ := openMemory(t, m, catalog.Start)
	if err := c.WaitCompiled(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g := c.Table().Current(); len(g.Routes()) != 3 || c.Ready() != nil {
		t.Errorf("everything is compiled, and there are %d tools, want 3 (Ready: %v)", len(g.Routes()), c.Ready())
	}
	until := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); c.Compiled() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("Compiled never returned %t", want)
			}
		}
	}
	until(true)
	free := make(chan struct{})
	content := version(t, "v0009", "n", "t9")
	m.set("n/9.wasm", content, func(f *stored) {
		f.open = func(context.Context) (io.ReadCloser, error) {
			<-free
			return io.NopCloser(bytes.NewReader(content)), nil
		}
	})
	until(false)
	close(free)
	until(true)
	if _, ok := c.Table().Lookup("/n/t9"); !ok {
		t.Error("Compiled returns true, but the new tool is not served")
	}
}

// TestExpect checks that the compile helper is started while a module settles, and for no other kind of file.
func TestExpect(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "it can't start the process that compiles")
	started := filepath.Join(t.TempDir(), "started")
	m := newMemory()
	engine := sandboxtest.Engine(t, sandbox.Config{CompileHelper: []string{"/bin/sh", "-c", `echo >> "$0"`, started}})
	c := of(t, m, options{Engine: engine, Poll: time.Millisecond}, catalog.Open)
	settling := func(name string) {
		m.set(name, nil, func(f *stored) { f.Settling = time.Hour })
		awaitState(t, c, name, func(s catalog.State) bool { return s.Files[catalog.StageSettling] == len(m.files) })
	}
	settling("a.py")
	if _, err := os.Stat(started); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a script: got %v, want no process", err)
	}
	settling("b.wasm")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(started); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no process was started for the module")
		}
	}
}
