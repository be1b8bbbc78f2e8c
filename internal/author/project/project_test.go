package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/author/project"
)

// folder makes a folder with these files, by their paths, and returns it.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
	return dir
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	const main = "package main\n\nfunc main() {}\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  project.Language
		plain bool
	}{
		{"go", map[string]string{"go.mod": "module x\n", "main.go": main}, project.Go, false},
		{"go without a go.mod", map[string]string{"main.go": main}, project.Go, false},
		{"plain go", map[string]string{"main.go": main, "tool.json": "{}"}, project.Go, true},
		{"go that does not parse", map[string]string{"main.go": "}{"}, project.Go, false},
		{"tinygo", map[string]string{"main.go": "//toolsrv:tinygo\n" + main}, project.TinyGo, false},
		{"tinygo below the package clause", map[string]string{"main.go": "package main\n\n//toolsrv:tinygo\n\nimport _ \"fmt\"\n"}, project.TinyGo, false},
		{"tinygo with a target", map[string]string{"main.go": "//toolsrv:tinygo wasm-unknown\r\n" + main}, project.TinyGo, false},
		{"tinygo in both files", map[string]string{"a.go": "//toolsrv:tinygo\n" + main, "b.go": "//toolsrv:tinygo\n" + main}, project.TinyGo, false},
		{"a comment that mentions the line", map[string]string{"main.go": "// Use //toolsrv:tinygo here.\n" + main}, project.Go, false},
		{"only in a test", map[string]string{"main.go": main, "main_test.go": "//toolsrv:tinygo\n" + main}, project.Go, false},
		{"rust", map[string]string{"Cargo.toml": "[package]\n"}, project.Rust, false},
		{"python", map[string]string{"main.py": ""}, project.Python, false},
		{"typescript", map[string]string{"index.ts": "", "package.json": "{}"}, project.TypeScript, false},
		{"a script beside Go files", map[string]string{"main.go": main, "hello.py": ""}, project.Go, false},
		{"plain rust", map[string]string{"Cargo.toml": "[package]\n", "tool.json": "{}"}, project.Rust, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, c.files)
			p, err := project.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if p.Language != c.want || p.Plain != c.plain || p.Name != "work" || p.Dir != dir {
				t.Errorf("got %+v, want %s, plain %t", p, c.want, c.plain)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	const main = "package main\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		below string // the path in the folder that is opened
		says  string
	}{
		{"nothing", nil, "", "no Go file, no Cargo.toml and no script"},
		{"no script", nil, "hello.py", "there is no script"},
		{"a folder with a script's name", map[string]string{"hello.py/x": ""}, "hello.py", "no Go file, no Cargo.toml and no script"},
		{"two scripts", map[string]string{"a.py": "", "b.ts": ""}, "", "has 2 scripts, but a project is one module: name one of a.py, b.ts"},
		{"parts of scripts", map[string]string{"_a.py": "", "b.test.ts": ""}, "", "no script that is a tool"},
		{"a package without a script", map[string]string{"package.json": "{}"}, "", "no script that is a tool"},
		{"a broken package", map[string]string{"package.json": "{"}, "", "package.json: unexpected end"},
		{"a package whose script is missing", map[string]string{"package.json": `{"main": "src/x.ts"}`}, "", "main: there is no script src/x.ts"},
		{"a package whose script is elsewhere", map[string]string{"package.json": `{"main": "../../x.ts"}`}, "", "main: there is no script"},
		{"another language", map[string]string{"main.c": ""}, "", "toolsrv pack"},
		{"no folder", nil, "nowhere", "there is no file or folder"},
		{"a folder that init has made", map[string]string{"toolsrv.toml": "", "tools/greet.py": ""}, "", "has no source of a tool, but scripts in its folder tools: name one of these, such as "},
		{"a file", map[string]string{"main.go": main}, "main.go", "is not a script: name one (.py, "},
		{"two languages", map[string]string{"Cargo.toml": "", "main.go": main}, "", "its own"},
		{"two languages by go.mod", map[string]string{"Cargo.toml": "", "go.mod": ""}, "", "its own"},
		{"packages below", map[string]string{"go.mod": "module x\n", "cmd/main.go": main}, "", "the package main"},
		{"tests only", map[string]string{"go.mod": "module x\n", "main_test.go": main}, "", "the package main"},
		{"a folder with a file's name", map[string]string{"Cargo.toml/x": "", "main.go/x": ""}, "", "no Go file, no Cargo.toml and no script"},
		{"unknown line", map[string]string{"main.go": "//toolsrv:tinyg\n" + main}, "", "//toolsrv:tinygo [wasip1 | wasm-unknown] [stack=SIZE]"},
		{"empty line", map[string]string{"main.go": "//toolsrv:\n" + main}, "", "//toolsrv:tinygo [wasip1"},
		{"two targets", map[string]string{"main.go": "//toolsrv:tinygo a b\n" + main}, "", "//toolsrv:tinygo [wasip1"},
		{"goroutines", map[string]string{"main.go": "//toolsrv:tinygo goroutines\n" + main}, "", "TinyGo's goroutines are refused"},
		{"a target that nothing serves", map[string]string{"main.go": "//toolsrv:tinygo wasm\n" + main}, "", `"wasm" is not a target for tools: write wasip1 or wasm-unknown`},
		{"a stack first", map[string]string{"main.go": "//toolsrv:tinygo stack=1MiB wasip1\n" + main}, "", "//toolsrv:tinygo [wasip1"},
		{"no size", map[string]string{"main.go": "//toolsrv:tinygo stack=big\n" + main}, "", "stack=big: \"big\" is not a size"},
		{"a small stack", map[string]string{"main.go": "//toolsrv:tinygo stack=1KiB\n" + main}, "", "a stack can have 512 KiB to 32 MiB"},
		{"a stack larger than the memory", map[string]string{"main.go": "//toolsrv:tinygo stack=999999999999GiB\n" + main}, "", "a stack can have 512 KiB to 32 MiB"},
		{"a stack in one of two files", map[string]string{"a.go": "//toolsrv:tinygo\n" + main, "b.go": "//toolsrv:tinygo stack=1MiB\n" + main}, "", "keep one"},
		{"a flag in place of a target", map[string]string{"main.go": "//toolsrv:tinygo -o=/etc/passwd\n" + main}, "", "is not a target"},
		{"a file in place of a target", map[string]string{"main.go": "//toolsrv:tinygo ../evil.json\n" + main}, "", "is not a target"},
		{"targets that differ", map[string]string{"a.go": "//toolsrv:tinygo\n" + main, "b.go": "//toolsrv:tinygo wasm-unknown\n" + main}, "", "keep one"},
		{"a huge Cargo configuration", map[string]string{"Cargo.toml": "", ".cargo/config.toml": strings.Repeat("#", 1<<20+1)}, "", "larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := project.Open(filepath.Join(folder(t, c.files), c.below))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %+v, %v, want an error with %q", p, err, c.says)
			}
		})
	}
}

