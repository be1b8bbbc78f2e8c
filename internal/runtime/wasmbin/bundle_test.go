package wasmbin_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

const bundleName = "toolsrv_bundle"

// Parts from which engines are built: the global with the value 1024 is the address of the bundle.
var (
	bundleGlobal = section(6, vec(b(0x7f, 0, 0x41, 0x80, 0x08, 0x0b)))
	bundleExport = section(7, vec(append(str(bundleName), 3, 0)))
	ownData      = section(11, vec(slices.Concat(b(0, 0x41, 0, 0x0b), str("hi"))))
)

func engineOf(sections ...[]byte) []byte { return module(slices.Concat(sections...)) }

func parse(t *testing.T, m []byte) *wasmbin.Module {
	t.Helper()
	parsed, err := wasmbin.Parse(m)
	if err != nil {
		t.Fatalf("%q: %v", m, err)
	}
	return parsed
}

// Bundle finds what AppendData has appended at the engine's address, and the rest is the engine.
func TestBundle(t *testing.T) {
	t.Parallel()
	count := func(n int) []byte { return section(12, leb(n)) }
	front := slices.Concat(types, functions, memories, bundleGlobal, bundleExport)
	body := section(10, vec(b(2, 0, 0x0b)))
	for name, engine := range map[string][]byte{
		"data":             engineOf(front, body, ownData),
		"no data":          engineOf(front, body),
		"a data count":     engineOf(front, count(1), body, ownData),
		"names":            engineOf(front, body, ownData, names),
		"names in front":   engineOf(custom("name", ""), front, body, ownData),
		"names in between": engineOf(front, body, names, ownData),
		"custom sections":  engineOf(custom("a", "1"), front, custom("b", "2"), body, custom("c", "3"), ownData, custom("d", "4")),
		"passive data":     engineOf(front, count(2), body, section(11, vec(append(b(1), str("x")...), append(b(2, 0, 0x41, 0x80, 0x08, 0x0b), str("y")...)))),
		"imported globals": engineOf(types, imports, functions, memories, bundleGlobal, section(7, vec(append(str(bundleName), 3, 1))), body, ownData),
		"many globals": engineOf(types, functions, memories, section(6, vec(b(0x7e, 1, 0x42, 1, 0x0b), b(0x7f, 1, 0x41, 5, 0x0b), b(0x7f, 0, 0x41, 0x80, 0x08, 0x0b))),
			section(7, vec(append(str("x"), 0, 0), append(str(bundleName), 3, 2), append(str("y"), 0, 0))), body, ownData),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := parse(t, engine)
			if _, ok := e.Bundle(bundleName); ok {
				t.Fatal("the engine itself has a bundle")
			}
			sums := map[[32]byte]bool{}
			for _, content := range []string{"", "x", strings.Repeat("script ", 100)} {
				tool, err := e.AppendData(1024, []byte(content))
				if err != nil {
					t.Fatal(err)
				}
				m := parse(t, tool)
				found, ok := m.Bundle(bundleName)
				if !ok || found.Address != 1024 || string(found.Content) != content {
					t.Fatalf("got %q at %d, %v, want %q at 1024", found.Content, found.Address, ok, content)
				}
				if found.EngineSum() != e.Sum() || !bytes.Equal(found.Engine(), e.Bare()) {
					t.Errorf("got %q, want the engine %q", found.Engine(), e.Bare())
				}
				for i, other := range [][]byte{e.Bare(), e.Bare()[:len(e.Bare())-1], append(e.Bare(), 0), m.Bare(), nil} {
					if got := found.IsOf(other); got != (i == 0) {
						t.Errorf("IsOf %d: got %v", i, got)
					}
				}
				for at := range e.Bare() {
					other := e.Bare()
					if other[at] ^= 1; found.IsOf(other) {
						t.Errorf("IsOf with another byte at %d", at)
					}
				}
				sums[m.Sum()] = true
			}
			if len(sums) != 3 {
				t.Errorf("three tools have %d sums", len(sums))
			}
		})
	}
}

