package toolfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/granted"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A byPath grants settings, by the paths of tools.
type byPath map[string]string

func (b byPath) For(path string, _ wasmtools.Needs) (g granted.Tool) {
	if s, ok := b[path]; ok {
		g.Settings = []byte(s)
	}
	return g
}

// TestSettings gives two tools of a module equal or different settings, and changes them. Each tool reads its own settings, when it starts and in
// its calls. A tool with unchanged settings stays. A replaced tool keeps its settings for calls that still use it.
// Proves: Nothing without a grant
func TestSettings(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{})
	const declared = `"needs":{"settings":{"type":"object"}},"abi":1`
	content := sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/configured"), strings.Replace(manifestText(t, "s", "start", "call"), `"abi":1`, declared, 1))
	m, err := toolfile.Load(engine, content, toolfile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	var all []*wasmtools.Tool // the tools of all builds
	var want []string
	read := func(tool *wasmtools.Tool) string {
		result, err := tool.Call(t.Context(), &wasmtools.Call{Arguments: []byte(`{}`)})
		if err != nil {
			return err.Error()
		}
		return string(result)
	}
	for _, test := range []struct {
		name        string
		start, call string // settings
		kept        string // which tools stay
		modules     int    // number of modules in the engine afterwards
	}{
		{"the same", `{"n":1}`, `{"n":1}`, "false false", 2},
		{"again", `{"n":1}`, `{"n":1}`, "true true", 2},
		{"of one", `{"n":1}`, `{"n":2}`, "true false", 3},
		{"of both", `{"n":3}`, `{"n":4}`, "false false", 3},
		{"exchanged", `{"n":4}`, `{"n":3}`, "false false", 3},
		{"none", "", `{}`, "false false", 2},
	} {
		grants := byPath{"/s/call": test.call}
		if test.start != "" {
			grants["/s/start"] = test.start
		}
		before := m.Tools()
		if err := m.Build(nil, grants); err != nil {
			t.Fatal(err)
		}
		tools := m.Tools()
		if kept := fmt.Sprint(before != nil && before[0] == tools[0], before != nil && before[1] == tools[1]); kept != test.kept {
			t.Errorf("%s: tools that stayed: %s, want %s", test.name, kept, test.kept)
		}
		all, want = append(all, tools...), append(want, test.start, test.call)
		for i, tool := range all {
			got := read(tool)
			if want[i] == "" && strings.Contains(got, `"code":"not_granted"`) {
				continue
			}
			if got != want[i] {
				t.Errorf("%s: %s of build %d: got %s, want %s", test.name, tool.Name, i/2, got, want[i])
			}
		}
		if got := engine.State().Modules; got != test.modules {
			t.Errorf("%s: the engine has %d modules, want %d", test.name, got, test.modules)
		}
	}
	m.Close()
	if got := engine.State().Modules; got != 0 {
		t.Errorf("the engine has %d modules after Close", got)
	}
}
