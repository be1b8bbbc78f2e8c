package engine_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
)

const about = `{"name": "toy", "version": "toy 1.0", "revision": "abc", "capacity": 100}`

// toy returns an engine's module with one page of memory, whose region begins at 65000.
func toy(about string, sections ...[]byte) []byte {
	section, vec, str, b := wasmtest.Section, wasmtest.Vec, wasmtest.Str, wasmtest.Bytes
	all := [][]byte{
		section(5, vec(b(0, 1))),
		section(6, vec(b(0x7f, 0, 0x41, 0xe8, 0xfb, 0x03, 0x0b))),
		section(7, vec(slices.Concat(str("toolsrv_bundle"), b(3, 0)))),
	}
	if sections != nil {
		all = sections
	}
	if about != "" {
		all = append(all, wasmtest.Custom("toolsrv.engine", about))
	}
	return wasmtest.Module(all...)
}

func TestParse(t *testing.T) {
	t.Parallel()
	e, err := engine.Parse(toy(about))
	if err != nil {
		t.Fatal(err)
	}
	want := engine.About{Name: "toy", Version: "toy 1.0", Revision: "abc", Capacity: 100}
	if e.About != want || e.String() != "toy 1.0 (abc)" || !bytes.Equal(e.Module(), toy(about)) {
		t.Errorf("got %+v %q", e.About, e.String())
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	section, vec, str, b := wasmtest.Section, wasmtest.Vec, wasmtest.Str, wasmtest.Bytes
	global := section(6, vec(b(0x7f, 0, 0x41, 0, 0x0b)))
	export := section(7, vec(slices.Concat(str("toolsrv_bundle"), b(3, 0))))
	for name, c := range map[string]struct {
		module []byte
		err    string
	}{
		"no module":       {[]byte("hello"), "not a WebAssembly module"},
		"no section":      {toy(""), "no custom section toolsrv.engine"},
		"two sections":    {append(toy(about), wasmtest.Custom("toolsrv.engine", about)...), "two custom sections"},
		"no JSON":         {toy("{"), "custom section toolsrv.engine"},
		"unknown member":  {toy(`{"name": "toy", "speed": 1}`), "speed"},
		"more than one":   {toy(about + about), "more than one value"},
		"no name":         {toy(`{"version": "1", "revision": "a", "capacity": 1}`), `"name"`},
		"two lines":       {toy(`{"name": "toy\n", "version": "1", "revision": "a", "capacity": 1}`), `"name"`},
		"long version":    {toy(`{"name": "toy", "version": "` + strings.Repeat("1", 101) + `", "revision": "a", "capacity": 1}`), `"version"`},
		"no capacity":     {toy(`{"name": "toy", "version": "1", "revision": "a"}`), `"capacity"`},
		"negative":        {toy(`{"name": "toy", "version": "1", "revision": "a", "capacity": -1}`), `"capacity"`},
		"over the memory": {toy(`{"name": "toy", "version": "1", "revision": "a", "capacity": 537}`), "not within its memory"},
		"no region":       {toy(about, section(5, vec(b(0, 1)))), "does not export the address"},
		"no memory":       {toy(about, global, export), "not within its memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if e, err := engine.Parse(c.module); err == nil || e != nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, %v, want an error with %q", e, err, c.err)
			}
		})
	}
	if _, err := engine.Parse(toy(strings.Replace(about, "100", "536", 1))); err != nil {
		t.Errorf("up to the end of the memory: %v", err)
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	e, err := engine.Parse(toy(about))
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Append([]engine.File{{Name: "hello.ts", Data: []byte("go()")}, {Name: "é", Data: nil}})
	if err != nil {
		t.Fatal(err)
	}
	bundle := "TSB1\x02\x00\x00\x00" + "\x08\x00\x00\x00\x04\x00\x00\x00hello.tsgo()" + "\x02\x00\x00\x00\x00\x00\x00\x00é"
	segment := slices.Concat(wasmtest.Bytes(0, 0x41, 0xe8, 0xfb, 0x03, 0x0b), wasmtest.Str(bundle))
	if want := append(toy(about), wasmtest.Section(11, wasmtest.Vec(segment))...); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !bytes.Equal(e.Module(), toy(about)) {
		t.Error("the engine has changed")
	}
	// It is still an engine: a bundle can be replaced by appending another one.
	if _, err := engine.Parse(got); err != nil {
		t.Error(err)
	}
	if _, err := wasmbin.Parse(got); err != nil {
		t.Error(err)
	}
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	e, err := engine.Parse(toy(about))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, size int) engine.File { return engine.File{Name: name, Data: make([]byte, size)} }
	for name, c := range map[string]struct {
		files []engine.File
		err   string
	}{
		"none":       {nil, "needs a script"},
		"no name":    {[]engine.File{file("", 1)}, "not a valid name"},
		"not UTF-8":  {[]engine.File{file("\xff", 1)}, "not a valid name"},
		"one name":   {[]engine.File{file("a", 1), file("b", 1), file("a", 2)}, `the name "a"`},
		"too large":  {[]engine.File{file("a", 83)}, "100 bytes"},
		"larger yet": {[]engine.File{file("a", 1), file("b", 1<<20)}, "leave out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := e.Append(c.files); err == nil || got != nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %d bytes, %v, want an error with %q", len(got), err, c.err)
			}
		})
	}
	if _, err := e.Append([]engine.File{file("a", 82)}); err != nil {
		t.Errorf("the largest: %v", err)
	}
}

