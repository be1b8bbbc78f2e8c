package broker_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/wasmtools"
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

// TestWithoutState: a tool that may keep values learns that there is no place for them.
func TestWithoutState(t *testing.T) {
	t.Parallel()
	c := parse(t, grantKV, "")
	g, err := broker.New(c, broker.Options{}).Make(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lacks(g.For("/a/b", wasmtools.Needs{"kv": {}})), "kv (it is granted, but [state] names no directory)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSpaces checks which tools share keys, and which quota applies.
func TestSpaces(t *testing.T) {
	t.Parallel()
	g := grants(t, grantKV+"[[grant]]\nmatch='*'\nkv='1MiB'\n[[grant]]\nmatch='a/large'\nkv='2MiB'\n[[grant]]\nmatch='a/large'\nhttp=['https://b.example']\n")
	grant := func(path string) *hostcall.Grant {
		t.Helper()
		granted := g.For(path, wasmtools.Needs{"kv": {}})
		if len(granted.Values) != 1 || len(granted.Missing) != 0 || granted.Values[0].Module != kv.Module {
			t.Fatalf("%s: got %v, missing %v", path, granted.Values, granted.Missing)
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
