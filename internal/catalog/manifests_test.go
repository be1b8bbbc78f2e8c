package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestManifestsFull fills the memory for manifests: what is served stays, and can be replaced. A new file is refused with the reason, and served once
// there is room.
// Proves: Limits hold, one by one and in sum
func TestManifestsFull(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{Memory: 16 << 20}) // so that manifests have 4 MiB
	directory := t.TempDir()
	testkit.Put(t, directory, "a.wasm", large(t, "v0001", "a"))
	testkit.Put(t, directory, "small.wasm", version(t, "v0001", "", "small"))
	c := open(t, options{Directory: directory, Engine: engine})
	awaitTable(t, c, []string{"/a", "/small"}, nil)
	one := engine.ManifestUse().Held
	if one < 1<<20 {
		t.Fatalf("the manifests are counted as %d bytes, want more than 1 MiB", one)
	}

	swap(t, directory, "b.wasm", large(t, "v0001", "b"))
	awaitTable(t, c, []string{"/a", "/small"}, []string{"b.wasm"})
	if got := reason(c.Table().Current(), directory+"/b.wasm"); !strings.Contains(got, "exceeds the limit of 4 MiB") || !strings.Contains(got, "raise server.memory") {
		t.Errorf("b.wasm is refused for %q", got)
	}
	swap(t, directory, "a.wasm", large(t, "v0002", "a"))
	awaitAnswer(t, c, "/a", "v0002")
	awaitTable(t, c, []string{"/a", "/small"}, []string{"b.wasm"})
	remove(t, directory, "a.wasm")
	awaitTable(t, c, []string{"/b", "/small"}, nil)
	if held := engine.ManifestUse().Held; held != one {
		t.Errorf("with b in place of a, %d bytes are counted, want %d", held, one)
	}
	closeNow(t, c)
	if use := engine.State(); use.Manifests.Held != 0 {
		t.Errorf("%d bytes are counted after the catalog was closed, want none", use.Manifests.Held)
	}
}

// large returns a module with a tool whose manifest takes 2 MiB of memory.
func large(t testing.TB, says, name string) []byte {
	t.Helper()
	text, err := json.Marshal(manifest.Manifest{ABI: manifest.ABI, Tools: []manifest.Tool{{
		Name: name, Description: "Does it.", Parameters: json.RawMessage(`{"type":"object","description":"` + strings.Repeat("long ", 48_000) + `"}`),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return sandboxtest.WithManifest(t, patch(t, testkit.Fixture(t, "catalog/answer"), "v0000", says), text)
}
