package sandbox_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// useEngine returns an engine whose toy function runs use in each call.
func useEngine(t *testing.T, c sandbox.Config, use func(c *hostcall.Call)) *sandbox.Engine {
	touch := func(c *hostcall.Call, stack []uint64) {
		if stack[0] = 0; c.Serving() {
			use(c)
		}
	}
	c.Imports = append(abi1.Sets(), &hostcall.Set{Module: toyModule, Functions: []hostcall.Function{{Name: "touch", Params: "i", Results: "i", Do: touch}}})
	return sandboxtest.Engine(t, c)
}

// A counter records what is used.
type counter struct{ uses []hostcall.Use }

func (c *counter) Used(u hostcall.Use) { c.uses = append(c.uses, u) }

var aUse = hostcall.Use{Capability: "http", Target: "https://example.com/\n", Sent: 10, Received: 20, Took: time.Millisecond, Outcome: "timeout"}

// TestUsed has a call count its uses. At the level debug, each has a line in the log; otherwise none has.
func TestUsed(t *testing.T) {
	t.Parallel()
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
		var log testkit.Log
		e := useEngine(t, sandbox.Config{Logger: log.Logger(level)}, func(c *hostcall.Call) {
			c.Used(aUse)
			c.Used(aUse)
		})
		p, err := e.Load(toucher(""), withToy()...)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		tool := p.Tool("/a/b", toolEnds, limits.Limits{})
		var counted counter
		if _, err := tool.Call(t.Context(), sandbox.CallSpec{Counter: &counted}); err != nil {
			t.Fatal(err)
		}
		if _, err := tool.Call(t.Context(), sandbox.CallSpec{}); err != nil { // which nobody counts
			t.Fatal(err)
		}
		if len(counted.uses) != 2 || counted.uses[0] != aUse {
			t.Errorf("counted %+v", counted.uses)
		}
		want := 0
		if level == slog.LevelDebug {
			want = 4
		}
		const line = `msg=used tool=/a/b capability=http target="https://example.com/\n" sent=10 received=20 took=1ms outcome=timeout`
		if got := log.Count(line); got != want {
			t.Errorf("%v: %d lines with %s, want %d, in\n%s", level, got, line, want, log.String())
		}
	}
}

// TestUsedIsFiltered has a call use something with a secret in its name, just where the log cuts it. No part of the secret is left.
// Proves: Secrets stay secret
func TestUsedIsFiltered(t *testing.T) {
	t.Parallel()
	const word = "hunter2hunter2"
	var log testkit.Log
	e := useEngine(t, sandbox.Config{Logger: log.Logger(slog.LevelDebug)}, func(c *hostcall.Call) {
		c.Used(hostcall.Use{Capability: "http", Target: "GET https://example.com/" + strings.Repeat("x", 222) + word})
	})
	p, err := e.Load(toucher(""), withToy()...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	tool := p.Tool("/a/b", toolEnds, limits.Limits{}, hostcall.Grant{Module: toyModule, Value: censor(word)})
	if _, err := tool.Call(t.Context(), sandbox.CallSpec{}); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "xxx***") || strings.Contains(got, word[:3]) {
		t.Errorf("the log has\n%s", got)
	}
}

// TestRefusedUses refuses a call a million uses. All are counted, but each capability has only one log line in each client's call.
func TestRefusedUses(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	const many = 1_000_000
	var log testkit.Log
	e := useEngine(t, sandbox.Config{Logger: log.Logger(slog.LevelInfo)}, func(c *hostcall.Call) {
		for range many {
			c.Used(hostcall.Use{Capability: "http", Target: "GET https://evil.example/steal", Outcome: hostcall.NotGranted})
		}
		c.Used(hostcall.Use{Capability: "kv", Target: "get", Outcome: hostcall.NotGranted})
		c.Used(hostcall.Use{Capability: "kv", Target: "get", Outcome: "limit"})
	})
	p, err := e.Load(toucher(""), withToy()...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var counted tally
	for n := range 2 {
		if _, err := p.Tool("/a/b", toolEnds, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Counter: &counted}); err != nil {
			t.Fatal(err)
		}
		const line = `level=INFO msg="a tool tried to use what it was not granted" tool=/a/b capability=`
		if got := log.Count(line + `http target="GET https://evil.example/steal" sent=0 received=0 took=0s outcome=not_granted`); got != n+1 {
			t.Errorf("%d lines of http after %d calls, in\n%s", got, n+1, log.String())
		}
		if got := log.Count(line); got != 2*(n+1) {
			t.Errorf("%d lines after %d calls, in\n%s", got, n+1, log.String())
		}
	}
	if counted != 2*(many+2) {
		t.Errorf("%d uses are counted", counted)
	}
}

// A tally counts uses.
type tally int

func (n *tally) Used(hostcall.Use) { *n++ }

// TestHold has calls hold memory of the host. The account counts it until they end, and lets nobody have more than there is.
func TestHold(t *testing.T) {
	t.Parallel()
	const most, part = 64 << 20, 16 << 20
	var use func(c *hostcall.Call)
	e := useEngine(t, sandbox.Config{Memory: most}, func(c *hostcall.Call) { use(c) })
	p, err := e.Load(toucher(""), withToy()...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	call := func(timeout time.Duration, what func(c *hostcall.Call)) error {
		use = what
		_, err := p.Tool("x", toolEnds, limits.Limits{Timeout: timeout}).Call(t.Context(), sandbox.CallSpec{})
		return err
	}
	if err := call(time.Minute, func(*hostcall.Call) {}); err != nil {
		t.Fatal(err)
	}
	before := e.State().Memory.Held
	var during, given int64
	if err := call(time.Minute, func(c *hostcall.Call) {
		c.Hold(part)
		during = e.State().Memory.Held
		for range 100 { // one after another
			c.Hold(-part)
			c.Hold(part)
		}
		given = e.State().Memory.Held
	}); err != nil {
		t.Error(err)
	}
	if during < before+part || given != during {
		t.Errorf("held %d bytes before, %d during and %d in the end, want %d more than before", before, during, given, part)
	}
	slack := int64(0)
	if testkit.Emulated() { // an emulator's own page faults make the reset search memory, so what paranoid mode has read is counted, too
		slack = 64 << 10
	}
	if after := e.State().Memory.Held; after < before || after > before+slack {
		t.Errorf("held %d bytes before and %d after", before, after)
	}
	err = call(40*time.Millisecond, func(c *hostcall.Call) {
		for range 1000 {
			c.Hold(part)
		}
	})
	wantError(t, err, sandbox.ToolMemory, "more memory than the service has for all tools together")
	if after := e.State().Memory.Held; after > before+slack {
		t.Errorf("held %d bytes before and %d after a call that took too much", before, after)
	}
}
