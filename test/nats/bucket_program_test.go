package nats_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestBucketPrograms runs two processes of the program: commands change modules and scripts of a bucket through one process, and the other process serves them, even
// after the first is killed. A file outside the namespaces of the bucket is refused.
func TestBucketPrograms(t *testing.T) {
	testkit.NeedBuild(t, "go")
	c := start(t, 1, nil)
	dir := t.TempDir()
	program := filepath.Join(dir, "toolsrv")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/toolsrv")
	build.Dir = testkit.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	token := testkit.Put(t, dir, "token", adminToken)
	var all []*replica
	var processes []*exec.Cmd
	for i := range 2 {
		url := fmt.Sprintf("127.0.0.1:%d", freePort())
		config := testkit.Put(t, dir, fmt.Sprintf("%d/toolsrv.toml", i), fmt.Sprintf(`
[server]
address = %q
[state]
url = %q
[tools]
cache_directory = %q
[[source]]
name = "shared"
bucket = "tools"
namespaces = ["math", "text"]
scripts = true
[[auth.token]]
name = "root"
file = %q
scopes = ["*", "admin"]
[admin]
enabled = true
upload = true
`, url, c.url(), filepath.Join(dir, fmt.Sprint("cache", i)), token))
		p := exec.CommandContext(t.Context(), program, "serve", "--config", config)
		p.Dir = filepath.Dir(config)
		var log bytes.Buffer
		p.Stdout, p.Stderr = &log, &log
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = p.Process.Kill()
			_ = p.Wait()
			if t.Failed() {
				t.Logf("server %d: %.5000s", i, log.String())
			}
		})
		all, processes = append(all, &replica{t: t, url: "http://" + url}), append(processes, p)
	}
	command := func(wrong string, r *replica, args ...string) string {
		t.Helper()
		p := exec.CommandContext(t.Context(), program, append(args, "--server", r.url)...)
		p.Env = append(os.Environ(), "TOOLSRV_TOKEN="+adminToken)
		out, err := p.CombinedOutput()
		if (err != nil) != (wrong != "") || !strings.Contains(string(out), wrong) {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for _, r := range all {
		eventually(t, "the server is ready", func() bool {
			p := exec.CommandContext(t.Context(), program, "status", "--server", r.url)
			p.Env = append(os.Environ(), "TOOLSRV_TOKEN="+adminToken)
			return p.Run() == nil
		})
	}
	first := testkit.Put(t, dir, "v1/add.wasm", tool(t, "v0001", "math", 10<<10, "add"))
	second := testkit.Put(t, dir, "v2/add.wasm", tool(t, "v0002", "math", 10<<10, "add"))
	script := testkit.Put(t, dir, "shout.py", "from toolsrv import tool\n\n@tool\ndef shout(words: str) -> str:\n    \"\"\"Shouts.\"\"\"\n    return words.upper() + \"!\"\n")
	foreign := testkit.Put(t, dir, "pay.wasm", tool(t, "v0001", "payments", 0, "pay"))
	command("", all[0], "put", first, "math/add.wasm")
	served(t, all, "/math/add", "v0001")
	command("", all[1], "put", second, "math/add.wasm")
	served(t, all, "/math/add", "v0002")
	command("", all[1], "put", script, "text/shout.py")
	for _, r := range all {
		eventually(t, "the script is served", func() bool { return r.ask("POST", "/text/shout", []byte(`{"words":"hi"}`)).body == `"HI!"` })
	}
	command("may serve only math, text", all[0], "put", foreign, "math/pay.wasm")
	if out := command("", all[0], "history", "math/add"); !strings.Contains(out, digestOf(tool(t, "v0001", "math", 10<<10, "add"))[:12]) {
		t.Errorf("the history is %s", out)
	}
	command("", all[0], "rollback", "math/add", "--reason", "wrong sums")
	if err := processes[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	served(t, all[1:], "/math/add", "v0001")
	if out := command("", all[1], "history", "math/add"); !strings.Contains(out, "wrong sums") {
		t.Errorf("the history is %s", out)
	}
	command("", all[1], "remove", "text/shout.py")
	served(t, all[1:], "/text/shout", "404")
	command("", all[1], "rollback", "text/shout.py")
	if got := all[1].ask("POST", "/text/shout", []byte(`{"words":"hi"}`)).body; got != `"HI!"` {
		t.Errorf("the restored version answers %s", got)
	}
}
