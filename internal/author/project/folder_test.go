package project_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
)

// treeOf returns the files of a folder with their contents, and its links with their targets.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		switch {
		case err != nil:
		case d.Type() == fs.ModeSymlink:
			tree[name], err = os.Readlink(path)
		case d.Type().IsRegular():
			tree[name] = string(testkit.Read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestInit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		language    project.Language
		first       string
		made        []string
		needsEngine string
	}{
		{project.Python, "tools/greet.py", []string{"tools/greet.py", ".gitignore", "toolsrv.toml"}, "python"},
		{project.JavaScript, "tools/greet.js", []string{"tools/greet.js", ".gitignore", "toolsrv.toml"}, "javascript"},
		{project.TypeScript, "tools/greet.ts", []string{"tools/greet.ts", ".gitignore", "toolsrv.toml"}, "javascript"},
		{project.Go, "greet", []string{"greet", "tools", ".gitignore", "toolsrv.toml"}, ""},
		{project.TinyGo, "greet", []string{"greet", "tools", ".gitignore", "toolsrv.toml"}, ""},
		{project.Rust, "greet", []string{"greet", "tools", ".gitignore", "toolsrv.toml"}, ""},
	} {
		t.Run(string(c.language), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "a", "b")
			f, err := project.Init(dir, project.Scaffold{Name: "greet", Language: c.language})
			if err != nil {
				t.Fatal(err)
			}
			if f.First != c.first || !slices.Equal(f.Made, c.made) || f.Kept != nil {
				t.Errorf("got %+v, want %s and %q", f, c.first, c.made)
			}
			for _, name := range c.made {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
			p, err := project.Open(filepath.Join(dir, c.first))
			if err != nil || p.Language != c.language {
				t.Fatalf("the first tool is %+v, %v; want one in %s", p, err, c.language)
			}
			if c.needsEngine == "" {
				return // TestNew builds such projects
			}
			enginetest.Need(t, c.needsEngine)
			module, _, err := compile(t, filepath.Join(dir, c.first))
			if err != nil {
				t.Fatal(err)
			}
			tools := load(t, module)
			if len(tools) != 1 || tools[0].Path() != "/greet" {
				t.Fatalf("got %d tools, the first is %s", len(tools), tools[0].Path())
			}
			if got, err := call(t, tools[0], `{"name": "Ada"}`); err != nil || got != `"Hello, Ada!"` {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

// TestInitConfiguration reads the new configuration as it is, and again with all of its examples in force.
func TestInitConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := project.Init(dir, project.Scaffold{Name: "greet", Language: project.Python}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "toolsrv.toml")
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Tools.Scripts || c.Tools.Directory != filepath.Join(dir, "tools") || !slices.Equal(c.Server.Addresses, config.Default().Server.Addresses) || len(c.Grants) > 0 {
		t.Errorf("the new configuration sets more than it should: %+v", c)
	}
	text := testkit.Read(t, file)
	examples := regexp.MustCompile(`(?m)^# (\[|[a-z_]+ = )`).ReplaceAll(text, []byte("$1"))
	if n := strings.Count(string(text), "\n# ") - strings.Count(string(examples), "\n# "); n < 10 {
		t.Errorf("%d examples: is the pattern of this test right?", n)
	}
	testkit.Put(t, dir, "secrets/tokens", "0123456789abcdef\n")
	testkit.Put(t, dir, "toolsrv.toml", examples)
	if c, err = config.Load(file); err != nil || !slices.Equal(c.Server.Addresses, []string{":8000"}) || len(c.Grants) != 1 || len(c.Auth.Tokens) != 1 || c.State.Directory == "" {
		t.Errorf("the configuration with its examples: %+v, %v", c, err)
	}
}

// TestInitKeeps sets up folders that hold files. None of them changes.
func TestInitKeeps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		language project.Language
		before   map[string]string
		made     []string
		kept     []string // a part of each sentence
	}{
		{"files that don't matter", project.Python, map[string]string{"main.go": "x", "README.md": "y"}, []string{"tools/greet.py", ".gitignore", "toolsrv.toml"}, nil},
		{"a .gitignore", project.Python, map[string]string{".gitignore": "/mine\n"}, []string{"tools/greet.py", "toolsrv.toml"}, []string{".gitignore is kept"}},
		{"the first tool", project.Python, map[string]string{"tools/greet.py": "mine"}, []string{".gitignore", "toolsrv.toml"}, []string{"tools already contains files"}},
		{"other tools", project.Go, map[string]string{"tools/sub/x.wasm": "mine"}, []string{".gitignore", "toolsrv.toml"}, []string{"tools already contains files"}},
		{"a project", project.Go, map[string]string{"greet/main.go": "mine"}, []string{"tools", ".gitignore", "toolsrv.toml"}, []string{"greet already contains files"}},
		{"both", project.TypeScript, map[string]string{"tools/_x.ts": "mine", ".gitignore": ""}, []string{"toolsrv.toml"}, []string{"tools already contains", ".gitignore is kept"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range c.before {
				testkit.Put(t, dir, name, text)
			}
			f, err := project.Init(dir, project.Scaffold{Name: "greet", Language: c.language})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(f.Made, c.made) || len(f.Kept) != len(c.kept) {
				t.Errorf("got %+v, want %q and %q", f, c.made, c.kept)
			}
			for i := range min(len(f.Kept), len(c.kept)) {
				if !strings.Contains(f.Kept[i], c.kept[i]) {
					t.Errorf("got %q, want %q", f.Kept[i], c.kept[i])
				}
			}
			after := treeOf(t, dir)
			for name, text := range c.before {
				if after[filepath.FromSlash(name)] != text {
					t.Errorf("%s was %q and is %q", name, text, after[filepath.FromSlash(name)])
				}
			}
		})
	}
}

