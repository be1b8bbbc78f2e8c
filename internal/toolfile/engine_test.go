package toolfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// withSection returns a module that describes itself, and has an engine section.
func withSection(t *testing.T, section string) []byte {
	t.Helper()
	module, err := wasmbin.SetCustom(testkit.Fixture(t, "catalog/described"), manifest.EngineSection, []byte(section))
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// TestEngine checks that the engine section of a module becomes a member of the manifest, whether the module is packed or run.
func TestEngine(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{})
	module := withSection(t, `{"name":"python","version":"cpython 3.13.5","revision":"1f0c","capacity":1,"more":{}}`)
	const want = "cpython 3.13.5 (1f0c)"
	_, packed, err := toolfile.Pack(t.Context(), engine, module, nil)
	if err != nil || packed.Engine != want || packed.Tools[0].Name != "told" {
		t.Errorf("packed: got %+v, %v; want the engine %q", packed, err, want)
	}
	loaded, err := toolfile.Load(engine, module, toolfile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	if err := loaded.Describe(t.Context()); err != nil || loaded.Manifest().Engine != want {
		t.Errorf("described: got %+v, %v; want the engine %q", loaded.Manifest(), err, want)
	}
	_, given, err := toolfile.Pack(t.Context(), engine, module, []byte(manifestText(t, "", "mine")))
	if err != nil || given.Engine != "" {
		t.Errorf("with a manifest that is given: got %+v, %v; want no engine", given, err)
	}
}

// TestScriptSpins describes a script that computes without end: the error is about the script rather than the interpreter's trace. It names no place
// in the script, so it is not a ScriptError, and the caller puts the file's name before it.
func TestScriptSpins(t *testing.T) {
	t.Parallel()
	spin, err := wasmbin.SetCustom(testkit.Fixture(t, "wat/hostile/describe_spin"), manifest.EngineSection, []byte(`{"version":"a","revision":"b"}`))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = toolfile.Pack(t.Context(), sandboxtest.Engine(t, sandbox.Config{DescribeFuel: sandboxtest.Briefly}), spin, nil)
	script := (*toolfile.ScriptError)(nil)
	if err == nil || !strings.HasPrefix(err.Error(), "the script can't be started: The tool ran for more than") || strings.Contains(err.Error(), "wasm stack") || errors.As(err, &script) {
		t.Errorf("got %v", err)
	}
}

func TestEngineHostile(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{})
	twice := append(withSection(t, `{"version":"a","revision":"b"}`), 0, 15, 14)
	for name, c := range map[string]struct {
		module []byte
		says   string
	}{
		"nothing":             {withSection(t, ""), "unexpected end"},
		"no JSON":             {withSection(t, "python"), "invalid character"},
		"no object":           {withSection(t, `["a"]`), "cannot unmarshal"},
		"deep":                {withSection(t, strings.Repeat("[", 4000)), "custom section toolsrv.engine: "},
		"no version":          {withSection(t, `{"revision":"b"}`), `"" is not a version`},
		"no revision":         {withSection(t, `{"version":"a"}`), `"" is not a version`},
		"a number":            {withSection(t, `{"version":1,"revision":"b"}`), "cannot unmarshal number"},
		"control":             {withSection(t, `{"version":"a\u001b[31m","revision":"b"}`), "is not a version"},
		"too long":            {withSection(t, `{"version":"`+strings.Repeat("a", 5000)+`","revision":"b"}`), "at most 4096 are allowed"},
		"two engine sections": {append(twice, "toolsrv.engine"...), "two custom sections"},
	} {
		m, err := toolfile.Load(engine, c.module, toolfile.Place{})
		if err == nil {
			m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: load: got %v, want %q", name, err, c.says)
		}
		if _, _, err := toolfile.Pack(t.Context(), engine, c.module, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: pack: got %v, want %q", name, err, c.says)
		}
	}
}

// TestDescribedBefore: a later engine with the same cache knows the description of a module at once.
func TestDescribedBefore(t *testing.T) {
	t.Parallel()
	dir, module := t.TempDir(), withSection(t, `{"name":"python","version":"cpython 3.13.5","revision":"1f0c","capacity":1}`)
	for n := range 2 {
		m, err := toolfile.Load(sandboxtest.Engine(t, sandbox.Config{CacheDir: dir}), module, toolfile.Place{Folder: "x"})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if known := m.Manifest() != nil; known != (n == 1) {
			t.Errorf("load %d: the manifest is known without Describe: %v", n, known)
		}
		if !m.Describes() {
			t.Errorf("load %d: the manifest is taken for one that is embedded", n)
		}
		if err := m.Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := m.Manifest(); got.Tools[0].Name != "told" || got.Engine != "cpython 3.13.5 (1f0c)" {
			t.Errorf("load %d: got %+v", n, got)
		}
	}
}
