package core_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// settings returns a configuration with an empty directory of tools.
func settings(t *testing.T) *config.Config {
	t.Helper()
	c := config.Default()
	c.Tools.Directory, c.Tools.CacheDir = t.TempDir(), sandboxtest.CodeDir()
	return c
}

// TestState checks that a service opens the state that its configuration names, even if no tool has a grant for it, and holds the state until
// the service is closed.
func TestState(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = filepath.Join(t.TempDir(), "kept")
	s, err := core.Open(t.Context(), c, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{c.State.Directory, t.TempDir(), ""} { // a later configuration does not change it
		other := *c
		other.State.Directory = at
		if _, err := s.Configure(&other); err != nil {
			t.Errorf("%q: %v", at, err)
		}
	}
	if _, err := core.Open(t.Context(), c, core.Options{}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second service of that directory: got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := local.Open(c.State.Directory, local.Options{})
	if err != nil {
		t.Fatalf("it is still open: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestStateLater: a service that has no state opens one with the first configuration that names a directory, unless the directory can't be used.
func TestStateLater(t *testing.T) {
	t.Parallel()
	c := settings(t)
	s := open(t, c, core.Options{})
	stored := func(directory string) (state.Store, error) {
		next := *c
		next.State.Directory = directory
		if _, err := s.Configure(&next); err != nil {
			return nil, err
		}
		return s.State.For(&next)
	}
	if store, err := stored(""); store != nil || err != nil {
		t.Errorf("no directory is named: got %v, %v", store, err)
	}
	damaged := t.TempDir()
	testkit.Put(t, damaged, "state.db", "not a state")
	if _, err := stored(damaged); err == nil || !strings.Contains(err.Error(), "is not a state that this version can read") {
		t.Errorf("a damaged state: got %v", err)
	}
	if store, err := stored(t.TempDir()); store == nil || err != nil {
		t.Errorf("a directory is named: got %v, %v", store, err)
	}
	if err := s.State.Broken(); err != nil {
		t.Error(err)
	}
}

// TestStateLost: a service starts without its state if there is a listener, and reports that.
func TestStateLost(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = t.TempDir()
	testkit.Put(t, c.State.Directory, "state.db", "not a state")
	if _, err := core.Open(t.Context(), c, core.Options{}); err == nil || !strings.Contains(err.Error(), "is not a state that this version can read") {
		t.Errorf("without a listener: got %v", err)
	}
	waiting, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	c.Server.Listeners = []net.Listener{waiting}
	s, err := core.Open(t.Context(), c, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.State.Broken(); err == nil || !strings.Contains(err.Error(), "is not a state that this version can read") {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err == nil {
		t.Error("Close does not report that the state was lost")
	}
}

// TestStateCheck: Check finds out whether the next process could open its state, and leaves this process's own as it is.
func TestStateCheck(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = t.TempDir()
	s := open(t, c, core.Options{})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(c.State.Directory, link); err != nil {
		t.Skip(err)
	}
	damaged := t.TempDir()
	testkit.Put(t, damaged, "state.db", "not a state")
	for directory, want := range map[string]string{"": "", c.State.Directory: "", link: "", t.TempDir(): "", damaged: "is not a state that this version can read"} {
		next := config.Default()
		next.State.Directory = directory
		if err := s.State.Check(next); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", directory, err, want)
		}
	}
}

// TestVolatile keeps values in memory if no directory is named and the program wants that.
func TestVolatile(t *testing.T) {
	t.Parallel()
	c := settings(t)
	s := open(t, c, core.Options{Volatile: true})
	store, err := s.State.For(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	space := store.Space("a")
	if _, err := space.Set(ctx, "k", []byte("v"), state.Any, state.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	if e, ok, err := space.Get(ctx, "k", 1); !ok || err != nil || string(e.Value) != "v" {
		t.Errorf("got %q, %v, %v", e.Value, ok, err)
	}
}

// TestLook: Look neither creates nor locks the state that a configuration names.
func TestLook(t *testing.T) {
	t.Parallel()
	c := settings(t)
	s := open(t, c, core.Options{})
	next := *c
	next.State.Directory = filepath.Join(t.TempDir(), "kept")
	if _, err := s.Look(&next); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(next.State.Directory); !errors.Is(err, fs.ErrNotExist) || s.State.Store() != nil {
		t.Errorf("the directory: got %v, and the state %v; want neither", err, s.State.Store())
	}
	other, err := local.Open(next.State.Directory, local.Options{}) // stands for another process
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Look(&next); err != nil {
		t.Errorf("while another process has it: %v", err)
	}
	if _, err := s.Configure(&next); err == nil {
		t.Error("a state that another process has was opened")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Configure(&next); err != nil || s.State.Store() == nil {
		t.Errorf("put in force: got %v, and the state %v", err, s.State.Store())
	}
}
