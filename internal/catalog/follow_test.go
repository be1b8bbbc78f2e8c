package catalog_test

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestFollow goes through all that can happen to a file while the catalog runs: once when the system reports the changes, and once when polling finds
// them. For reported changes the poll interval is so long that polling could not have found them.
func TestFollow(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name     string
		poll     time.Duration
		pollOnly bool
	}{
		{"told", time.Hour, false},
		{"polled", 10 * time.Millisecond, true},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			log := &testkit.Log{}
			c := open(t, options{Directory: directory, Poll: way.poll, PollOnly: way.pollOnly, Logger: log.Logger(slog.LevelInfo)})

			testkit.Put(t, directory, "a.wasm", version(t, "v0001", "", "a"))
			awaitAnswer(t, c, "/a", "v0001")
			testkit.Put(t, directory, "a.wasm", version(t, "v0002", "", "a"))
			awaitAnswer(t, c, "/a", "v0002")
			swap(t, directory, "a.wasm", version(t, "v0003", "", "a"))
			awaitAnswer(t, c, "/a", "v0003")
			testkit.Put(t, directory, "new/deep/b.wasm", version(t, "v0001", "", "b"))
			awaitAnswer(t, c, "/new/deep/b", "v0001")
			testkit.Put(t, directory, "new/deep/b.wasm", version(t, "v0002", "", "b"))
			awaitAnswer(t, c, "/new/deep/b", "v0002")
			rename(t, filepath.Join(directory, "new"), filepath.Join(directory, "other"))
			awaitTable(t, c, []string{"/a", "/other/deep/b"}, nil)
			swap(t, directory, "other/deep/b.wasm", version(t, "v0003", "", "b"))
			awaitAnswer(t, c, "/other/deep/b", "v0003")

			// While the new version is bad, the old one is served. A good version ends that, and so does removing the file.
			testkit.Put(t, directory, "a.wasm", []byte("garbage"))
			awaitTable(t, c, []string{"/a", "/other/deep/b"}, []string{"a.wasm"})
			awaitAnswer(t, c, "/a", "v0003")
			testkit.Put(t, directory, "a.wasm", uncompilable(t, "a"))
			await(t, c, "refused as uncompilable", func(g *wasmtools.Generation) bool {
				return strings.Contains(reason(g, filepath.Join(directory, "a.wasm")), "compiled")
			})
			awaitAnswer(t, c, "/a", "v0003")
			testkit.Put(t, directory, "a.wasm", version(t, "v0003", "", "a")) // the very bytes that are served
			awaitTable(t, c, []string{"/a", "/other/deep/b"}, nil)
			testkit.Put(t, directory, "x.wasm", []byte("garbage"))
			awaitTable(t, c, []string{"/a", "/other/deep/b"}, []string{"x.wasm"})
			remove(t, directory, "x.wasm")
			awaitTable(t, c, []string{"/a", "/other/deep/b"}, nil)

			// A folder that is created again often gets the old inode.
			remove(t, directory, "other")
			testkit.Put(t, directory, "other/deep/b.wasm", version(t, "v0004", "", "b"))
			awaitAnswer(t, c, "/other/deep/b", "v0004")
			testkit.Put(t, directory, "other/deep/b.wasm", version(t, "v0005", "", "b"))
			awaitAnswer(t, c, "/other/deep/b", "v0005")
			remove(t, directory, "other")
			awaitTable(t, c, []string{"/a"}, nil)
			remove(t, directory, "a.wasm")
			awaitTable(t, c, nil, nil)
			closeNow(t, c)
			for line, want := range map[string]int{"tool added\" path=/a ": 1, "tool replaced\" path=/a ": 2, "tool removed\" path=/a ": 1} {
				if got := log.Count(line); got != want {
					t.Errorf("got %d log lines with %q, want %d", got, line, want)
				}
			}
		})
	}
}

// TestLog checks that the log has one line for each change, however many scans and generations follow the change.
func TestLog(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "bad.wasm", []byte("garbage"))
	testkit.Put(t, directory, "a.wasm", version(t, "v0001", "", "a"))
	log := &testkit.Log{}
	c := open(t, options{Directory: directory, Logger: log.Logger(slog.LevelInfo), PollOnly: true, Poll: time.Millisecond})
	for i := range 5 {
		swap(t, directory, "b.wasm", version(t, fmt.Sprintf("v%04d", i), "", "b"))
		awaitAnswer(t, c, "/b", fmt.Sprintf("v%04d", i))
	}
	swap(t, directory, "bad.wasm", []byte("more garbage")) // refused for the same reason
	swap(t, directory, "z.wasm", []byte("garbage"))
	awaitTable(t, c, []string{"/a", "/b"}, []string{"bad.wasm", "z.wasm"})
	closeNow(t, c)
	for line, want := range map[string]int{"path=/a ": 1, "tool added\" path=/b ": 1, "tool replaced\" path=/b ": 4, "bad.wasm reason=": 1, "z.wasm reason=": 1} {
		if got := log.Count(line); got != want {
			t.Errorf("got %d log lines with %q, want %d", got, line, want)
		}
	}
}

