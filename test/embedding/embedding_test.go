// Package embedding_test has a program that embeds the server, with functions of its own for its tools.
package embedding_test

import (
	"os"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// reader is a tool that reads the sensor whose name its arguments are, without their quotes: toolsrv_call takes the answer of read, and returns
// it as its result, or as its failure.
func reader() []byte {
	i32 := byte(0x7f)
	function := func(params, results []byte) []byte {
		bytes := append([]byte{0x60, byte(len(params))}, params...)
		return append(append(bytes, byte(len(results))), results...)
	}
	imported := func(module, name string, kind byte) []byte {
		return append(append(wasmtest.Str(module), wasmtest.Str(name)...), 0, kind)
	}
	code := wasmtest.Bytes(1, 1, i32, // one local
		0x41, 0x80, 0x02, 0x10, 0, // input_read(256)
		0x41, 0x8b, 0x02, 0x10, 4, 0x41, 13, 0x6b, 0x10, 3, 0x22, 1, // n = read(267, input_size() - 13)
		0x41, 0x80, 0x08, 0x10, 5, // answer_read(1024)
		0x41, 0, 0x48, 0x04, 0x40, // if n < 0
		0x41, 0x80, 0x08, 0x41, 0, 0x20, 1, 0x6b, 0x10, 2, // fail(1024, -n)
		0x41, 1, 0x0f, 0x0b, // return 1
		0x41, 0x80, 0x08, 0x20, 1, 0x10, 1, // output_write(1024, n)
		0x41, 0, 0x0b)
	return wasmtest.Module(
		wasmtest.Section(1, wasmtest.Vec(function([]byte{i32}, nil), function([]byte{i32, i32}, nil), function([]byte{i32, i32}, []byte{i32}), function(nil, []byte{i32}), function([]byte{i32}, []byte{i32}))),
		wasmtest.Section(2, wasmtest.Vec(imported("toolsrv_v1", "input_read", 0), imported("toolsrv_v1", "output_write", 1), imported("toolsrv_v1", "fail", 1),
			imported("sensors_v1", "read", 2), imported("toolsrv_v1", "input_size", 3), imported("sensors_v1", "answer_read", 0))),
		wasmtest.Section(3, wasmtest.Vec([]byte{4})),
		wasmtest.Section(5, wasmtest.Vec([]byte{0, 1})),
		wasmtest.Section(7, wasmtest.Vec(append(wasmtest.Str("memory"), 2, 0), append(wasmtest.Str("toolsrv_call"), 0, 6))),
		wasmtest.Section(10, wasmtest.Vec(append(wasmtest.LEB(len(code)), code...))),
	)
}

// TestOwnCapability has a program serve tools that read its sensors: as with every capability, a tool needs the manifest's word and the
// operator's.
func TestOwnCapability(t *testing.T) {
	t.Parallel()
	own := sensors(func(name string) string { return `"` + name + ` shows 21"` })
	for _, test := range []struct{ name, needs, grants, arguments, want string }{
		{"declared and granted", `{"x-sensors":["hall","roof"]}`, `x-sensors = ["hall", "roof"]`, "hall", `"hall shows 21"`},
		{"declared only", `{"x-sensors":["hall"]}`, `x-sensors = ["roof"]`, "hall", "Tool /house/show was not granted what it needs: x-sensors hall"},
		{"granted only", `{}`, `x-sensors = ["hall"]`, "hall", "The tool does not declare that it needs x-sensors"},
		{"another one", `{"x-sensors":["hall"]}`, `x-sensors = ["hall", "roof"]`, "roof", `The tool does not declare that it needs the sensor "roof"`},
		{"a form that it has not", `{"x-sensors":true}`, `x-sensors = ["hall"]`, "hall", "x-sensors (its need is not a list)"},
		{"a name that it has not", `{"x-sensors":["a b"]}`, `x-sensors = ["hall"]`, "hall", `x-sensors ("a b" is not`},
		{"one that nobody has", `{"x-other":{"a":1}}`, `x-sensors = ["hall"]`, "hall", "x-other (this server does not have it)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := show(t, own, test.needs, test.grants, test.arguments); !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// show serves the reader with needs and grants, has it read a sensor, and returns what it answers.
func show(t *testing.T, own capability.Kind, needs, grants, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/tools", 0o700); err != nil {
		t.Fatal(err)
	}
	testkit.Put(t, dir, "tools/house.wasm", sandboxtest.WithManifest(t, reader(), `{"abi":1,"namespace":"house","needs":`+needs+
		`,"tools":[{"name":"show","description":"Reads a sensor.","parameters":{"type":"object"}}]}`))
	c, err := config.Parse([]byte("tools.cache_directory = 'cache'\n[[grant]]\nmatch = 'house/*'\n"+grants), dir, own)
	if err != nil {
		t.Fatal(err)
	}
	s, err := service.Open(t.Context(), c, service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	route, err := invoke.Find(s.Table().Current(), "/house/show", wasmtools.Everybody())
	if err != nil {
		t.Fatal(err, s.Table().Current().Refused())
	}
	result, err := s.Invoker().Call(t.Context(), route, &wasmtools.Call{Arguments: []byte(`{"sensor":"` + name + `"}`), Principal: wasmtools.Everybody()})
	if err != nil {
		return err.Error()
	}
	return string(result)
}

// TestOwnSuggestion has an operator told what to grant, and of what he grants to nobody who needs it, for a capability of a program's own, too.
func TestOwnSuggestion(t *testing.T) {
	t.Parallel()
	needs := wasmtools.Needs{"kv": {}, "x-sensors": {Words: []string{"hall"}}, "x-other": {}}
	c := config.Default()
	c.Capabilities = []capability.Kind{sensors(nil)}
	want := "[[grant]]\nmatch = \"house/*\"\nkv = \"16MiB\"\nx-sensors = [\"hall\"]\n# x-other = ...\n"
	if got := broker.Suggest("house/*", needs, builtin.With(c.Capabilities)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := config.Parse([]byte("[[grant]]\nmatch = 'a'\nx-sensors = 1"), ""); err == nil || !strings.Contains(err.Error(), `unknown key`) {
		t.Errorf("a program that does not have it takes its key: %v", err)
	}
}

// TestOwnCapabilityRefused has a program bring along a capability that could be taken for another one. Neither a file of configuration is read
// then, nor a service opened.
// Proves: Nothing without a grant
func TestOwnCapabilityRefused(t *testing.T) {
	t.Parallel()
	good := sensors(nil)
	change := func(f func(k *capability.Kind)) []capability.Kind {
		k := sensors(nil)
		f(&k)
		return []capability.Kind{k}
	}
	other := sensors(nil)
	other.Name, other.Module, other.Set = "x-other", "other_v1", nil
	for _, test := range []struct {
		name string
		own  []capability.Kind
		want string
	}{
		{"a name without x-", change(func(k *capability.Kind) { k.Name = "sensors" }), "must begin with x-"},
		{"a name of every server", change(func(k *capability.Kind) { k.Name = "kv" }), `two capabilities have the name "kv"`},
		{"a name that is not one", change(func(k *capability.Kind) { k.Name = "x-a b" }), "is not a valid name"},
		{"no name", change(func(k *capability.Kind) { k.Name = "x-" }), "is not a valid name"},
		{"the same twice", []capability.Kind{good, good}, `two capabilities have the name "x-sensors"`},
		{"the functions of another", change(func(k *capability.Kind) { k.Module, k.Set = "toolsrv_kv_v1", nil }), "have the same import module toolsrv_kv_v1"},
		{"grants for functions that it has not", change(func(k *capability.Kind) { k.Module = "others_v1" }), "are in the import module sensors_v1"},
		{"a key of another", []capability.Kind{good, other}, "the key x-sensors of a grant belongs to x-sensors and to x-other"},
		{"no module", change(func(k *capability.Kind) { k.Module = "" }), "lacks its Module"},
		{"nothing that opens it", change(func(k *capability.Kind) { k.Open = nil }), "lacks its Module, New or Open"},
	} {
		if _, err := config.Parse(nil, t.TempDir(), test.own...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: a configuration: got %v, want %s", test.name, err, test.want)
		}
		c := config.Default()
		c.Tools.Directory, c.Capabilities = t.TempDir(), test.own
		if s, err := service.Open(t.Context(), c, service.Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: a service: got %v, want %s", test.name, err, test.want)
			if s != nil {
				s.Close()
			}
		}
	}
}
