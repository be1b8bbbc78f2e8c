package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Root returns the root of the repository, whichever package is tested.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "arch_test.go")); err == nil {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			t.Fatal("the tests do not run in the repository")
		}
		dir = above
	}
}

// Fixture returns the content of a module below testdata, such as "wat/good/echo".
func Fixture(t testing.TB, name string) []byte {
	t.Helper()
	return Read(t, filepath.Join(Root(t), "testdata", filepath.FromSlash(name)+".wasm"))
}

// Read returns the content of a file.
func Read(t testing.TB, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Put writes a file, makes the folders that it needs, and returns its path. The name may contain slashes.
func Put[T string | []byte](t testing.TB, dir, name string, content T) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