// TestWritten writes a file in many small steps: no step may be served or refused, unless a busy machine stopped the
// writer for so long that the file looked finished.
func TestWritten(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "a.wasm", version(t, "v0001", "", "a"))
	log := &testkit.Log{}
	c := open(t, options{Directory: directory, Poll: time.Second, Logger: log.Logger(slog.LevelInfo)})
	next := version(t, "v0002", "", "a")
	f, err := os.Create(filepath.Join(directory, "a.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	steps := time.NewTicker(5 * time.Millisecond) // a writer's pace, well below the 400 ms after which a file has settled
	defer steps.Stop()
	last, pause := time.Now(), time.Duration(0)
	for i := range next {
		if i%8 == 0 {
			<-steps.C
		}
		now := time.Now()
		pause, last = max(pause, now.Sub(last)), now
		if _, err := f.Write(next[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	awaitAnswer(t, c, "/a", "v0002")
	closeNow(t, c)
	if n := log.Count("file refused"); n != 0 && pause < 300*time.Millisecond {
		t.Errorf("the file was refused %d times while it was written", n)
	}
}

// TestPaused writes a module whose first half is a valid module, too, with a pause between the halves: the first half alone is never served, unless a
// busy machine made the pause longer.
func TestPaused(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name     string
		pollOnly bool
		before   bool // an older version exists
	}{
		{"reported, over an older version", false, true},
		{"reported, as a new file", false, false},
		{"polled, over an older version", true, true},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			if way.before {
				testkit.Put(t, directory, "a.wasm", version(t, "v0001", "", "a"))
			}
			log := &testkit.Log{}
			c := open(t, options{Directory: directory, Poll: 500 * time.Millisecond, PollOnly: way.pollOnly, Logger: log.Logger(slog.LevelInfo)})
			first := version(t, "v0002", "", "a")
			whole, err := wasmbin.SetCustom(first, "rest", []byte("of the module"))
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.Create(filepath.Join(directory, "a.wasm"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.Write(first); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			<-time.NewTimer(300 * time.Millisecond).C // the writer's pause
			if _, err := f.Write(whole[len(first):]); err != nil {
				t.Fatal(err)
			}
			pause := time.Since(began)
			want := fmt.Sprintf("%x", sha256.Sum256(whole))
			await(t, c, "the whole module", func(g *wasmtools.Generation) bool {
				route, ok := g.Lookup("/a")
				return ok && route.Tool.Digest == want
			})
			closeNow(t, c)
			if half := fmt.Sprintf("%x", sha256.Sum256(first))[:12]; log.Count(half) != 0 && pause < 350*time.Millisecond {
				t.Error("half of the module was served")
			}
		})
	}
}

// TestConflicts shows that a served tool keeps its path, and that the file which waits for the path gets it when it is
// free.
func TestConflicts(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "b.wasm", version(t, "v000b", "", "b"))
	c := open(t, options{Directory: directory})
	swap(t, directory, "a.wasm", version(t, "v000a", "", "b", "a")) // earlier in the order of paths, but added later
	awaitTable(t, c, []string{"/b"}, []string{"a.wasm"})
	why := reason(c.Table().Current(), filepath.Join(directory, "a.wasm"))
	for _, want := range []string{"/b", filepath.Join(directory, "a.wasm"), filepath.Join(directory, "b.wasm")} {
		if !strings.Contains(why, want) {
			t.Errorf("got reason %q, want one with %q", why, want)
		}
	}
	swap(t, directory, "c.wasm", version(t, "v000c", "", "b"))
	awaitTable(t, c, []string{"/b"}, []string{"a.wasm", "c.wasm"})
	awaitAnswer(t, c, "/b", "v000b")
	remove(t, directory, "b.wasm")
	awaitTable(t, c, []string{"/a", "/b"}, []string{"c.wasm"})
	awaitAnswer(t, c, "/b", "v000a")
	if why := reason(c.Table().Current(), filepath.Join(directory, "c.wasm")); !strings.Contains(why, "a.wasm") {
		t.Errorf("got reason %q, want one that names who has the path by now", why)
	}
	// If a new version gives its path up, the other file gets it. If a later version wants it back, it must wait.
	swap(t, directory, "a.wasm", version(t, "v001a", "", "a"))
	awaitTable(t, c, []string{"/a", "/b"}, nil)
	awaitAnswer(t, c, "/b", "v000c")
	swap(t, directory, "a.wasm", version(t, "v002a", "", "a", "b"))
	awaitTable(t, c, []string{"/a", "/b"}, []string{"a.wasm"})
	awaitAnswer(t, c, "/a", "v001a")
	// An operation id is treated like a path.
	swap(t, directory, "d.wasm", version(t, "v000d", "x/y", "z"))
	awaitTable(t, c, []string{"/a", "/b", "/x/y/z"}, []string{"a.wasm"})
	swap(t, directory, "e.wasm", version(t, "v000e", "x-y", "z"))
	awaitTable(t, c, []string{"/a", "/b", "/x/y/z"}, []string{"a.wasm", "e.wasm"})
}

// TestCompileFails: a tool that was listed from its manifest is withdrawn when its program does not compile, and a waiting tool gets its path.
func TestCompileFails(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "a.wasm", uncompilable(t, "one"))
	testkit.Put(t, directory, "b.wasm", version(t, "v000b", "", "one"))
	c := open(t, options{Directory: directory})
	awaitTable(t, c, []string{"/one"}, []string{"a.wasm"})
	awaitAnswer(t, c, "/one", "v000b")
}

// TestDirectoryGone removes the directory: tools stay until there is a directory again, with other files.
func TestDirectoryGone(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name     string
		instead  func(t *testing.T, directory string)
		wantLike string
	}{
		{"removed", func(*testing.T, string) {}, "no such file"},
		{"empty in its place", func(t *testing.T, directory string) {
			if err := os.Mkdir(directory, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "unmounted"},
		{"a file in its place", func(t *testing.T, directory string) {
			testkit.Put(t, filepath.Dir(directory), filepath.Base(directory), "")
		}, "not a directory"},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			directory, aside := filepath.Join(base, "tools"), filepath.Join(base, "aside")
			testkit.Put(t, directory, "n/a.wasm", version(t, "v0001", "", "a"))
			log := &testkit.Log{}
			c := open(t, options{Directory: directory, Logger: log.Logger(slog.LevelInfo)})
			rename(t, directory, aside)
			way.instead(t, directory)
			await(t, c, "the directory is reported", func(g *wasmtools.Generation) bool {
				return strings.Contains(reason(g, directory), way.wantLike)
			})
			awaitAnswer(t, c, "/n/a", "v0001")
			remove(t, directory)
			rename(t, aside, directory)
			awaitTable(t, c, []string{"/n/a"}, nil)
			swap(t, directory, "n/a.wasm", version(t, "v0002", "", "a"))
			awaitAnswer(t, c, "/n/a", "v0002")
			remove(t, directory, "n")
			awaitTable(t, c, nil, nil)
			closeNow(t, c)
			if log.Count("level=WARN", "tools", way.wantLike) == 0 {
				t.Error("no warning says that the directory is gone")
			}
		})
	}
}

// TestHammer calls tools while their files are replaced: no call fails, and every answer comes from a version that existed.
func TestHammer(t *testing.T) {
	t.Parallel()
	const versions = 12
	directory := t.TempDir()
	testkit.Put(t, directory, "a.wasm", version(t, "v0000", "", "a"))
	c := open(t, options{Directory: directory})
	var written atomic.Int64
	done := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			last := ""
			for {
				select {
				case <-done:
					return
				default:
				}
				route, ok := c.Table().Lookup("/a")
				if !ok {
					t.Error("the tool was gone")
					return
				}
				result, err := route.Tool.Caller.Call(t.Context(), &wasmtools.Call{Arguments: []byte("{}")})
				got := strings.Trim(string(result), `"`)
				newest := fmt.Sprintf("v%04d", written.Load())
				if err != nil || got < last || got > newest {
					t.Errorf("got %q and error %v, want a version from %q to %q", got, err, last, newest)
					return
				}
				last = got
			}
		})
	}
	for i := range versions {
		next := fmt.Sprintf("v%04d", i+1)
		written.Store(int64(i + 1))
		swap(t, directory, "a.wasm", version(t, next, "", "a"))
		awaitAnswer(t, c, "/a", next)
	}
	close(done)
	callers.Wait()
}
