package project

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/author/sdk"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// SDKVersion is the version of the SDKs, both those inside toolsrv and the published ones.
const SDKVersion = "0.1.0"

// sdkFolder is the folder of a project with the SDK from inside toolsrv. The dot keeps compilers, test runners and a Watcher, which look for sources,
// from treating it as a part of the project.
const sdkFolder = ".toolsrv"

//go:embed template
var templates embed.FS // read-only

// A Scaffold says what a new project is.
type Scaffold struct {
	// Name is the name of the project's first tool. It must begin with a letter.
	Name string
	// Language is one of Languages.
	Language Language
	// Namespace is the path before the tool's name, or empty.
	Namespace string
	// SDK is the folder with the SDKs to use (the folder sdk of toolsrv's source). If empty, the project gets the SDK from inside toolsrv.
	SDK string
	// Published makes the project require the SDK from the language's package registry instead.
	Published bool
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
		if s.Published {
			return errors.New("a project requires either the published SDK or one in a folder: choose one")
		}
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
		return fmt.Errorf("%s already contains files: choose another name, or empty the folder", dir)
	case err != nil:
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			return fmt.Errorf("%s exists and is a file: choose another name", dir)
		}
	}
	if err == nil {
		err = s.write(dir)
	}
	if err == nil && s.carried() {
		err = s.unpack(dir)
	}
	if err != nil {
		if made {
			_ = os.RemoveAll(dir)
		}
		return fmt.Errorf("make the project: %w", err)
	}
	return nil
}

// Check returns an error if a field of s is not valid. It does not look at files. New checks, too.
func (s Scaffold) Check() error {
	if err := wasmtools.CheckName(s.Name); err != nil {
		return fmt.Errorf("the name of the tool: %w", err)
	}
	if c := s.Name[0] | 0x20; c < 'a' || c > 'z' {
		return fmt.Errorf("the name of the tool: %q must begin with a letter, because the compilers require it", s.Name)
	}
	if !slices.Contains(Languages(), s.Language) {
		return fmt.Errorf("%q is not a language that toolsrv supports: choose go, tinygo, rust, python, javascript or typescript", text.Short(string(s.Language)))
	}
	// A tool that a route table would refuse should not be made in the first place.
	tool := wasmtools.Tool{
		Namespace: s.Namespace, Name: s.Name,
		Parameters: new(schema.Schema), Caller: wasmtools.CallerFunc(nil),
	}
	return tool.Check()
}

// carried reports whether the project gets the SDK from inside toolsrv.
func (s Scaffold) carried() bool { return s.SDK == "" && !s.Published }

// sdkFile has, for each language, the path of its SDK in the folder of the SDKs, with slashes, and a file in it.
func sdkFile(l Language) (dir, file string) {
	switch l {
	case Rust:
		return "rust/toolsrv", "Cargo.toml"
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
	abs, err := filepath.Abs(filepath.Join(sdks, filepath.FromSlash(dir)))
	if err != nil {
		return "", err
	}
	if !hasFile(abs, file) {
		return "", fmt.Errorf("%s has no SDK for %s (there is no %s): name the folder sdk in toolsrv's source",
			sdks, l, filepath.Join(filepath.FromSlash(dir), file))
	}
	if !utf8.ValidString(abs) || strings.ContainsFunc(abs, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Errorf("%q can't be written into a project: move the SDK to a folder with a plain name", abs)
	}
	return abs, nil
}

// unpack puts the SDK into the folder of the project.
func (s Scaffold) unpack(dir string) error {
	within, _ := sdkFile(s.Language)
	name, _, _ := strings.Cut(within, "/")
	files, err := sdk.Files(name)
	if err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(dir, sdkFolder, name), files)
}

// write writes the files that the templates give for s into the folder.
func (s Scaffold) write(dir string) error {
	root := "template/" + string(s.Language)
	if s.Language == TinyGo {
		root = "template/go" // TinyGo compiles the same source
	}
	at := s.SDK
	if s.carried() {
		within, _ := sdkFile(s.Language)
		at = path.Join(sdkFolder, within)
	}
	values := s.words()
	maps.Copy(values, map[string]string{
		"Version":   SDKVersion,
		"Package":   strings.ToLower(s.Name) + "-tool", // a name for npm, which allows no capitals
		"Published": when(s.Published),
		"Carried":   when(s.carried()), // the SDK is in the project
		"SDKDir":    quote(at),
		"SDKFile":   quote("file:" + at),                                             // as npm requires
		"SDKURL":    (&url.URL{Scheme: "file", Path: filepath.ToSlash(at)}).String(), // for pip, which accepts no path of a folder in the project
		"TinyGo":    when(s.Language == TinyGo),
	})
	return fs.WalkDir(templates, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := render(name, values)
		if err != nil {
			return err
		}
		// File names in the templates end in .tmpl, so that Go does not use the files. They lack the leading dot.
		to := strings.TrimSuffix(strings.TrimPrefix(name, root+"/"), ".tmpl")
		if to == "gitignore" {
			to = ".gitignore"
		}
		file := filepath.Join(dir, filepath.FromSlash(to))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, content, 0o644)
	})
}

// quote returns a string in quotes, for go.mod, TOML and JSON. The string must be valid UTF-8.
func quote(s string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // can't fail for a string and a buffer
	return strings.TrimSuffix(out.String(), "\n")
}
