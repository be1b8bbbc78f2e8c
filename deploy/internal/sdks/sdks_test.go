package sdks_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
	"github.com/toolsrv/toolsrv/deploy/internal/sdks"
)

// between is the version for a commit without a tag.
const between = "0.0.0-20260102150405-abcdefabcdef"

// commit returns a release of the checkout's commit, without built programs.
func commit(t *testing.T, version string) *release.Release {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &release.Release{Root: root, Out: t.TempDir(), Version: version, Time: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)}
	r.Commit = strings.TrimSpace(output(t, root, nil, "git", "rev-parse", "HEAD"))
	return r
}

// output runs a command in a folder and returns its output.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, &stderr)
	}
	return string(out)
}

// TestVersion: no packages are made if their version differs from the tag's.
func TestVersion(t *testing.T) {
	t.Parallel()
	r := commit(t, "99.0.0")
	if err := sdks.Make(t.Context(), r); err == nil || !strings.Contains(err.Error(), "the release is 99.0.0: give them the same") {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(r.Out); err != nil || len(entries) > 0 {
		t.Errorf("%d files were made nevertheless (%v)", len(entries), err)
	}
}

// TestPackages installs each package into a new project, as an author does, runs the project's tests, and checks the package with the registries'
// own programs. No project sees the checkout.
func TestPackages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it installs packages of registries, and compiles them")
	}
	for _, name := range []string{"python3", "node", "npm", "cargo", "go"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s: %v", name, err)
		}
	}
	r := commit(t, between)
	if err := sdks.Make(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "toolsrv")
	output(t, r.Root, []string{"CGO_ENABLED=0"}, "go", "build", "-o", program, "./cmd/toolsrv")
	a := author{t, r, program}
	for name, test := range map[string]func(author){
		"files": author.files,
		"wheel": func(a author) { a.python("toolsrv-*.whl") },
		"sdist": func(a author) { a.python("toolsrv-*.tar.gz") },
		"twine": author.twine,

		"javascript": author.javascript,
		"typescript": author.typescript,
		"npm":        author.npm,

		"rust":  author.rust,
		"cargo": author.cargo,

		"go":   author.golang,
		"docs": author.docs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(author{t, a.r, a.program})
		})
	}
}

// An author has the packages of a release, the program, and nothing else from us.
type author struct {
	t       *testing.T
	r       *release.Release
	program string
}

// file returns the path of the only file of the release that a pattern matches.
func (a author) file(pattern string) string {
	a.t.Helper()
	found, err := filepath.Glob(filepath.Join(a.r.Out, "sdk", filepath.FromSlash(pattern)))
	if err != nil || len(found) != 1 {
		a.t.Fatalf("%s is %q, %v; want one file", pattern, found, err)
	}
	return found[0]
}

// project makes a project that requires the published SDK.
func (a author) project(language string) string {
	a.t.Helper()
	dir := filepath.Join(a.t.TempDir(), "greet")
	output(a.t, a.t.TempDir(), nil, a.program, "new", dir, "--lang", language, "--sdk=")
	return dir
}

func (a author) python(pattern string) {
	dir := a.project("python")
	output(a.t, dir, nil, "python3", "-m", "venv", ".venv")
	pip := filepath.Join(dir, ".venv", "bin", "pip")
	output(a.t, dir, nil, pip, "install", "--quiet", a.file("python/"+pattern))
	output(a.t, dir, nil, pip, "install", "--quiet", "--editable", ".[test]")
	if got := output(a.t, dir, nil, filepath.Join(dir, ".venv", "bin", "pytest")); !strings.Contains(got, "3 passed") {
		a.t.Errorf("pytest: %s", got)
	}
	const program = "import importlib.metadata as m, toolsrv; print(toolsrv.__file__, m.metadata('toolsrv')['License-Expression'], m.version('toolsrv') == toolsrv.__version__)"
	got := output(a.t, dir, nil, filepath.Join(dir, ".venv", "bin", "python"), "-c", program)
	if !strings.HasPrefix(got, filepath.Join(dir, ".venv")+"/") || !strings.HasSuffix(got, " Apache-2.0 True\n") {
		a.t.Errorf("the installed package is %s", got)
	}
}

func (a author) twine() {
	dir := a.t.TempDir()
	output(a.t, dir, nil, "python3", "-m", "venv", ".venv")
	output(a.t, dir, nil, ".venv/bin/pip", "install", "--quiet", "twine==6.2.0")
	got := output(a.t, dir, []string{"COLUMNS=1000"}, ".venv/bin/twine", "--no-color", "check", "--strict", a.file("python/*.whl"), a.file("python/*.tar.gz"))
	if strings.Count(got, "PASSED") != 2 {
		a.t.Errorf("twine check: %s", got)
	}
}

func (a author) javascript() {
	dir := a.project("javascript")
	output(a.t, dir, nil, "npm", "install", "--offline", a.file("npm/*.tgz"))
	if got := output(a.t, dir, nil, "npm", "test"); !strings.Contains(got, "pass 3") {
		a.t.Errorf("npm test: %s", got)
	}
}

func (a author) typescript() {
	dir := a.project("typescript")
	output(a.t, dir, nil, "npm", "install", a.file("npm/*.tgz"))
	if got := output(a.t, dir, nil, "npm", "test"); !strings.Contains(got, "pass 3") {
		a.t.Errorf("npm test: %s", got)
	}
	output(a.t, dir, nil, "npm", "run", "check") // checks the types of the project against the package's
}

