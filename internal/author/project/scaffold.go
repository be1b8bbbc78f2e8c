package project

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// SDKVersion is the published version of the SDKs that a new project requires.
const SDKVersion = "0.1.0"

//go:embed template
var templates embed.FS // read-only

// A Scaffold says what a new project is.
type Scaffold struct {
	// Name is the name of its first tool. It begins with a letter.
	Name string
	// Language is one of Languages.
	Language Language
	// Namespace is the path before the tool's name, or empty.
	Namespace string
	// SDK is the folder with the SDKs to use in place of the published ones (the folder sdk of toolsrv's source), or
	// empty.
	SDK string
}

// Path returns the path under which the project's tool is served, such as "/texts/shout".
func (s Scaffold) Path() string {
	return (&wasmtools.Tool{Namespace: s.Namespace, Name: s.Name}).Path()
}

// New makes the folder dir with a project that builds. If dir exists, it must be empty.
func New(dir string, s Scaffold) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.SDK != "" {
		var err error
		if s.SDK, err = findSDK(s.SDK, s.Language); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	made := errors.Is(err, fs.ErrNotExist)
	switch {
	case made:
		err = os.MkdirAll(dir, 0o755)
	case err == nil && len(entries) > 0:
		return fmt.Errorf("%s holds files already: choose another name, or empty the folder", dir)
	case err != nil:
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			return fmt.Errorf("%s exists and is a file: choose another name", dir)
		}
	}
	if err == nil {
		err = s.write(dir)
	}
	if err != nil {
		if made {
			_ = os.RemoveAll(dir)
		}
		return fmt.Errorf("make the project: %w", err)
	}
	return nil
}

// Check reports what is wrong with the words of s, or nil. It looks at no files; New checks, too.
func (s Scaffold) Check() error {
	if err := wasmtools.CheckName(s.Name); err != nil {
		return fmt.Errorf("the name of the tool: %w", err)
	}
	if c := s.Name[0] | 0x20; c < 'a' || c > 'z' {
		return fmt.Errorf("the name of the tool: %q must begin with a letter, because the compilers require it", s.Name)
	}
	if !slices.Contains(Languages(), s.Language) {
		return fmt.Errorf("%q is not a language that toolsrv knows: choose go, tinygo, rust, python, javascript or typescript", text.Short(string(s.Language)))
	}
	// What a table of routes refuses should not be made in the first place.
	tool := wasmtools.Tool{
		Namespace: s.Namespace, Name: s.Name,
		Parameters: new(schema.Schema), Caller: wasmtools.CallerFunc(nil),
	}
	return tool.Check()
}

// sdkFile is where each SDK is in the folder of the SDKs, and a file that is in it.
func sdkFile(l Language) (dir, file string) {
	switch l {
	case Rust:
		return filepath.Join("rust", "toolsrv"), "Cargo.toml"
	case Python:
		return "python", "pyproject.toml"
	case JavaScript, TypeScript:
		return "js", packageFile
	}
	return "go", "go.mod"
}

// findSDK returns the absolute path of a language's SDK in the folder of the SDKs.
func findSDK(sdks string, l Language) (string, error) {
	dir, file := sdkFile(l)
	abs, err := filepath.Abs(filepath.Join(sdks, dir))
	if err != nil {
		return "", err
	}
	if !hasFile(abs, file) {
		return "", fmt.Errorf("%s holds no SDK for %s (there is no %s): name the folder sdk of toolsrv's source",
			sdks, l, filepath.Join(dir, file))
	}
	if !utf8.ValidString(abs) || strings.ContainsFunc(abs, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Errorf("%q can't be written into a project: move the SDK to a folder with a plain name", abs)
	}
	return abs, nil
}

// write fills the folder with what the templates make of s.
func (s Scaffold) write(dir string) error {
	root := "template/" + string(s.Language)
	if s.Language == TinyGo {
		root = "template/go" // it compiles the same source
	}
	data := struct {
		Scaffold
		Version string // of the SDK
		Package string // a name for npm, which wants no capitals
		SDKDir  string // quoted, or ""
		SDKFile string // the same as npm wants it
		SDKURL  string // the same as pip wants it
		TinyGo  bool
	}{Scaffold: s, Version: SDKVersion, Package: strings.ToLower(s.Name) + "-tool", TinyGo: s.Language == TinyGo}
	if s.SDK != "" {
		var err error
		if data.SDKDir, err = quote(s.SDK); err == nil {
			data.SDKFile, err = quote("file:" + s.SDK)
		}
		if err != nil {
			return err
		}
		data.SDKURL = (&url.URL{Scheme: "file", Path: filepath.ToSlash(s.SDK)}).String()
	}
	return fs.WalkDir(templates, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := templates.ReadFile(name)
		if err != nil {
			return err
		}
		t, err := template.New(path.Base(name)).Option("missingkey=error").Parse(string(content))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, data); err != nil {
			return err
		}
		// A name in the templates ends in .tmpl, so that Go does not take it for its own, and has no dot in front.
		to := strings.TrimSuffix(strings.TrimPrefix(name, root+"/"), ".tmpl")
		if to == "gitignore" {
			to = ".gitignore"
		}
		file := filepath.Join(dir, filepath.FromSlash(to))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, out.Bytes(), 0o644)
	})
}

// quote returns a string as go.mod and TOML both read it.
func quote(s string) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return strings.TrimSuffix(out.String(), "\n"), err
}
