package kv_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// These are the tools of capability/kv. They answer with the length of the host function's answer.
const (
	getTool   = iota
	getsTool  // 1,000 times
	setTool   // 100 bytes
	emptyTool // does nothing
)

func openLocal(t testing.TB, dir string) *local.Store {
	t.Helper()
	store, err := local.Open(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func load(t testing.TB) *sandbox.Program {
	t.Helper()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "capability/kv"))
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func call(t testing.TB, tool *sandbox.Tool, key string) string {
	t.Helper()
	output, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(key)})
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

// TestGuest makes a guest keep a value: later calls find it, even after a restart, and nobody else does.
func TestGuest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := load(t)
	store := openLocal(t, dir)
	tool := func(index int32, namespace string, quota state.Usage) *sandbox.Tool {
		return program.Tool("kv", index, limits.Limits{}, hostcall.Grant{Module: kv.Module, Value: kv.Open(store, namespace, quota)})
	}
	for _, test := range []struct {
		index          int32
		namespace, key string
		quota          state.Usage
		want           string
	}{
		{getTool, "a", "k", state.Usage{}, "0"},
		{setTool, "a", "k", state.Usage{}, "8"},
		{getTool, "a", "k", state.Usage{}, "116"},
		{getsTool, "a", "k", state.Usage{}, "116"},
		{getTool, "b", "k", state.Usage{}, "0"},
		{setTool, "a", "l", state.Usage{Entries: 1}, `{"code":"quota"`},
		{getTool, "a", "", state.Usage{}, `{"code":"invalid"`},
	} {
		if got := call(t, tool(test.index, test.namespace, test.quota), test.key); !strings.HasPrefix(got, test.want) {
			t.Errorf("tool %d in %s with %q: got %s, want %s", test.index, test.namespace, test.key, got, test.want)
		}
	}
	if got := call(t, program.Tool("kv", getTool, limits.Limits{}), "k"); !strings.HasPrefix(got, `{"code":"not_granted"`) {
		t.Errorf("without a grant: got %s", got)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if got := call(t, tool(getTool, "a", state.Usage{}), "k"); !strings.HasPrefix(got, `{"code":"unavailable"`) {
		t.Errorf("with a closed store: got %s", got)
	}
	store = openLocal(t, dir)
	if got := call(t, tool(getTool, "a", state.Usage{}), "k"); got != "116" {
		t.Errorf("after a restart: got %s", got)
	}
}

// BenchmarkGuest measures a call that does nothing, one that reads a value, and one that reads it 1,000 times.
func BenchmarkGuest(b *testing.B) {
	program, store := load(b), openLocal(b, b.TempDir())
	grant := hostcall.Grant{Module: kv.Module, Value: kv.Open(store, "a", state.Usage{})}
	call(b, program.Tool("kv", setTool, limits.Limits{}, grant), "k")
	for _, bench := range []struct {
		name  string
		index int32
	}{{"empty", emptyTool}, {"get", getTool}, {"1000gets", getsTool}} {
		b.Run(bench.name, func(b *testing.B) {
			tool := program.Tool("kv", bench.index, limits.Limits{}, grant)
			b.ReportAllocs()
			for b.Loop() {
				call(b, tool, "k")
			}
		})
	}
}
