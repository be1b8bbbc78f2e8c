//go:build unix

package script_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// counted returns a function that returns a Builder with a memory and a process of its own, and a function that returns how many scripts were read.
func counted(t *testing.T, language, cache string) (builder func() script.Builder, reads func() int) {
	t.Helper()
	count := filepath.Join(t.TempDir(), "count")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	memory, err := script.OpenMemory(cache, []string{self})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
	return func() script.Builder {
			b := readBy(t, language, 4<<30, "read", count)
			b.Memory = memory
			return b
		}, func() int {
			text, _ := os.ReadFile(count)
			return len(text)
		}
}

// TestMemory builds scripts again, as after a restart. No process reads them unless a file that they depend on has changed, or a new file would
// be found instead.
func TestMemory(t *testing.T) {
	t.Parallel()
	put := func(t *testing.T, dir, name, text string) { testkit.Put(t, dir, name, text) }
	for _, test := range []struct {
		name, engine, file, text string
		others                   map[string]string
		change                   func(t *testing.T, dir string)
		again                    bool // the script has to be read again
	}{
		{"nothing", "javascript", "a.ts", `import { x } from "./_part"; export const y = x;`, map[string]string{"_part.js": "export const x = 1;"},
			func(*testing.T, string) {}, false},
		{"another script", "javascript", "a.ts", `import { x } from "./_part"; export const y = x;`, map[string]string{"_part.js": "export const x = 1;"},
			func(t *testing.T, dir string) { put(t, dir, "b.ts", "") }, false},
		{"the script", "javascript", "a.ts", `export const y = 1;`, nil, func(t *testing.T, dir string) { put(t, dir, "a.ts", "export const y = 2;") }, true},
		{"a part", "javascript", "a.ts", `import { x } from "./_part"; export const y = x;`, map[string]string{"_part.js": "export const x = 1;"},
			func(t *testing.T, dir string) { put(t, dir, "_part.js", "export const x = 2;") }, true},
		{"another part of that name", "javascript", "a.ts", `import { x } from "./_part"; export const y = x;`, map[string]string{"_part.js": "export const x = 1;"},
			func(t *testing.T, dir string) { put(t, dir, "_part.ts", "export const x = 2;") }, true},
		{"a nearer package", "javascript", "n/a.js", `import { x } from "p"; export const y = x;`,
			map[string]string{"node_modules/p/package.json": `{"name":"p","main":"main.js"}`, "node_modules/p/main.js": "export const x = 1;"},
			func(t *testing.T, dir string) {
				put(t, dir, "n/node_modules/p/package.json", `{"name":"p","main":"main.js"}`)
				put(t, dir, "n/node_modules/p/main.js", "export const x = 2;")
			}, true},
		{"nothing in Python", "python", "a.py", "import _part\n", map[string]string{"_part.py": "x = 1\n"}, func(*testing.T, string) {}, false},
		{"a part in Python", "python", "a.py", "import _part\n", map[string]string{"_part.py": "x = 1\n"},
			func(t *testing.T, dir string) { put(t, dir, "_part.py", "x = 2\n") }, true},
		{"a package of that name", "python", "a.py", "import _part\n", map[string]string{"_part.py": "x = 1\n"},
			func(t *testing.T, dir string) { put(t, dir, "_part/__init__.py", "x = 2\n") }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
			for name, text := range test.others {
				put(t, dir, name, text)
			}
			file := testkit.Put(t, dir, test.file, test.text)
			b, reads := counted(t, test.engine, cache)
			var first wasmbin.Made
			var firstInputs []string
			// A file that was written a moment ago is not kept, since it might have been written while it was read.
			for began, before := time.Now(), -1; reads() != before; {
				before = reads()
				var err error
				if first, firstInputs, err = b().Build(t.Context(), dir, file, nil); err != nil {
					t.Fatal(err)
				}
				if time.Since(began) > time.Minute {
					t.Fatal("nothing is kept")
				}
			}
			test.change(t, dir)
			again, reads := counted(t, test.engine, cache)
			made, inputs, err := again().Build(t.Context(), dir, file, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := joined(t, made)
			if n := reads(); n > 0 != test.again {
				t.Errorf("it was read %d times", n)
			}
			want, wantInputs, err := script.Build(t.Context(), file, script.Options{Engines: b().Engines, Root: dir})
			if err != nil || !bytes.Equal(got, want) || !slices.Equal(inputs, wantInputs) {
				t.Errorf("got %d bytes of %q; want %d of %q, %v", len(got), inputs, len(want), wantInputs, err)
			}
			if !test.again && (!bytes.Equal(got, joined(t, first)) || !slices.Equal(inputs, firstInputs)) {
				t.Error("the module made from stored files differs from the first one")
			}
		})
	}
}

// TestMemoryOfAnotherProgram checks that a different program finds nothing that this one has kept.
func TestMemoryOfAnotherProgram(t *testing.T) {
	t.Parallel()
	if _, err := script.OpenMemory(t.TempDir(), nil); err == nil {
		t.Error("there is a memory without a program that reads")
	}
	dir, cache := t.TempDir(), t.TempDir()
	program := filepath.Join(t.TempDir(), "program")
	file := testkit.Put(t, dir, "a.py", "")
	starts := func(version string) int {
		t.Helper()
		builder, reads := counted(t, "python", cache)
		if err := os.WriteFile(program, []byte(version), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := script.OpenMemory(cache, []string{program})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		b := builder()
		b.Memory = m
		if _, _, err := b.Build(t.Context(), dir, file, nil); err != nil {
			t.Fatal(err)
		}
		return reads()
	}
	for began := time.Now(); starts("1") > 0; {
		if time.Since(began) > time.Minute {
			t.Fatal("nothing is kept")
		}
	}
	if starts("2") == 0 {
		t.Error("another program takes what one has kept")
	}
}
