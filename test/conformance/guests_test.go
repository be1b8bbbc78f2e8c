package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/projecttest"
)

// A guest is an SDK's build of the kit's tools.
type guest struct {
	name  string
	lacks []string // what its platform lacks
	build func(*testing.T) []byte
}

func guests() []guest {
	return []guest{
		{"go", nil, builder("../../sdk/go", "go", "build", "-trimpath", "-ldflags=-s", "-buildmode=c-shared", "-o", "@", "./internal/conformance")},
		{"tinygo-wasip1", nil, tinygo("wasip1")},
		{"tinygo-wasm-unknown", []string{"clock", "standard error"}, tinygo("wasm-unknown")},
		{"python", []string{"64 bits"}, scripted("python", "../../sdk/python/conformance/conformance.py")},
		{"rust-unknown", []string{"128 levels"}, rustBuilder("wasm32-unknown-unknown")},
		{"rust-wasip1", []string{"128 levels"}, rustBuilder("wasm32-wasip1")},
	}
}

// tinygo makes toolsrv build compile the guest in Go with TinyGo, with these options after //toolsrv:tinygo.
func tinygo(line string) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		t.Helper()
		testkit.NeedBuild(t, "tinygo")
		sdk, err := filepath.Abs("../../sdk/go")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		files := map[string]string{
			"go.mod":    fmt.Sprintf("module example.com/guest\n\ngo 1.24\n\nrequire github.com/toolsrv/toolsrv/sdk/go v0.1.0\n\nreplace github.com/toolsrv/toolsrv/sdk/go => %q\n", sdk),
			"tinygo.go": "//toolsrv:tinygo " + line + "\n\npackage main\n",
		}
		sources, err := filepath.Glob(filepath.Join(sdk, "internal", "conformance", "*.go"))
		if err != nil || len(sources) == 0 {
			t.Fatalf("the guest has the files %q, %v", sources, err)
		}
		for _, source := range sources {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Base(source)] = string(text)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return projecttest.Compile(t, dir)
	}
}

// scripted returns the function that puts a script into its engine.
func scripted(engineName, path string) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		t.Helper()
		if testkit.Emulated() && engineName == "python" {
			t.Skip("emulated, CPython takes longer to start than a call may")
		}
		module, _, err := script.Build(t.Context(), path, script.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return module
	}
}

// builder returns the function that builds a guest with a command, whose argument @ is the file to write.
func builder(dir, program string, args ...string) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		t.Helper()
		return testkit.Guest(t, dir, program, args...)
	}
}
