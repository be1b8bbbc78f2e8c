package examples_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/projecttest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestTinyGo builds the examples in Go with TinyGo, as toolsrv build does, and checks that they describe themselves and answer like Go's
// builds. The example named template is left out, since TinyGo can't call functions by reflection, as text/template does.
func TestTinyGo(t *testing.T) {
	t.Parallel()
	needTinyGo(t)
	built := t.TempDir()
	var names []string
	manifests := map[string]map[string]any{}
	for _, name := range goExamples(t) {
		if name != "template" {
			names = append(names, name)
			file := filepath.Join(built, name+".wasm")
			build(t, "../../examples", "./"+name, file)
			packed, manifest := pack(t, testkit.Read(t, file))
			if err := os.WriteFile(file, packed, 0o600); err != nil {
				t.Fatal(err)
			}
			manifests[name] = manifest
		}
	}
	buildPlain(t, built)
	paths := []string{"/csv/query", "/math/add", "/regex/extract", "/text/stats", "/time/add", "/units/convert"}
	asGo := serve(t, built, nil, append(paths, "/net/cidr")...)
	for _, target := range []string{"wasip1", "wasm-unknown"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			tools := t.TempDir()
			for _, name := range names {
				module, manifest := pack(t, buildTinyGo(t, name, target))
				if err := os.WriteFile(filepath.Join(tools, name+".wasm"), module, 0o600); err != nil {
					t.Fatal(err)
				}
				t.Logf("%s for %s: %d bytes", name, target, len(module))
				if !reflect.DeepEqual(manifest, manifests[name]) {
					t.Errorf("%s describes itself as %v\nwant the same as from Go's build: %v", name, manifest, manifests[name])
				}
			}
			want := paths
			if target == "wasip1" {
				if err := os.WriteFile(filepath.Join(tools, "plain-go.wasm"), buildTinyGo(t, "plain-go", target), 0o600); err != nil {
					t.Fatal(err)
				}
				want = append(want, "/net/cidr")
			}
			table := serve(t, tools, nil, want...)
			checkManifests(t, table)
			checkHard(t, table)
			checkSame(t, table, asGo)
		})
	}
}

// needTinyGo skips a test if TinyGo is missing, and outside make test-tinygo, since TinyGo takes minutes for all examples.
func needTinyGo(t *testing.T) {
	t.Helper()
	testkit.NeedBuild(t)
	if os.Getenv("TOOLSRV_TINYGO") == "" {
		t.Skip("builds the examples with TinyGo: make test-tinygo does")
	}
	if _, err := exec.LookPath("tinygo"); err != nil {
		t.Skip("tinygo is not installed, so nothing was built with it")
	}
}

// TestTinyGoGenerics checks that TinyGo uses the same names for generic types as Go.
func TestTinyGoGenerics(t *testing.T) {
	t.Parallel()
	needTinyGo(t)
	const source = `package main

import toolsrv "github.com/toolsrv/toolsrv/sdk/go"

type Pair[A, B any] struct {
	A A ` + "`json:\"a\"`" + `
	B B ` + "`json:\"b\"`" + `
}

type Item struct {
	N int64 ` + "`json:\"n\"`" + `
}

var _ = toolsrv.Export(toolsrv.Module{Tools: []toolsrv.Tool{toolsrv.Func("swap", "Swap.",
	func(_ *toolsrv.Call, in Pair[Pair[Item, string], Pair[string, []Item]]) (Pair[Pair[string, []Item], Pair[Item, string]], error) {
		return Pair[Pair[string, []Item], Pair[Item, string]]{in.B, in.A}, nil
	})}})

func main() {}
`
	files := map[string]string{"main.go": source}
	_, want := pack(t, buildProject(t, t.TempDir(), files))
	files["tinygo.go"] = "//toolsrv:tinygo\n\npackage main\n"
	if _, got := pack(t, buildProject(t, t.TempDir(), files)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant the same as from Go's build: %v", got, want)
	}
}

// buildTinyGo makes toolsrv build compile a copy of an example for a target of TinyGo's.
func buildTinyGo(t *testing.T, name, target string) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../examples", name))); err != nil {
		t.Fatal(err)
	}
	return buildProject(t, dir, map[string]string{"tinygo.go": "//toolsrv:tinygo " + target + "\n\npackage main\n"})
}

// buildProject makes toolsrv build compile the project in dir, after adding files to it.
func buildProject(t *testing.T, dir string, files map[string]string) []byte {
	t.Helper()
	sdk, err := filepath.Abs("../../sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	goMod := fmt.Sprintf("module example.com/work\n\ngo 1.24\n\nrequire github.com/toolsrv/toolsrv/sdk/go v0.1.0\n\nreplace github.com/toolsrv/toolsrv/sdk/go => %q\n", sdk)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(goMod), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return projecttest.Compile(t, dir)
}

// describe asks a module for its manifest.
func describe(t *testing.T, module []byte) []byte {
	t.Helper()
	program := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: sandboxtest.CodeDir()}), module)
	if err := program.Compile(t.Context()); err != nil { // describing a module may take longer than the time limit
		t.Fatal(err)
	}
	text, err := program.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// pack asks a module for its manifest, and returns the module with the manifest embedded, and the manifest without the name of the SDK.
func pack(t *testing.T, module []byte) (packed []byte, said map[string]any) {
	t.Helper()
	text := describe(t, module)
	packed, err := wasmbin.SetCustom(module, manifest.Section, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &said); err != nil {
		t.Fatal(err)
	}
	delete(said, "sdk")
	return packed, said
}

// checkSame checks that both builds answer each example with a result with the same bytes.
func checkSame(t *testing.T, one, other *wasmtools.RouteTable) {
	t.Helper()
	for _, route := range one.Tools() {
		for _, example := range route.Tool.Examples {
			if example.Result == nil {
				continue
			}
			path := route.Tool.Path()
			got, err := call(t, one, path, string(example.Arguments))
			want, wantErr := call(t, other, path, string(example.Arguments))
			if got != want || err != nil || wantErr != nil {
				t.Errorf("%s: %s: got %s, %v, want %s, %v", path, example.Arguments, got, err, want, wantErr)
			}
		}
	}
}
