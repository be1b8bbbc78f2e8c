package wasmbin_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

func addSeeds(add func(module []byte)) {
	for _, m := range accepted {
		add(m)
	}
	for _, c := range refused {
		add(c.module)
	}
}

// No bytes make Parse panic, or allocate more than in proportion to their number. Whatever it accepts can be passed to wazero.
// Proves: Compiling is bounded
func FuzzParse(f *testing.F) {
	addSeeds(func(m []byte) { f.Add(m) })
	r := newWazero(f)
	f.Fuzz(func(t *testing.T, module []byte) {
		m, err := wasmbin.Parse(module)
		if err != nil {
			if m != nil {
				t.Errorf("got %+v along with the error %v", m, err)
			}
			return
		}
		for _, e := range m.Exports() {
			if got, ok := m.Export(e.Name); !ok || got.Kind != e.Kind {
				t.Errorf("Export(%q): got %v, %v, want %v", e.Name, got, ok, e)
			}
		}
		for _, memory := range m.Memories() {
			if memory.HasMax && memory.Max < memory.Min {
				t.Errorf("memory %+v", memory)
			}
		}
		if _, _, err := m.Custom("name"); err != nil {
			t.Errorf("Custom(name): %v", err)
		}
		end := 8
		for s := range m.Sections() {
			if s.Offset != end || s.Size < 2 {
				t.Errorf("section %+v, want it at %d", s, end)
			}
			end += s.Size
		}
		if end != len(module) {
			t.Errorf("the sections end at %d of %d", end, len(module))
		}
		_, _ = m.Features()     // it may return an error, but must not panic
		_ = compiles(r, module) // wazero may refuse the module, but must not panic
	})
}

// Whatever is set is read back, and nothing else changes.
func FuzzSetCustom(f *testing.F) {
	addSeeds(func(m []byte) { f.Add(m, "toolsrv.manifest", []byte("{}")) })
	f.Add(whole, "first", []byte{})
	f.Add(whole, "name", []byte("\x00\x02\x01m"))
	f.Fuzz(func(t *testing.T, module []byte, name string, content []byte) {
		set, err := wasmbin.SetCustom(module, name, content)
		if err != nil {
			return
		}
		m, err := wasmbin.Parse(set)
		if err != nil {
			t.Fatalf("the result does not parse: %v", err)
		}
		if got, ok, err := m.Custom(name); err != nil || !ok || !bytes.Equal(got, content) {
			t.Fatalf("got %q, %v, %v, want %q", got, ok, err, content)
		}
		own := len(custom(name, string(content)))
		rest := set[:len(set)-own]
		if !bytes.Equal(set[len(rest):], custom(name, string(content))) {
			t.Fatalf("the section is not last: %q", set)
		}
		before, err := wasmbin.Parse(module)
		if err != nil {
			t.Fatalf("SetCustom took what Parse refuses: %v", err)
		}
		if _, there, err := before.Custom(name); !there && err == nil && !bytes.Equal(rest, module) {
			t.Fatalf("got %q, want %q", rest, module)
		}
		if name != "name" && before.Sum() != m.Sum() {
			t.Fatal("a custom section changed the sum")
		}
		again, err := wasmbin.SetCustom(set, name, content)
		if err != nil || !bytes.Equal(again, set) {
			t.Fatalf("set again: got %q, %v, want %q", again, err, set)
		}
		if _, err := wasmbin.Parse(rest); err != nil && !errors.Is(err, wasmbin.ErrUnsupported) {
			t.Fatalf("the rest is not a module: %v", err)
		}
	})
}
