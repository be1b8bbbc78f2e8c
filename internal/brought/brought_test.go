package brought_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/brought"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/secret"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A world is a store of secrets in a state, with the secrets that grants see.
type world struct {
	*brought.Store
	view *secret.View
	log  testkit.Log
}

func open(t *testing.T, st state.Store) *world {
	t.Helper()
	v, _, err := secret.Read(secret.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	secrets := secret.NewStore(nil)
	secrets.Add(v)
	w := &world{view: secret.NewView(secrets, v)}
	w.Store = brought.Open(t.Context(), st, secrets, w.log.Logger(slog.LevelDebug))
	return w
}

const value = "a-callers-secret-0001"

func (w *world) set(ctx context.Context, id personal.ID, name, value string) error {
	_, err := w.Set(ctx, id, id, name, value, "test", state.Any, nil)
	return err
}

// TestKept sets secrets, and checks that they are kept over a restart, and that each change that is made is recorded.
func TestKept(t *testing.T) {
	t.Parallel()
	st := memory.New()
	w := open(t, st)
	kept := 0
	keeping := func(ctx context.Context, change func(context.Context) error) error {
		kept++
		return change(ctx)
	}
	first, err := w.Set(t.Context(), "issued+ann", "issued+ann", "github", value, "ann", state.Absent, keeping)
	if err != nil || first.Version == 0 {
		t.Fatalf("got %+v, %v", first, err)
	}
	for name, c := range map[string]struct {
		name, value string
		expect      int64
		want        error
	}{
		"the same again":       {"github", value, state.Any, nil},
		"another version":      {"github", value + "x", int64(first.Version) + 1, state.ErrConflict},
		"no version":           {"github", value + "x", state.Absent, state.ErrConflict},
		"not a secret":         {"github", "a word", state.Any, secret.ErrUnfit},
		"not a name":           {"../github", value, state.Any, secret.ErrUnfit},
		"a name with a suffix": {"github@principal", value, state.Any, secret.ErrUnfit},
	} {
		if _, err := w.Set(t.Context(), "issued+ann", "issued+ann", c.name, c.value, "ann", c.expect, keeping); !errors.Is(err, c.want) || err != nil && strings.Contains(err.Error(), c.value) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if kept != 1 {
		t.Errorf("%d changes were recorded; there was one", kept)
	}
	if _, err := w.Set(t.Context(), "issued+ann", "issued+ann", "other", value, "ann", state.Any, func(context.Context, func(context.Context) error) error { return errors.New("the audit is full") }); err == nil {
		t.Error("a change that can't be recorded is made")
	}
	again := open(t, st)
	if got, ok := again.view.Own("github", "issued+ann"); !ok || got != value {
		t.Errorf("after a start: got %q, %t", got, ok)
	}
	if _, ok := again.view.Own("other", "issued+ann"); ok {
		t.Error("a secret that was not kept is there after a start")
	}
	if err := again.set(t.Context(), "issued+ann%2fagent", "github", value); err != nil {
		t.Fatal(err)
	}
	if err := again.Forget(t.Context(), "issued+ann"); err != nil {
		t.Fatal(err)
	}
	all, err := open(t, st).List()
	if err != nil || len(all) != 1 || all[0].Of != "issued+ann%2fagent" {
		t.Errorf("after ann was forgotten: got %v, %v", all, err)
	}
}

// TestDamage checks that unreadable records are left out, and logged without a value.
func TestDamage(t *testing.T) {
	t.Parallel()
	st := memory.New()
	space := st.Space(brought.Space)
	for key, record := range map[string]string{
		"issued+ann/newer": "\x09{\"value\":\"" + value + "\"}", "issued+ann/cut": "\x01{\"value\":\"" + value, "issued+ann/empty": "\x01{}", "issued+ann/nothing": "",
		"issued+Ann/x": "\x01{\"value\":\"" + value + "\"}", "ann": "\x01{\"value\":\"" + value + "\"}", "issued+ann/a/b": "\x01{\"value\":\"" + value + "\"}", "issued+ann/good": "\x01{\"value\":\"" + value + "\"}",
	} {
		if _, err := space.Set(t.Context(), key, []byte(record), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w := open(t, st)
	all, err := w.List()
	if err != nil || len(all) != 1 || all[0].Name != "good" {
		t.Errorf("got %v, %v", all, err)
	}
	if n := w.log.Count("is ignored"); n != 7 || strings.Contains(w.log.String(), value) {
		t.Errorf("%d lines about records that are left out:\n%s", n, w.log.String())
	}
}

// TestDamageLater lets another process overwrite a secret in force with an unreadable record: the secret is left out, as after a restart, and that is
// logged once.
func TestDamageLater(t *testing.T) {
	t.Parallel()
	st := &failing{Store: memory.New()}
	space := st.Space(brought.Space)
	put := func(key, record string) {
		t.Helper()
		if _, err := space.Set(t.Context(), key, []byte(record), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	put("issued+ann/damaged", "\x01{")
	put("issued+ann/github", "\x01{\"value\":\""+value+"\"}")
	w := open(t, st)
	var following sync.WaitGroup
	defer following.Wait()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	following.Go(func() { w.Follow(ctx) })
	has := func(want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			got, _ := w.view.Own("github", "issued+ann")
			if got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
	has(value)
	put("issued+ann/github", "\x01{\"value\":\"")
	has("")
	if all, err := w.List(); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v", all, err)
	}
	st.once.Store(true) // a short failure of the state does no harm
	put("issued+ann/github", "\x01{\"value\":\""+value+"-2\"}")
	has(value + "-2")
	if st.once.Load() {
		t.Error("the state was not asked")
	}
	if n := w.log.Count("is ignored"); n != 2 || strings.Contains(w.log.String(), value) {
		t.Errorf("%d lines about records that are left out, want 2:\n%s", n, w.log.String())
	}
}

// A failing is a state whose next read fails.
type failing struct {
	state.Store
	once atomic.Bool
}

func (f *failing) Space(name string) state.Space { return failingSpace{f.Store.Space(name), f} }

type failingSpace struct {
	state.Space
	of *failing
}

func (s failingSpace) Get(ctx context.Context, key string, most int) (state.Entry, bool, error) {
	if s.of.once.CompareAndSwap(true, false) {
		return state.Entry{}, false, state.ErrUnavailable
	}
	return s.Space.Get(ctx, key, most)
}

// TestNowhere checks that nothing is stored without a state, or with one that can't be used.
func TestNowhere(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	if err := w.set(t.Context(), "issued+ann", "github", value); !errors.Is(err, brought.ErrNowhere) {
		t.Errorf("without a state: got %v", err)
	}
	closed := memory.New()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	w = open(t, closed)
	if err := w.set(t.Context(), "issued+ann", "github", value); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("with a state that is closed: got %v", err)
	}
	if _, err := w.List(); err == nil {
		t.Error("unreadable secrets are listed as none")
	}
	if _, ok := w.view.Own("github", "issued+ann"); ok {
		t.Error("a secret that was not kept is in force")
	}
}
