// Package toolsrv_test holds the rules of the house that no compiler checks: who may import whom, which library
// has which home, and how large files may grow.
package toolsrv_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/toolsrv/toolsrv"

// edges are the allowed imports between packages of this module. Arrows point down only, so that a reader of a
// package needs to know nothing above it.
var edges = map[string][]string{
	// Go's own memory: process-wide, so for main programs only.
	"internal/heap": {},
	// Owners and modes of files: usable by any program.
	"internal/ownership": {},
	// What tests share.
	"internal/testkit": {},
	// What tests share that run guests.
	"internal/testkit/sandboxtest": {"runtime/abi1", "runtime/sandbox", "runtime/wasmbin"},
	// Modules for tests, byte by byte.
	"internal/testkit/wasmtest": {},
	// Paths and patterns of them; knows no tools.
	"internal/pattern": {"internal/text"},
	// What messages do with foreign text: everybody's.
	"internal/text": {},
	// Writes a log; knows nobody who logs.
	"internal/journal": {"internal/text"},
	// Bytes become values; knows nothing of schemas.
	"internal/jsontree": {},
	// Pure format: usable by any program.
	"runtime/wasmbin": {"internal/text", "runtime/wasmbin/opcode"},
	// Names of numbers.
	"runtime/wasmbin/opcode": {},
	// Bytes in, bytes out: runs nothing.
	"runtime/instrument": {"internal/text", "runtime/instrument/weigh", "runtime/wasmbin", "runtime/wasmbin/opcode"},
	// Counts what a compiler does with a body; knows no sections.
	"runtime/instrument/weigh": {"runtime/wasmbin/opcode"},
	// Numbers and who waits for them; knows nothing of guests.
	"runtime/account": {},
	// Bytes and pages; knows nothing of WebAssembly but its page size.
	"runtime/linmem": {},
	// One constant, which a build tag sets.
	"runtime/sandbox/paranoid": {},
	// The words of errors, for all that can say one.
	"wasmtools/failure": {},
	// The domain: whoever embeds us depends on this, and on schemas for tools of Go functions.
	"wasmtools": {"internal/jsontree", "internal/pattern", "internal/text", "internal/typed", "wasmtools/failure", "wasmtools/schema"},
	// Knows no tools: what is valid, and what is wrong where it is not.
	"wasmtools/schema": {"internal/text", "wasmtools/failure", "internal/jsontree"},
	// Refuses with the domain's error.
	"wasmtools/auth": {"wasmtools"},
	// A file format: knows nothing of those who are configured, but the table of limits.
	"wasmtools/config": {"runtime/limits", "internal/pattern", "internal/text"},
	// One file becomes tools, the same way for serving and for the author's commands.
	"wasmtools/toolfile": {"runtime/abi1", "runtime/limits", "internal/text", "wasmtools", "wasmtools/schema", "internal/jsontree", "runtime/sandbox", "runtime/instrument", "runtime/wasmbin"},
	// A file on disk: knows no modules.
	"wasmtools/catalog/precedence": {},
	// The files of a source become a route table.
	"wasmtools/catalog": {"runtime/limits", "wasmtools", "wasmtools/toolfile", "runtime/sandbox", "wasmtools/catalog/precedence"},
	// The source that is a directory on disk.
	"wasmtools/catalog/directory": {"internal/ownership", "wasmtools/catalog"},
	// What every HTTP door needs; knows none of them.
	"wasmtools/web": {"internal/text", "wasmtools", "wasmtools/auth"},
	// REST: sees tools, never sandboxes.
	"wasmtools/openapi": {"internal/text", "wasmtools", "wasmtools/web"},
	// The service: listeners, and every part wired to the others.
	"wasmtools/server": {"runtime/abi1", "runtime/account", "internal/text", "wasmtools", "wasmtools/web", "wasmtools/openapi", "wasmtools/auth", "wasmtools/catalog", "wasmtools/catalog/directory", "wasmtools/config", "runtime/sandbox"},
	// Runs compilers; never what they made.
	"author/project": {"internal/text", "wasmtools", "runtime/wasmbin"},
	// Every part has a command.
	"cmd/toolsrv/command": {"runtime/abi1", "runtime/limits", "internal/heap", "internal/journal", "internal/text", "author/project", "wasmtools", "wasmtools/server", "wasmtools/config", "wasmtools/catalog", "wasmtools/catalog/directory", "wasmtools/web", "wasmtools/toolfile", "runtime/sandbox"},
	// main.
	"cmd/toolsrv": {"cmd/toolsrv/command"},
	// What can be limited, as data: for those that configure and those that enforce.
	"runtime/limits": {"internal/text"},
	// Runs guests; knows no HTTP, no configuration, no schema.
	"runtime/sandbox": {"internal/jsontree", "runtime/hostabi", "runtime/limits", "internal/text", "runtime/account", "runtime/codecache", "runtime/instrument", "runtime/linmem", "runtime/sandbox/paranoid", "runtime/schedule", "runtime/wasmbin"},
	// Files of bytes that are to be trusted; knows no compiler.
	"runtime/codecache": {"internal/ownership"},
	// What a host function is given; knows neither who gives it nor what runs a guest.
	"runtime/hostabi": {},
	// A set of functions each; they know no sandbox.
	"runtime/abi1": {"runtime/hostabi", "runtime/wasi"},
	"runtime/wasi": {"runtime/hostabi"},
	// Orders jobs by what they take; knows not what they do.
	"runtime/schedule": {},
}

