package broker_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/broker"
	"github.com/toolsrv/toolsrv/wasmtools/capability/kv"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

const grantKV = "[[grant]]\nmatch='a/**'\nkv='1MiB'\n"

// parse reads a configuration in a directory.
func parse(t *testing.T, text, dir string) *config.Config {
	t.Helper()
	c, err := config.Parse([]byte(text), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestState opens a state for the first configuration that grants KV, and no sooner.
func TestState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const state = "[state]\ndirectory='kept'\n"
	b, err := broker.Open(parse(t, state, dir), broker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := func(text, want string, files int) {
		t.Helper()
		g, err := b.Grants(parse(t, text, dir))
		if err != nil {
			t.Fatal(err)
		}
		granted := g.For("/a/b", wasmtools.Needs{"kv": {}})
		if got := lacks(granted); got != want || (want == "") != (len(granted.Values) == 1) {
			t.Errorf("%q: missing %q, want %q", text, got, want)
		}
		if found, err := filepath.Glob(filepath.Join(dir, "kept", "*")); len(found) != files || err != nil {
			t.Errorf("%q: got the files %q, %v", text, found, err)
		}
	}
	want(state, "kv", 0)
	want(grantKV, "kv (it is granted, but [state] names no directory)", 0)
	want(state+grantKV, "", 1)
	want(state, "kv", 1)
	want(state+grantKV, "", 1)
	if _, err := local.Open(filepath.Join(dir, "kept"), local.Options{}); err == nil {
		t.Error("a second process could open the state")
	}
	if _, err := broker.Open(parse(t, state+grantKV, dir), broker.Options{}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second server gets the error %v", err)
	}
	for range 2 {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	store, err := local.Open(filepath.Join(dir, "kept"), local.Options{})
	if err != nil {
		t.Fatalf("it is still open: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestSpaces holds which tools share keys, and which quota counts.
func TestSpaces(t *testing.T) {
	t.Parallel()
	g := grants(t, grantKV+"[[grant]]\nmatch='*'\nkv='1MiB'\n[[grant]]\nmatch='a/large'\nkv='2MiB'\n[[grant]]\nmatch='a/large'\nhttp=['https://b.example']\n")
	grant := func(path string) *hostabi.Grant {
		t.Helper()
		granted := g.For(path, wasmtools.Needs{"kv": {}})
		if len(granted.Values) != 1 || len(granted.Missing) != 0 || granted.Values[0].Module != kv.Module {
			t.Fatalf("%s: got %v, missing %q", path, granted.Values, granted.Missing)
		}
		return &granted.Values[0]
	}
	for _, test := range []struct {
		one, other string
		want       bool
	}{
		{"/a/b", "/a/c", true},
		{"/a/b", "/a/b/c", false},
		{"/a/b/c", "/a/b/d", true},
		{"/a", "/b", true},
		{"/a", "/a/b", false},
		{"/a/b", "/a/large", false}, // another quota
	} {
		if got := grant(test.one).Equal(*grant(test.other)); got != test.want {
			t.Errorf("%s and %s are granted the same: %t", test.one, test.other, got)
		}
	}
}
