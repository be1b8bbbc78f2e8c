package wasmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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

// BuildGuest returns a module of some 3 MB that Go's own compiler has made.
func BuildGuest(t testing.TB) []byte {
	t.Helper()
	return BuildGo(t, guest)
}

// BuildGo compiles a Go program for WASI.
func BuildGo(t testing.TB, source string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": source, "go.mod": "module guest\n\ngo 1.24\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-o", "guest.wasm", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	module, err := os.ReadFile(filepath.Join(dir, "guest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return module
}
