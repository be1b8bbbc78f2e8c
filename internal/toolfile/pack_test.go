package toolfile_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

func TestPack(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{})
	answer, described := testkit.Fixture(t, "catalog/answer"), testkit.Fixture(t, "catalog/described")
	pair := testkit.Fixture(t, "catalog/pair")
	for _, c := range []struct {
		name     string
		module   []byte
		manifest string // "" for none
		tools    string // joined by blanks
		says     string // a part of the error
	}{
		{"given", answer, manifestText(t, "a/b", "one", "two"), "one two", ""},
		{"with a byte order mark and space", answer, "\ufeff\n " + manifestText(t, "", "one") + "\n", "one", ""},
		{"in place of another manifest", sandboxtest.WithManifest(t, answer, "broken"), manifestText(t, "", "one"), "one", ""},
		{"in place of the module's own description", described, manifestText(t, "", "mine"), "mine", ""},
		{"more tools than are described", described, manifestText(t, "", "told", "more"), "", "it has 2 tools, but the module describes 1"},
		{"the tools in another order", pair, manifestText(t, "", "b", "a"), "", `tools[0] is "b", but the module itself describes that as tools[1]`},
		{"fewer tools, renamed", pair, manifestText(t, "", "mine"), "mine", ""},
		{"described by the module", described, "", "told", ""},
		{"described by the module, in place of an outdated section", sandboxtest.WithManifest(t, described, manifestText(t, "", "stale")), "", "told", ""},
		{"embedded already", sandboxtest.WithManifest(t, answer, manifestText(t, "", "one")), "", "one", ""},
		{"none", answer, "", "", "--manifest"},
		{"empty", answer, " ", "", "manifest: "},
		{"no JSON", answer, "{", "", "manifest: line 1"},
		{"of a later ABI", answer, `{"abi": 2}`, "", "abi is 2"},
		{"too large", answer, `"` + strings.Repeat("x", manifest.Max) + `"`, "", "1048576"},
		{"bad schema", answer, strings.Replace(manifestText(t, "", "one"), `"object"`, `"thing"`, 1), "", "tool one: parameters: at /type"},
		{"no object", answer, strings.Replace(manifestText(t, "", "one"), `"object"`, `"array"`, 1), "", "arguments are always an object"},
		{"the service's own path", answer, manifestText(t, "", "tools"), "", "/tools is reserved for the service"},
		{"endless operation id", answer, manifestText(t, strings.Repeat("n", 60), "endless"), "", "operation id"},
		{"several tools of a plain program", testkit.Fixture(t, "wat/good/command"), manifestText(t, "", "one", "two"), "", "a plain WASI program can be only one tool"},
		{"a plain program", testkit.Fixture(t, "wat/good/command"), manifestText(t, "", "one"), "one", ""},
		{"no module", []byte("\x7fELF"), manifestText(t, "", "one"), "", "not a WebAssembly module"},
		{"broken section in the module", sandboxtest.WithManifest(t, answer, "broken"), "", "", "custom section toolsrv.manifest: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var given []byte
			if c.manifest != "" {
				given = []byte(c.manifest)
			}
			packed, m, err := toolfile.Pack(t.Context(), engine, c.module, given)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) || packed != nil {
					t.Fatalf("got %d bytes, error %v; want none, and %q", len(packed), err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range m.Tools {
				names = append(names, tool.Name)
			}
			if got := strings.Join(names, " "); got != c.tools {
				t.Errorf("got the tools %q, want %q", got, c.tools)
			}
			// Listing the packed module runs nothing.
			loaded, err := toolfile.Load(engine, packed, toolfile.Place{})
			if err != nil || loaded.Manifest() == nil {
				t.Fatalf("load what was packed: %v", err)
			}
			loaded.Close()
			// Everything else is unchanged.
			bare, err := wasmbin.SetCustom(packed, manifest.Section, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, err := wasmbin.SetCustom(c.module, manifest.Section, nil)
			if err != nil || string(bare) != string(want) {
				t.Errorf("packing changed more than the manifest (%v)", err)
			}
		})
	}
}
