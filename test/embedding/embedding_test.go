// Package embedding_test plays a program of somebody else that embeds the server, with functions of its own for its tools. It is a module with
// another name, so that it can only import what others can.
package embedding_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// caller is a tool whose argument is a string, such as the name of a sensor. It passes the string, without the quotes, to a function of an import
// module, and returns the answer as its result or as its failure.
func caller(module, function string) []byte {
	const i32 = 0x7f
	signature := func(params, results int) []byte {
		b := append([]byte{0x60, byte(params)}, bytes.Repeat([]byte{i32}, params)...)
		return append(append(b, byte(results)), bytes.Repeat([]byte{i32}, results)...)
	}
	str := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	imported := func(module, name string, signature byte) []byte {
		return append(append(str(module), str(name)...), 0, signature)
	}
	code := []byte{1, 1, i32, // one local
		0x41, 0x80, 0x02, 0x10, 0, // input_read(256)
		0x41, 0x8b, 0x02, 0x10, 4, 0x41, 13, 0x6b, 0x10, 3, 0x22, 1, // n = function(267, input_size() - 13)
		0x41, 0x80, 0x08, 0x10, 5, // answer_read(1024)
		0x41, 0, 0x48, 0x04, 0x40, // if n < 0
		0x41, 0x80, 0x08, 0x41, 0, 0x20, 1, 0x6b, 0x10, 2, // fail(1024, -n)
		0x41, 1, 0x0f, 0x0b, // return 1
		0x41, 0x80, 0x08, 0x20, 1, 0x10, 1, // output_write(1024, n)
		0x41, 0, 0x0b}
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, items ...[]byte) {
		content := append([]byte{byte(len(items))}, bytes.Join(items, nil)...)
		size := binary.AppendUvarint(nil, uint64(len(content)))
		out = append(append(append(out, id), size...), content...)
	}
	section(1, signature(1, 0), signature(2, 0), signature(2, 1), signature(0, 1), signature(1, 1))
	section(2, imported("toolsrv_v1", "input_read", 0), imported("toolsrv_v1", "output_write", 1), imported("toolsrv_v1", "fail", 1),
		imported(module, function, 2), imported("toolsrv_v1", "input_size", 3), imported(module, "answer_read", 0))
	section(3, []byte{4})
	section(5, []byte{0, 1})
	section(7, append(str("memory"), 2, 0), append(str("toolsrv_call"), 0, 6))
	section(10, append([]byte{byte(len(code))}, code...))
	return out
}

