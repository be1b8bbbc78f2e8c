package python_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/script/python"
)

// write makes the files of a test in a new folder. A name that ends in "@" is a link, and the content is its target.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(strings.TrimSuffix(name, "@")))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		err := error(nil)
		if strings.HasSuffix(name, "@") {
			err = os.Symlink(content, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// collect returns the names of the files that are collected for hello.py.
func collect(t *testing.T, folder string, o python.Options) ([]string, error) {
	t.Helper()
	files, _, err := python.Collect(t.Context(), filepath.Join(folder, "hello.py"), o)
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names, err
}

const site = ".venv/lib/python3.11/site-packages/"

func TestCollect(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"alone", map[string]string{"hello.py": "import json\nimport toolsrv\n", "other.py": "", "toolsrv.py": ""}, "hello.py"},
		{"a module", map[string]string{"hello.py": "import shapes", "shapes.py": "import units as u", "units.py": ""}, "hello.py shapes.py units.py"},
		{"modules that import each other", map[string]string{"hello.py": "import a", "a.py": "import b", "b.py": "import a, hello"}, "hello.py a.py b.py"},
		{"a package with data", map[string]string{
			"hello.py": "from shapes.round import circle", "shapes/__init__.py": "", "shapes/round.py": "import units", "shapes/data/pi.txt": "3",
			"shapes/__pycache__/round.pyc": "", "shapes/.git/config": "", "shapes/py.typed": "", "units.py": "",
		}, "hello.py shapes/__init__.py shapes/data/pi.txt shapes/round.py units.py"},
		{"a package without __init__.py", map[string]string{"hello.py": "import shapes.round", "shapes/round.py": "", "data/x.txt": ""}, "hello.py shapes/round.py"},
		{"a folder that is no package", map[string]string{"hello.py": "import data", "data/x.txt": ""}, "hello.py"},
		{"everywhere in a file", map[string]string{
			"hello.py": "def f():\n\tfrom a import x\ntry: import b\nexcept ImportError: pass\nx = 1; import c , d.e as f, \\\n  g\nif x:\n from h \\\n  import y\n",
			"a.py":     "", "b.py": "", "c.py": "", "d/e.py": "", "g.py": "", "h.py": "",
		}, "hello.py a.py b.py c.py d/e.py g.py h.py"},
		{"not in texts and comments", map[string]string{
			"hello.py": "# import a\n'''\nimport b\n'''\nx = \"import c\"\ny = 'it\\'s'; import d\nz = r'\\'; import e\nf'{x!r:>{10}}'\n\"\"\"\\\"\"\"\nimport f\n\"\"\"\nimport g",
			"a.py":     "", "b.py": "", "c.py": "", "d.py": "", "f.py": "", "g.py": "",
		}, "hello.py d.py g.py"},
		{"other letters and line ends", map[string]string{"hello.py": "\ufeff# é\r\nimport größe\r\nimport b\r\n", "größe.py": "", "b.py": ""}, "hello.py größe.py b.py"},
		{"a relative import", map[string]string{"hello.py": "from . import a\nfrom .b import c", "a.py": "", "b.py": ""}, "hello.py"},
		{"broken code", map[string]string{"hello.py": "import a\ndef (:\n 'x\nimport b", "a.py": "", "b.py": ""}, "hello.py a.py b.py"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			folder := write(t, test.files)
			for _, root := range []string{"", folder} {
				got, err := collect(t, folder, python.Options{Root: root})
				if err != nil || strings.Join(got, " ") != test.want {
					t.Errorf("below %q: got %q, %v, want %q", root, got, err, test.want)
				}
			}
		})
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{
		"hello.py": "import shapes, units", "libs/shapes/__init__.py": "import colors", "libs/colors.py": "", "libs/unused.py": "", "libs/units.py": "1", "units.py": "0",
		"odd-name/__init__.py": "",
	})
	for _, test := range []struct{ with, want, wrong string }{
		{"libs", "hello.py shapes/__init__.py colors.py units.py", ""},
		{"libs/shapes", "hello.py shapes/__init__.py units.py", ""},
		{"nowhere", "", "there is no such folder"},
		{"odd-name", "", "can't be imported"},
	} {
		got, err := collect(t, folder, python.Options{With: []string{filepath.Join(folder, test.with)}})
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("--with %s: got %q, %v, want %q", test.with, got, err, test.wrong)
			}
			continue
		}
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("--with %s: got %q, %v, want %q", test.with, got, err, test.want)
		}
	}
}

// library returns the files of an installed library.
func library(name, needs string, files ...string) map[string]string {
	info := site + strings.ReplaceAll(name, "-", "_") + "-1.0.dist-info/"
	record := "../../../bin/" + name + ",,\n" + name + "-1.0.dist-info/METADATA,,\n"
	out := map[string]string{}
	for _, file := range files {
		record += file + ",sha256=x,1\n"
		out[site+file] = ""
	}
	metadata := "Metadata-Version: 2.1\nName: " + name + "\n"
	for need := range strings.SplitSeq(needs, "|") {
		if need != "" {
			metadata += "Requires-Dist: " + need + "\n"
		}
	}
	out[info+"METADATA"] = metadata + "\nA manual.\n"
	out[info+"RECORD"] = record
	return out
}

