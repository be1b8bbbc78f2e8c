package kv_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// A guest is one call of a tool, with 4 MiB of memory.
type guest struct {
	*hosttest.Guest
	t         *testing.T
	functions map[string]hostabi.Function
}

func newGuest(t *testing.T, run hostcall.Run) *guest {
	g := &guest{Guest: hosttest.Begin(t, make([]byte, 4<<20), 1, run), t: t, functions: map[string]hostabi.Function{}}
	for _, f := range kv.Set().Functions {
		g.functions[f.Name] = f
	}
	return g
}

// granted returns a call of a tool that has a space.
func granted(t *testing.T, store state.Store, namespace string, quota state.Usage) *guest {
	return newGuest(t, hostcall.Run{Serving: true, Grants: []any{kv.Open(store, namespace, quota)}})
}

// do calls a function. A string is put into memory and passed with its length. Numbers are passed as they are.
func (g *guest) do(name string, arguments ...any) (answer []byte, code string) {
	g.t.Helper()
	stack, at := []uint64{}, 8
	for _, a := range arguments {
		switch a := a.(type) {
		case string:
			stack = append(stack, uint64(at), uint64(len(a)))
			at += copy(g.Memory[at:], a)
		case int:
			stack = append(stack, uint64(int64(a)))
		case uint64:
			stack = append(stack, a)
		}
	}
	f, read := g.functions[name], g.functions["answer_read"]
	if len(stack) != len(f.Params) {
		g.t.Fatalf("%s takes %q, it was given %v", name, f.Params, stack)
	}
	n := int(int32(uint32(g.Do(&f, 0, stack...))))
	answer = make([]byte, max(n, -n))
	g.Do(&read, 0, 1<<20)
	copy(answer, g.Memory[1<<20:])
	if n >= 0 {
		return answer, ""
	}
	var failure struct{ Code, Message string }
	if err := json.Unmarshal(answer, &failure); err != nil || !strings.HasSuffix(failure.Message, ".") {
		g.t.Errorf("%s fails with %s (%v)", name, answer, err)
	}
	return []byte(failure.Message), failure.Code
}

// TestUse keeps, reads, lists and deletes values as a tool does, and checks the counted uses.
func TestUse(t *testing.T) {
	t.Parallel()
	g := granted(t, memory.New(), "notes", state.Usage{})
	version := func(answer []byte, code string) uint64 {
		t.Helper()
		if len(answer) != 8 || code != "" {
			t.Fatalf("set answers %q, %s", answer, code)
		}
		return binary.LittleEndian.Uint64(answer)
	}
	if answer, code := g.do("get", "a"); len(answer) != 0 || code != "" {
		t.Errorf("no key: got %q, %s", answer, code)
	}
	first := version(g.do("set", "a", "one", 0, 0))
	second := version(g.do("set", "a", "two", 60_000, int(first)))
	answer, code := g.do("get", "a")
	if code != "" || len(answer) != 19 || binary.LittleEndian.Uint64(answer) != second || string(answer[16:]) != "two" {
		t.Errorf("got %q, %s", answer, code)
	}
	if left := time.Until(time.UnixMilli(int64(binary.LittleEndian.Uint64(answer[8:])))); left <= 0 || left > time.Minute {
		t.Errorf("it expires in %v", left)
	}
	if message, code := g.do("set", "a", "three", 0, int(first)); code != "conflict" || string(message) != fmt.Sprintf("The key has changed: it is at version %d, but %d was expected.", second, first) {
		t.Errorf("got %s, %s", message, code)
	}
	for _, key := range []string{"b/1", "b/2", "b/3"} {
		version(g.do("set", key, "", 0, -1))
	}
	for _, test := range []struct {
		prefix, after string
		limit         int
		want          []string
		more          byte
	}{
		{"", "", 0, []string{"a", "b/1", "b/2", "b/3"}, 0},
		{"b/", "", 2, []string{"b/1", "b/2"}, 1},
		{"b/", "b/2", 2, []string{"b/3"}, 0},
		{"b/", "b/3", 1, nil, 0},
		{"", "", math.MaxInt32, []string{"a", "b/1", "b/2", "b/3"}, 0},
	} {
		answer, code := g.do("list", test.prefix, test.after, test.limit)
		want := []byte{test.more}
		for _, key := range test.want {
			want = append(binary.LittleEndian.AppendUint32(want, uint32(len(key))), key...)
		}
		if !slices.Equal(answer, want) || code != "" {
			t.Errorf("list %q after %q: got %q, %s, want %q", test.prefix, test.after, answer, code, want)
		}
	}
	for _, want := range []string{"\x01", "\x00"} {
		if answer, code := g.do("delete", "a", -1); string(answer) != want || code != "" {
			t.Errorf("delete answers %q, %s, want %q", answer, code, want)
		}
	}
	var uses []string
	for _, u := range g.Uses {
		if u.Capability != "kv" || u.Took < 0 {
			t.Errorf("used %+v", u)
		}
		uses = append(uses, strings.TrimSpace(fmt.Sprintf("%s %d %d %s", u.Target, u.Sent, u.Received, u.Outcome)))
	}
	if got, want := strings.Join(uses[:5], "; "), "get a 1 0; set a 4 8; set a 4 8; get a 1 19; set a 6 0 conflict"; got != want {
		t.Errorf("used %s, want %s", got, want)
	}
	if g.Held != 1 { // the last answer
		t.Errorf("%d bytes are held", g.Held)
	}
}