// TestOwnCapability lets a program serve tools that read its sensors: as with every capability, the manifest must declare the need and the operator
// must grant it.
func TestOwnCapability(t *testing.T) {
	t.Parallel()
	own := sensors(func(name string) string { return `"` + name + ` shows 21"` })
	for _, test := range []struct{ name, needs, grants, arguments, want string }{
		{"declared and granted", `{"x-sensors":["hall","roof"]}`, `x-sensors = ["hall", "roof"]`, "hall", `"hall shows 21"`},
		{"declared only", `{"x-sensors":["hall"]}`, `x-sensors = ["roof"]`, "hall", "Tool /house/show was not granted what it needs: x-sensors hall"},
		{"granted only", `{}`, `x-sensors = ["hall"]`, "hall", "The tool does not declare that it needs x-sensors"},
		{"another one", `{"x-sensors":["hall"]}`, `x-sensors = ["hall", "roof"]`, "roof", `The tool does not declare that it needs the sensor "roof"`},
		{"a form of need that the capability doesn't have", `{"x-sensors":true}`, `x-sensors = ["hall"]`, "hall", "x-sensors (its need is not a list)"},
		{"an invalid name", `{"x-sensors":["a b"]}`, `x-sensors = ["hall"]`, "hall", `x-sensors ("a b" is not`},
		{"a capability that no program has", `{"x-other":{"a":1}}`, `x-sensors = ["hall"]`, "hall", "x-other (this server does not have it)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := show(t, own, test.needs, test.grants, test.arguments); !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// show serves a tool that reads a sensor, with needs and grants, and returns its answer.
func show(t *testing.T, own capability.Kind, needs, grants, name string) string {
	t.Helper()
	return serve(t, own, caller("sensors_v1", "read"), needs, "[[grant]]\nmatch = 'house/*'\n"+grants)(wasmtools.Everybody(), name)
}

// serve serves a tool with needs and a configuration, and returns a function that calls it.
func serve(t *testing.T, own capability.Kind, module []byte, needs, settings string) func(p *wasmtools.Principal, argument string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/tools", 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse([]byte("tools.cache_directory = 'cache'\n"+settings), dir, own)
	if err != nil {
		t.Fatal(err)
	}
	packed := pack(t, own, module, `{"abi":1,"namespace":"house","needs":`+needs+`,"tools":[{"name":"show","description":"Reads a sensor.","parameters":{"type":"object"}}]}`)
	if err := os.WriteFile(dir+"/tools/house.wasm", packed, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := service.Open(t.Context(), c, service.Options{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func(p *wasmtools.Principal, argument string) string {
		t.Helper()
		route, err := invoke.Find(s.Table().Current(), "/house/show", p)
		if err != nil {
			t.Fatal(err, s.Table().Current().Refused())
		}
		result, err := s.Invoker().Call(t.Context(), route, &wasmtools.Call{Arguments: []byte(`{"sensor":"` + argument + `"}`), Principal: p})
		if err != nil {
			return err.Error()
		}
		return string(result)
	}
}

// pack embeds a manifest.
func pack(t *testing.T, own capability.Kind, module []byte, manifest string) []byte {
	t.Helper()
	dir := t.TempDir()
	c, err := config.Parse([]byte("tools.directory = '.'\ntools.cache_directory = '.cache'"), dir, own)
	if err != nil {
		t.Fatal(err)
	}
	s, err := service.Open(t.Context(), c, service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	packed, err := s.Pack(t.Context(), module, []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// A desk is what a tool was granted by x-notes.
type desk struct {
	store   *capability.Store
	secrets *capability.Secrets
}

// notes is a capability that keeps a tool's last note for each caller, and uses a secret.
func notes() capability.Kind {
	const module = "notes_v1"
	return capability.Kind{
		Name: "x-notes", Module: module, Keeps: true,
		Set: &hostabi.Set{Module: module, Functions: []hostabi.Function{{Name: "note", Params: "ii", Results: "i", Do: note}, answer.Read()}},
		New: func() capability.Rule { return new(noteRule) },
		Open: func(capability.Host) capability.Configure {
			return func(c capability.Configuration) capability.Decide {
				return func(string, wasmtools.Need, []capability.Given) (any, []wasmtools.Missing) {
					if !c.Secrets.Has("stamp") || c.State == nil {
						return nil, []wasmtools.Missing{{Capability: "x-notes"}}
					}
					return &desk{c.State, c.Secrets}, nil
				}
			}
		},
	}
}

// A noteRule says only that there is a grant.
type noteRule struct{ Allowed bool }

func (r *noteRule) Keys(string) key.Table { return key.Table{"x-notes": key.Boolean(&r.Allowed)} }
func (*noteRule) Shown() []key.Shown      { return nil }

// note stores a text for the caller, and answers with the text before it.
func note(c *hostabi.Call, stack []uint64) {
	d, ok := c.Grant().(*desk)
	if !ok {
		answer.Fail(c, stack, answer.NotDeclared(c, "x-notes"))
		return
	}
	text := c.Read(stack[0], uint64(min(uint32(stack[1]), 1<<10)))
	stamp, err := d.secrets.Value("stamp")
	var before []byte
	c.Wait(func(ctx context.Context) {
		who := capability.Principal(c).String()
		if err == nil {
			before, _, err = d.store.Get(ctx, who)
		}
		if err == nil {
			err = d.store.Set(ctx, who, append([]byte(stamp), text...), time.Hour)
		}
	})
	if err != nil {
		answer.Fail(c, stack, answer.Failf(answer.Unavailable, "The note can't be kept."))
		return
	}
	answer.Give(c, stack, fmt.Appendf(nil, "%q", d.secrets.Without(before, "stamp")))
}

// TestOwnCapabilityKeeps checks that a program's own capability can keep something for each caller, and use a secret that no tool sees.
func TestOwnCapabilityKeeps(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/stamp"
	if err := os.WriteFile(file, []byte("the-stamp-of-the-house"), 0o600); err != nil {
		t.Fatal(err)
	}
	call := serve(t, notes(), caller("notes_v1", "note"), `{"x-notes":true}`, "[secrets.files]\nstamp = '"+file+"'\n[[grant]]\nmatch = 'house/*'\nx-notes = true")
	ada, err := wasmtools.NewPrincipal("ada", "test", "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		who        *wasmtools.Principal
		note, want string
	}{
		{ada, "milk", `""`}, {ada, "bread", `"[secret]milk"`}, {wasmtools.Everybody(), "tea", `""`}, {ada, "salt", `"[secret]bread"`},
	} {
		if got := call(step.who, step.note); got != step.want {
			t.Errorf("%s notes %s: got %s, want %s", step.who, step.note, got, step.want)
		}
	}
}

// TestOwnCapabilityRefused checks that a program can't add a capability that could be confused with another: then no configuration can be read.
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
		{"a name that every server has", change(func(k *capability.Kind) { k.Name = "kv" }), `two capabilities have the name "kv"`},
		{"an invalid name", change(func(k *capability.Kind) { k.Name = "x-a b" }), "is not a valid name"},
		{"no name", change(func(k *capability.Kind) { k.Name = "x-" }), "is not a valid name"},
		{"the same twice", []capability.Kind{good, good}, `two capabilities have the name "x-sensors"`},
		{"another capability's functions", change(func(k *capability.Kind) { k.Module, k.Set = "toolsrv_kv_v1", nil }), "share the import module toolsrv_kv_v1"},
		{"grants for functions that the capability doesn't have", change(func(k *capability.Kind) { k.Module = "others_v1" }), "are in the import module sensors_v1"},
		{"another capability's key", []capability.Kind{good, other}, "the key x-sensors of a grant belongs to x-sensors and to x-other"},
		{"no module", change(func(k *capability.Kind) { k.Module = "" }), "lacks its Module"},
		{"a missing Open", change(func(k *capability.Kind) { k.Open = nil }), "lacks its Module, New or Open"},
	} {
		if _, err := config.Parse(nil, t.TempDir(), test.own...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
}
