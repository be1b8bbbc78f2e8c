package project_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/author/project"
)

const interval = time.Second

// await returns the result of the next Wait of w, or false if it still waits after a while.
func await(ctx context.Context, w *project.Watcher) (told bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*interval)
	defer cancel()
	if err := w.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return true, err
	}
	return false, nil
}

func TestWatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(dir string) error
		told   bool
		linked bool // the folder itself is reached through a link
	}{
		{"nothing", func(string) error { return nil }, false, false},
		{"content", func(dir string) error { return os.WriteFile(filepath.Join(dir, "main.go"), []byte("other"), 0o644) }, true, false},
		{"in a linked folder", func(dir string) error { return os.WriteFile(filepath.Join(dir, "main.go"), []byte("other"), 0o644) }, true, true},
		{"time only", func(dir string) error { return os.Chtimes(filepath.Join(dir, "main.go"), time.Time{}, time.Unix(1, 1)) }, true, false},
		{"new file", func(dir string) error { return os.WriteFile(filepath.Join(dir, "src", "b"), nil, 0o644) }, true, false},
		{"removed", func(dir string) error { return os.Remove(filepath.Join(dir, "src", "a")) }, true, false},
		{"renamed", func(dir string) error {
			return os.Rename(filepath.Join(dir, "src", "a"), filepath.Join(dir, "src", "c"))
		}, true, false},
		{"renamed folder", func(dir string) error { return os.Rename(filepath.Join(dir, "src"), filepath.Join(dir, "source")) }, true, false},
		{"behind a link", func(dir string) error { return os.WriteFile(filepath.Join(dir, "..", "real"), []byte("x"), 0o644) }, true, false},
		{"a build", func(dir string) error { return os.WriteFile(filepath.Join(dir, "work.wasm"), []byte("x"), 0o644) }, false, false},
		{"a log", func(dir string) error { return os.WriteFile(filepath.Join(dir, "dev.log"), []byte("x"), 0o644) }, false, false},
		{"Cargo's builds", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "target", "release", "x"), []byte("x"), 0o644)
		}, false, false},
		{"hidden file", func(dir string) error { return os.WriteFile(filepath.Join(dir, ".main.go.swp"), nil, 0o644) }, false, false},
		{"packages", func(dir string) error { return os.WriteFile(filepath.Join(dir, "node_modules", "x.js"), nil, 0o644) }, false, false},
		{"a virtual environment", func(dir string) error { return os.WriteFile(filepath.Join(dir, "env", "x.py"), nil, 0o644) }, false, false},
		{"hidden folder", func(dir string) error { return os.WriteFile(filepath.Join(dir, ".git", "index"), nil, 0o644) }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{
				"main.go": "package main", "src/a": "", "target/CACHEDIR.TAG": "", "target/release/x": "", ".git/index": "x",
				"node_modules/a": "", "env/pyvenv.cfg": "",
			})
			write(t, filepath.Join(dir, "..", "real"), "")
			for link, to := range map[string]string{"link": "../real", "../same": "work"} {
				if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
					t.Skip(err)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				w := project.Watch(dir, interval)
				if c.linked {
					w = project.Watch(filepath.Join(dir, "..", "same"), interval)
				}
				if told, err := await(t.Context(), w); err != nil || !told {
					t.Fatalf("at first: got %t, %v, want true", told, err)
				}
				if err := c.change(dir); err != nil {
					t.Fatal(err)
				}
				if told, err := await(t.Context(), w); err != nil || told != c.told {
					t.Errorf("after the change: got %t, %v, want %t", told, err, c.told)
				}
				if told, err := await(t.Context(), w); err != nil || told {
					t.Errorf("without another change: got %t, %v, want false", told, err)
				}
			})
		})
	}
}

