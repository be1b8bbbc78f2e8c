package admin

import (
	"errors"
	"os"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/upload"
	"github.com/toolsrv/toolsrv/internal/versions"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestStill has a file that is edited, removed or made while a new one is checked stay as it is.
func TestStill(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(path string) error{
		"nothing happens": func(string) error { return nil },
		"it is edited":    func(path string) error { return os.WriteFile(path, []byte("edited"), 0o600) },
		"it is removed":   os.Remove,
		"a link comes":    func(path string) error { return errors.Join(os.Remove(path), os.Symlink("elsewhere.wasm", path)) },
	} {
		dir := t.TempDir()
		path := testkit.Put(t, dir, "a.wasm", "before")
		at := onDisk{&versions.Store{}, upload.Directory{Path: dir}}
		was, err := at.lying("a.wasm")
		if err != nil {
			t.Fatal(err)
		}
		if err := edit(path); err != nil {
			t.Fatal(err)
		}
		if err := at.still("a.wasm", was); (err == nil) != (name == "nothing happens") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	dir := t.TempDir()
	at := onDisk{&versions.Store{}, upload.Directory{Path: dir}}
	if err := at.still("a.wasm", lying{}); err != nil {
		t.Error(err)
	}
	testkit.Put(t, dir, "a.wasm", "made meanwhile")
	if failed, ok := errors.AsType[*wasmtools.Error](at.still("a.wasm", lying{})); !ok || failed.Code != wasmtools.CodeChanged {
		t.Errorf("got %v", failed)
	}
}

// TestTurn has somebody wait to change a file who may not do that any more when their turn comes.
func TestTurn(t *testing.T) {
	t.Parallel()
	gone := errors.New("the token was taken back")
	target := &Target{}
	target.changing.Lock()
	waited := make(chan error)
	go func() {
		_, err := files{&Request{Target: target, Still: func() error { return gone }}}.turn(true)
		waited <- err
	}()
	target.changing.Unlock()
	if err := <-waited; !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
	if !target.changing.TryLock() {
		t.Error("nobody else can change a file now")
	}
}
