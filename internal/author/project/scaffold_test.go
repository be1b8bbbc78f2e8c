package project_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

const sdks = "../../../sdk"

// TestNew makes a project in each language, runs its tests, builds it, and calls its tool. Rust projects use the SDK in the source tree, which is
// compiled once for all of them. The test in test/alone uses the SDK inside toolsrv.
func TestNew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		language        project.Language
		name, namespace string
		path, sdk       string
		test            []string // the project's own tests
	}{
		{project.Go, "greet", "", "/greet", "", []string{"go", "test", "."}},
		{project.Go, "Say-hello_2", "texts/loud", "/texts/loud/Say-hello_2", "", []string{"go", "test", "."}},
		{project.TinyGo, "greet", "texts", "/texts/greet", "", []string{"go", "test", "."}},
		{project.Rust, "fn", "", "/fn", sdks, []string{"cargo", "test", "--quiet"}}, // a keyword of the language works as a name, too
		{project.Rust, "Say-hello_2", "texts/loud", "/texts/loud/Say-hello_2", sdks, []string{"cargo", "test", "--quiet"}},
	} {
		t.Run(string(c.language)+" "+c.name, func(t *testing.T) {
			t.Parallel()
			testkit.NeedBuild(t, c.test[0])
			if c.language == project.Rust {
				needTarget(t, "wasm32-unknown-unknown")
			}
			dir := filepath.Join(t.TempDir(), "made", "work")
			scaffold := project.Scaffold{Name: c.name, Language: c.language, Namespace: c.namespace, SDK: c.sdk}
			if err := project.New(dir, scaffold); err != nil {
				t.Fatal(err)
			}
			if got := scaffold.Path(); got != c.path {
				t.Errorf("got the path %s, want %s", got, c.path)
			}
			checkFiles(t, dir)
			if c.language == project.Rust {
				pinCrates(t, dir)
			}
			cmd := exec.CommandContext(t.Context(), c.test[0], c.test[1:]...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", c.test, err, out)
			}
			if c.language != project.Rust {
				vet := exec.CommandContext(t.Context(), "go", "vet", ".")
				vet.Dir = dir
				if out, err := vet.CombinedOutput(); err != nil {
					t.Fatalf("go vet: %v\n%s", err, out)
				}
			}

			p, err := project.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if p.Language != c.language {
				t.Errorf("it is taken for %s, want %s", p.Language, c.language)
			}
			if c.language == project.TinyGo {
				testkit.NeedBuild(t, "tinygo")
			}
			module, said, err := compile(t, dir)
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			tools := load(t, module)
			if len(tools) != 1 || tools[0].Path() != c.path {
				t.Fatalf("got %d tools, the first is %s; want %s", len(tools), tools[0].Path(), c.path)
			}
			if tools[0].Title != "Greet somebody" || tools[0].Annotations.ReadOnly == nil || tools[0].Annotations.OpenWorld == nil {
				t.Errorf("its title is %q, its annotations are %+v", tools[0].Title, tools[0].Annotations)
			}
			if got, err := call(t, tools[0], `{"name": "Ada"}`); err != nil || got != `"Hello, Ada!"` {
				t.Errorf("got %s, %v", got, err)
			}
			for _, arguments := range []string{`{}`, `{"name": ""}`, `{"name": " "}`, `{"name": 1}`} {
				if got, err := call(t, tools[0], arguments); err == nil {
					t.Errorf("%s: got %s, want an error", arguments, got)
				}
			}
		})
	}
}

// checkFiles checks what a reader of a new project sees.
func checkFiles(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{".gitignore", "README.md"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	err := filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".toolsrv":
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		text, err := os.ReadFile(file)
		if strings.Contains(string(text), "{{") || strings.Contains(string(text), "<no value>") || strings.HasSuffix(file, ".tmpl") {
			t.Errorf("%s is still a template:\n%s", file, text)
		}
		if !strings.HasSuffix(string(text), "\n") || strings.Contains(string(text), "\n\n\n") && filepath.Ext(file) != ".py" || strings.Contains(string(text), " \n") {
			t.Errorf("%s has odd space in it:\n%s", file, text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	formatters := map[string][]string{"main.go": {"gofmt", "-l", "."}, "src/lib.rs": {"rustfmt", "--check", "--edition=2024", "src/lib.rs"}}
	for file, program := range formatters {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			continue
		}
		if _, err := exec.LookPath(program[0]); err != nil {
			continue
		}
		cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %v\n%s", program, err, out)
		}
	}
}

// pinCrates makes a project use the crate versions with which the SDK is tested, so that the test does not depend on future releases.
func pinCrates(t *testing.T, dir string) {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(sdks, "rust", "Cargo.lock"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "Cargo.lock"), string(lock))
}

