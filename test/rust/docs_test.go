package rust_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/pagetest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestPage runs the commands of docs/rust.md as a reader would, and calls the tool that they build.
func TestPage(t *testing.T) {
	t.Parallel()
	build(t, "hello", unknown) // or skip; it also fetches the crates
	sdk, err := filepath.Abs("../../sdk/rust")
	if err != nil {
		t.Fatal(err)
	}
	const released = `toolsrv = "0.1"`
	if page := string(testkit.Read(t, "../../docs/rust.md")); strings.Count(page, released) != 1 || strings.Count(page, "cd count\n") != 1 {
		t.Fatalf("docs/rust.md does not say %s and cd count once", released)
	}
	s := pagetest.NewShell(t)
	s.Env = append(s.Env, "CARGO_NET_OFFLINE=true") // all crates are here
	// The SDK is the one beside the page, not the last one that was released.
	s.Follow("rust.md", strings.NewReplacer(released, `toolsrv = { path = "`+sdk+`/toolsrv" }`, "cd count\n", "cd count\ncargo() { '"+sdk+"/cargo.sh' \"$@\"; }\n"))
	module, err := os.ReadFile(filepath.Join(s.Dir, "tools/count.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	tool := load(t, module).Tool("count", 0, limits.Limits{Timeout: time.Minute})
	const want = `{"words":2,"characters":10}`
	if got, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`{"text": "Hallo Welt", "spaces": true}`)}); err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
