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

	"github.com/toolsrv/toolsrv/author/project"
)

const interval = time.Second

// await returns what the next Wait of w returned, or false where it still waits after a while.
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
		{"hidden folder", func(dir string) error { return os.WriteFile(filepath.Join(dir, ".git", "index"), nil, 0o644) }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{
				"main.go": "package main", "src/a": "", "target/CACHEDIR.TAG": "", "target/release/x": "", ".git/index": "x",
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

// TestWatchBurst has many saves, each soon after the one before, be one change.
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
			time.Sleep(interval / 2) // of the bubble's time
		}
		last := time.Now()
		time.Sleep(10 * interval)
		if len(told) != 1 {
			t.Fatalf("%d changes were told, want 1", len(told))
		}
		if at := <-told; at.Before(last.Add(-interval/2)) || at.After(last.Add(2*interval)) {
			t.Errorf("told %v after the last save, want within two intervals", at.Sub(last))
		}
	})
}

// TestWatchMissed makes sure that a change which comes while nobody waits is reported later.
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

// TestWatchBounds has a folder with too many files be an error, and not a minute of looking.
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
