package catalog_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestLoadsTakeMemory adds files whose loading takes more memory than one file may use: they are refused with the reason, and no memory stays counted
// for them. Files that fit only alone are loaded one after the other.
// Proves: Limits hold, one by one and in sum
func TestLoadsTakeMemory(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{Memory: 16 << 20}) // so that loading may take 6 MiB
	directory := t.TempDir()
	large := func(name string, size int) []byte { // the module is padded with a custom section, which is not kept in memory
		m := version(t, "v0001", "", name)
		return wasmbin.AppendCustom(m, "debug", make([]byte, size))
	}
	valued := func(name string, values int) []byte {
		text, err := json.Marshal(manifest.Manifest{ABI: manifest.ABI, Tools: []manifest.Tool{{
			Name: name, Description: "Does it.",
			Parameters: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"a":{"default":[%s1]}}}`, strings.Repeat("1,", values))),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return sandboxtest.WithManifest(t, testkit.Fixture(t, "catalog/answer"), text)
	}
	testkit.Put(t, directory, "small.wasm", version(t, "v0001", "", "small"))
	c := open(t, options{Directory: directory, Engine: engine})
	awaitTable(t, c, []string{"/small"}, nil)
	held := func() [3]int64 {
		s := engine.State()
		return [3]int64{s.Memory.Held, s.Manifests.Held, s.Sources.Held}
	}
	quiet := func(enough func([3]int64) bool) [3]int64 { // compiling and closing take some memory for a moment
		now := held()
		for deadline := time.Now().Add(time.Minute); !enough(now) && time.Now().Before(deadline); now = held() {
			time.Sleep(time.Millisecond)
		}
		return now
	}
	before := quiet(func(now [3]int64) bool { return now[0] == now[1] })
	for i := range 4 {
		testkit.Put(t, directory, fmt.Sprintf("large%d.wasm", i), large(fmt.Sprint("large", i), 3<<19))
	}
	testkit.Put(t, directory, "huge.wasm", large("huge", 3<<20))
	testkit.Put(t, directory, "some.wasm", valued("some", 5_000))
	testkit.Put(t, directory, "many.wasm", valued("many", 20_000))
	all := []string{"/large0", "/large1", "/large2", "/large3", "/small", "/some"}
	awaitTable(t, c, all, []string{"huge.wasm", "many.wasm"})
	for _, name := range []string{"huge.wasm", "many.wasm"} {
		if got := reason(c.Table().Current(), directory+"/"+name); !strings.Contains(got, "loading it takes up to") || !strings.Contains(got, "may take only 6 MiB") || !strings.Contains(got, "raise server.memory") {
			t.Errorf("%s is refused for %q", name, got)
		}
	}
	swap(t, directory, "some.wasm", valued("some", 20_000)) // the old one stays
	awaitTable(t, c, all, []string{"huge.wasm", "many.wasm", "some.wasm"})
	for _, name := range []string{"huge", "many", "some", "large0", "large1", "large2", "large3"} {
		remove(t, directory, name+".wasm")
	}
	awaitTable(t, c, []string{"/small"}, nil)
	if after := quiet(func(now [3]int64) bool { return now == before }); after != before {
		t.Errorf("after all files are gone, the counts in bytes (memory, manifests, modules) are %v, want %v", after, before)
	}
}

// TestLargeFilesAreReadOnce lists large files that are read into the same memory, one after the other: each is read once, and served unchanged.
func TestLargeFilesAreReadOnce(t *testing.T) {
	t.Parallel()
	source := newMemory()
	var reads atomic.Int32
	want := map[string]string{}
	for i := range 9 {
		content := wasmbin.AppendCustom(version(t, fmt.Sprintf("v%04d", i), "", fmt.Sprint("large", i)), "debug", bytes.Repeat([]byte{byte(i)}, 1<<20+i<<18))
		want[fmt.Sprint("/large", i)] = fmt.Sprintf("v%04d %x", i, sha256.Sum256(content))
		source.set(fmt.Sprint("large", i, ".wasm"), content, func(f *stored) {
			f.open = func(context.Context) (io.ReadCloser, error) {
				reads.Add(1)
				return io.NopCloser(bytes.NewReader(content)), nil
			}
		})
	}
	c, _ := openMemory(t, source, catalog.Open)
	for _, r := range c.Table().Current().Routes() {
		tool := r.Tool
		if got := call(t, tool) + " " + tool.Digest; got != want[tool.Path()] {
			t.Errorf("%s: got %s, want %s", tool.Path(), got, want[tool.Path()])
		}
		delete(want, tool.Path())
	}
	if len(want) > 0 || reads.Load() != 9 {
		t.Errorf("%d tools are missing, and 9 files were read %d times", len(want), reads.Load())
	}
}
