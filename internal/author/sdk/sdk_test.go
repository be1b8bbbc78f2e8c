package sdk_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/author/sdk"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

var update = flag.Bool("update", false, "write sdk.zip again")

// most is how many bytes the SDKs may add to the program: now they take 680 KB.
const most = 1 << 20

// TestArchive checks sdk.zip against the tree: the same files, in the same order, with the same bytes.
func TestArchive(t *testing.T) {
	t.Parallel()
	want := pack(t, tree(t))
	if !bytes.Equal(want, pack(t, tree(t))) {
		t.Error("two archives of one tree differ")
	}
	if *update {
		testkit.Put(t, ".", "sdk.zip", want)
		return
	}
	got := testkit.Read(t, "sdk.zip")
	if bytes.Equal(got, want) {
		if len(got) > most {
			t.Errorf("sdk.zip has %d bytes, and %d are allowed", len(got), most)
		}
		return
	}
	t.Error("sdk.zip is not what is in sdk/: run make sdk")
	old := map[string][]byte{}
	r, err := zip.NewReader(bytes.NewReader(got), int64(len(got)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		if old[f.Name], err = fs.ReadFile(r, f.Name); err != nil {
			t.Error(err)
		}
	}
	for name, content := range tree(t) {
		before, found := old[name]
		if delete(old, name); !found {
			t.Errorf("sdk.zip lacks %s", name)
		} else if !bytes.Equal(before, content) {
			t.Errorf("sdk.zip has a different %s", name)
		}
	}
	for name := range old {
		t.Errorf("sdk.zip has %s, which is no longer in sdk/", name)
	}
}

// TestFiles reads each SDK as a new project does.
func TestFiles(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"go": "go.mod", "rust": "toolsrv/Cargo.toml", "python": "pyproject.toml", "js": "index.js"} {
		files, err := sdk.Files(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := fs.ReadFile(files, file)
		if want := testkit.Read(t, "../../../sdk", name, file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s/%s is %q, %v; want %q", name, file, got, err, want)
		}
	}
	for _, name := range []string{"", "cobol", "../go"} {
		if files, err := sdk.Files(name); err == nil {
			t.Errorf("%q: got %v, want an error", name, files)
		}
	}
}

// pack returns an archive that depends only on the files.
func pack(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &zip.FileHeader{Name: name, Method: zip.Store, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(0o644)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write(files[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tree returns the files in the folder sdk that authors need, by their paths there.
func tree(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	add := func(root string, wanted func(name string) bool) {
		t.Helper()
		before := len(files)
		err := fs.WalkDir(os.DirFS("../../../sdk"), root, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && strings.HasPrefix(d.Name(), "."):
				return fs.SkipDir
			case d.IsDir() || !wanted(name):
				return nil
			}
			files[name], err = os.ReadFile(filepath.Join("../../../sdk", filepath.FromSlash(name)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == before {
			t.Fatalf("nothing of sdk/%s is wanted", root)
		}
	}
	all := func(string) bool { return true }

	add("go", func(name string) bool {
		switch dir := path.Dir(name); {
		case strings.Contains(name, "/testdata/"), dir == "go/internal/conformance", dir == "go/internal/guest", dir == "go/internal/reach", dir == "go/internal/refused":
			return false // guests for our tests
		}
		return path.Base(name) == "go.mod" || path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go")
	})
	files["go/LICENSE"] = testkit.Read(t, "../../../LICENSE")

	for _, name := range []string{"Cargo.toml", "README.md", "rustfmt.toml"} {
		add("rust/"+name, all)
	}
	for _, crate := range []string{"toolsrv", "toolsrv-macros"} {
		add("rust/"+crate+"/Cargo.toml", all)
		add("rust/"+crate+"/LICENSE", all)
		add("rust/"+crate+"/src", all)
	}

	for _, name := range []string{"pyproject.toml", "README.md", "LICENSE"} {
		add("python/"+name, all)
	}
	add("python/toolsrv", func(name string) bool { return path.Ext(name) == ".py" || path.Base(name) == "py.typed" })

	// npm adds these three to the files that the package names.
	var said struct{ Files []string }
	if err := json.Unmarshal(testkit.Read(t, "../../../sdk/js/package.json"), &said); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(said.Files, "package.json", "README.md", "LICENSE") {
		add("js/"+name, all)
	}

	// What only our own tests need is left out: the workspace's guests, and packages that npm would install even if a project uses the SDK in a
	// folder.
	edit := func(name, pattern, by string) {
		t.Helper()
		old := regexp.MustCompile(pattern)
		if len(old.FindAll(files[name], -1)) != 1 {
			t.Fatalf("%s has no %s, or several", name, pattern)
		}
		files[name] = old.ReplaceAll(files[name], []byte(by))
	}
	edit("rust/Cargo.toml", `(?m)^members = .*`, `members = ["toolsrv", "toolsrv-macros"]`)
	edit("js/package.json", `(?s),\n  "devDependencies": \{.*?\n  \}`, "")
	return files
}
