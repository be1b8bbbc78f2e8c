package upload_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/upload"
)

// scripted returns a directory that serves scripts.
func scripted(path string) upload.Directory { return upload.Directory{Path: path, Scripts: pythons{}} }

// pythons recognises scripts in Python.
type pythons struct{}

func (pythons) IsScript(name string) bool { return strings.HasSuffix(name, ".py") }
func (pythons) IsPart(name string) bool {
	return strings.HasPrefix(name, "_") || strings.HasPrefix(name, "test_")
}

// put puts a file into a directory.
func put(directory, name, content string) error {
	f, err := scripted(directory).Begin(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write([]byte(content)); err != nil {
		return err
	}
	return f.Commit()
}

// files returns all files in a directory, including hidden ones.
func files(t *testing.T, directory string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != directory {
			name, _ := filepath.Rel(directory, path)
			if d.IsDir() {
				name += "/"
			}
			all = append(all, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// TestNames checks that a name is refused if it leads out of the directory, or if some file system would take it for another name.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", ".wasm", "a", "a.wat", "a.wasm/", "/a.wasm", "//a.wasm", "../a.wasm", "a/../b.wasm", "a/../../b.wasm", "./a.wasm", "a/./b.wasm", "a//b.wasm",
		"..", "../", "...wasm", ".a.wasm", "a/.b/c.wasm", `..\a.wasm`, `a\b.wasm`, `C:\a.wasm`, "C:a.wasm", "C:/a.wasm", "a.wasm:stream.wasm", "a\x00.wasm", "a.wasm\x00", "a\n.wasm",
		"a .wasm", " a.wasm", "a.wasm ", "a./b.wasm", "con.wasm", "CON.wasm", "a/aux/b.wasm", "nul.x.wasm", "Com1.wasm", "lpt9.wasm", "a.tmp/b.wasm", "~/a.wasm", "a~.wasm",
		"%2e%2e/a.wasm", "..%2fa.wasm", "\u2024\u2024/a.wasm", "a\u2215b.wasm", "é.wasm", "\u212A.wasm", "-a.wasm", "*.wasm", "a?.wasm", "node_modules/a.wasm", "a/__pycache__/b.wasm", "Node_Modules/a.wasm",
		"a.txt", "a.py/b", "../a.py", "a/../../b.py", "/a.py", `..\a.py`, ".a.py", "a.py\x00", "a.PY", "con.py", "_a.py", "test_a.py", "_b/a.py", "a/_b/c.py", "__init__.py", "a/__init__.py", "node_modules/a.py", "é.py", "-a.py",
		strings.Repeat("a", 101) + ".wasm", strings.Repeat("a/", 17) + "a.wasm", strings.Repeat("aaaaaaaaa/", 52) + "a.wasm", "a.WASM",
	} {
		outer := t.TempDir()
		directory := filepath.Join(outer, "tools")
		if err := os.Mkdir(directory, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := scripted("").CheckName(name); err == nil {
			t.Errorf("%q is taken", name)
		}
		if err := put(directory, name, "x"); err == nil {
			t.Errorf("%q was put", name)
		}
		if err := scripted(directory).Remove(name); err == nil {
			t.Errorf("%q was removed", name)
		}
		if _, err := scripted(directory).Read(name, 10); err == nil {
			t.Errorf("%q was read", name)
		}
		if got := files(t, outer); got != "tools/" {
			t.Errorf("%q: there is %s", name, got)
		}
	}
	for _, name := range []string{"a.wasm", "math/add.wasm", "A-1_b.c/d/e.wasm", "_x.wasm", "console.wasm", "common/nully.wasm", "a.py", "math/add_b.py", "a.wasm.py"} {
		if err := scripted("").CheckName(name); err != nil {
			t.Error(err)
		}
		if err := (upload.Directory{}).CheckName(name); (err == nil) != strings.HasSuffix(name, ".wasm") {
			t.Errorf("%s where no scripts are served: got %v", name, err)
		}
	}
}

// TestPartsOfScripts checks that no script is put where it would not be served, and no folder is made for it.
func TestPartsOfScripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "package/__init__.py", "")
	testkit.Put(t, dir, "package/inner/x.txt", "")
	testkit.Put(t, dir, "venv/pyvenv.cfg", "")
	before := files(t, dir)
	for _, name := range []string{"package/a.py", "package/inner/a.py", "package/new/a.py", "venv/a.py", "venv/lib/a.py"} {
		if err := put(dir, name, "x"); err == nil || !strings.Contains(err.Error(), "not served by themselves") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if after := files(t, dir); after != before {
		t.Errorf("there is %s, want %s", after, before)
	}
	if err := put(dir, "package/a.wasm", "x"); err != nil {
		t.Error(err)
	}
}

// TestPut makes and replaces files, and checks that those that are given up leave nothing behind.
func TestPut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, content := range []string{"first", "", "second"} {
		if err := put(dir, "a/b/c.wasm", content); err != nil {
			t.Fatal(err)
		}
		if got := string(testkit.Read(t, dir, "a", "b", "c.wasm")); got != content {
			t.Errorf("got %q, want %q", got, content)
		}
	}
	f, err := scripted(dir).Begin("x/y/z.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	content, err := f.Content()
	if err != nil || string(content) != "abc" || f.Size() != 3 || f.Digest() != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("got %q, %d bytes, %s, %v", content, f.Size(), f.Digest(), err)
	}
	f.Close()
	if got := files(t, dir); got != "a/ a/b/ a/b/c.wasm" {
		t.Errorf("there is %s", got)
	}
	if err := scripted(dir).Remove("a/b/c.wasm"); err != nil {
		t.Fatal(err)
	}
	if err := scripted(dir).Remove("a/b/c.wasm"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed twice: got %v", err)
	}
	if _, err := scripted(dir).Read("no/b/c.wasm", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read what is gone: got %v", err)
	}
	if got := files(t, dir); got != "a/ a/b/" {
		t.Errorf("there is %s", got)
	}
	testkit.Put(t, dir, "large.wasm", "0123456789a")
	if _, err := scripted(dir).Read("large.wasm", 10); err == nil {
		t.Error("read more than was asked for")
	}
}

// TestLinks checks that no link is followed or replaced, wherever it leads.
func TestLinks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a program needs a special right to make links on Windows")
	}
	outer := t.TempDir()
	dir := filepath.Join(outer, "tools")
	testkit.Put(t, outer, "outside/a.wasm", "outside")
	testkit.Put(t, dir, "in/a.wasm", "inside")
	for at, to := range map[string]string{"out": "../outside", "absolute": filepath.Join(outer, "outside"), "inner": "in", "file.wasm": "in/a.wasm", "outfile.wasm": "../outside/a.wasm", "broken.wasm": "nothing"} {
		if err := os.Symlink(to, filepath.Join(dir, at)); err != nil {
			t.Fatal(err)
		}
	}
	before := files(t, outer)
	for _, name := range []string{"out/a.wasm", "absolute/a.wasm", "absolute/b.wasm", "inner/a.wasm", "file.wasm", "outfile.wasm", "broken.wasm", "in/a.wasm/b.wasm"} {
		if err := put(dir, name, "x"); err == nil {
			t.Errorf("%s was put", name)
		}
		if err := scripted(dir).Remove(name); err == nil {
			t.Errorf("%s was removed", name)
		}
		if content, err := scripted(dir).Read(name, 100); err == nil {
			t.Errorf("%s was read: %s", name, content)
		}
	}
	if err := put(dir, "in/folder.wasm/x.wasm", "x"); err != nil {
		t.Error(err)
	}
	if err := put(dir, "in/folder.wasm", "x"); err == nil {
		t.Error("a folder was replaced")
	}
	if err := scripted(dir).Remove("in/folder.wasm/x.wasm"); err != nil {
		t.Error(err)
	}
	if err := scripted(dir).Remove("in/folder.wasm"); err == nil {
		t.Error("a folder was removed")
	}
	if err := os.Remove(filepath.Join(dir, "in", "folder.wasm")); err != nil {
		t.Error(err)
	}
	if after := files(t, outer); after != before {
		t.Errorf("there is %s, want %s", after, before)
	}
	if got := string(testkit.Read(t, outer, "outside", "a.wasm")); got != "outside" {
		t.Errorf("got %q", got)
	}
}

