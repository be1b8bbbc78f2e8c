// Package page_test runs the page for Rust. It is separate from the other tests of Rust, since it compiles all crates for two separate projects: so
// it runs again only if the page, the SDK, or the code that makes and builds projects has changed.
package page_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/pagetest"
)

// TestPage runs the commands of docs/rust.md as a reader would, and calls the tool that they build.
func TestPage(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "cargo", "rustc")
	sdk, err := filepath.Abs("../../../sdk/rust")
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := exec.CommandContext(t.Context(), "rustc", "--print", "target-libdir", "--target", "wasm32-unknown-unknown").Output()
	if err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(libraries)), "*")); err != nil || len(found) == 0 {
		t.Skipf("the Rust target wasm32-unknown-unknown is not installed: make setup-rust (%v)", err)
	}
	fetch := exec.CommandContext(t.Context(), "./cargo.sh", "fetch", "--locked")
	fetch.Dir = sdk
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", fetch, err, out)
	}
	const released = `toolsrv = "0.1"`
	if page := string(testkit.Read(t, "../../../docs/rust.md")); strings.Count(page, released) != 1 || strings.Count(page, "cd count\n") != 1 {
		t.Fatalf("docs/rust.md does not have %s and cd count exactly once", released)
	}
	s := pagetest.NewShell(t)
	s.Env = append(s.Env, "CARGO_NET_OFFLINE=true") // all crates are on this machine
	// The SDK is the one beside the page, not the last one that was released.
	s.Follow("rust.md", strings.NewReplacer(released, `toolsrv = { path = "`+sdk+`/toolsrv" }`, "cd count\n", "cd count\ncargo() { '"+sdk+"/cargo.sh' \"$@\"; }\n"))
	const want = `{"words":2,"characters":10}`
	if got := s.Run(`toolsrv call tools/count.wasm '{"text": "Hallo Welt", "spaces": true}'`); strings.TrimSpace(got) != want {
		t.Errorf("the tool answers %s, want %s", got, want)
	}
}
