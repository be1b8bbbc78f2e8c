package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/catalog/directory"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// A recipes builder makes modules of files that end in .recipe. Each line is the name of a file beside it, which must exist unless the line ends in
// "?". A file that is not a recipe holds a tool's answer, five characters. The tool has the name of the recipe.
type recipes struct {
	t    testing.TB
	read func() // called before a build ends, when everything has been read; may be nil

	mu    sync.Mutex
	built []string // in order
	fails []error  // the errors of the next builds
}

var (
	_ directory.Names = (*recipes)(nil)
	_ catalog.Builder = (*recipes)(nil)
)

func (*recipes) IsScript(name string) bool { return strings.HasSuffix(name, ".recipe") }
func (*recipes) IsPart(name string) bool   { return strings.HasPrefix(name, "_") }

func (r *recipes) Build(_ context.Context, root, path string, text []byte) (module wasmbin.Made, inputs []string, err error) {
	r.mu.Lock()
	r.built = append(r.built, filepath.Base(path))
	if len(r.fails) > 0 {
		err, r.fails = r.fails[0], r.fails[1:]
	}
	r.mu.Unlock()
	if err != nil {
		return module, nil, err
	}
	if text == nil {
		if text, err = os.ReadFile(path); err != nil {
			return module, nil, err
		}
	}
	answer := "v0000"
	for _, line := range strings.Fields(string(text)) {
		name, optional := strings.CutSuffix(line, "?")
		file := filepath.Join(filepath.Dir(path), name)
		inputs = append(inputs, file)
		content, err := os.ReadFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist) && optional:
		case err != nil:
			return module, inputs, fmt.Errorf("%s:1:1: there is no %s", filepath.Base(path), name)
		default:
			answer = string(content)
		}
	}
	if r.read != nil {
		r.read()
	}
	return whole(r.t, version(r.t, answer, "", strings.TrimSuffix(filepath.Base(path), ".recipe"))), inputs, nil
}

// whole returns a module that was made without an engine.
func whole(t testing.TB, module []byte) wasmbin.Made {
	parsed, err := wasmbin.Parse(module)
	if err != nil {
		t.Error(err)
	}
	return wasmbin.Made{Module: parsed}
}

// builds returns what was built since the last call.
func (r *recipes) builds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	built := r.built
	r.built = nil
	return built
}

// openRecipes opens a catalog of a directory with scripts.
func openRecipes(t *testing.T, dir string, r *recipes) *catalog.Catalog {
	t.Helper()
	o := options{Scripts: r, Engine: sandboxtest.Engine(t, sandbox.Config{}), Poll: 20 * time.Millisecond}
	d, err := directory.Open(dir, directory.Options{Poll: o.Poll, Scripts: r})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return of(t, d, o, catalog.Open)
}

// lost is the error for a build whose process was killed.
type lost struct{}

func (lost) Error() string   { return "the process was killed" }
func (lost) Temporary() bool { return true }

// TestScriptsPass has scripts that can't be built for a while, through no fault of their own. In the end they are served.
// Proves: Files of others are not trusted
func TestScriptsPass(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, fails := range map[string]error{"killed": lost{}, "wrapped": fmt.Errorf("a script: %w", lost{}), "memory": fmt.Errorf("fork: %w", syscall.ENOMEM), "files": syscall.EMFILE} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(dir, name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			testkit.Put(t, dir, "a.recipe", []byte("_a"))
			testkit.Put(t, dir, "_a", []byte("v0001"))
			awaitTable(t, openRecipes(t, dir, &recipes{t: t, fails: []error{fails, fails}}), []string{"/a"}, nil)
		})
	}
}