// TestHostile passes arguments that no honest guest passes.
// Proves: State is whole and apart
func TestHostile(t *testing.T) {
	t.Parallel()
	store := memory.New()
	g := granted(t, store, "notes", state.Usage{Entries: 2})
	long, largest := strings.Repeat("k", state.MaxKey), strings.Repeat("v", state.MaxValue)
	for _, test := range []struct {
		name      string
		function  string
		arguments []any
		want      string
	}{
		{"no key", "get", []any{""}, "invalid"},
		{"no key", "set", []any{"", "v", 0, -1}, "invalid"},
		{"no key", "delete", []any{"", -1}, "invalid"},
		{"not UTF-8", "get", []any{"\xff"}, "invalid"},
		{"not UTF-8", "set", []any{"a\xc0\x80", "v", 0, -1}, "invalid"},
		{"NUL, which is a character", "set", []any{"\x00", "v", 0, -1}, ""},
		{"the longest key", "get", []any{long}, ""},
		{"a longer key", "get", []any{long + "k"}, "too_large"},
		{"a longer key", "set", []any{long + "k", "v", 0, -1}, "too_large"},
		{"a longer key", "delete", []any{long + "k", -1}, "too_large"},
		{"a longer prefix", "list", []any{long + "k", "", 0}, "too_large"},
		{"a longer key to begin after", "list", []any{"", long + "k", 0}, "too_large"},
		{"a key of 4 GiB", "get", []any{0, math.MaxUint32}, "too_large"},
		{"a value of 4 GiB", "set", []any{8, 1, 0, math.MaxUint32, 0, -1}, "too_large"},
		{"a value that is a byte too long", "set", []any{8, 1, 0, state.MaxValue + 1, 0, -1}, "too_large"},
		{"a negative time to live", "set", []any{"k", "v", -1, -1}, "invalid"},
		{"a time to live that would overflow", "set", []any{"k", "v", math.MaxInt64, -1}, "invalid"},
		{"no such expectation", "set", []any{"k", "v", 0, -2}, "invalid"},
		{"no such expectation", "set", []any{"k", "v", 0, math.MinInt64}, "invalid"},
		{"no such expectation", "delete", []any{"k", -2}, "invalid"},
		{"a version that never existed", "set", []any{"k", "v", 0, math.MaxInt64}, "conflict"},
		{"a version that never existed", "delete", []any{"k", 1}, "conflict"},
		{"a negative limit", "list", []any{"", "", -1}, "invalid"},
		{"the largest value", "set", []any{"k", largest, 0, -1}, ""},
		{"the largest value", "get", []any{"k"}, ""},
		{"one entry too many", "set", []any{"more", "", 0, -1}, "quota"},
	} {
		answer, code := g.do(test.function, test.arguments...)
		if code != test.want {
			t.Errorf("%s: %s fails with %q (%s), want %q", test.name, test.function, code, answer, test.want)
		}
		if outcome := g.Uses[len(g.Uses)-1].Outcome; outcome != test.want {
			t.Errorf("%s: counted as %q", test.name, outcome)
		}
	}
	for _, arguments := range [][]uint64{{math.MaxUint32, 1}, {4 << 20, 1}, {4<<20 - 1, 2}, {math.MaxUint32, state.MaxKey}} {
		if got := hosttest.Trapped(func() { g.do("get", arguments[0], arguments[1]) }); !strings.HasPrefix(got, "it gave get a place outside its memory") {
			t.Errorf("a key at %d: got the trap %q", arguments[0], got)
		}
	}
	if got := hosttest.Trapped(func() { g.do("set", 8, 1, math.MaxUint32, 1, 0, -1) }); !strings.HasPrefix(got, "it gave set a place outside its memory") {
		t.Errorf("a value outside: got the trap %q", got)
	}
	if g.MostHeld < state.MaxValue || g.Charged() < state.MaxValue {
		t.Errorf("1 MiB was held as %d bytes, and charged as %d ns", g.MostHeld, g.Charged())
	}
	if message, _ := g.do("set", "more", "", 0, -1); string(message) != "The quota is used up: there would be 3 entries; at most 2 are allowed: delete keys, or have the operator raise kv or kv_entries in the grant." {
		t.Errorf("got %s", message)
	}
}