// TestOpenScript finds the script of a folder, and opens a named one.
func TestOpenScript(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		files        string // names, which may be followed by "=" and a content
		opened       string // below the folder
		script, made string // below the folder
	}{
		{"the only one", "hello.py", ".", "hello.py", "work.wasm"},
		{"the only script that is not a module or a test", "hello.py _part.py test_hello.py hello_test.py conftest.py setup.py", ".", "hello.py", "work.wasm"},
		{"the only script besides tests and types", "hello.ts hello.test.ts hello.spec.ts hello.d.ts vite.config.ts", ".", "hello.ts", "work.wasm"},
		{"main", "a.py main.py", ".", "main.py", "work.wasm"},
		{"index", "a.js index.js", ".", "index.js", "work.wasm"},
		{"the script with the folder's name", "a.py main.py work.py", ".", "work.py", "work.wasm"},
		{"the package's", `a.ts package.json={"main":"src/b.ts"} src/b.ts`, ".", "src/b.ts", "work.wasm"},
		{"a package without one", `a.ts package.json={"main":"dist/b.cjs"}`, ".", "a.ts", "work.wasm"},
		{"a named script", "a.py b.py", "b.py", "b.py", "b.wasm"},
		{"a named part", "_a.py", "_a.py", "_a.py", "_a.wasm"},
		{"a script in a folder", "src/a.mts", "src/a.mts", "src/a.mts", "src/a.wasm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for _, file := range strings.Fields(c.files) {
				name, content, _ := strings.Cut(file, "=")
				files[name] = content
			}
			dir := folder(t, files)
			opened := filepath.Join(dir, c.opened)
			p, err := project.Open(opened)
			if err != nil {
				t.Fatal(err)
			}
			if p.Script != filepath.Join(dir, c.script) || p.Output(opened) != filepath.Join(dir, c.made) {
				t.Errorf("got %s, which makes %s; want %s and %s", p.Script, p.Output(opened), c.script, c.made)
			}
		})
	}
}
