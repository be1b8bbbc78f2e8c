package catalog_test

import (
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestTooLittleMemory checks that a file is refused if its module declares more memory than its tool may have, since all of the tool's calls would
// fail. `toolsrv check` refuses it, too. A reload that raises the limit makes the file served, and one that lowers the limit withdraws it.
func TestTooLittleMemory(t *testing.T) {
	t.Parallel()
	const page = 64 << 10
	memory := func(bytes int64) func(path string) limits.Limits {
		return func(path string) limits.Limits {
			if path == "/large" {
				return limits.Limits{Memory: bytes}
			}
			return limits.Limits{}
		}
	}
	directory := t.TempDir()
	testkit.Put(t, directory, "large.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifestText(t, "", "large"))) // two pages
	testkit.Put(t, directory, "small.wasm", version(t, "v0001", "", "small"))
	testkit.Put(t, directory, "waits.wasm", version(t, "v0002", "", "large"))
	c := open(t, options{Directory: directory, Limits: memory(page)})
	awaitTable(t, c, []string{"/large", "/small"}, []string{"large.wasm"})
	if got := reason(c.Table().Current(), directory+"/large.wasm"); !strings.Contains(got, "/large needs 128 KiB of memory to start, but its limit is 64 KiB") {
		t.Errorf("large.wasm is refused for %q", got)
	}

	remove(t, directory, "waits.wasm")
	awaitTable(t, c, []string{"/small"}, []string{"large.wasm"})
	for range 2 {
		if err := c.Reconfigure(catalog.Configuration{Limits: memory(2 * page)}); err != nil {
			t.Fatal(err)
		}
		awaitTable(t, c, []string{"/large", "/small"}, nil)
		if err := c.Reconfigure(catalog.Configuration{Limits: memory(page)}); err != nil {
			t.Fatal(err)
		}
		if got := paths(c.Table().Current()); len(got) != 1 || got[0] != "/small" { // at once
			t.Errorf("with a limit that is too low it serves %q", got)
		}
	}

	// Without limits of its own, a tool has the sandbox's.
	if err := c.Reconfigure(catalog.Configuration{}); err != nil {
		t.Fatal(err)
	}
	awaitTable(t, c, []string{"/large", "/small"}, nil)
	swap(t, directory, "small.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/hostile/memory_4gib"), manifestText(t, "", "small")))
	awaitTable(t, c, []string{"/large", "/small"}, []string{"small.wasm"}) // the version before it stays
	awaitAnswer(t, c, "/small", "v0001")
}
