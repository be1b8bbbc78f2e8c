package project_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
)

// TestNewScript makes a project in each script language, builds it, and calls its tool.
func TestNewScript(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		language        project.Language
		engine          string
		name, namespace string
		path            string
	}{
		{project.Python, "python", "greet", "", "/greet"},
		{project.Python, "python", "json", "texts/loud", "/texts/loud/json"}, // has the name of a module in the standard library
		{project.Python, "python", "Say-hello_", "", "/Say-hello_"},
		{project.JavaScript, "javascript", "class", "texts/loud", "/texts/loud/class"}, // a keyword
		{project.JavaScript, "javascript", "Say-hello_", "", "/Say-hello_"},
		{project.TypeScript, "javascript", "greet", "texts", "/texts/greet"},
	} {
		t.Run(string(c.language)+" "+c.name, func(t *testing.T) {
			t.Parallel()
			enginetest.Need(t, c.engine)
			dir := newScript(t, project.Scaffold{Name: c.name, Language: c.language, Namespace: c.namespace})
			checkFiles(t, dir)
			p, err := project.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if p.Language != c.language {
				t.Errorf("it is taken for %s, want %s", p.Language, c.language)
			}
			module, _, err := compile(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			tools := load(t, module)
			if len(tools) != 1 || tools[0].Path() != c.path {
				t.Fatalf("got %d tools, the first is %s; want %s", len(tools), tools[0].Path(), c.path)
			}
			if tools[0].Title != "Greet somebody" || tools[0].Annotations.ReadOnly == nil || tools[0].Annotations.OpenWorld == nil || tools[0].Version != "0.1.0" {
				t.Errorf("its title is %q, its annotations are %+v, its version is %q", tools[0].Title, tools[0].Annotations, tools[0].Version)
			}
			if len(tools[0].Examples) != 1 || !strings.Contains(string(tools[0].Parameters.JSON()), `"Whom to greet."`) {
				t.Errorf("it has %d examples and the parameters %s", len(tools[0].Examples), tools[0].Parameters.JSON())
			}
			if got, err := call(t, tools[0], `{"name": "Ada"}`); err != nil || got != `"Hello, Ada!"` {
				t.Errorf("got %s, %v", got, err)
			}
			for _, arguments := range []string{`{}`, `{"name": ""}`, `{"name": " "}`, `{"name": 1}`, `{"name": "a", "more": 1}`} {
				if got, err := call(t, tools[0], arguments); err == nil {
					t.Errorf("%s: got %s, want an error", arguments, got)
				}
			}
		})
	}
}

// newScript makes a project in a folder and returns the folder.
func newScript(t *testing.T, s project.Scaffold) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	if err := project.New(dir, s); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestNewPythonNatively runs the tests of a new project in Python as its author would.
func TestNewPythonNatively(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs("../../../.venv/python/bin/python")
	if err == nil {
		_, err = os.Stat(python)
	}
	if err != nil {
		t.Skip("there is no pytest: make test-python installs it")
	}
	dir := newScript(t, project.Scaffold{Name: "greet", Language: project.Python, Namespace: "texts"})
	cmd := exec.CommandContext(t.Context(), python, "-m", "pytest", "-q")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "3 passed") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestNewJavaScriptNatively runs the tests of new projects as npm test would, with the SDK where npm install would link it. A line that is added to
// the tests imports a module of the engine. Node 22 and later read TypeScript themselves, so tsx is not needed.
func TestNewJavaScriptNatively(t *testing.T) {
	t.Parallel()
	for _, language := range []project.Language{project.JavaScript, project.TypeScript} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			strips, err := exec.CommandContext(t.Context(), "node", "-p", "process.features.typescript").Output()
			if err != nil {
				t.Skipf("there is no Node.js: %v", err)
			}
			if language == project.TypeScript && strings.TrimSpace(string(strips)) != "strip" {
				t.Skip("this Node.js runs no TypeScript by itself: that needs 22.18 or later")
			}
			dir := newScript(t, project.Scaffold{Name: "greet", Language: language})
			var said struct{ Scripts, Dependencies map[string]string }
			if err := json.Unmarshal(testkit.Read(t, dir, "package.json"), &said); err != nil {
				t.Fatal(err)
			}
			sdk, ok := strings.CutPrefix(said.Dependencies["toolsrv"], "file:")
			if !ok {
				t.Fatalf("the package requires %v, want the SDK that it has", said.Dependencies)
			}
			if err := os.Mkdir(filepath.Join(dir, "node_modules"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(dir, sdk), filepath.Join(dir, "node_modules", "toolsrv")); err != nil {
				t.Skip(err)
			}
			tests, err := filepath.Glob(filepath.Join(dir, "index.test.*"))
			if err != nil || len(tests) != 1 {
				t.Fatalf("got the tests %v, %v; want one file", tests, err)
			}
			more := "import * as kv from \"toolsrv:kv\";\nassert.ok(kv.get);\n"
			testkit.Put(t, dir, filepath.Base(tests[0]), append(testkit.Read(t, tests[0]), more...))
			words := strings.Fields(strings.Replace(said.Scripts["test"], "--import tsx ", "", 1))
			cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "pass 3") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