// TestNotGranted calls each function without a grant, and during the tool's start.
// Proves: Nothing without a grant
func TestNotGranted(t *testing.T) {
	t.Parallel()
	for _, run := range []hostcall.Run{{Serving: true}, {}, {Serving: true, Grants: []any{"a grant of another set"}}} {
		g := newGuest(t, run)
		for _, use := range [][]any{{"get", "k"}, {"set", "k", "v", 0, -1}, {"delete", "k", -1}, {"list", "", "", 0}} {
			if message, code := g.do(use[0].(string), use[1:]...); code != "not_granted" {
				t.Errorf("%s: got %q, %s", use[0], code, message)
			}
		}
	}
}

// TestNamespaces checks that tools see the values of their own namespace, and none of another one.
// Proves: State is whole and apart
func TestNamespaces(t *testing.T) {
	t.Parallel()
	store := memory.New()
	names := []string{"", "a", "a/b", "b", "kv"}
	for _, name := range names {
		if _, code := granted(t, store, name, state.Usage{}).do("set", "key", name, 0, 0); code != "" {
			t.Errorf("%q: %s", name, code)
		}
	}
	for _, name := range names {
		g := granted(t, store, name, state.Usage{})
		if answer, code := g.do("get", "key"); code != "" || string(answer[16:]) != name {
			t.Errorf("%q reads %q, %s", name, answer, code)
		}
		if answer, code := g.do("list", "", "", 0); code != "" || len(answer) != 8 {
			t.Errorf("%q lists %q, %s", name, answer, code)
		}
	}
}

// TestUnavailable has a store that can't be used: the guest does not learn why.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	store := memory.New()
	g := granted(t, store, "notes", state.Usage{})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, use := range [][]any{{"get", "k"}, {"set", "k", "v", 0, -1}, {"delete", "k", -1}, {"list", "", "", 0}} {
		if message, code := g.do(use[0].(string), use[1:]...); code != "unavailable" || strings.Contains(string(message), "closed") {
			t.Errorf("%s: got %q, %s", use[0], code, message)
		}
	}
}

// A spy is a store that notes the values in the contexts of its reads.
type spy struct {
	state.Store
	seen *[]any
}

type spying struct {
	state.Space
	seen *[]any
}

type traceKey struct{}

func (s spy) Space(name string) state.Space { return spying{s.Store.Space(name), s.seen} }

func (s spying) Immediate() {}

func (s spying) Get(ctx context.Context, key string, most int) (state.Entry, bool, error) {
	*s.seen = append(*s.seen, ctx.Value(traceKey{}))
	return s.Space.Get(ctx, key, most)
}

func (s spying) List(ctx context.Context, prefix, after string, limit int) ([]string, bool, error) {
	*s.seen = append(*s.seen, ctx.Value(traceKey{}))
	return s.Space.List(ctx, prefix, after, limit)
}

// TestContext checks that reads, which never wait, get the caller's context. If the caller has gone, a read ends the call.
func TestContext(t *testing.T) {
	t.Parallel()
	var seen []any
	g := granted(t, spy{memory.New(), &seen}, "notes", state.Usage{})
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), traceKey{}, "trace-1"))
	g.Context = ctx
	g.do("get", "k")
	g.do("list", "", "", 0)
	if fmt.Sprint(seen) != "[trace-1 trace-1]" {
		t.Errorf("the store was told %v", seen)
	}
	cancel()
	if got := hosttest.Trapped(func() { g.do("get", "k") }); got != "the call is over" {
		t.Errorf("a read of a caller that has gone: got %q", got)
	}
}

// TestEqual checks that a reload without changes changes no grant.
func TestEqual(t *testing.T) {
	t.Parallel()
	store, quota := memory.New(), state.Usage{Bytes: 100}
	space := kv.Open(store, "a", quota)
	for _, test := range []struct {
		name  string
		other any
		want  bool
	}{
		{"the same", kv.Open(store, "a", quota), true},
		{"another namespace", kv.Open(store, "b", quota), false},
		{"another quota", kv.Open(store, "a", state.Usage{Bytes: 101}), false},
		{"another store", kv.Open(memory.New(), "a", quota), false},
		{"nothing", nil, false},
	} {
		if got := space.Equal(test.other); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}