func packed(t *testing.T, module []byte) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(module); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

func TestSet(t *testing.T) {
	t.Parallel()
	set := engine.From(fstest.MapFS{
		"README.md":        {Data: []byte("# Engines")},
		"toy.wasm.gz":      packed(t, toy(about)),
		"toy.about.json":   {Data: []byte(about)},
		"toy.licenses.txt": {Data: []byte("MIT")},
	})
	e, err := set.Open("toy")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := set.Open("toy"); again != e || err != nil {
		t.Errorf("Open again: got %p, %v, want %p", again, err, e)
	}
	list, err := set.List()
	if err != nil || len(list) != 1 || list[0] != e.About {
		t.Errorf("List: got %v, %v", list, err)
	}
	if got, err := set.Licenses("toy"); got != "MIT" || err != nil {
		t.Errorf("Licenses: got %q, %v", got, err)
	}
	for _, name := range []string{"perl", "", "..", "../toy", "README.md"} {
		if e, err := set.Open(name); e != nil || err == nil || !strings.Contains(err.Error(), "there is no engine for") {
			t.Errorf("Open(%q): got %v, %v, want an error", name, e, err)
		}
	}
	if _, err := set.Licenses("perl"); err == nil {
		t.Error("Licenses of an engine that isn't there: no error")
	}
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	whole := packed(t, toy(about))
	for name, c := range map[string]struct {
		file *fstest.MapFile
		err  string
	}{
		"not packed":   {&fstest.MapFile{Data: toy(about)}, "unpack"},
		"cut off":      {&fstest.MapFile{Data: whole.Data[:len(whole.Data)-9]}, "unpack"},
		"too large":    {packed(t, make([]byte, 64<<20+1)), "more than"},
		"no engine":    {packed(t, toy("")), "not an engine"},
		"another name": {packed(t, toy(strings.Replace(about, `"toy"`, `"python"`, 1))), "says that it is python"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := engine.From(fstest.MapFS{"toy.wasm.gz": c.file})
			if e, err := set.Open("toy"); err == nil || e != nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("Open: got %v, %v, want an error with %q", e, err, c.err)
			}
		})
	}
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ about, err string }{
		"not JSON":       {"toy", "toy.about.json: "},
		"two values":     {about + about, "more than one value"},
		"another member": {strings.Replace(about, "{", `{"x": 1, `, 1), `unknown field "x"`},
		"another name":   {strings.Replace(about, `"toy"`, `"python"`, 1), "says that it is python"},
		"no version":     {strings.Replace(about, "toy 1.0", "", 1), `"version" is not a line`},
	} {
		set := engine.From(fstest.MapFS{"toy.about.json": {Data: []byte(c.about)}})
		if list, err := set.List(); err == nil || list != nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, %v, want an error with %q", name, list, err, c.err)
		}
	}
}

// The engines in the binary are intact.
func TestCarried(t *testing.T) {
	t.Parallel()
	set := engine.Carried()
	list, err := set.List()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Name != "javascript" || list[1].Name != "python" {
		t.Errorf("got the engines %v, want those for JavaScript and Python", list)
	}
	for _, about := range list {
		if e, err := set.Open(about.Name); err != nil || e.About != about {
			t.Errorf("%s.about.json says %+v, and the engine %+v (%v)", about.Name, about, e, err)
		}
		if licenses, err := set.Licenses(about.Name); err != nil || len(licenses) < 100 {
			t.Errorf("the licences of %s: %q, %v", about.Name, licenses, err)
		}
	}
}

// TestSources fails if the sources of an engine have changed and the engine in the tree was not built again. The recipe prints the digest
// of its sources.
func TestSources(t *testing.T) {
	t.Parallel()
	const sdk = "../../../sdk"
	for _, program := range []string{"sh", "sha256sum", "sed", "awk"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the recipes of engines need %s: %v", program, err)
		}
	}
	// go test caches a result until a file changes that this process itself has looked at. So it looks at all files that the recipe reads.
	for _, folder := range []string{"engines", "js", "js/engine", "js/engine/web", "python/engine", "python/engine/lib", "python/toolsrv"} {
		files, err := os.ReadDir(filepath.Join(sdk, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if _, err := os.Stat(filepath.Join(sdk, folder, file.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, folder := range map[string]string{"javascript": "js", "python": "python"} {
		e, err := engine.Carried().Open(name)
		if err != nil {
			t.Fatal(err)
		}
		revision, err := exec.Command("sh", filepath.Join(sdk, folder, "engine", "build.sh"), "--revision").Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(revision)); got != e.Revision {
			t.Errorf("the engine for %s was built from other sources (%s) than those in sdk (%s): run make engines, and commit internal/script/engine/dist", name, e.Revision, got)
		}
	}
}
