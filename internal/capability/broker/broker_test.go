package broker_test

import (
	"slices"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/capability/granted"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/lacking"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// grants returns the grants of a configuration.
func grants(t *testing.T, text string) *broker.Grants {
	t.Helper()
	c, err := config.Parse([]byte(text), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := broker.New(c, broker.Options{})
	g, err := b.Make(c, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// lacks says what a tool lacks.
func lacks(g granted.Tool) string { return lacking.Of(&wasmtools.Tool{Missing: g.Missing}) }

// suggest returns the grant of needs.
func suggest(match string, needs wasmtools.Needs) string {
	return broker.Suggest(match, needs, builtin.Kinds())
}

// TestMissing checks that what a tool needs but was not granted is named.
// Proves: Nothing without a grant
func TestMissing(t *testing.T) {
	t.Parallel()
	needs := wasmtools.Needs{
		"http": {Words: []string{"https://api.example.com", "https://b.example"}}, "kv": {}, "secrets": {Words: []string{"a", "b"}}, "settings": {Object: []byte(`{"type":"object","required":["units"],"properties":{"units":{"enum":["metric","imperial"]}}}`)},
		"tools": {Words: []string{"units/convert", "now"}}, "files": {Words: []string{"geo", "maps"}},
	}
	const all = "http https://api.example.com, http https://b.example, kv, secrets a, secrets b, settings (units: Field required), tools units/convert, tools now, files geo, files maps"
	for _, test := range []struct{ name, text, want string }{
		{"nothing granted", "", all},
		{"to another", "[[grant]]\nmatch='other/*'\nkv='1MiB'\nhttp=['https://b.example']", all},
		{"some", "[[grant]]\nmatch='a/*'\nkv='1MiB'\nhttp=['https://b.example']\nfiles={geo='.'}\ntools=['units/*']",
			"http https://api.example.com, secrets a, secrets b, settings (units: Field required), tools now, files maps"},
		{"several grants", "[[grant]]\nmatch='a/*'\nkv='1MiB'\nhttp=['https://b.example']\n[[grant]]\nmatch='a/b'\nhttp=['https://api.example.com']\nsettings={units=\"metric\"}",
			"secrets a, secrets b, tools units/convert, tools now, files geo, files maps"},
	} {
		if missing := lacks(grants(t, test.text).For("/a/b", needs)); missing != test.want {
			t.Errorf("%s: got %q, want %s", test.name, missing, test.want)
		}
	}
}

// TestNotDeclared grants everything to a tool that declares no needs: it gets nothing.
// Proves: Nothing without a grant
func TestNotDeclared(t *testing.T) {
	t.Parallel()
	g := grants(t, "[[grant]]\nmatch='a/*'\nkv='1MiB'\nhttp=['https://b.example']\nfiles={geo='.'}\ntools=['**']\nsettings={a=1}\nsecrets=['s']")
	if got := g.For("/a/b", wasmtools.Needs{}); len(got.Values) > 0 || got.Settings != nil || len(got.Missing) > 0 || got.Waits {
		t.Errorf("got %+v", got)
	}
}

// TestValuesStay checks that equal configurations give equal grants, so that a reload without changes changes no tool.
func TestValuesStay(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte("[[grant]]\nmatch='a/*'\nkv='1MiB'\nhttp=['https://b.example']\ntools=['**']\nsettings={a=1}\nfiles={geo='/srv/geo'}\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	b := broker.New(c, broker.Options{})
	needs := wasmtools.Needs{"http": {Words: []string{"https://b.example"}}, "kv": {}, "settings": {Object: []byte(`{"type":"object"}`)}, "tools": {Words: []string{"x"}}, "files": {Words: []string{"geo"}}}
	store := memory.New()
	first, err := b.Make(c, store)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.Make(c, store)
	if err != nil {
		t.Fatal(err)
	}
	before := first.For("/a/b", needs).Values
	after := second.For("/a/b", needs).Values
	for i := range min(len(before), len(after)) {
		if !before[i].Equal(after[i]) {
			t.Errorf("%s: %+v and %+v differ", before[i].Module, before[i].Value, after[i].Value)
		}
	}
	if len(before) != len(after) || slices.ContainsFunc(before, func(g hostcall.Grant) bool { return g.Value == nil }) {
		t.Errorf("got %v, then %v", before, after)
	}
}
