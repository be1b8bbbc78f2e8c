package wasmbin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

const guest = `package main

import "encoding/json"

//go:wasmexport toolsrv_call
func call(tool int32) int32 {
	var v any
	if json.Unmarshal([]byte("{}"), &v) != nil {
		return 1
	}
	return 0
}

func main() {}
`

// buildGuest returns a module of some 3 MB as Go's own compiler makes it.
func buildGuest(t testing.TB) []byte {
	t.Helper()
	return buildGo(t, guest)
}

// buildGo compiles a Go program for WASI.
func buildGo(t testing.TB, source string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": source, "go.mod": "module guest\n\ngo 1.24\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-o", "guest.wasm", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	module, err := os.ReadFile(filepath.Join(dir, "guest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func TestParseGoModule(t *testing.T) {
	t.Parallel()
	m, err := wasmbin.Parse(buildGuest(t))
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := m.Export("toolsrv_call"); !ok || e.Type.String() != "(i32) -> (i32)" {
		t.Errorf("toolsrv_call: got %v, %v", e, ok)
	}
	if e, ok := m.Export("_initialize"); !ok || e.Type.String() != "() -> ()" {
		t.Errorf("_initialize: got %v, %v", e, ok)
	}
	if memories := m.Memories(); len(memories) != 1 || memories[0].Imported {
		t.Errorf("memories: got %+v", memories)
	}
	for _, i := range m.Imports() {
		if i.Module != "wasi_snapshot_preview1" || i.Kind != wasmbin.KindFunction {
			t.Errorf("import %+v", i)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	module := buildGuest(b)
	b.SetBytes(int64(len(module)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wasmbin.Parse(module); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCustom(b *testing.B) {
	module, err := wasmbin.SetCustom(buildGuest(b), "toolsrv.manifest", []byte("{}"))
	if err != nil {
		b.Fatal(err)
	}
	m, err := wasmbin.Parse(module)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := m.Custom("toolsrv.manifest"); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkSetCustom(b *testing.B) {
	module := buildGuest(b)
	content := []byte("{}")
	b.SetBytes(int64(len(module)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wasmbin.SetCustom(module, "toolsrv.manifest", content); err != nil {
			b.Fatal(err)
		}
	}
}
