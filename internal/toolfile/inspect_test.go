package toolfile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	content := sandboxtest.WithManifest(t, testkit.Fixture(t, "catalog/described"), strings.Replace(manifestText(t, "a", "one"), `"tools"`, `"sdk":"go/1.0","tools"`, 1))
	r, err := toolfile.Inspect(content)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if r.Digest != hex.EncodeToString(sum[:]) || r.Size != len(content) || r.SDK != "go/1.0" {
		t.Errorf("got digest %s, size %d, SDK %q", r.Digest, r.Size, r.SDK)
	}
	if r.Manifest == nil || r.Manifest.Namespace != "a" || r.ManifestError != "" {
		t.Errorf("got the manifest %+v, %q", r.Manifest, r.ManifestError)
	}
	if len(r.Imports) != 1 || r.Imports[0] != (toolfile.Symbol{Module: "toolsrv_v1", Name: "output_write", Kind: "function", Type: "(i32, i32) -> ()"}) {
		t.Errorf("got the imports %+v", r.Imports)
	}
	if len(r.Exports) != 3 || r.Exports[0] != (toolfile.Symbol{Name: "memory", Kind: "memory"}) || r.Exports[2].Type != "() -> (i32)" {
		t.Errorf("got the exports %+v", r.Exports)
	}
	if len(r.Memories) != 1 || r.Memories[0].Min != 64<<10 || r.Memories[0].Max != nil || len(r.Tables) != 0 {
		t.Errorf("got the memories %+v and the tables %+v", r.Memories, r.Tables)
	}
	if !r.ResetsInPlace || r.NoReset != "" || r.Refused != "" || len(r.Features) != 0 {
		t.Errorf("got %v %q, %q, features %q; want that it resets in place", r.ResetsInPlace, r.NoReset, r.Refused, r.Features)
	}
	size := 8
	for _, s := range r.Sections {
		size += s.Size
	}
	last := r.Sections[len(r.Sections)-1]
	if size != r.Size || last.Name != "toolsrv.manifest" || !last.Custom {
		t.Errorf("got %d bytes in sections of %d, and the last section %+v", size, r.Size, last)
	}
}

// TestInspectOdd inspects modules that no server accepts: they are still reported, or refused with a reason.
func TestInspectOdd(t *testing.T) {
	t.Parallel()
	answer := testkit.Fixture(t, "catalog/answer")
	flood := bytes.Repeat([]byte{0, 1, 0}, 5000) // custom sections without name or content
	for _, c := range []struct {
		name    string
		content []byte
		says    string // expected in the JSON, or in the error
		fails   bool
	}{
		{"empty", nil, "not a WebAssembly module", true},
		{"cut off", answer[:len(answer)-1], "are declared, but only", true},
		{"no manifest", answer, `"manifest_error"`, false},
		{"broken manifest", sandboxtest.WithManifest(t, answer, "{"), `"manifest_error":"line 1, column 1`, false},
		{"two manifests", append(sandboxtest.WithManifest(t, answer, "{}"), sandboxtest.WithManifest(t, answer, "{}")[len(answer):]...), `"manifest_error":"wasm: two custom sections`, false},
		{"tables that change", testkit.Fixture(t, "wat/good/fresh"), `"no_reset":"`, false},
		{"an imported global", testkit.Fixture(t, "wat/refused/import_global"), `"kind":"global","type":"i32"`, false},
		{"two memories", testkit.Fixture(t, "wat/refused/memory_two"), `"min":`, false},
		{"a mistyped import", testkit.Fixture(t, "wat/refused/import_mistyped"), `"imports":[{`, false},
		{"an imported memory", testkit.Fixture(t, "wat/refused/import_memory"), `"imported":true`, false},
		{"an unknown instruction", []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a\x06\x01\x04\x00\xfe\x00\x0b"), `"refused":"wasm: code section`, false},
		{"a flood of sections", append(bytes.Clone(answer), flood...), `"sections_size":`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := toolfile.Inspect(c.content)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got the error %v, want %q", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if has := strings.Contains(string(text), c.says); has == (c.name == "no manifest") || len(r.Sections) > 1000 {
				t.Errorf("got %d sections, and %.2000s; want %s", len(r.Sections), text, c.says)
			}
		})
	}
}

// TestInspectFixtures inspects every fixture, and each must give a report.
func TestInspectFixtures(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/wat/*/*.wasm")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d fixtures, %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := toolfile.Inspect(content); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// FuzzInspect checks that no content makes Inspect panic.
func FuzzInspect(f *testing.F) {
	f.Add(testkit.Fixture(f, "catalog/answer"))
	f.Add(sandboxtest.WithManifest(f, testkit.Fixture(f, "wat/good/fresh"), manifestText(f, "", "one")))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := toolfile.Inspect(content)
		if (r == nil) == (err == nil) {
			t.Errorf("got the report %v beside the error %v", r, err)
		}
	})
}
