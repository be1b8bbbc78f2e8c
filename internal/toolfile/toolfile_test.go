package toolfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// built returns a module with built tools, and closes it with the test.
func built(t *testing.T, content []byte, l limits.Limits) *toolfile.Module {
	t.Helper()
	m, err := toolfile.Load(sandboxtest.Engine(t, sandbox.Config{}), content, toolfile.Place{Source: "x.wasm"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if err := m.Build(func(string) limits.Limits { return l }, nil); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLoad(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{})
	answer := testkit.Fixture(t, "catalog/answer")
	for _, c := range []struct {
		name, folder string
		content      []byte
		path         string // path of the first tool
		says         string // a part of the error
	}{
		{"its own namespace", "folder", sandboxtest.WithManifest(t, answer, manifestText(t, "own", "one")), "/own/one", ""},
		{"its folder's", "a/b", sandboxtest.WithManifest(t, answer, manifestText(t, "", "one")), "/a/b/one", ""},
		{"none", "", sandboxtest.WithManifest(t, answer, manifestText(t, "", "one")), "/one", ""},
		{"a folder that is not a namespace", "a b", sandboxtest.WithManifest(t, answer, manifestText(t, "", "one")), "", "its folder is its namespace"},
		{"the namespace wins over such a folder", "a b", sandboxtest.WithManifest(t, answer, manifestText(t, "own", "one")), "/own/one", ""},
		{"no manifest", "", answer, "", "`toolsrv pack`"},
		{"empty manifest", "", sandboxtest.WithManifest(t, answer, ""), "", "custom section toolsrv.manifest"},
		{"described", "a", testkit.Fixture(t, "catalog/described"), "/a/told", ""},
		{"described, in a folder that is not a namespace", "a b", testkit.Fixture(t, "catalog/described"), "", "its folder is its namespace"},
		{"not for this sandbox", "", sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/refused/import_module"), manifestText(t, "", "one")), "", "is not offered"},
		{"the service's own path", "", sandboxtest.WithManifest(t, answer, manifestText(t, "", "healthz")), "", "/healthz is reserved for the service"},
	} {
		m, err := toolfile.Load(engine, c.content, toolfile.Place{Folder: c.folder, Source: "x.wasm"})
		if err == nil {
			defer m.Close()
			if c.name == "described" {
				if err := m.Build(nil, nil); err == nil || m.Manifest() != nil {
					t.Errorf("%s: it has tools before it was described", c.name)
				}
			}
			if err = m.Describe(t.Context()); err == nil {
				err = m.Build(nil, nil)
			}
		}
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: got the error %v, want %q", c.name, err, c.says)
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.says == "":
			tool := m.Tools()[0]
			if tool.Path() != c.path || tool.Source != "x.wasm" || tool.Digest != m.Digest() {
				t.Errorf("%s: got %s of %s, want %s", c.name, tool.Path(), tool.Source, c.path)
			}
		}
	}
}

// TestLoadKeepsNothing overwrites a file's bytes once it is loaded: its tools do not change.
func TestLoadKeepsNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"calc/calc.wasm", "json/json.wasm", "notes/notes.wasm", "plain-c/plain-c.wasm"} {
		content := testkit.Read(t, testkit.Root(t), "examples", name)
		var told [2]string
		for i := range told {
			m, err := toolfile.Load(sandboxtest.Engine(t, sandbox.Config{}), content, toolfile.Place{Source: "x.wasm"})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if i == 1 {
				for k := range content {
					content[k] = '#'
				}
			}
			if err := errors.Join(m.Compile(t.Context()), m.Build(nil, nil)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, tool := range m.Tools() {
				out, err := tool.Caller.Call(t.Context(), &wasmtools.Call{Arguments: []byte(`{"expression": "2 * 3", "text": "[1, 2]"}`)})
				told[i] += fmt.Sprintf("%s %s %s %s %s %s %v\n", tool.Path(), tool.Title, tool.Description, tool.Digest, tool.Parameters.JSON(), out, err)
			}
		}
		if told[0] != told[1] || told[0] == "" {
			t.Errorf("%s: got\n%s\nwant\n%s", name, told[1], told[0])
		}
	}
}

// TestSchemasAreBounded refuses manifests of a few kilobytes in which each tool takes megabytes, or a tenth of a second, since a file may have a
// thousand tools.
// Proves: Limits hold, one by one and in sum
func TestSchemasAreBounded(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{})
	answer := testkit.Fixture(t, "catalog/answer")
	refs := func(format, last string) string {
		var parts []string
		for i := range 10 {
			parts = append(parts, fmt.Sprintf(format, 'a'+i, 'b'+i))
		}
		return strings.Join(append(parts, `"k":`+last), ",")
	}
	var large []string
	for i := range 32 { // different ones, since equal schemas are compiled only once
		large = append(large, fmt.Sprintf(`{"pattern":"(?:a?){%d}"}`, 999-i))
	}
	patterns := `{"type":"object","properties":{"p":{"allOf":[` + strings.Join(large, ",") + `]}}}`
	doubling := `{"type":"object","properties":{"p":{"$ref":"#/$defs/a"}},"$defs":{` + refs(`"%c":{"default":{},"properties":{"x":{"$ref":"#/$defs/%[2]c"},"y":{"$ref":"#/$defs/%[2]c"}}}`, `{"default":"`+strings.Repeat("x", 50)+`"}`) + `}}`
	costly := `{"type":"object","properties":{"p":{"default":[` + strings.Repeat("0,", 300) + `0],"items":{"$ref":"#/$defs/a"}}},"$defs":{` + refs(`"%c":{"allOf":[{"$ref":"#/$defs/%[2]c"},{"$ref":"#/$defs/%[2]c"}]}`, `{}`) + `}}`
	for _, c := range []struct {
		name, schema, says string
	}{
		{"patterns", patterns, "the patterns are too large together"},
		{"defaults", doubling, "the defaults, filled in, are too long together"},
		{"costly defaults", costly, "takes too much work"},
	} {
		for tools, says := range map[int]string{1: "", 100: c.says} {
			var list []string
			for i := range tools {
				list = append(list, fmt.Sprintf(`{"name":"t%d","description":"Does it.","parameters":%s}`, i, c.schema))
			}
			m, err := toolfile.Load(engine, sandboxtest.WithManifest(t, answer, `{"abi":1,"tools":[`+strings.Join(list, ",")+`]}`), toolfile.Place{Source: "x.wasm"})
			if err == nil {
				m.Close()
			}
			if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
				t.Errorf("%s of %d tools: got %v, want %q", c.name, tools, err, says)
			}
		}
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	text := strings.Replace(manifestText(t, "", "echo"), `{"type":"object"}`,
		`{"type":"object","properties":{"n":{"type":"integer","default":7}},"additionalProperties":false}`, 1)
	m := built(t, sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/echo"), text), limits.Limits{Input: 20})
	for _, c := range []struct {
		name, body, want string
		code             wasmtools.Code
	}{
		{"as it came", ` {"n": 1} `, ` {"n": 1} `, ""},
		{"with the default", `{}`, `{"n":7}`, ""},
		{"nothing", "", `{"n":7}`, ""},
		{"not valid", `{"n":"x"}`, "", wasmtools.CodeInvalidArguments},
		{"no object", `[]`, "", wasmtools.CodeInvalidArguments},
		{"too large", `{"n":1              }`, "", wasmtools.CodeInputTooLarge},
	} {
		var times wasmtools.Times
		got, err := call(t, m, c.body, &times)
		failed, _ := errors.AsType[*wasmtools.Error](err)
		if string(got) != c.want || (failed == nil) != (c.code == "") || failed != nil && failed.Code != c.code {
			t.Errorf("%s: got %q, %v; want %q, %q", c.name, got, err, c.want, c.code)
		}
		if (times.Run > 0) != (c.code == "") {
			t.Errorf("%s: got the times %+v", c.name, times)
		}
	}
}

// call calls the first tool of a module as a server does.
func call(t *testing.T, m *toolfile.Module, body string, times *wasmtools.Times) ([]byte, error) {
	t.Helper()
	return invoker.New(invoker.Options{}).Call(t.Context(), invoker.RouteTo(m.Tools()[0]),
		&wasmtools.Call{Arguments: []byte(body), Principal: wasmtools.Self(), Times: times})
}

func TestCallTimeout(t *testing.T) {
	t.Parallel()
	m := built(t, sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/hostile/spin"), manifestText(t, "", "spin")), limits.Limits{Timeout: 20 * time.Millisecond})
	_, err := call(t, m, "", nil)
	if failed, _ := errors.AsType[*wasmtools.Error](err); failed == nil || failed.Code != wasmtools.CodeToolTimeout {
		t.Errorf("got %v, want %s", err, wasmtools.CodeToolTimeout)
	}
}
