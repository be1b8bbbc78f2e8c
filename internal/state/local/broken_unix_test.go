//go:build unix

package local_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// hangs is the time after which something that must not wait counts as hanging.
const hangs = 20 * time.Second

// TestBroken damages the file of a running store, in use by many, as a careless restore or a failing disk would. From then on each use returns an
// error, and so does Close; none hangs. The same process can open a backup in its place.
// Proves: State is whole and apart
func TestBroken(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "page faults happen in the emulator")
	for _, test := range []struct {
		name   string
		damage func(path string, backup []byte) error
		want   string
		// between says that the damage is done between two writes.
		between bool
	}{
		{"emptied", func(path string, _ []byte) error { return os.Truncate(path, 0) }, "it is shorter than it was", false},
		{"cut off", func(path string, _ []byte) error { return os.Truncate(path, 3*4096) }, "it is shorter than it was", false},
		{"emptied, and as long as before", func(path string, backup []byte) error {
			return errors.Join(os.Truncate(path, 0), os.Truncate(path, int64(len(backup))))
		}, "", false}, // too short or damaged, whichever is found first
		{"written over with a backup", func(path string, backup []byte) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(backup, 0)
			return errors.Join(err, f.Close())
		}, "", true},
		{"removed", func(path string, _ []byte) error { return os.Remove(path) }, "no such file", false},
		{"removed with its directory", func(path string, _ []byte) error { return os.RemoveAll(filepath.Dir(path)) }, "no such file", false},
		{"replaced by a backup", func(path string, backup []byte) error {
			return errors.Join(os.WriteFile(path+".new", backup, 0o600), os.Rename(path+".new", path))
		}, "another file has its name", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var log safeBuffer
			dir := filepath.Join(t.TempDir(), "state")
			path := filepath.Join(dir, fileName)
			filled := open(t, dir)
			for i := range 500 {
				if _, err := filled.Space("a").Set(t.Context(), fmt.Sprint(i), make([]byte, 1000), state.Any, state.SetOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := filled.Close(); err != nil {
				t.Fatal(err)
			}
			backup, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			store, err := local.Open(dir, local.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			// The users of the store go on until an error, which each of them must get.
			var users sync.WaitGroup
			var failed, uses, written atomic.Int64
			use := func(f func(i int) error) {
				users.Go(func() {
					for i := 0; ; i++ {
						err := f(i)
						uses.Add(1)
						if err == nil {
							continue
						}
						if failed.Add(1); !errors.Is(err, state.ErrUnavailable) {
							t.Errorf("got the error %v, want one about %q", err, state.ErrUnavailable)
						}
						return
					}
				})
			}
			space := store.Space("a")
			// If the file is overwritten during a commit, the backup and the commit may together make an intact file. Then nobody can tell that
			// anything happened.
			var writing sync.RWMutex
			for range 6 {
				use(func(i int) error {
					_, _, err := space.Get(t.Context(), fmt.Sprint(i%500), state.MaxValue)
					return err
				})
				use(func(i int) error {
					_, _, err := space.List(t.Context(), "", "", 10)
					return err
				})
				use(func(i int) error {
					writing.RLock()
					defer writing.RUnlock()
					_, err := space.Set(t.Context(), fmt.Sprint(i%500), make([]byte, 2000), state.Any, state.SetOptions{})
					if err == nil {
						written.Add(1)
					}
					return err
				})
			}
			within(t, "the first uses", func() {
				for uses.Load() < 2000 || written.Load() < 20 { // without writes, the file equals the backup
					time.Sleep(time.Millisecond)
				}
			})
			if err := store.Broken(); err != nil {
				t.Fatalf("a good store is broken: %v", err)
			}
			if test.between {
				writing.Lock()
			}
			err = test.damage(path, backup)
			if test.between {
				writing.Unlock()
			}
			if err != nil {
				t.Fatal(err)
			}
			within(t, "uses of a broken store", users.Wait)
			if err := store.Broken(); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "restart the server") {
				t.Errorf("the reason why the store is broken is %v, want %q, and what to do", err, test.want)
			}
			if n := strings.Count(log.String(), "has lost the state"); n != 1 {
				t.Errorf("that was logged %d times: %s", n, log.String())
			}
			within(t, "closing a broken store", func() {
				if err := store.Close(); err == nil {
					t.Error("closing a broken store returns no error")
				}
			})
			if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700), os.WriteFile(path, backup, 0o600)); err != nil {
				t.Fatal(err)
			}
			again, err := local.Open(dir, local.Options{})
			if err != nil {
				t.Fatalf("with a backup in its place: %v", err)
			}
			if _, found, err := again.Space("a").Get(t.Context(), "499", state.MaxValue); !found || err != nil {
				t.Errorf("got %t, %v from the backup", found, err)
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// within fails the test if f doesn't end.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(hangs):
		t.Fatalf("%s: they hang", what)
	}
}

// A safeBuffer is a log that several goroutines can write.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestRestored overwrites the file with a backup while nobody uses the store, so nothing unreadable is ever seen. No write may follow: pages that
// were free in the old file are in use in the backup.
// Proves: State is whole and apart
func TestRestored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	store := open(t, dir)
	s := store.Space("a")
	if _, err := s.Set(t.Context(), "k", []byte("kept"), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Set(t.Context(), "k", make([]byte, 100), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Set(t.Context(), "new", nil, state.Any, state.SetOptions{}); !errors.Is(err, state.ErrUnavailable) || !strings.Contains(err.Error(), "its last transaction is not the last one written") {
		t.Errorf("set: got %v, want an error that says the file was changed", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, backup) {
		t.Errorf("the backup was written to: %v", err)
	}
	if err := store.Close(); err == nil {
		t.Error("closing the overwritten store returns no error")
	}
}