// A module that is not an engine has no bundle, whatever its last segment is.
func TestNoBundle(t *testing.T) {
	t.Parallel()
	at := func(address ...byte) []byte {
		return section(11, vec(slices.Concat(b(0, 0x41), address, b(0x0b), str("hi"))))
	}
	global := func(entry ...byte) []byte { return section(6, vec(entry)) }
	body := section(10, vec(b(2, 0, 0x0b)))
	for name, tool := range map[string][]byte{
		"no export":          engineOf(types, functions, memories, bundleGlobal, body, at(0x80, 0x08)),
		"a function":         engineOf(types, functions, memories, section(7, vec(append(str(bundleName), 0, 0))), body, at(0x80, 0x08)),
		"a mutable global":   engineOf(types, functions, memories, global(0x7f, 1, 0x41, 0x80, 0x08, 0x0b), bundleExport, body, at(0x80, 0x08)),
		"an i64":             engineOf(types, functions, memories, global(0x7e, 0, 0x42, 0x80, 0x08, 0x0b), bundleExport, body, at(0x80, 0x08)),
		"a computed global":  engineOf(types, functions, memories, global(0x7f, 0, 0x41, 0x80, 0x08, 0x41, 0, 0x6a, 0x0b), bundleExport, body, at(0x80, 0x08)),
		"an imported one":    engineOf(types, imports, functions, memories, section(7, vec(append(str(bundleName), 3, 0))), body, at(0x80, 0x08)),
		"another address":    engineOf(types, functions, memories, bundleGlobal, bundleExport, body, at(0x81, 0x08)),
		"a computed address": engineOf(types, functions, memories, bundleGlobal, bundleExport, body, at(0x80, 0x08, 0x41, 0, 0x6a)),
		"another form":       engineOf(types, functions, memories, bundleGlobal, bundleExport, body, section(11, vec(append(b(2, 0, 0x41, 0x80, 0x08, 0x0b), str("hi")...)))),
		"not the last": engineOf(types, functions, memories, bundleGlobal, bundleExport, body,
			section(11, vec(append(b(0, 0x41, 0x80, 0x08, 0x0b), str("hi")...), append(b(0, 0x41, 0, 0x0b), str("hi")...)))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found, ok := parse(t, tool).Bundle(bundleName); ok {
				t.Errorf("got a bundle: %q at %d", found.Content, found.Address)
			}
		})
	}
}

// Whatever is appended is found again, and the rest is the engine. A stranger's module still parses once its bundle is removed.
// Proves: A tool touches no memory but its own
func FuzzBundle(f *testing.F) {
	addSeeds(func(m []byte) { f.Add(m, []byte("x")) })
	engine := engineOf(types, functions, memories, bundleGlobal, bundleExport, section(10, vec(b(2, 0, 0x0b))), ownData)
	f.Add(engine, []byte("script"))
	if m, err := wasmbin.Parse(engine); err == nil {
		tool, _ := m.AppendData(1024, []byte("x"))
		f.Add(tool, []byte{})
	}
	f.Fuzz(func(t *testing.T, module []byte, content []byte) {
		m, err := wasmbin.Parse(module)
		if err != nil {
			return
		}
		if found, ok := m.Bundle(bundleName); ok {
			engine, err := wasmbin.Parse(found.Engine())
			if err != nil {
				t.Fatalf("without its bundle, the module does not parse: %v", err)
			}
			if engine.Sum() != found.EngineSum() {
				t.Fatal("the engine's sum is not what EngineSum returned")
			}
		}
		address, ok := m.Constant(bundleName)
		if !ok {
			return
		}
		tool, err := m.AppendData(address, content)
		if err != nil {
			return
		}
		again, err := wasmbin.Parse(tool)
		if err != nil {
			t.Fatalf("the tool does not parse: %v", err)
		}
		if found, ok := again.Bundle(bundleName); !ok || !bytes.Equal(found.Content, content) {
			t.Fatalf("got %q, %v, want %q", found.Content, ok, content)
		}
	})
}