// TestScripts follows scripts: they come, change with their parts, break, and go.
func TestScripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &recipes{t: t}
	testkit.Put(t, dir, "a.recipe", []byte("_a"))
	testkit.Put(t, dir, "_a", []byte("v0001"))
	testkit.Put(t, dir, "b.recipe", []byte("_b?"))
	testkit.Put(t, dir, "c.recipe", []byte("_c"))
	if err := os.Truncate(testkit.Put(t, dir, "large.recipe", ""), 16<<20+1); err != nil {
		t.Fatal(err)
	}
	c := openRecipes(t, dir, r)
	awaitTable(t, c, []string{"/a", "/b"}, []string{"c.recipe", "large.recipe"})
	if got, want := reason(c.Table().Current(), filepath.Join(dir, "large.recipe")), "has 16777217 bytes; the limit for a script is 16 MiB"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	remove(t, dir, "large.recipe")
	awaitAnswer(t, c, "/a", "v0001")
	if got, want := reason(c.Table().Current(), filepath.Join(dir, "c.recipe")), "c.recipe:1:1: there is no _c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	swap(t, dir, "_a", []byte("v0002"))
	awaitAnswer(t, c, "/a", "v0002")
	swap(t, dir, "_b", []byte("v0003")) // a script has looked for it and not found it
	awaitAnswer(t, c, "/b", "v0003")
	swap(t, dir, "_c", []byte("v0004")) // it was missing
	awaitTable(t, c, []string{"/a", "/b", "/c"}, nil)
	// Another file and another script do not affect the existing scripts.
	r.builds()
	testkit.Put(t, dir, "other.txt", "other")
	swap(t, dir, "d.recipe", []byte("_b"))
	awaitTable(t, c, []string{"/a", "/b", "/c", "/d"}, nil)
	if got := r.builds(); !slices.Equal(got, []string{"d.recipe"}) {
		t.Errorf("built %q, want d.recipe only", got)
	}
	remove(t, dir, "d.recipe")

	remove(t, dir, "_a")
	awaitTable(t, c, []string{"/a", "/b", "/c"}, []string{"a.recipe"})
	awaitAnswer(t, c, "/a", "v0002") // as it was
	swap(t, dir, "a.recipe", []byte("_b"))
	awaitTable(t, c, []string{"/a", "/b", "/c"}, nil)
	awaitAnswer(t, c, "/a", "v0003")
	remove(t, dir, "a.recipe")
	awaitTable(t, c, []string{"/b", "/c"}, nil)
}

// TestScriptParts has scripts that are parts of others, and folders that are not namespaces.
// Proves: Files of others are not trusted
func TestScriptParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{
		"top.recipe", "folder/below.recipe", "_part.recipe", "_folder/part.recipe", "_folder/deep/part.recipe",
		"package/__init__.py", "package/part.recipe", "package/deep/part.recipe",
		"node_modules/x/part.recipe", "__pycache__/part.recipe", "venv/pyvenv.cfg", "venv/part.recipe", "venv/lib/part.recipe",
		".hidden/part.recipe", "left.recipe~", "left.recipe.tmp",
	} {
		testkit.Put(t, dir, name, "")
	}
	for _, name := range []string{"package/module.wasm", "_folder/module.wasm", "node_modules/x/never.wasm", "venv/never.wasm"} {
		testkit.Put(t, dir, name, version(t, "v0001", "", "module"))
	}
	r := &recipes{t: t}
	c := openRecipes(t, dir, r)
	awaitTable(t, c, []string{"/_folder/module", "/folder/below", "/package/module", "/top"}, nil)
	if got := r.builds(); len(got) != 2 {
		t.Errorf("built %q, want the two that are served", got)
	}
}

// TestScriptChangesWhileItIsBuilt changes a file that a script depends on after the file was read: the new version is served.
func TestScriptChangesWhileItIsBuilt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "_a", []byte("v0001"))
	testkit.Put(t, dir, "a.recipe", []byte("_a"))
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "_a"), old, old); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	r := &recipes{t: t}
	r.read = func() {
		once.Do(func() { swap(t, dir, "_a", []byte("v0002")) })
	}
	c := openRecipes(t, dir, r)
	awaitAnswer(t, c, "/a", "v0002")
}

// TestScriptFiles serves single files. Scripts among them may be anywhere and have any name.
func TestScriptFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := testkit.Put(t, dir, "_a.recipe", []byte("b"))
	r := &recipes{t: t}
	f, err := directory.OpenFiles([]string{script}, directory.Options{Poll: 20 * time.Millisecond, Scripts: r})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	c := of(t, f, options{Scripts: r, Engine: sandboxtest.Engine(t, sandbox.Config{}), Poll: 20 * time.Millisecond}, catalog.Open)
	awaitTable(t, c, nil, []string{"_a.recipe"})
	swap(t, dir, "b", []byte("v0001"))
	awaitTable(t, c, []string{"/_a"}, nil)
	swap(t, dir, "b", []byte("v0002"))
	awaitAnswer(t, c, "/_a", "v0002")
}

// TestWithoutBuilder has a directory whose scripts are not to be served.
func TestWithoutBuilder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "a.recipe", "")
	testkit.Put(t, dir, "venv/pyvenv.cfg", "")
	testkit.Put(t, dir, "venv/b.wasm", version(t, "v0001", "", "b"))
	c := open(t, options{Directory: dir})
	awaitTable(t, c, []string{"/venv/b"}, nil)
}
