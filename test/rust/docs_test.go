package rust_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
)

// TestToolsDoc runs the commands of docs/tools.md on Rust as a reader would, and calls the tool that they build.
func TestToolsDoc(t *testing.T) {
	t.Parallel()
	build(t, "hello", unknown) // or skip; it also fetches the crates
	page, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile("(?s)## A first tool in Rust\n.*?\n## ").Find(page)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(section, -1)
	if len(blocks) != 1 {
		t.Fatalf("got %d blocks of commands in the section, want 1", len(blocks))
	}
	sdk, err := filepath.Abs("../../sdk/rust")
	if err != nil {
		t.Fatal(err)
	}
	// The SDK is the one beside the page, not the last one that was released.
	const released = `toolsrv = "0.1"`
	script := strings.Replace(string(blocks[0][1]), released, `toolsrv = { path = "`+sdk+`/toolsrv" }`, 1)
	if script == string(blocks[0][1]) {
		t.Fatalf("the section does not say %s", released)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", "cargo() { '"+sdk+"/cargo.sh' \"$@\"; }\n"+script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CARGO_NET_OFFLINE=true") // all crates are here
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the commands of docs/tools.md: %v\n%s", err, out)
	}
	module, err := os.ReadFile(filepath.Join(dir, "tools/count.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	tool := load(t, module).Tool("count", 0, limits.Limits{Timeout: time.Minute})
	const want = `{"words":2,"characters":10}`
	if got, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`{"text": "Hallo Welt", "spaces": true}`)}); err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
