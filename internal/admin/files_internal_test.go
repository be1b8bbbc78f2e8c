package admin

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/upload"
	"github.com/toolsrv/toolsrv/internal/versions"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestStill has somebody edit, remove or create a file while an upload of the same name is checked: the upload must not overwrite that.
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

// by returns a request by a principal with this name.
func by(t *testing.T, target *Target, name string) *Request {
	t.Helper()
	p, err := wasmtools.NewPrincipal(name, wasmtools.OriginToken)
	if err != nil {
		t.Fatal(err)
	}
	return &Request{Target: target, Principal: p}
}

// TestTurn has callers that wait to change a file: one is no longer allowed to when its turn comes, and another one goes away.
func TestTurn(t *testing.T) {
	t.Parallel()
	gone := errors.New("the token was taken back")
	target := &Target{}
	first := by(t, target, "first")
	end, err := files{first}.turn(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	second := by(t, target, "second")
	second.Still = func() error { return gone }
	go func() {
		_, err := files{second}.turn(t.Context(), true)
		waited <- err
	}()
	leaves, leave := context.WithCancelCause(t.Context())
	go func() {
		_, err := files{by(t, target, "third")}.turn(leaves, false)
		waited <- err
	}()
	left := errors.New("the client has gone")
	leave(left)
	if err := <-waited; !errors.Is(err, left) {
		t.Errorf("got %v, want %v", err, left)
	}
	end()
	end()
	if err := <-waited; !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
	if end, err = (files{first}).turn(t.Context(), false); err != nil {
		t.Error("nobody else can change a file now")
	}
	end()
}

// TestUploadsAreShared: a caller that starts as many uploads as possible leaves places for others, and each of them gets its turn after at most one
// other.
func TestUploadsAreShared(t *testing.T) {
	t.Parallel()
	target := &Target{}
	begin := func(name string, local bool) (leaves []func()) {
		for {
			r := by(t, target, name)
			r.Local = local
			leave, err := target.uploads.enter(r)
			if failed, ok := errors.AsType[*wasmtools.Error](err); ok && failed.Code == wasmtools.CodeOverloaded {
				return leaves
			}
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
	}
	hostile := begin("hostile", false)
	for _, next := range []struct {
		name  string
		least int
	}{{"other", 2}, {"third", 1}, {"socket", mostUploads}} {
		if got := len(begin(next.name, next.name == "socket")); got < next.least {
			t.Errorf("%s could begin %d uploads while another caller had %d, want at least %d", next.name, got, len(hostile), next.least)
		}
	}
	for _, leave := range hostile {
		leave()
	}
	if got := len(begin("hostile", false)); got < 1 || got > len(hostile) {
		t.Errorf("%d uploads began after %d had ended", got, len(hostile))
	}

	end, err := target.uploads.change(t.Context(), by(t, target, "hostile"))
	if err != nil {
		t.Fatal(err)
	}
	const most = 10
	order := make(chan string, most+1)
	var all sync.WaitGroup
	wait := func(name string) {
		queued := target.uploads.turn.Waiting()
		r := by(t, target, name)
		all.Go(func() {
			end, err := target.uploads.change(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			order <- name
			end()
		})
		for target.uploads.turn.Waiting() == queued {
			runtime.Gosched()
		}
	}
	for range most {
		wait("hostile")
	}
	wait("other")
	end()
	all.Wait()
	for place := 1; ; place++ {
		if name := <-order; name == "other" {
			if place > 2 {
				t.Errorf("the other caller got turn %d of %d", place, most+1)
			}
			break
		}
	}
}
