package sbom

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

const (
	digest = "cee271d0eeba64f0915b846cb7ae02e16faf3dfdffdca91731101d9d30fe3423"
	notice = `A list.

Linked into the program (mousetrap on Windows only):

  Go's library and runtime                             BSD-3-Clause
  example.com/a v1.2.0+incompatible                    MIT
  example.com/a-module-with-a-long-path v0.0.0-20210728143218-7b4eea64cf58  Apache-2.0
  example.com/exporters/a-module/whose-path-is-wider-than-the-column v1.47.0  Apache-2.0

In the interpreter for JavaScript and TypeScript, which is in the program:

  Quick 0.16.2                                         MIT
  zig, with what its compiler links 0.17.1             MIT
  libc, of zig 0.17.1                                  Apache-2.0 WITH LLVM-exception OR MIT

In the interpreter for Python, which is in the program:

  Snake 3.13.5                                         PSF-2.0
  what Snake contains, according to its own list                 several, with Snake's
  zones 2026.6                                         Apache-2.0

In the pages for browsers, which are in the program:

  rect 1.2.3                                           MIT
`
)

// checkout returns a folder with the files that describe what engines were built from. change replaces the content of some.
func checkout(t *testing.T, change map[string]string) *release.Release {
	t.Helper()
	root := t.TempDir()
	dist := "internal/script/engine/dist/"
	files := map[string]string{
		"NOTICE":                             notice,
		dist + "javascript.wasm.gz":          "js",
		dist + "javascript.about.json":       `{"version":"quick 0.16.2","revision":"b3a7"}`,
		dist + "python.wasm.gz":              "py",
		dist + "python.about.json":           `{"version":"snake 3.13.5","revision":"fa64"}`,
		"sdk/js/engine/sources.txt":          "# Sources\ncrate quick-sys 0.14.0 " + digest + "\nversion quick 0.16.2\n\n# What it is tested with\ncrate url 1.0.0 " + digest + "\nnpm tests 1.0.0 " + digest + "\n",
		"sdk/python/engine/sources.txt":      "snake python3.13 python3.13_3.13.5.dfsg+really1.orig.tar.xz " + digest + "\n",
		"sdk/python/engine/requirements.txt": "# Zones\nzones==2026.6 --hash=sha256:" + digest + "\n",
		"sdk/engines/cache.sh":               "engines=x\nzig_version=0.17.1\n# Of amd64\nzig_sha256=\"" + digest + " " + digest + "\"\n",
	}
	for name, text := range change {
		files[name] = text
	}
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &release.Release{Root: root}
}

// TestEngines reads valid descriptions of what engines were built from, and then damages one file after another.
func TestEngines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, text, want string }{
		{"in order", "", "", ""},
		{"a line of an unknown kind", "sdk/js/engine/sources.txt", "gem quick 0.14.0\n", "an invalid line: gem quick"},
		{"a part without a source", "sdk/python/engine/sources.txt", "", "NOTICE lists Snake in the interpreter for Python"},
		{"a package without a digest", "sdk/python/engine/requirements.txt", "zones==2026.6\n", "NOTICE lists zones"},
		{"a compiler without a digest", "sdk/engines/cache.sh", "zig_version=0.17.1\n", "cache.sh does not say which zig"},
		{"a list without an engine", "NOTICE", "Linked into the program:\n\n", "NOTICE lists nothing that the interpreter for JavaScript contains"},
		{"an engine without a description", "internal/script/engine/dist/python.about.json", "{", "python.about.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			change := map[string]string{}
			if c.file != "" {
				change[c.file] = c.text
			}
			r := checkout(t, change)
			text, err := os.ReadFile(filepath.Join(r.Root, "NOTICE"))
			if err != nil {
				t.Fatal(err)
			}
			engines, err := enginesOf(r, readNotice(string(text)))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q in it", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range [][]Part{{
				{"Quick", "0.16.2", "MIT", "pkg:cargo/quick-sys@0.14.0", digest, nil},
				{"zig", "0.17.1", "MIT", "pkg:pypi/ziglang@0.17.1", digest, nil},
				{"libc", "0.17.1", "Apache-2.0 WITH LLVM-exception OR MIT", "", "", nil},
			}, {
				{"Snake", "3.13.5", "PSF-2.0", "pkg:deb/debian/python3.13@3.13.5.dfsg%2Breally1?arch=source", digest, nil},
				{"what Snake contains", "", "several, with Snake's", "", "", nil},
				{"zones", "2026.6", "Apache-2.0", "pkg:pypi/zones@2026.6", digest, nil},
			}} {
				for j, part := range engines[i].Parts {
					if got := part; got.Name != want[j].Name || got.Version != want[j].Version || got.License != want[j].License || got.URL != want[j].URL || got.SHA256 != want[j].SHA256 {
						t.Errorf("got %+v, want %+v", got, want[j])
					}
				}
				if len(engines[i].Parts) != len(want) {
					t.Errorf("%s has %d parts, want %d", engines[i].Name, len(engines[i].Parts), len(want))
				}
			}
		})
	}
}