// TestInitRefuses tries folders that can't be set up. They stay as they are.
func TestInitRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]string
		links map[string]string
		dir   string
		says  string
	}{
		{name: "set up already", files: map[string]string{"toolsrv.toml": "x"}, says: "has a toolsrv.toml already, so nothing was changed: toolsrv up"},
		{name: "a configuration that leads nowhere", links: map[string]string{"toolsrv.toml": "nowhere"}, says: "has a toolsrv.toml already"},
		{name: "a file", files: map[string]string{"file": ""}, dir: "file", says: "exists and is not a folder"},
		{name: "below a file", files: map[string]string{"file": ""}, dir: "file/sub", says: "not a directory"},
		{name: "a link to itself", links: map[string]string{"loop": "loop"}, dir: "loop", says: "look at the folder"},
		{name: "a link to nothing", links: map[string]string{"gone": "nowhere"}, dir: "gone", says: "file exists"},
		{name: "tools is a file", files: map[string]string{"tools": "x"}, says: "tools is not a folder: move it away"},
		{name: "tools is a link to itself", links: map[string]string{"tools": "tools"}, says: "tools"},
		{name: "tools is a link to nothing", links: map[string]string{"tools": "nowhere"}, says: "tools is a link that leads nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range c.files {
				testkit.Put(t, dir, name, text)
			}
			for name, to := range c.links {
				if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
					t.Skip(err)
				}
			}
			before := treeOf(t, dir)
			f, err := project.Init(filepath.Join(dir, c.dir), project.Scaffold{Name: "greet", Language: project.Python})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %+v, %v; want an error with %q", f, err, c.says)
			}
			after := treeOf(t, dir)
			if len(after) != len(before) {
				t.Errorf("it left %v, want %v", after, before)
			}
			for name := range before {
				if after[name] != before[name] {
					t.Errorf("%s was %q and is %q", name, before[name], after[name])
				}
			}
		})
	}
}

// TestInitUndoes makes the last step fail, after the others have been made.
func TestInitUndoes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	_, err := project.Init(dir, project.Scaffold{Name: "greet", Language: project.Go, SDK: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "has no SDK for go") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Errorf("it left %v", treeOf(t, dir))
	}
	if _, err := project.Init(dir, project.Scaffold{Name: "greet", Language: "cobol"}); err == nil || !strings.Contains(err.Error(), "not a language") {
		t.Errorf("got %v", err)
	}
}