// TestWatchScript watches a single script, what lies beside it, and the files on which it depends.
func TestWatchScript(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(dir string) error
		told   bool
	}{
		{"nothing", func(string) error { return nil }, false},
		{"the script", func(dir string) error { return os.WriteFile(filepath.Join(dir, "hello.py"), []byte("x"), 0o644) }, true},
		{"removed for a moment", func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "hello.py")), os.WriteFile(filepath.Join(dir, "hello.py"), []byte("xx"), 0o644))
		}, true},
		{"another script", func(dir string) error { return os.WriteFile(filepath.Join(dir, "_part.py"), []byte("x"), 0o644) }, true},
		{"a new script", func(dir string) error { return os.WriteFile(filepath.Join(dir, "new.py"), []byte("x"), 0o644) }, true},
		{"a new package", func(dir string) error { return os.Mkdir(filepath.Join(dir, "package"), 0o755) }, true},
		{"a file that it depends on", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "package", "x.json"), []byte("x"), 0o644)
		}, true},
		{"one elsewhere", func(dir string) error { return os.WriteFile(filepath.Join(dir, "..", "lib.py"), []byte("x"), 0o644) }, true},
		{"a file that was looked for in vain", func(dir string) error { return os.WriteFile(filepath.Join(dir, "..", "none.py"), nil, 0o644) }, true},
		{"another file", func(dir string) error { return os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o644) }, false},
		{"a file in a folder", func(dir string) error { return os.WriteFile(filepath.Join(dir, "data", "y.json"), []byte("x"), 0o644) }, false},
		{"what Python makes", func(dir string) error { return os.WriteFile(filepath.Join(dir, "__pycache__", "x"), nil, 0o644) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{"hello.py": "", "_part.py": "", "notes.txt": "", "data/x.json": "", "data/y.json": "", "__pycache__/a": ""})
			write(t, filepath.Join(dir, "..", "lib.py"), "")
			inputs := []string{filepath.Join(dir, "..", "lib.py"), filepath.Join(dir, "..", "none.py"), filepath.Join(dir, "package", "x.json")}
			if c.name == "a file that it depends on" {
				write(t, inputs[2], "")
			}
			synctest.Test(t, func(t *testing.T) {
				w := project.Watch(filepath.Join(dir, "hello.py"), interval)
				if told, err := await(t.Context(), w); err != nil || !told {
					t.Fatalf("at first: got %t, %v, want true", told, err)
				}
				if err := w.Follow(inputs); err != nil {
					t.Fatal(err)
				}
				if told, err := await(t.Context(), w); err != nil || told {
					t.Fatalf("after Follow: got %t, %v, want false", told, err)
				}
				if err := c.change(dir); err != nil {
					t.Fatal(err)
				}
				if told, err := await(t.Context(), w); err != nil || told != c.told {
					t.Errorf("after the change: got %t, %v, want %t", told, err, c.told)
				}
				if err := w.Follow(nil); err != nil {
					t.Fatal(err)
				}
				if told, err := await(t.Context(), w); err != nil || told {
					t.Errorf("without another change: got %t, %v, want false", told, err)
				}
			})
		})
	}
}

// TestWatchFollowKeeps: a change from before Follow is reported after it.
func TestWatchFollowKeeps(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"hello.py": ""})
	synctest.Test(t, func(t *testing.T) {
		w := project.Watch(filepath.Join(dir, "hello.py"), interval)
		if _, err := await(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "hello.py"), "x")
		if err := w.Follow([]string{filepath.Join(dir, "other.py")}); err != nil {
			t.Fatal(err)
		}
		if told, err := await(t.Context(), w); err != nil || !told {
			t.Errorf("got %t, %v, want true", told, err)
		}
	})
}

// TestWatchBurst makes many saves, one soon after the other: they count as one change.
func TestWatchBurst(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"main.go": ""})
	synctest.Test(t, func(t *testing.T) {
		w := project.Watch(dir, interval)
		if _, err := await(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		told := make(chan time.Time, 2)
		go func() {
			for w.Wait(t.Context()) == nil {
				told <- time.Now()
			}
		}()
		for i := range 20 {
			write(t, filepath.Join(dir, "main.go"), strings.Repeat("x", i+1))
			time.Sleep(interval / 2) // in the time of the synctest bubble
		}
		last := time.Now()
		time.Sleep(10 * interval)
		if len(told) != 1 {
			t.Fatalf("%d changes were reported, want 1", len(told))
		}
		if at := <-told; at.Before(last.Add(-interval/2)) || at.After(last.Add(2*interval)) {
			t.Errorf("reported %v after the last save, want within two intervals", at.Sub(last))
		}
	})
}

// TestWatchMissed checks that a change which happens while nobody waits is reported later.
func TestWatchMissed(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"main.go": ""})
	synctest.Test(t, func(t *testing.T) {
		w := project.Watch(dir, interval)
		for range 3 {
			if told, err := await(t.Context(), w); err != nil || !told {
				t.Fatalf("got %t, %v, want true", told, err)
			}
			write(t, filepath.Join(dir, time.Now().Format("150405.000")), "")
		}
	})
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"main.go": ""})
	w := project.Watch(dir, time.Millisecond)
	if err := w.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is gone: got %v, want an error that says so", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	w = project.Watch(t.TempDir(), time.Hour)
	if err := w.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(done); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// TestWatchBounds checks that a folder with too many files is an error, rather than a look that takes a minute.
func TestWatchBounds(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "", "b/c/d": "", ".git/a": "", ".git/b": ""}) // a, b, c, d, .git
	for most, want := range map[int]string{4: "more than 4 files: name the folder of one project", 5: ""} {
		w := project.Watch(dir, interval)
		w.SetMost(most)
		if err := w.Wait(t.Context()); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d files at most: got %v, want %q", most, err, want)
		}
	}
}
