package toolsrv_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A source is a Go file of the repository.
type source struct {
	path    string // relative to the root, with slashes
	dir     string
	test    bool
	lines   int
	ast     *ast.File
	imports map[string]string // local name to path
	paths   []string          // all imports
}

// sources parses every Go file of the repository, including those of nested modules (SDK, examples, benchmarks, clients).
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parseSources()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found only %d Go files; is this the module's root?", len(all))
	}
	return all
}

var parseSources = sync.OnceValues(func() (all []source, err error) {
	err = filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			if file != "." && (strings.HasPrefix(base, ".") || base == "build" || base == "bin" || base == "my" || base == "target" || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(file) != ".go" {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s := source{
			path:    filepath.ToSlash(file),
			dir:     path.Dir(filepath.ToSlash(file)),
			test:    strings.HasSuffix(file, "_test.go"),
			lines:   bytes.Count(text, []byte("\n")),
			ast:     parsed,
			imports: map[string]string{},
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			local := path.Base(strings.TrimSuffix(strings.TrimSuffix(imported, "/v5"), "/v2"))
			if spec.Name != nil {
				local = spec.Name.Name
			}
			s.imports[local] = imported
			s.paths = append(s.paths, imported)
		}
		all = append(all, s)
		return nil
	})
	return all, err
})

// onLine returns the source of a node on one line.
func onLine(n ast.Node) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), n); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
