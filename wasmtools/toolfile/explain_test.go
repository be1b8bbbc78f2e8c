package toolfile_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
)

// section returns a section of a module.
func section(id byte, content string) string {
	return string([]byte{id, byte(len(content))}) + content
}

// panicking returns a module whose toolsrv_describe traps in a function of that name.
func panicking(function string) []byte {
	text := func(s string) string { return string([]byte{byte(len(s))}) + s }
	const trap = "\x03\x00\x00\x0b" // unreachable, without locals
	return []byte("\x00asm\x01\x00\x00\x00" +
		section(1, "\x02\x60\x00\x01\x7f\x60\x01\x7f\x01\x7f") + // () -> i32, and i32 -> i32
		section(3, "\x02\x00\x01") +
		section(5, "\x01\x00\x01") + // a page of memory
		section(7, "\x03"+text("memory")+"\x02\x00"+text("toolsrv_describe")+"\x00\x00"+text("toolsrv_call")+"\x00\x01") +
		section(10, "\x02"+trap+trap) +
		section(0, text("name")+section(1, "\x01\x00"+text(function))))
}

// TestExplain has the author of a module that a fault of TinyGo breaks learn what the matter is, and what to do.
func TestExplain(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{})
	for _, c := range []struct {
		name, function string
		explained      bool
	}{
		{"the fault", "(*internal/reflectlite.RawType).AssignableTo", true},
		{"another", "main.main", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			content := panicking(c.function)
			_, _, packed := toolfile.Pack(t.Context(), engine, content, nil)
			m, err := toolfile.Load(engine, content, toolfile.Place{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			for what, err := range map[string]error{"Pack": packed, "Describe": m.Describe(t.Context())} {
				if err == nil {
					t.Errorf("%s: got no error", what)
					continue
				}
				for _, want := range []string{`"reflect: unimplemented: AssignableTo with interface"`, "write toolsrv.AsType for errors.As"} {
					if got := strings.Contains(err.Error(), want); got != c.explained {
						t.Errorf("%s: got %v\nit says %s: %t, want %t", what, err, want, got, c.explained)
					}
				}
			}
		})
	}
}