// npm lets npm check the package, as it does before publishing one.
func (a author) npm() {
	cmd := exec.CommandContext(a.t.Context(), "npm", "publish", "--dry-run", "--json", a.file("npm/*.tgz"))
	cmd.Dir = a.t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("auto-corrected")) || !bytes.Contains(out, []byte("index.d.ts")) {
		a.t.Errorf("npm publish: %v\n%s", err, out)
	}
}

func (a author) rust() {
	dir, crates := a.project("rust"), a.t.TempDir()
	args := []string{"test", "--quiet", "--locked"}
	for _, name := range []string{"toolsrv", "toolsrv-macros"} {
		crate := a.file("crates/" + name + "-[0-9]*.crate")
		for file, content := range untar(a.t, crate) {
			put(a.t, filepath.Join(crates, filepath.FromSlash(file)), content)
		}
		folder := filepath.Join(crates, strings.TrimSuffix(filepath.Base(crate), ".crate"))
		args = append(args, "--config", "patch.crates-io."+name+".path='"+folder+"'")
	}
	// The lock file names the versions of crates that the SDK is tested with. They are compiled where other tests compile them.
	lock, err := os.ReadFile(filepath.Join(a.r.Root, "sdk", "rust", "Cargo.lock"))
	if err != nil {
		a.t.Fatal(err)
	}
	put(a.t, filepath.Join(dir, "Cargo.lock"), lock)
	output(a.t, dir, nil, "cargo", append([]string{"fetch"}, args[3:]...)...) // removes from the lock file what only our own guests need
	output(a.t, dir, []string{"CARGO_TARGET_DIR=" + filepath.Join(a.r.Root, "build", "project")}, "cargo", args...)
}

// cargo compiles both packed crates together, since one requires the other.
func (a author) cargo() {
	dir := filepath.Join(a.r.Root, "sdk", "rust")
	output(a.t, dir, nil, "cargo", "package", "--quiet", "--locked", "--allow-dirty", "--target-dir", a.t.TempDir(), "-p", "toolsrv-macros", "-p", "toolsrv")
}

func (a author) golang() {
	dir := a.project("go")
	env := []string{"GOPROXY=file://" + filepath.Join(a.r.Out, "sdk", "goproxy"), "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOMODCACHE=" + a.t.TempDir(), "GOTOOLCHAIN=local", "GOWORK=off"}
	output(a.t, dir, env, "go", "mod", "tidy")
	output(a.t, dir, env, "go", "test", ".")
	output(a.t, dir, env, a.program, "build", ".")
}

// docs reads the Go module as a documentation site does: it has a licence, and a comment for each package that can be imported. Everything in it
// compiles, including examples.
func (a author) docs() {
	a.t.Helper()
	archive := a.file("goproxy/github.com/toolsrv/toolsrv/sdk/go/@v/*.zip")
	z, err := zip.OpenReader(archive)
	if err != nil {
		a.t.Fatal(err)
	}
	defer z.Close()
	dir := a.t.TempDir()
	for _, f := range z.File {
		_, name, _ := strings.Cut(f.Name, "@"+strings.TrimSuffix(filepath.Base(archive), ".zip")+"/")
		r, err := f.Open()
		if err != nil {
			a.t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			a.t.Fatal(err)
		}
		put(a.t, filepath.Join(dir, filepath.FromSlash(name)), content)
	}
	if _, err := os.Stat(filepath.Join(dir, "LICENSE")); err != nil {
		a.t.Error(err)
	}
	env := []string{"GOFLAGS=", "GOWORK=off", "GOPROXY=off", "GOTOOLCHAIN=local"}
	packages := 0
	for line := range strings.Lines(output(a.t, dir, env, "go", "list", "-f", "{{.ImportPath}}\t{{.Name}}\t{{.Doc}}", "./...")) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if slices.Contains(strings.Split(words[0], "/"), "internal") {
			continue
		}
		if packages++; !strings.HasPrefix(words[2], "Package "+words[1]+" ") {
			a.t.Errorf("%s has the comment %q", words[0], words[2])
		}
	}
	if packages < 8 {
		a.t.Errorf("the module has %d packages that can be imported, want at least 8", packages)
	}
	output(a.t, dir, env, "go", "vet", "./...")
}

// files checks the content of the packages: each has a licence and a README, and none has tests, engines or paths of this machine.
func (a author) files() {
	for pattern, want := range map[string][]string{
		"python/toolsrv-*.tar.gz":            {"LICENSE", "README.md", "PKG-INFO", "toolsrv/py.typed"},
		"npm/toolsrv-npm-*.tgz":              {"LICENSE", "README.md", "package.json", "index.d.ts"},
		"crates/toolsrv-[0-9]*.crate":        {"LICENSE", "README.md", "Cargo.toml", "src/lib.rs"},
		"crates/toolsrv-macros-[0-9]*.crate": {"LICENSE", "Cargo.toml", "src/lib.rs"},
	} {
		found := untar(a.t, a.file(pattern))
		var names []string
		for name, content := range found {
			_, name, _ = strings.Cut(name, "/")
			names = append(names, name)
			for _, word := range []string{"test/", "tests/", "engine/", "conformance/"} {
				if strings.HasPrefix(name, word) {
					a.t.Errorf("%s has %s", pattern, name)
				}
			}
			if bytes.Contains(content, []byte(a.r.Root)) {
				a.t.Errorf("%s: the checkout is named in %s", pattern, name)
			}
		}
		for _, name := range want {
			if !slices.Contains(names, name) {
				a.t.Errorf("%s has no %s: %q", pattern, name, names)
			}
		}
	}
}

// untar returns the files of a .tar.gz.
func untar(t *testing.T, file string) map[string][]byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func put(t *testing.T, file string, content []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