// homes are the third-party libraries, each with the only package that may import it, so that replacing one is a
// change in one place.
var homes = map[string][]string{
	"github.com/tetratelabs/wazero":            {"runtime/sandbox"},
	"github.com/santhosh-tekuri/jsonschema/v5": {"wasmtools/schema"},
	"github.com/julienschmidt/httprouter":      {"wasmtools/openapi"},
	"github.com/pelletier/go-toml/v2":          {"wasmtools/config"},
	"github.com/fsnotify/fsnotify":             {"wasmtools/catalog/directory"},
	"github.com/spf13/cobra":                   {"cmd/toolsrv/command"},
	"golang.org/x/term":                        {"cmd/toolsrv/command"},
	"golang.org/x/sys":                         {"runtime/linmem"},
	"github.com/KimMachineGun/automemlimit":    {"runtime/account"},
}

// unsafeHomes may import unsafe.
var unsafeHomes = []string{"runtime/linmem"}

// recoverHomes are the files that may recover from a panic, each with the work on foreign bytes that it guards. A panic
// anywhere else is a fault that must show.
var recoverHomes = map[string]string{
	"runtime/sandbox/lease.go":   "a call of a guest",
	"runtime/sandbox/compile.go": "wazero's compiler",
	"wasmtools/catalog/load.go":  "the loading of a file",
	"wasmtools/schema/draft.go":  "the check of a schema by its library",
	"wasmtools/openapi/state.go": "the router, which panics where it refuses a route",
	"wasmtools/web/exchange.go":  "a request, with an embedder's tools and dependencies",
	"wasmtools/openapi/entry.go": "an embedder's schema, when it is asked whether it needs a body",
}

// maxLines is the limit of a file. A package has none: it would push code into files that are named after something else.
const maxLines = 500

// vagueNames say nothing of what stands in a file.
var vagueNames = []string{"types.go", "helpers.go", "helper.go", "utils.go", "util.go", "common.go", "misc.go"}

type source struct {
	path    string // relative to the root, with slashes
	dir     string
	test    bool
	lines   int
	ast     *ast.File
	imports map[string]string // local name to path
}

func TestImports(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		allowed, known := edges[s.dir]
		for _, imported := range s.imports {
			own, isOwn := strings.CutPrefix(imported, module+"/")
			switch {
			case isOwn && !known:
				t.Errorf("%s: package %s has no line in edges; add one with its reason", s.path, s.dir)
			case isOwn && !slices.Contains(allowed, own):
				t.Errorf("%s imports %s: %s may import only %q; arrows point down", s.path, own, s.dir, allowed)
			case imported == "unsafe" && !slices.Contains(unsafeHomes, s.dir):
				t.Errorf("%s imports unsafe: only %q may", s.path, unsafeHomes)
			case !isOwn && strings.Contains(strings.Split(imported, "/")[0], "."):
				home := homeOf(imported)
				if !slices.Contains(home, s.dir) {
					t.Errorf("%s imports %s: only %q may; a library has one home", s.path, imported, home)
				}
			}
		}
	}
}