// TestNewPublished makes a project that requires the published SDK and contains none.
func TestNewPublished(t *testing.T) {
	t.Parallel()
	for language, want := range map[project.Language][2]string{
		project.Go:   {"go.mod", "require github.com/toolsrv/toolsrv/sdk/go v" + project.SDKVersion},
		project.Rust: {"Cargo.toml", `toolsrv = "` + project.SDKVersion + `"`},

		project.Python:     {"pyproject.toml", `"toolsrv>=` + project.SDKVersion + `"`},
		project.JavaScript: {"package.json", `"toolsrv": "^` + project.SDKVersion + `"`},
		project.TypeScript: {"package.json", `"toolsrv": "^` + project.SDKVersion + `"`},
	} {
		dir := t.TempDir() // an existing empty folder is allowed
		if err := project.New(dir, project.Scaffold{Name: "greet", Language: language, Published: true}); err != nil {
			t.Fatal(err)
		}
		checkFiles(t, dir)
		if _, err := os.Stat(filepath.Join(dir, ".toolsrv")); err == nil {
			t.Errorf("%s: the project contains an SDK", language)
		}
		text, err := os.ReadFile(filepath.Join(dir, want[0]))
		if err != nil || !strings.Contains(string(text), want[1]) || strings.Contains(string(text), "replace") {
			t.Errorf("%s has no %q: %v\n%s", want[0], want[1], err, text)
		}
	}
}

// TestNewFolder makes a project that uses the SDK in a folder, and not the one inside toolsrv.
func TestNewFolder(t *testing.T) {
	t.Parallel()
	abs, err := filepath.Abs(sdks)
	if err != nil {
		t.Fatal(err)
	}
	for language, want := range map[project.Language][2]string{
		project.Go:   {"go.mod", "=> \"" + abs + "/go\""},
		project.Rust: {"Cargo.toml", `toolsrv = { path = "` + abs + `/rust/toolsrv" }`},

		project.Python:     {"pyproject.toml", `"toolsrv @ file://` + abs + `/python"`},
		project.JavaScript: {"package.json", `"toolsrv": "file:` + abs + `/js"`},
		project.TypeScript: {"package.json", `"toolsrv": "file:` + abs + `/js"`},
	} {
		dir := t.TempDir()
		if err := project.New(dir, project.Scaffold{Name: "greet", Language: language, SDK: sdks}); err != nil {
			t.Fatal(err)
		}
		checkFiles(t, dir)
		text, err := os.ReadFile(filepath.Join(dir, want[0]))
		if err != nil || !strings.Contains(string(text), want[1]) || strings.Contains(string(text), ".toolsrv") {
			t.Errorf("%s has no %q: %v\n%s", want[0], want[1], err, text)
		}
		if _, err := os.Stat(filepath.Join(dir, ".toolsrv")); err == nil {
			t.Errorf("%s: the project also contains an SDK", language)
		}
	}
}

