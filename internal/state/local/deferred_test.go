package local_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/testkit/statetest"
)

// Proves: State is whole and apart
func TestDeferred(t *testing.T) {
	t.Parallel()
	statetest.Test(t, func(t *testing.T) state.Store {
		return local.Defer(filepath.Join(t.TempDir(), "state"), local.Options{})
	})
}

// TestDeferredMakes makes a directory when something is first kept, for its user alone, and not before. A second Deferred finds what was kept there.
func TestDeferredMakes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	d := local.Defer(dir, local.Options{})
	s, ctx := d.Space("a"), t.Context()
	if _, found, err := s.Get(ctx, "k", 10); found || err != nil {
		t.Errorf("get: %t, %v", found, err)
	}
	if keys, more, err := s.List(ctx, "", "", 0); len(keys) > 0 || more || err != nil {
		t.Errorf("list: %q, %t, %v", keys, more, err)
	}
	if u, err := s.Usage(ctx); u != (state.Usage{}) || err != nil {
		t.Errorf("usage: %+v, %v", u, err)
	}
	if deleted, err := s.Delete(ctx, "k", state.Any); deleted || err != nil {
		t.Errorf("delete: %t, %v", deleted, err)
	}
	if _, err := s.Set(ctx, "", nil, state.Any, state.SetOptions{}); !errors.Is(err, state.ErrInvalid) {
		t.Errorf("set nothing: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || d.Opened() != nil || d.Broken() != nil {
		t.Fatalf("nothing was kept, but there is %v (broken: %v)", err, d.Broken())
	}
	events := make(chan state.Event)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(events)
		for event, err := range s.Watch(watching, "") {
			if err != nil {
				return
			}
			events <- event
		}
	}()
	if event := <-events; !event.Synced {
		t.Errorf("the first event is %+v", event)
	}
	if _, err := s.Set(ctx, "k", []byte("v"), state.Absent, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	if event := <-events; event.Key != "k" || string(event.Value) != "v" {
		t.Errorf("the second event is %+v", event)
	}
	stop()
	for range events {
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v", info, err)
	}
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Error(err)
	}
	d = local.Defer(dir, local.Options{})
	if e, found, err := d.Space("a").Get(ctx, "k", 10); !found || err != nil || string(e.Value) != "v" {
		t.Errorf("got %q, %t, %v", e.Value, found, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestDeferredFails has a state that can't be opened. Each use says why, and works once the state can be opened.
func TestDeferredFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		spoil func(dir string) error
		mend  func(dir string) error // nil: a restart is needed
		want  string
	}{
		{"a file in the way", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, os.Remove, "not a directory"},
		{"anybody's", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)) }, func(dir string) error { return os.Chmod(dir, 0o700) }, "can be changed by every user"},
		{"another program's", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, fileName), []byte("not a state"), 0o600))
		}, nil, "is not a state that this version can read"},
		{"emptied", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, fileName), nil, 0o600))
		}, nil, "put a backup in its place"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir, ctx := filepath.Join(t.TempDir(), "state"), t.Context()
			if err := test.spoil(dir); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			d := local.Defer(dir, local.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			s := d.Space("a")
			for range 3 {
				if _, err := s.Set(ctx, "k", nil, state.Any, state.SetOptions{}); !errors.Is(err, state.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("set: got the error %v, want %q", err, test.want)
				}
			}
			if err := d.Broken(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it is broken because of %v, want %q", err, test.want)
			}
			if n := strings.Count(log.String(), "state can't be used"); n != 1 {
				t.Errorf("that was logged %d times: %s", n, log.String())
			}
			if test.mend == nil {
				if _, _, err := s.Get(ctx, "k", 1); !errors.Is(err, state.ErrUnavailable) {
					t.Errorf("get: %v", err)
				}
			} else {
				if err := test.mend(dir); err != nil {
					t.Fatal(err)
				}
				again(t, func() error { _, err := s.Set(ctx, "k", nil, state.Any, state.SetOptions{}); return err })
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// again calls f until it works, since a failed attempt is not repeated at once.
func again(t *testing.T, f func() error) {
	t.Helper()
	for began := time.Now(); ; {
		err := f()
		if err == nil {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
}

// TestDeferredInUse has a state that another process uses. Once that process has ended, the state can be used.
func TestDeferredInUse(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	other := open(t, dir)
	if _, err := other.Space("a").Set(ctx, "k", []byte("v"), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	d := local.Defer(dir, local.Options{})
	s := d.Space("a")
	if _, _, err := s.Get(ctx, "k", 1); !errors.Is(err, state.ErrUnavailable) || !errors.Is(err, local.ErrLocked) {
		t.Errorf("got the error %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	again(t, func() error {
		e, found, err := s.Get(ctx, "k", 1)
		if err == nil && (!found || string(e.Value) != "v") {
			t.Errorf("got %q, %t", e.Value, found)
		}
		return err
	})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
