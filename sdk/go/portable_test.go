package toolsrv_test

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPortable checks that the packages that become part of a guest use only what TinyGo compiles for every target: no goroutine, no
// channel, no recover (which recovers nothing there), no looking up of methods by reflection (which panics there), no
// errors.As (beside which encoding/json panics there), no ChaCha8 (whose core is in assembly). The same holds for the
// examples, but for template. make test-tinygo builds them with TinyGo.
func TestPortable(t *testing.T) {
	t.Parallel()
	dirs := []string{
		".", "files", "http", "internal/capability", "internal/conformance", "internal/double", "internal/random", "internal/reach", "internal/typed",
		"kv", "secrets", "settings", "tools", "toolslog", "toolsrand",
	}
	examples, err := filepath.Glob("../../examples/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range examples {
		if filepath.Base(dir) != "template" {
			dirs = append(dirs, dir)
		}
	}
	read := 0
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			read++
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if what := unportable(n); what != "" {
					t.Errorf("%s: %s, which TinyGo does not take for every target", set.Position(n.Pos()), what)
				}
				return true
			})
		}
	}
	if read < 25 {
		t.Errorf("read %d files, want those of the SDK and of the examples", read)
	}
}

// unportable returns what is wrong with a node, or "".
func unportable(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.SelectStmt, *ast.SendStmt:
		return "the use of a channel"
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "recover" {
			return "recover"
		}
	case *ast.SelectorExpr:
		if id, ok := n.X.(*ast.Ident); ok && id.Name == "errors" && n.Sel.Name == "As" {
			return "errors.As (take toolsrv.AsType)"
		}
		switch n.Sel.Name {
		case "MethodByName", "MakeFunc", "StructOf", "FuncOf", "ArrayOf", "SetFinalizer", "AddCleanup", "NewChaCha8":
			return n.Sel.Name
		}
	case *ast.ImportSpec:
		switch n.Path.Value {
		case `"net"`, `"net/http"`, `"os/exec"`, `"os/signal"`, `"plugin"`, `"C"`, `"text/template"`, `"html/template"`:
			return "the import of " + n.Path.Value
		}
	}
	return ""
}

// TestTagLengths checks that the examples' struct tags are no longer than TinyGo allows.
func TestTagLengths(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, file := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || field.Tag == nil {
				return true
			}
			read++
			tag, err := strconv.Unquote(field.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			if len(tag) > 255 {
				t.Errorf("%s: the tag has %d bytes, want 255 at most", set.Position(field.Pos()), len(tag))
			}
			return true
		})
	}
	if read < 50 {
		t.Errorf("read %d tags, want those of the examples", read)
	}
}

// TestConstraints checks the files' build constraints: exactly the files for guests are built for a guest.
func TestConstraints(t *testing.T) {
	t.Parallel()
	targets := map[string][]string{
		"Go on a host":            {"linux", "amd64", "gc"},
		"Go for wasip1":           {"wasip1", "wasm", "gc"},
		"TinyGo for wasip1":       {"wasip1", "wasm", "tinygo", "tinygo.wasm", "gc.leaking", "scheduler.none"},
		"TinyGo for wasm-unknown": {"linux", "arm", "tinygo", "tinygo.wasm", "wasm_unknown", "gc.leaking", "scheduler.none"},
		"TinyGo on a host":        {"linux", "amd64", "tinygo"},
	}
	tests := []struct{ file, targets string }{
		{"guest.go", "Go for wasip1, TinyGo for wasip1, TinyGo for wasm-unknown"},
		{"native.go", "Go on a host, TinyGo on a host"},
		{"files/guest.go", "Go for wasip1, TinyGo for wasip1, TinyGo for wasm-unknown"},
		{"files/native.go", "Go on a host, TinyGo on a host"},
		{"internal/capability/guest.go", "Go for wasip1, TinyGo for wasip1, TinyGo for wasm-unknown"},
		{"internal/capability/native.go", "Go on a host, TinyGo on a host"},
		{"internal/conformance/output_guest.go", "Go for wasip1, TinyGo for wasip1, TinyGo for wasm-unknown"},
		{"internal/conformance/output_native.go", "Go on a host, TinyGo on a host"},
		{"memory_tinygo.go", "TinyGo for wasip1, TinyGo for wasm-unknown"},
		{"random_tinygo.go", "TinyGo for wasip1, TinyGo for wasm-unknown"},
		{"internal/random/random.go", "TinyGo for wasip1, TinyGo for wasm-unknown"},
		{"toolsrand/source_host.go", "TinyGo for wasip1, TinyGo for wasm-unknown"},
		{"toolsrand/source_crypto.go", "Go on a host, Go for wasip1, TinyGo on a host"},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(test.file)
			if err != nil {
				t.Fatal(err)
			}
			line, _, _ := strings.Cut(string(text), "\n")
			expr, err := constraint.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			for target, tags := range targets {
				got := expr.Eval(func(tag string) bool {
					for _, have := range tags {
						if tag == have {
							return true
						}
					}
					return false
				})
				if want := slices.Contains(strings.Split(test.targets, ", "), target); got != want {
					t.Errorf("%s: built: %t, want %t", target, got, want)
				}
			}
		})
	}
}