func TestNotice(t *testing.T) {
	t.Parallel()
	if got := readNotice(notice)["pages"]; len(got) != 1 || got[0].Name != "rect" || got[0].Version != "1.2.3" || got[0].License != "MIT" {
		t.Errorf("the pages have %+v", got)
	}
	got := readNotice(notice)["Linked"]
	want := []Part{
		{Name: "Go's library and runtime", License: "BSD-3-Clause"},
		{Name: "example.com/a", Version: "v1.2.0+incompatible", License: "MIT"},
		{Name: "example.com/a-module-with-a-long-path", Version: "v0.0.0-20210728143218-7b4eea64cf58", License: "Apache-2.0"},
		{Name: "example.com/exporters/a-module/whose-path-is-wider-than-the-column", Version: "v1.47.0", License: "Apache-2.0"},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d parts, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Name != want[i].Name || got[i].Version != want[i].Version || got[i].License != want[i].License {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

// TestWholeNotice reads every row that `make licenses` has written. Making a whole release would read them too, but takes minutes.
func TestWholeNotice(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for kind, parts := range readNotice(string(text)) {
		rows += len(parts)
		for _, p := range parts {
			if kind == "Linked" && (p.Version == "") != (p.Name == "Go's library and runtime") || strings.Contains(p.Name, "  ") {
				t.Errorf("a row of %s is read as %+v", kind, p)
			}
			if kind == "Linked" && !isExpression(p.License) {
				t.Errorf("%s has the licence %q", p.Name, p.License)
			}
		}
	}
	if want := strings.Count(string(text), "\n  "); rows != want || rows < 100 {
		t.Errorf("read %d rows, want %d", rows, want)
	}
}

// TestModules checks that a module which nobody could download again is an error.
func TestModules(t *testing.T) {
	t.Parallel()
	const sum = "h1:Khu2En+0gcYPZ2kuIihfswbzxv/mIHXgzPZ018Oty48="
	for name, c := range map[string]struct {
		module debug.Module
		want   string // its package URL, or "" for an error
	}{
		"a module":              {debug.Module{Path: "example.com/A/b", Version: "v1.0.0+incompatible", Sum: sum}, "pkg:golang/example.com/a/b@v1.0.0%2Bincompatible"},
		"replaced by a module":  {debug.Module{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0", Sum: sum}}, "pkg:golang/example.com/c@v2.0.0"},
		"replaced by a folder":  {debug.Module{Path: "example.com/a", Version: "v1.0.0", Sum: sum, Replace: &debug.Module{Path: "../c"}}, ""},
		"no sum":                {debug.Module{Path: "example.com/a", Version: "v1.0.0"}, ""},
		"half a sum":            {debug.Module{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:Khu2"}, ""},
		"a sum of another kind": {debug.Module{Path: "example.com/a", Version: "v1.0.0", Sum: "h2:" + sum}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts, err := Modules([]*debug.Module{&c.module})
			if c.want == "" {
				if err == nil {
					t.Errorf("got %+v, want an error", parts)
				}
				return
			}
			if err != nil || parts[0].URL != c.want || parts[0].SHA256 != "2a1bb6127fb481c60f67692e22285fb306f3c6ffe62075e0ccf674d7c3adcb8f" {
				t.Errorf("got %+v, %v, want %s", parts, err, c.want)
			}
		})
	}
}

func TestExpression(t *testing.T) {
	t.Parallel()
	for license, want := range map[string]bool{
		"MIT": true, "Apache-2.0 WITH LLVM-exception OR MIT": true, "BSD-3-Clause AND MIT": true,
		"": false, "several, with CPython's": false, "MIT Apache-2.0": false, "OR": false, "MIT OR": false, "public domain": false,
	} {
		if got := isExpression(license); got != want {
			t.Errorf("%q: got %v, want %v", license, got, want)
		}
	}
}
