package toolfile_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// section returns a section of a module.
func section(id byte, content string) string {
	return string([]byte{id, byte(len(content))}) + content
}

// panicking returns a module whose toolsrv_describe traps in a function with this name.
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

// TestExplain: if a fault of TinyGo breaks a module, its author is told what is wrong, and what to do.
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
				for _, want := range []string{`"reflect: unimplemented: AssignableTo with interface"`, "use toolsrv.AsType instead"} {
					if got := strings.Contains(err.Error(), want); got != c.explained {
						t.Errorf("%s: got %v\nit says %s: %t, want %t", what, err, want, got, c.explained)
					}
				}
			}
		})
	}
}

// TestAdvice: what compilers and libraries print is explained to authors.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, says string }{
		{`Get "https://x": dial tcp: lookup x on [::1]:53: write: Connection reset by peer`, "send requests with the SDK"},
		{"panic at /rustc/0/library/std/src/sys/time/unsupported.rs:35:9: time not implemented on this platform", "use toolsrv::now"},
		{"panic at /rustc/0/library/std/src/sys/thread/unsupported.rs:45:5: can't sleep", "no threads"},
		{`called Result::unwrap() on an Err value: Error { kind: Unsupported, message: "operation not supported on this platform" }`, "no files, sockets or threads"},
		{"main.go:37:25: attempted to start a goroutine without a scheduler", "build the tool"},
		{"panic: runtime error: timers not supported without a scheduler", "build the tool"},
		{"panic: unimplemented: (reflect.Type).MethodByName()", "TinyGo lacks this part"},
		{"panic: reflect: unimplemented: AssignableTo with interface", "use toolsrv.AsType"},
		{"Netdev not set", "no network of its own"},
		{"wasm error: unreachable\n\tmain.(*fmt.ss).errorString(i32,i32)", "use strconv"},
		{"open /x: errno 76", "granted directories"},
		{"panic: //go:wasmexport function did not finish", "never ends"},
		{"panic: index out of range", ""},
		{"", ""},
	} {
		if got := toolfile.Advice(c.text); !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
			t.Errorf("%q: got the advice %q, want %q in it", c.text, got, c.says)
		}
	}
}
