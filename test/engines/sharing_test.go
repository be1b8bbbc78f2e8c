package engines_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestFurtherTools checks how much memory a further tool of the same engine takes, apart from the code, which is compiled and counted only
// once. The memory account's figure does not depend on the machine's load. On systems that don't tell which pages were written, snapshots
// are complete copies.
func TestFurtherTools(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	for _, c := range []struct {
		language, name, source string
		most                   int64 // bytes for a further tool: its snapshot, and an instance
	}{
		{"javascript", "add.js", `import { tool } from "toolsrv";
export const add = tool({
  description: "Add %d.",
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  run: ({ a, b }) => a + b,
});`, 1 << 20},
		{"python", "add.py", `from toolsrv import tool

@tool
def add(a: int, b: int) -> int:
    """Add %d."""
    return a + b
`, 6 << 20},
	} {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			e := need(t, c.language)
			dir := t.TempDir()
			host := sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: dir})
			var before sandbox.State
			for k := range 4 {
				module, err := e.Append([]engine.File{{Name: c.name, Data: fmt.Appendf(nil, c.source, k)}})
				if err != nil {
					t.Fatal(err)
				}
				p := sandboxtest.Load(t, host, module)
				for range 3 {
					out, err := p.Tool("add", 0, limits.Limits{Timeout: time.Minute}).Call(t.Context(), sandbox.CallSpec{Input: []byte(`{"a":2,"b":3}`)})
					if err != nil || string(out) != "5" {
						t.Fatalf("got %s, %v, want 5", out, err)
					}
				}
				now := host.State()
				if k > 0 {
					if now.CodeMemory.Held != before.CodeMemory.Held {
						t.Errorf("tool %d takes %d bytes of code", k, now.CodeMemory.Held-before.CodeMemory.Held)
					}
					if more := now.Memory.Held - before.Memory.Held; more > c.most && runtime.GOOS == "linux" {
						t.Errorf("tool %d takes %d bytes, want %d at most", k, more, c.most)
					}
				}
				before = now
			}
			entries := 0
			files, err := os.ReadDir(dir)
			for _, f := range files {
				if len(f.Name()) == 64 {
					entries++
				}
			}
			if err != nil || entries != 1 {
				t.Errorf("the cache has %d entries, %v, want 1", entries, err)
			}
		})
	}
}