// TestRecovers holds the list of places that recover, of which docs/security.md tells.
func TestRecovers(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "recover" {
					if found[s.path] = true; recoverHomes[s.path] == "" {
						t.Errorf("%s recovers from panics: add it to recoverHomes with what it guards, and to docs/security.md", s.path)
					}
				}
			}
			return true
		})
	}
	for path := range recoverHomes {
		if !found[path] {
			t.Errorf("recoverHomes has %s, which recovers from nothing", path)
		}
	}
}

// TestNoForeignTypesInAPI finds third-party types in exported signatures and fields: they would make a library's
// next major version ours.
func TestNoForeignTypesInAPI(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		foreign := func(n ast.Node) {
			ast.Inspect(n, func(n ast.Node) bool {
				if block, ok := n.(*ast.BlockStmt); ok && block != nil {
					return false
				}
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if id, ok := sel.X.(*ast.Ident); ok && homeOf(s.imports[id.Name]) != nil {
					t.Errorf("%s: exported API names %s.%s of %s", s.path, id.Name, sel.Sel.Name, s.imports[id.Name])
				}
				return true
			})
		}
		for _, decl := range s.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
					foreign(d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					spec, ok := spec.(*ast.TypeSpec)
					if !ok || !spec.Name.IsExported() {
						continue
					}
					fields, ok := spec.Type.(*ast.StructType)
					if !ok {
						foreign(spec.Type)
						continue
					}
					for _, f := range fields.Fields.List {
						if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
							foreign(f.Type)
						}
					}
				}
			}
		}
	}
}

func TestSizesAndNames(t *testing.T) {
	t.Parallel()
	files := map[string]bool{}
	docs := map[string]int{}
	for _, s := range sources(t) {
		if s.lines > maxLines {
			t.Errorf("%s has %d lines, %d are allowed: split it by concept", s.path, s.lines, maxLines)
		}
		if slices.Contains(vagueNames, path.Base(s.path)) {
			t.Errorf("%s: name the file after the concept in it", s.path)
		}
		if s.test {
			continue
		}
		files[s.dir] = true
		if s.ast.Doc != nil {
			docs[s.dir]++
			if text := s.ast.Doc.Text(); s.ast.Name.Name != "main" && !strings.HasPrefix(text, "Package "+s.ast.Name.Name+" ") {
				t.Errorf("%s: the package doc starts with %q, want %q", s.path, firstLine(text), "Package "+s.ast.Name.Name+" …")
			}
		}
		for _, decl := range s.ast.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function: work at import time can't be configured, ordered or tested", s.path)
			}
		}
	}
	for dir := range files {
		if docs[dir] != 1 {
			t.Errorf("%s has %d package docs, want just one", dir, docs[dir])
		}
	}
	for dir := range edges {
		if !files[dir] {
			t.Errorf("edges names %s, which has no Go file", dir)
		}
	}
}

// sources parses every Go file of this module; modules nested in it (SDK, examples, benchmarks) keep their own rules.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			nested := false
			if file != "." {
				_, err := os.Stat(filepath.Join(file, "go.mod"))
				nested = err == nil
			}
			if file != "." && (strings.HasPrefix(base, ".") || base == "build" || base == "bin" || base == "testdata" || nested) {
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
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found only %d Go files; is this the module's root?", len(all))
	}
	return all
}

// homeOf returns the packages that may import a third-party package, or nil where none may.
func homeOf(imported string) []string {
	for library, home := range homes {
		if imported == library || strings.HasPrefix(imported, library+"/") {
			return home
		}
	}
	return nil
}

func exportedReceiver(recv *ast.FieldList) bool {
	typ := recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
