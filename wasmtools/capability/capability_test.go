package capability_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// grants returns those of a configuration.
func grants(t *testing.T, text string) *capability.Grants {
	t.Helper()
	c, err := config.Parse([]byte(text), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := capability.Open(c, capability.Options{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	g, err := b.Grants(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestMissing names what a tool needs and was not granted.
// Proves: Nothing without a grant
func TestMissing(t *testing.T) {
	t.Parallel()
	needs := wasmtools.Needs{
		HTTP: []string{"https://api.example.com", "https://b.example"}, KV: true, Secrets: []string{"a", "b"}, Config: []byte(`{"type":"object","required":["units"],"properties":{"units":{"enum":["metric","imperial"]}}}`),
		Tools: []string{"units/convert", "now"}, Files: []string{"geo", "maps"},
	}
	const all = "http https://api.example.com, http https://b.example, kv, secret a, secret b, tool units/convert, tool now, files geo, files maps, config (units: Field required)"
	for _, test := range []struct{ name, text, want string }{
		{"nothing granted", "", all},
		{"to another", "[[grant]]\nmatch='other/*'\nkv='1MiB'\nhttp=['https://b.example']", all},
		{"some", "[[grant]]\nmatch='a/*'\nkv='1MiB'\nhttp=['https://b.example']\nfiles={geo='.'}\ntools=['units/*']",
			"http https://api.example.com, secret a, secret b, tool now, files maps, config (units: Field required)"},
		{"several grants", "[[grant]]\nmatch='a/*'\nkv='1MiB'\nhttp=['https://b.example']\n[[grant]]\nmatch='a/b'\nhttp=['https://api.example.com']\nconfig={units=\"metric\"}",
			"secret a, secret b, tool units/convert, tool now, files geo, files maps"},
	} {
		if _, _, missing := grants(t, test.text).For("/a/b", needs); strings.Join(missing, ", ") != test.want {
			t.Errorf("%s: got %q, want %s", test.name, missing, test.want)
		}
	}
}

// TestNotDeclared grants everything to a tool that declares nothing: it gets nothing.
// Proves: Nothing without a grant
func TestNotDeclared(t *testing.T) {
	t.Parallel()
	g := grants(t, "[[grant]]\nmatch='a/*'\nkv='1MiB'\nhttp=['https://b.example']\nfiles={geo='.'}\ntools=['**']\nconfig={a=1}\nsecrets_visible=['s']")
	if values, settings, missing := g.For("/a/b", wasmtools.Needs{}); len(values) > 0 || settings != nil || len(missing) > 0 {
		t.Errorf("got %v, missing %q", values, missing)
	}
}

// TestValuesStay has the grants of two equal configurations equal: a reload that changes nothing changes no tool.
func TestValuesStay(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte("[[grant]]\nmatch='a/*'\nkv='1MiB'\nhttp=['https://b.example']\ntools=['**']\nconfig={a=1}\nfiles={geo='/srv/geo'}\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := capability.Open(c, capability.Options{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	needs := wasmtools.Needs{HTTP: []string{"https://b.example"}, KV: true, Config: []byte(`{"type":"object"}`), Tools: []string{"x"}, Files: []string{"geo"}}
	first, err := b.Grants(c)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.Grants(c)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := first.For("/a/b", needs)
	after, _, _ := second.For("/a/b", needs)
	for i := range min(len(before), len(after)) {
		if !before[i].Equal(after[i]) {
			t.Errorf("%s: %+v and %+v differ", before[i].Module, before[i].Value, after[i].Value)
		}
	}
	if len(before) != len(after) || slices.ContainsFunc(before, func(g hostabi.Grant) bool { return g.Value == nil }) {
		t.Errorf("got %v, then %v", before, after)
	}
}
