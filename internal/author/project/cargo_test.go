package project_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/author/project"
)

func TestArtifacts(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"Cargo.toml": "", "other/Cargo.toml": ""})
	manifest := filepath.Join(dir, "Cargo.toml")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	artifact := func(manifest string, files ...string) string {
		text, err := json.Marshal(map[string]any{"reason": "compiler-artifact", "manifest_path": manifest, "filenames": files})
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n"
	}
	for _, c := range []struct {
		name, messages string
		want           []string
	}{
		{"none", "", nil},
		{"one", artifact(manifest, "/t/a.wasm"), []string{"/t/a.wasm"}},
		{"with others", artifact(manifest, "/t/a.rlib", "/t/a.wasm", "/t/a.d"), []string{"/t/a.wasm"}},
		{"through a link", artifact(filepath.Join(link, "Cargo.toml"), "/t/a.wasm"), []string{"/t/a.wasm"}},
		{"of another package", artifact(filepath.Join(dir, "other", "Cargo.toml"), "/t/b.wasm"), nil},
		{"a message about a package that is gone", artifact(filepath.Join(dir, "gone", "Cargo.toml"), "/t/b.wasm"), nil},
		{"a message between words of a plug-in", "hello\n{\n" + artifact(manifest, "/t/a.wasm") + "{}\n[]\nnull\n", []string{"/t/a.wasm"}},
		{"another message", `{"reason":"build-finished","filenames":["/t/a.wasm"],"manifest_path":"` + manifest + "\"}\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := project.ReadArtifacts(manifest, strings.NewReader(c.messages))
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	if got, err := project.ReadArtifacts(manifest, strings.NewReader(strings.Repeat("x", 5<<20))); err == nil {
		t.Errorf("a line without an end: got %q, want an error", got)
	}
}

func FuzzArtifacts(f *testing.F) {
	f.Add(`{"reason":"compiler-artifact","manifest_path":"cargo.go","filenames":["a.wasm"]}` + "\n")
	f.Add(`{"reason":"compiler-artifact","manifest_path":["cargo.go"],"filenames":"a.wasm"}`)
	f.Add("{\n}\n\x00")
	f.Fuzz(func(t *testing.T, messages string) {
		got, _ := project.ReadArtifacts("cargo.go", strings.NewReader(messages))
		for _, file := range got {
			if filepath.Ext(file) != ".wasm" {
				t.Errorf("got %q, which is not a module", file)
			}
		}
	})
}
