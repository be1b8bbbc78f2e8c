package catalog_test

import (
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestDescribedLater has a module that must be described while the system has no memory to compile it. That is not the module's fault, so it is read
// again later, and then served.
func TestDescribedLater(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "it can't start the process that compiles")
	memory := filepath.Join(t.TempDir(), "memory")
	// This process kills itself while the file does not exist. Once the file exists, the process exits with 1, and the engine compiles by itself.
	helper := []string{"/bin/sh", "-c", `test -e "$0" || kill -9 $$; exit 1`, memory}
	directory := t.TempDir()
	testkit.Put(t, directory, "a.wasm", testkit.Fixture(t, "catalog/described"))
	c := start(t, options{Directory: directory, Engine: sandboxtest.Engine(t, sandbox.Config{CompileHelper: helper})})
	await(t, c, "the file is refused for want of memory", func(g *wasmtools.Generation) bool { return len(g.Refused()) == 1 })
	testkit.Put(t, filepath.Dir(memory), "memory", "")
	awaitTable(t, c, []string{"/told"}, nil)
}
