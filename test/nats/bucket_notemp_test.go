package nats_test

import (
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
)

// TestBucketNoTemp puts a module and a script on a server without a folder for temporary files, as in a read-only container.
func TestBucketNoTemp(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} { // the last two are the variables of Windows
		t.Setenv(name, none)
	}
	c := start(t, 1, nil)
	scripts := func(c *config.Config) { c.Sources[0].Scripts = true }
	all := []*replica{startReplica(t, c.url(), scripts), startReplica(t, c.url(), scripts)}
	if a := all[0].put("a.wasm", tool(t, "v0001", "a", 0, "get")); a.code != 200 {
		t.Errorf("put a module: %v", a)
	}
	if a := all[0].put("greet.js", []byte("/** Greets. */\nexport function greet() { return \"hello\"; }\n")); a.code != 200 {
		t.Errorf("put a script: %v", a)
	}
	served(t, all, "/a/get", "v0001")
	served(t, all, "/greet", "hello")
	left, err := filepath.Glob(filepath.Join(all[0].cache, "registry", ".scratch-*"))
	if len(left) > 0 || err != nil {
		t.Errorf("%v is left, %v", left, err)
	}
}
