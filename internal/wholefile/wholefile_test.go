package wholefile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/wholefile"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "a.wasm")
	for _, content := range []string{"first", "", "second"} {
		if err := wholefile.Write(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got := string(testkit.Read(t, name)); got != content {
			t.Errorf("got %q, want %q", got, content)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("got the files %v, %v, want only the one written", files, err)
	}
}

// TestWriteKeeps checks that a replaced file keeps its mode, and that a link stays a link.
func TestWriteKeeps(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other modes and links")
	}
	dir := t.TempDir()
	file := testkit.Put(t, dir, "v1/a.wasm", "old")
	link := filepath.Join(dir, "a.wasm")
	if err := os.Symlink(filepath.Join("v1", "a.wasm"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := wholefile.Write(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != filepath.Join("v1", "a.wasm") {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o640 || string(testkit.Read(t, file)) != "new" {
		t.Errorf("the file has %v, %v, %q", info.Mode(), err, testkit.Read(t, file))
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := testkit.Put(t, dir, "file", "")
	for name, want := range map[string]string{
		dir:                                  "is a folder: name a file",
		filepath.Join(dir, "none", "a.wasm"): "there is no folder",
		filepath.Join(file, "a.wasm"):        file,
		os.DevNull:                           "is not a regular file",
	} {
		if runtime.GOOS == "windows" && name == os.DevNull {
			continue
		}
		if err := wholefile.Write(name, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, want)
		}
	}
}
