package directory_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/catalog/directory"
)

// put writes a file, with the folders on the way, and returns its path.
func put(t *testing.T, content string, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func openFiles(t *testing.T, o directory.Options, paths ...string) *directory.Files {
	t.Helper()
	f, err := directory.OpenFiles(paths, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// listed returns the names of the listed files, each with its error.
func listed(t *testing.T, f *directory.Files) []string {
	t.Helper()
	listing, err := f.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range listing.Entries {
		name := e.ID
		if e.Err != nil {
			name += " " + e.Err.Error()
		}
		names = append(names, name)
	}
	return names
}

// TestFilesNames checks that the names of files have no folders and are unique, and which path each name stands for.
func TestFilesNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := put(t, "", dir, "a", "x.wasm"), put(t, "", dir, "b", "x.wasm")
	other := put(t, "", dir, "a", ".hidden")
	f := openFiles(t, directory.Options{}, a, b, other, a, filepath.Join(dir, "b", "..", "a", "x.wasm"))
	if got, want := listed(t, f), []string{"x.wasm", "x.wasm (2)", ".hidden"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, want := range map[string]string{"x.wasm": a, "x.wasm (2)": b, ".": "."} {
		if got := f.Place(name); got != want {
			t.Errorf("place of %s: got %s, want %s", name, got, want)
		}
	}
}

func TestOpenFilesFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := put(t, "", dir, "a.wasm")
	for path, says := range map[string]string{
		filepath.Join(dir, "b.wasm"):     "there is no file " + filepath.Join(dir, "b.wasm"),
		dir:                              dir + " is a folder, not a file",
		filepath.Join(file, "in a file"): "in a file",
	} {
		if _, err := directory.OpenFiles([]string{file, path}, directory.Options{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %q", path, err, says)
		}
	}
}

// TestFilesRead reads the content that was listed, and none that came later.
func TestFilesRead(t *testing.T) {
	t.Parallel()
	file := put(t, "one", t.TempDir(), "a.wasm")
	f := openFiles(t, directory.Options{}, file)
	listing, err := f.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := listing.Entries[0]
	read := func(version string) (string, error) {
		r, err := f.Open(t.Context(), "a.wasm", version)
		if err != nil {
			return "", err
		}
		defer r.Close()
		content, err := io.ReadAll(r)
		return string(content), err
	}
	if got, err := read(first.Version); got != "one" || err != nil || first.Size != 3 || first.Settling != 0 {
		t.Errorf("got %q, %v of %+v", got, err, first)
	}
	put(t, "three", file)
	if _, err := read(first.Version); !errors.Is(err, catalog.ErrChanged) {
		t.Errorf("after a change: got %v, want ErrChanged", err)
	}
	if listing, err = f.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := listing.Entries[0]
	if second.Version == first.Version || second.Size != 5 || second.Settling == 0 {
		t.Errorf("got %+v after %+v, want another version that settles", second, first)
	}
	if got, err := read(second.Version); got != "three" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := read(first.Version); !errors.Is(err, catalog.ErrChanged) {
		t.Errorf("the version before: got %v, want ErrChanged", err)
	}
}

// TestFilesComeAndGo removes a file, puts something else in its place, and then puts a file there again.
func TestFilesComeAndGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := put(t, "one", dir, "a.wasm")
	f := openFiles(t, directory.Options{}, file)
	is := func(when string, want ...string) {
		t.Helper()
		if got := listed(t, f); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	is("at first", "a.wasm")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	is("gone with its folder")
	if err := os.MkdirAll(file, 0o755); err != nil {
		t.Fatal(err)
	}
	is("a folder in its place", "a.wasm is not a regular file: put a module here")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	put(t, "two", file)
	is("back", "a.wasm")
}

// TestFilesTell checks that changes are reported. The system reports them, except for a file behind a link, which is polled.
func TestFilesTell(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := put(t, "one", dir, "a.wasm")
	o := directory.Options{Poll: 100 * time.Millisecond}
	f := openFiles(t, o, file)
	list := func(f *directory.Files) *catalog.Listing {
		t.Helper()
		var l *catalog.Listing
		for range 2 { // the first listing starts the watch, and asks to be repeated soon
			var err error
			if l, err = f.List(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return l
	}
	if again := list(f).Again; again != time.Second {
		t.Errorf("a file that is watched is listed again after %s, want 1s", again)
	}
	put(t, "three", file)
	select {
	case <-f.Changes():
	case <-time.After(time.Minute):
		t.Error("a change was not reported")
	}
	link := filepath.Join(dir, "link.wasm")
	err = os.Symlink(file, link)
	if err == nil {
		_, err = os.Readlink(link) // wine falsely reports success
	}
	if err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	if again := list(openFiles(t, o, link)).Again; again != 100*time.Millisecond {
		t.Errorf("a link is listed again after %s, want 100ms", again)
	}
	o.PollOnly = true
	if again := list(openFiles(t, o, file)).Again; again != 100*time.Millisecond {
		t.Errorf("a file that is not watched is listed again after %s, want 100ms", again)
	}
}
