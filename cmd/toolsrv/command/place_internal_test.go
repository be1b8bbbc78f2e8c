package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// link makes a symbolic link.
func link(t *testing.T, to, name string) string {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Skip(err)
	}
	return name
}

func TestFindPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"plain/a.py", "plain/sub/b.py", "with/tools/a.py", "with/b.py", "file/tools", "file/a.py", "set/toolsrv.toml", "set/tools/a.py"} {
		testkit.Put(t, dir, name, "")
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	linked := link(t, at("with"), at("link"))
	for _, c := range []struct {
		name string
		args []string
		want place
	}{
		{"a folder", []string{at("plain")}, place{dir: at("plain"), folder: at("plain")}},
		{"a folder with a subfolder named tools", []string{at("with")}, place{dir: at("with"), folder: at("with/tools")}},
		{"by a link", []string{linked}, place{dir: linked, folder: filepath.Join(linked, "tools")}},
		{"a folder with a file named tools", []string{at("file")}, place{dir: at("file"), folder: at("file")}},
		{"a folder with a configuration", []string{at("set")}, place{dir: at("set"), config: at("set/toolsrv.toml")}},
		{"the folder tools itself", []string{at("with/tools")}, place{dir: at("with/tools"), folder: at("with/tools")}},
		{"a file", []string{at("plain/a.py")}, place{files: []string{at("plain/a.py")}}},
		{"files", []string{at("plain/a.py"), at("with/b.py")}, place{files: []string{at("plain/a.py"), at("with/b.py")}}},
	} {
		got, err := findPlace(c.args)
		if err != nil || got.dir != c.want.dir || got.config != c.want.config || got.folder != c.want.folder || !slices.Equal(got.files, c.want.files) {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

func TestFindPlaceRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, name := range []string{"a/a.py", "b/b.py", "main.go", "toolsrv.toml", "odd/toolsrv.toml/x"} {
		testkit.Put(t, dir, name, "")
	}
	link(t, at("loop"), at("loop"))
	link(t, "nowhere", at("dangling"))
	link(t, "toolsrv.toml", testkit.Put(t, dir, "around/x", "")[:len(at("around"))]+"/toolsrv.toml")
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"nothing there", []string{at("missing")}, "there is no file or folder"},
		{"a link to itself", []string{at("loop")}, "look at what to serve"},
		{"a link that leads nowhere", []string{at("dangling")}, "there is no file or folder"},
		{"a folder whose configuration is a link to itself", []string{at("around")}, "look for a configuration"},
		{"a folder whose configuration is a folder", []string{at("odd")}, "toolsrv.toml is not a regular file"},
		{"two folders", []string{at("a"), at("b")}, "name one folder, or files"},
		{"a folder and a file", []string{at("a"), at("b/b.py")}, "name one folder, or files"},
		{"a configuration", []string{at("toolsrv.toml")}, "is a configuration: name its folder"},
		{"a source in Go", []string{at("main.go")}, "neither a script"},
		{"a device", []string{os.DevNull}, "is not a regular file"},
	} {
		if got, err := findPlace(c.args); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %+v, %v; want an error with %q", c.name, got, err, c.says)
		}
	}
}