// project returns a script with dependencies, and its virtual environment.
func project(toml string, libraries ...map[string]string) map[string]string {
	out := map[string]string{"hello.py": "import Foo", "pyproject.toml": "[project]\nname = 'x'\n[tool.toolsrv]\n" + toml}
	for _, files := range libraries {
		for name, content := range files {
			out[name] = content
		}
	}
	return out
}

// general returns a script in a project whose dependencies are not only for toolsrv, and its virtual environment.
func general(dependencies string, libraries ...map[string]string) map[string]string {
	out := project("", libraries...)
	out["hello.py"], out["pyproject.toml"] = "import foo", "[project]\nname = 'x'\ndependencies = "+dependencies
	return out
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	foo := library("Foo", `bar_baz >=1; python_version >= "3.8"|old; python_version < "3.13" and (sys_platform == "win32" or extra == "x")|more ; extra == 'all'|odd; nonsense`,
		"foo/__init__.py", "foo/data.json", "foo/__pycache__/x.pyc", "foo_single.py")
	bar := library("bar.baz", "foo", "bar/__init__.py")
	fast := library("fast", "", "fast/__init__.py", "fast/_speed.cpython-311-x86_64-linux-gnu.so")
	more := library("more", "", "more.py")
	odd := library("odd", "", "odd.py")
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
		wrong string
	}{
		{"a library and what it needs", project(`dependencies = ["foo>=1,<2"]`, foo, bar, odd),
			"hello.py foo/__init__.py foo/data.json foo_single.py bar/__init__.py bar.baz-1.0.dist-info/METADATA odd.py odd-1.0.dist-info/METADATA Foo-1.0.dist-info/METADATA", ""},
		{"extras that another library requests later", project(`dependencies = ["foo", "user"]`, foo, bar, more, odd, library("user", "foo[all]", "user.py")), "more.py user.py", ""},
		{"extras", project(`dependencies = ["foo[ALL]"]`, foo, bar, more, odd), "more.py", ""},
		{"the engine's own", project(`dependencies = ["toolsrv @ file:///x;y"]`, foo), "hello.py", ""},
		{"nothing", project("", foo), "hello.py", ""},
		{"not installed", project(`dependencies = ["fooo"]`, foo), "", "pyproject.toml names the dependency fooo, which is not installed in the virtual environment: pip install fooo"},
		{"a library that another one needs, not installed", project(`dependencies = ["foo"]`, foo), "", "foo needs the dependency bar_baz"},
		{"no environment", project(`dependencies = ["foo>1"]`), "", "python3 -m venv .venv && .venv/bin/pip install 'foo>1'"},
		{"compiled", project(`dependencies = ["fast"]`, fast), "", `fast has compiled code (fast/_speed.cpython-311-x86_64-linux-gnu.so)`},
		{"compiled for speed only", project("dependencies = ['fast']\npure = ['Fast']", fast), "hello.py fast/__init__.py fast-1.0.dist-info/METADATA", ""},
		{"no name", project(`dependencies = ["!"]`), "", "virtual environment"},
		{"not a name", project(`dependencies = ["!"]`, foo), "", `the dependency "!": it is not the name of a library`},
		{"project's libraries, as they are imported", general(`["foo>=1", "more", "gone", "!", "toolsrv"]`, foo, bar, more, odd), "hello.py foo/__init__.py bar/__init__.py Foo-1.0.dist-info/METADATA", ""},
		{"project's library with compiled code", general(`["foo", "fast"]`, library("fast", "", "foo.cpython-311-x86_64-linux-gnu.so")), "", "hello.py:1:8: the dependency fast has compiled code"},
		{"project's libraries beside those for tools", general("[\"foo\"]\n[tool.toolsrv]\ndependencies = [\"more\"]", foo, bar, more, odd), "hello.py more.py", ""},
		{"project's libraries without an environment", general(`["foo"]`), "hello.py", ""},
		{"project's dependencies that pip will refuse", general(`"foo"`, foo), "hello.py", ""},
		{"broken TOML", project(`dependencies = [`), "", "pyproject.toml:4:"},
		{"another type", project(`dependencies = "foo"`), "", `pyproject.toml: dependencies in [tool.toolsrv] has to be a list of names in quotes, such as dependencies = ["jinja2"]`},
		{"a list with another type in it", project(`dependencies = ["foo", 1]`, foo), "", "has to be a list of names in quotes"},
		{"another type of pure", project("dependencies = ['foo']\npure = true", foo), "", "pyproject.toml: pure in [tool.toolsrv] has to be a list"},
		{"a misspelt key", project(`dependecies = ["foo"]`, foo), "", `pyproject.toml: unknown key "dependecies" in [tool.toolsrv]: did you mean "dependencies"?`},
		{"no table", map[string]string{"hello.py": "import Foo", "pyproject.toml": "[tool]\ntoolsrv = [1]\n"}, "", "pyproject.toml: toolsrv has to be a table, [tool.toolsrv]"},
		{"tool is not a table", map[string]string{"hello.py": "import Foo", "pyproject.toml": "tool = 7\n"}, "", "pyproject.toml: tool has to be a table, as in [tool.toolsrv]"},
		{"an unknown key", project(`optional = ["foo"]`, foo), "", `pyproject.toml: unknown key "optional" in [tool.toolsrv]: the keys are dependencies, pure`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			folder := write(t, test.files)
			got, err := collect(t, folder, python.Options{Root: folder})
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("got %q, %v, want %q", got, err, test.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for want := range strings.SplitSeq(test.want, " ") {
				if !slices.Contains(got, want) {
					t.Errorf("got %q, which should include %q", got, want)
				}
			}
			if strings.HasPrefix(test.name, "project's libraries, as") && slices.Contains(got, "more.py") {
				t.Errorf("got %q, including a library that nothing imports", got)
			}
			if slices.Contains(got, "foo/__pycache__/x.pyc") {
				t.Errorf("got %q, including what Python makes itself", got)
			}
		})
	}
}