// TestSDKVersion checks that a new project requires the version of the SDKs in the tree.
func TestSDKVersion(t *testing.T) {
	t.Parallel()
	for file, pattern := range map[string]string{
		"go/module.go":    `const Version = "([^"]+)"`,
		"rust/Cargo.toml": `(?m)^version = "([^"]+)"`,

		"python/pyproject.toml": `(?m)^version = "([^"]+)"`,
		"js/package.json":       `"version": "([^"]+)"`,
	} {
		text, err := os.ReadFile(filepath.Join(sdks, file))
		if err != nil {
			t.Fatal(err)
		}
		if match := regexp.MustCompile(pattern).FindSubmatch(text); match == nil || string(match[1]) != project.SDKVersion {
			t.Errorf("%s says %q, want %s", file, match, project.SDKVersion)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := project.Scaffold{Name: "greet", Language: project.Go, SDK: sdks}
	for _, c := range []struct {
		name   string
		change func(*project.Scaffold)
		says   string
	}{
		{"no name", func(s *project.Scaffold) { s.Name = "" }, "is not a valid name"},
		{"a path", func(s *project.Scaffold) { s.Name = "a/b" }, "is not a valid name"},
		{"dots", func(s *project.Scaffold) { s.Name = ".." }, "is not a valid name"},
		{"a letter that is not allowed", func(s *project.Scaffold) { s.Name = "grüßen" }, "is not a valid name"},
		{"a quote", func(s *project.Scaffold) { s.Name = `a"b` }, "is not a valid name"},
		{"a template", func(s *project.Scaffold) { s.Name = "{{.SDK}}" }, "is not a valid name"},
		{"too long", func(s *project.Scaffold) { s.Name = strings.Repeat("a", 65) }, "is not a valid name"},
		{"a digit first", func(s *project.Scaffold) { s.Name = "2fast" }, "must begin with a letter"},
		{"a dash first", func(s *project.Scaffold) { s.Name = "-x" }, "must begin with a letter"},
		{"an underscore first", func(s *project.Scaffold) { s.Name = "_x" }, "must begin with a letter"},
		{"no language", func(s *project.Scaffold) { s.Language = "" }, "go, tinygo, rust, python, javascript or typescript"},
		{"another language", func(s *project.Scaffold) { s.Language = "cobol" }, `"cobol" is not a language`},
		{"bad namespace", func(s *project.Scaffold) { s.Namespace = "a//b" }, "namespace"},
		{"a path of the service", func(s *project.Scaffold) { s.Name = "tools" }, "/tools is reserved for the service"},
		{"a namespace of the service", func(s *project.Scaffold) { s.Namespace = "admin" }, "is reserved for the service"},
		{"operation id too long", func(s *project.Scaffold) { s.Namespace = strings.Repeat("n", 60) }, "operation id"},
		{"two SDKs", func(s *project.Scaffold) { s.Published = true }, "choose one"},
		{"no SDK there", func(s *project.Scaffold) { s.SDK = "." }, "has no SDK for go"},
		{"no SDK for Rust there", func(s *project.Scaffold) { s.SDK, s.Language = "template", project.Rust }, "has no SDK for rust"},
		{"no SDK for Python there", func(s *project.Scaffold) { s.SDK, s.Language = "template", project.Python }, "has no SDK for python"},
		{"no SDK for TypeScript there", func(s *project.Scaffold) { s.SDK, s.Language = "template", project.TypeScript }, "has no SDK for typescript"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, dir := good, filepath.Join(t.TempDir(), "new")
			c.change(&s)
			if err := project.New(dir, s); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error with %q", err, c.says)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("the folder was made all the same")
			}
		})
	}
}

// TestNewKeeps leaves existing files as they are.
func TestNewKeeps(t *testing.T) {
	t.Parallel()
	s := project.Scaffold{Name: "greet", Language: project.Go, SDK: sdks}
	dir := folder(t, map[string]string{"main.go": "mine"})
	if err := project.New(dir, s); err == nil || !strings.Contains(err.Error(), "already contains files") {
		t.Errorf("a folder with files: got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %d files, %v, want 1", len(entries), err)
	}
	file := filepath.Join(dir, "main.go")
	if err := project.New(file, s); err == nil || !strings.Contains(err.Error(), "is a file") {
		t.Errorf("a file: got %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// TestNewQuotesSDK puts the SDK into a folder whose name has special characters for go.mod and TOML.
func TestNewQuotesSDK(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go", "cargo")
	odd := filepath.Join(t.TempDir(), `it's "my" #1 folder => {ü}`)
	write(t, filepath.Join(odd, "go", "go.mod"), "module github.com/toolsrv/toolsrv/sdk/go\n\ngo 1.24\n")
	write(t, filepath.Join(odd, "go", "sdk.go"), "package toolsrv\n")
	write(t, filepath.Join(odd, "rust", "toolsrv", "Cargo.toml"), "[package]\nname = \"toolsrv\"\nversion = \"0.1.0\"\nedition = \"2024\"\n")
	write(t, filepath.Join(odd, "rust", "toolsrv", "src", "lib.rs"), "")
	for language, program := range map[project.Language][]string{
		project.Go:   {"go", "list", "-m", "-f", "{{.Dir}}", "github.com/toolsrv/toolsrv/sdk/go"},
		project.Rust: {"cargo", "read-manifest"},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		if err := project.New(dir, project.Scaffold{Name: "greet", Language: language, SDK: odd}); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "{ü}") {
			t.Errorf("%v: %v\n%s", program, err, out)
		}
	}
	control := filepath.Join(t.TempDir(), "a\nb")
	write(t, filepath.Join(control, "go", "go.mod"), "module x\n")
	err := project.New(filepath.Join(t.TempDir(), "new"), project.Scaffold{Name: "greet", Language: project.Go, SDK: control})
	if err == nil || !strings.Contains(err.Error(), "can't be written") {
		t.Errorf("a folder with a line break: got %v", err)
	}
}
