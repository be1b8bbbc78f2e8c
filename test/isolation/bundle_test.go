package isolation_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// bundle returns a valid bundle: the number of files, and their names and contents.
func bundle(count uint32, files ...string) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("TSB1"), count)
	for i := 0; i+1 < len(files); i += 2 {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(files[i])))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(files[i+1])))
		b = append(append(b, files[i]...), files[i+1]...)
	}
	return b
}

// lengths returns a bundle of one file that claims these lengths.
func lengths(name, data uint32, rest string) []byte {
	b := binary.LittleEndian.AppendUint32(bundle(1), name)
	return append(binary.LittleEndian.AppendUint32(b, data), rest...)
}

// A hostile is a bundle that nobody would write by accident.
type hostile struct {
	name    string
	content []byte
}

// ended reports whether a call ended with an error for its author, or at a limit. Two bundles may trap: the one that overlaps the engine's own data, and
// the one whose script ends the engine.
func (h *hostile) ended(err error) bool {
	var e *sandbox.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Outcome {
	case sandbox.ToolError, sandbox.ToolTimeout, sandbox.ToolFuel, sandbox.ToolMemory:
		return true
	case sandbox.ToolTrapped:
		return h.name == "more than the region" || h.name == "script that ends itself"
	}
	return false
}

// TestBundles gives the engines hostile bundles. Only the engine reads them, in its sandbox: describing and calling the tool end with an error, and
// the engine serves others as before.
func TestBundles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	for _, l := range []language{python, javascript} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			e := l.need(t)
			host := host(t)
			long := strings.Repeat("x", 1<<16)
			for i, test := range []hostile{
				{"nothing", nil},
				{"zeros", make([]byte, 100)},
				{"half the magic", []byte("TS")},
				{"other magic", append([]byte("TSB2"), bundle(1, l.script, "")[4:]...)},
				{"a missing number of files", []byte("TSB1\x01\x00")},
				{"no files", bundle(0)},
				{"fewer files than the bundle claims", bundle(2, l.script, "x")},
				{"very many files", bundle(1<<32-1, l.script, "x")},
				{"no name", bundle(1, "", "x")},
				{"name of zeros", bundle(1, "\x00\x00", "x")},
				{"name that is not UTF-8", bundle(1, "\xff\xfe.py", "x")},
				{"long name", bundle(1, long, "x")},
				{"two files with one name", bundle(2, l.script, "", l.script, "x = (")},
				{"name beyond the end", lengths(1000, 0, "x")},
				{"data beyond the end", lengths(1, 1000, "xy")},
				{"data beyond the region", lengths(1, uint32(e.Capacity), "xy")},
				{"name of 4 GiB", lengths(1<<32-1, 1, "xy")},
				{"data of 4 GiB", lengths(1, 1<<32-1, "xy")},
				{"lengths whose sum overflows to zero", lengths(1<<31, 1<<31, "xy")},
				{"lengths that wrap around to the beginning", lengths(1<<32-8, 8, "xy")},
				{"full to the last byte", bundle(1, l.script, strings.Repeat(" ", e.Capacity-16-len(l.script)))},
				{"more than the region", bundle(1, l.script, strings.Repeat("(", e.Capacity))},
				{"script of zeros", bundle(1, l.script, string(make([]byte, 1000)))},
				{"script that is not UTF-8", bundle(1, l.script, "\xff\xfe\x00x")},
				{"script of brackets", bundle(1, l.script, strings.Repeat("[", 100_000))},
				{"a script that is only an operator", bundle(1, l.script, strings.Repeat("-", 100_000))},
				{"script without tools", bundle(1, l.script, "")},
				{"a source map that is not one", bundle(3, l.script, "undefined_name", "source.map", "\xff;;;,,,"+long, "tools.json", "{[")},
				{"package that is a file", bundle(3, l.script, "import a.b", "a", "x", "a/b.py", "x = 1")},
				{"script that ends itself", bundle(1, l.script, "import os; os._exit(0)")},
				{"script without end", bundle(1, l.script, map[language]string{python: "while True: pass", javascript: "for (;;);"}[l])},
				{"start that recurses", bundle(1, l.script, map[language]string{python: "def f(): f()\nf()", javascript: "(function f() { f(); })()"}[l])},
				{"import of itself", bundle(1, l.script, map[language]string{python: "import script", javascript: `import "./script.js";`}[l])},
			} {
				if i%4 != 0 && testkit.Race(t) { // the whole engine is read for each bundle, on one goroutine
					continue
				}
				m, err := wasmbin.Parse(e.Module())
				if err != nil {
					t.Fatal(err)
				}
				address, ok := m.Constant(engine.Region)
				if !ok {
					t.Fatal("the engine has no region")
				}
				module, err := m.AppendData(address, test.content)
				if err != nil {
					t.Fatal(err)
				}
				p := sandboxtest.Load(t, host, module)
				if output, err := p.Describe(t.Context()); !test.ended(err) {
					t.Errorf("%s: described as %s, %v", test.name, clip(string(output)), err)
				} else {
					t.Logf("%-40s %q", test.name, clip(err.Error()))
				}
				if output, err := call(t, p, "{}", limits.Limits{Timeout: time.Second}); !test.ended(err) {
					t.Errorf("%s: a call gets %s, %v", test.name, clip(output), err)
				}
			}
			// The bundles have not changed the engine itself.
			if output, err := call(t, l.load(t, host, well[l]), "{}", ample); err != nil || !bytes.Equal([]byte(output), []byte(`"well"`)) {
				t.Errorf("afterwards a script answers %s, %v", output, err)
			}
		})
	}
}