func TestCompiledBeside(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{"hello.py": "# é\nimport json\n\timport fast", "fast.cpython-311-x86_64-linux-gnu.so": ""})
	_, err := collect(t, folder, python.Options{})
	want := "hello.py:3:9: fast has compiled code (fast.cpython-311-x86_64-linux-gnu.so), which the sandbox can't run\n     import fast\n            ^\nUse a package in pure Python instead."
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestConfined tries to read files outside the root.
func TestConfined(t *testing.T) {
	t.Parallel()
	secret := write(t, map[string]string{"secret.py": "x = 1", "shapes/__init__.py": "", "pyproject.toml": "[tool.toolsrv]\ndependencies = ['foo']", "hello.py": ""})
	folder := write(t, map[string]string{
		"hello.py": "import linked, folder, absolute", "linked.py@": filepath.Join(secret, "secret.py"), "folder@": filepath.Join(secret, "shapes"), "absolute@": secret,
	})
	got, err := collect(t, folder, python.Options{Root: folder})
	if err != nil || strings.Join(got, " ") != "hello.py" {
		t.Errorf("got %q, %v, want nothing from outside", got, err)
	}
	if got, err := collect(t, folder, python.Options{}); err != nil || len(got) < 4 {
		t.Errorf("without a root: got %q, %v, want what the links lead to", got, err)
	}
	inside := filepath.Join(secret, "shapes")
	if err := os.WriteFile(filepath.Join(inside, "hello.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(t, inside, python.Options{Root: inside}); err != nil {
		t.Errorf("the pyproject.toml above the root is read: %v", err)
	}
	if _, err := collect(t, secret, python.Options{Root: inside}); err == nil {
		t.Error("a script outside of the root is read")
	}
	if _, err := collect(t, folder, python.Options{Root: folder, With: []string{inside}}); err == nil {
		t.Error("a folder outside of the root is read")
	}
}

// TestHostile has a pipe, an endless folder, and too much of everything.
func TestHostile(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{"hello.py": "import pipe, loop", "loop/__init__.py": "", "loop/more@": "../loop"})
	makePipe(t, filepath.Join(folder, "pipe.py"))
	if got, err := collect(t, folder, python.Options{Root: folder}); err != nil || slices.Contains(got, "pipe.py") || len(got) > 50 {
		t.Errorf("a pipe, and a folder that holds itself: got %d files, %v", len(got), err)
	}
	large := write(t, map[string]string{"hello.py": strings.Repeat("#", 16<<20+1)})
	if _, err := collect(t, large, python.Options{}); err == nil || !strings.Contains(err.Error(), "more than 16 MiB") {
		t.Errorf("a large script: got %v", err)
	}
	if _, err := collect(t, t.TempDir(), python.Options{}); err == nil || !strings.Contains(err.Error(), "hello.py can't be read: no such file") {
		t.Errorf("no script: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := python.Collect(ctx, filepath.Join(large, "hello.py"), python.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: got %v", err)
	}
}

// TestInputs checks that the inputs contain everything that a second build depends on, including files that could be imported later.
func TestInputs(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{"hello.py": "import a, later", "a.py": ""})
	_, inputs, err := python.Collect(t.Context(), filepath.Join(folder, "hello.py"), python.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hello.py", "a.py", "later.py", "later/__init__.py", "pyproject.toml"} {
		if !slices.Contains(inputs, filepath.Join(folder, want)) {
			t.Errorf("got the inputs %q, want them to include %s", inputs, want)
		}
	}
}

func FuzzImports(f *testing.F) {
	for _, seed := range []string{"import a", "from a import b", "'''", "x = \"\\", "import \\\n a", "import a,\\", "from . import x", "\"\\\n\"\nimport a"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "hello.py"), source, 0o600); err != nil {
			t.Fatal(err)
		}
		files, _, err := python.Collect(t.Context(), filepath.Join(folder, "hello.py"), python.Options{Root: folder})
		if err == nil && (len(files) != 1 || files[0].Name != "hello.py") {
			t.Errorf("got %v, %v", files, err)
		}
	})
}
