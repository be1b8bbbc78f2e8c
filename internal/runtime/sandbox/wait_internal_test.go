package sandbox

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// full fills the one page of a module's memory, and thereby its snapshot, with bytes other than zero.
func full(t *testing.T, p *Program) {
	t.Helper()
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("1"), pageSize)
	p.module.code.Native().Rewritten.Data = []instrument.DataSegment{{Content: content}}
}

// The bytes of a snapshot of such a module, and of an instance in a call.
const (
	fullSnapshot = pageSize
	fullInstance = pageSize + instanceSize
)

// awaitWait returns when a run waits for room.
func awaitWait(t *testing.T, e *Engine) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !e.account.Wanted(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Error("nobody waits")
			return
		}
	}
}

// TestIdleWhileOneWaits has a call wait for the room of instances in use. Once these are idle, it gets their room.
// Proves: Limits hold, one by one and in sum
func TestIdleWhileOneWaits(t *testing.T) {
	t.Parallel()
	const limit = fullSnapshot + 2*fullInstance
	e, p := poolEngine(t, Config{Memory: limit}, "hostile/hoard")
	full(t, p)
	if out, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
		t.Fatalf("got %s, %v, want 1", out, err)
	}
	used := p.module.snapshot.hold()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := make(chan error, 1)
	go func() {
		r := run{first: true}
		got <- r.take(ctx, e, r.claimOf(account.Memory, limit-fullSnapshot/2))
	}()
	awaitWait(t, e)
	e.drop(used)
	if err := <-got; err != nil {
		t.Fatalf("waiting beside an idle snapshot: %v", err)
	}
	e.account.Give(account.Memory, limit-fullSnapshot/2)
}

// logs has a guest that logs a line while it starts, and whose call returns the first byte of its memory.
var logs = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x14\x04\x60\x03\x7f\x7f\x7f\x00\x60\x02\x7f\x7f\x00\x60\x00\x00\x60\x01\x7f\x01\x7f" +
	"\x02\x2c\x02\x0atoolsrv_v1\x03log\x00\x00\x0atoolsrv_v1\x0coutput_write\x00\x01" +
	"\x03\x03\x02\x02\x03" +
	"\x05\x03\x01\x00\x01" +
	"\x07\x28\x03\x06memory\x02\x00\x0ctoolsrv_warm\x00\x02\x0ctoolsrv_call\x00\x03" +
	"\x0a\x17\x02\x0a\x00\x41\x01\x41\x00\x41\x01\x10\x00\x0b\x0a\x00\x41\x00\x41\x01\x10\x01\x41\x00\x0b")

// A hook is called for each line that is logged.
type hook struct {
	slog.Handler
	f func()
}

func (h hook) Enabled(context.Context, slog.Level) bool { return true }

func (h hook) Handle(context.Context, slog.Record) error {
	h.f()
	return nil
}

// TestSnapshotHasRoom has others wait for room while a snapshot is made. They must not get the room of memory that still exists.
// Proves: Limits hold, one by one and in sum
func TestSnapshotHasRoom(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var e *Engine
	waited := make(chan error, 1)
	e, _ = poolEngine(t, Config{Memory: limit, Logger: slog.New(hook{slog.DiscardHandler, func() {
		e.account.Give(account.Memory, fullSnapshot)
		go func() {
			waited <- e.account.Wait(ctx, &account.Claim{Kind: account.Memory, N: 2 * fullSnapshot, First: true}, nil)
		}()
		awaitWait(t, e)
	}})}, "hostile/hoard")
	p := loadInternal(t, e, logs)
	full(t, p)
	e.account.Add(account.Memory, limit-fullInstance) // there is room for one instance; what is given back later is enough for a snapshot
	out, err := p.Tool("x", 0, limits.Limits{Timeout: 5 * time.Second}).Call(t.Context(), CallSpec{})
	if err != nil || string(out) != "1" {
		t.Errorf("got %s, %v, want 1", out, err)
	}
	e.account.Give(account.Memory, limit-fullInstance-fullSnapshot)
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	e.account.Give(account.Memory, 2*fullSnapshot)
}

// TestMemoryLeavesCode frees memory. That must leave code alone: it belongs to another account, so dropping it would free no memory.
func TestMemoryLeavesCode(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{CacheDir: t.TempDir()}, "hostile/hoard")
	if out, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
		t.Fatalf("got %s, %v, want 1", out, err)
	}
	e.reclaim(nil, account.Memory, e.account.Most(account.Memory, true))
	if memory, code := e.account.Held(account.Memory), e.account.Held(account.Code); memory != 0 || code == 0 {
		t.Errorf("after memory was wanted, %d bytes of memory and %d of code are held, want no memory, and some code", memory, code)
	}
	e.reclaim(nil, account.Mappings, e.account.Most(account.Mappings, true))
	if mappings, code := e.account.Held(account.Mappings), e.account.Held(account.Code); mappings != 0 || code != 0 {
		t.Errorf("after mappings were wanted, %d and %d bytes of code are held, want none", mappings, code)
	}
}