// TestCase checks that a name is refused if it differs from another one only in case, in a folder or in the file.
func TestCase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "math/add.wasm", "x")
	for _, name := range []string{"math/Add.wasm", "MATH/add.wasm", "Math/sub.wasm"} {
		if err := put(dir, name, "y"); err == nil || !strings.Contains(err.Error(), "only in upper and lower case") {
			t.Errorf("%s: got %v", name, err)
		}
		if err := scripted(dir).Remove(name); err == nil {
			t.Errorf("%s was removed", name)
		}
	}
	f, err := scripted(dir).Begin("math/sub.wasm")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	testkit.Put(t, dir, "math/SUB.wasm", "x") // meanwhile
	if err := f.Commit(); err == nil && runtime.GOOS == "linux" {
		t.Error("a file was put although another one's name differs only in case")
	}
	if got := files(t, dir); !strings.HasPrefix(got, "math/ math/.toolsrv-put-") && !strings.HasPrefix(got, "math/ math/SUB.wasm") {
		t.Errorf("there is %s", got)
	}
}

// TestSweep checks that the files of old, unfinished uploads are removed, and no other files.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{".toolsrv-put-OLD.tmp": 2 * time.Hour, ".toolsrv-put-NEW.tmp": time.Minute, ".other.tmp": 2 * time.Hour} {
		path := testkit.Put(t, dir, name, "x")
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(dir, "a.wasm", "x"); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); got != ".other.tmp .toolsrv-put-NEW.tmp a.wasm" {
		t.Errorf("there is %s", got)
	}
}

// TestNewFolderOfSeveral begins several files at the same moment in a folder that does not exist yet: all of them are put there.
func TestNewFolderOfSeveral(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for round := range 50 {
		begun := make(chan error)
		start, end := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				<-start
				f, err := scripted(directory).Begin(fmt.Sprintf("new%d/below/f%d.wasm", round, i))
				begun <- err
				<-end
				if err == nil {
					f.Close()
				}
			})
		}
		close(start)
		for range 4 {
			if err := <-begun; err != nil {
				t.Error(err)
			}
		}
		close(end)
		all.Wait()
	}
}
