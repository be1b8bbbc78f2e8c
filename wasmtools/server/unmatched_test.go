package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

const matchesNothing = "matches no tool that is served"

// TestUnmatched checks the warnings about entries for tools that do not exist, which come once all files have been read: the tool of told.wasm is
// only known after the module was compiled and run.
func TestUnmatched(t *testing.T) {
	t.Parallel()
	c := settings(t)
	module := testkit.Fixture(t, "catalog/described")
	if err := os.WriteFile(filepath.Join(c.Tools.Directory, "told.wasm"), module, 0o600); err != nil {
		t.Fatal(err)
	}
	r := build(t, changed(c, func(c *config.Config) { c.Tools.Disabled = []string{"before"} }))
	// If a reload comes before all files are read, its entries are checked after that.
	if err := r.Reload(changed(c, func(c *config.Config) {
		c.Tools.Disabled = []string{"told", "shop", "shop/ecco"}
		c.Overrides = []config.Override{{Match: "sop/*"}, {Match: "shop/*"}}
	})); err != nil {
		t.Fatal(err)
	}
	run(t, r)
	r.log.Wait(t, `"key":"override[0].match","entry":"sop/*","did_you_mean":"shop"`)
	text := r.log.String()
	if strings.Count(text, matchesNothing) != 2 || !strings.Contains(text, `"key":"tools.disabled[2]","entry":"shop/ecco","did_you_mean":"shop/echo"`) {
		t.Errorf("at the start:\n%s", text)
	}

	if err := r.Reload(changed(c, func(c *config.Config) { c.Tools.Allowlist, c.Tools.Enabled = true, []string{"shop", "elsewhere"} })); err != nil {
		t.Fatal(err)
	}
	after := r.log.String()
	after = strings.TrimPrefix(after, text)
	if strings.Count(after, matchesNothing) != 1 || !strings.Contains(after, `"key":"tools.enabled[1]"}`) {
		t.Errorf("after a reload:\n%s", after)
	}
	if strings.Count(after, notWrong) != 2 || !strings.Contains(after, notWrong+`"key":"tools.disabled[2]","was":"shop/ecco is not the name of a tool"`) {
		t.Errorf("after a reload, the log does not say what is no longer wrong:\n%s", after)
	}

	if err := r.Reload(changed(c, func(c *config.Config) {
		for i := range 50 {
			c.Tools.Disabled = append(c.Tools.Disabled, fmt.Sprint("x", i))
		}
	})); err != nil {
		t.Fatal(err)
	}
	many := r.log.String()
	many = strings.TrimPrefix(many, text+after)
	if strings.Count(many, matchesNothing) != 20 || !strings.Contains(many, `"entries":30`) {
		t.Errorf("with 50 of them:\n%s", many)
	}
	if err := r.Reload(c); err != nil {
		t.Fatal(err)
	}
	none := strings.TrimPrefix(r.log.String(), text+after+many)
	if strings.Count(none, notWrong) != 20 || !strings.Contains(none, `"msg":"more entries of the configuration are no longer wrong","entries":30`) || strings.Contains(none, matchesNothing) {
		t.Errorf("without any of these entries:\n%s", none)
	}
}

// TestUnmatchedAfterMoreMemory checks that there is no warning about a tool that can be served only after a reload.
func TestUnmatchedAfterMoreMemory(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Limits.Memory = 64 << 10
	module, err := wasmbin.SetCustom(testkit.Fixture(t, "e2e/guest"), manifest.Section, // the tool needs two pages
		[]byte(`{"abi":1,"tools":[{"name":"large","description":"Is large.","parameters":{"type":"object"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Tools.Directory, "large.wasm"), module, 0o600); err != nil {
		t.Fatal(err)
	}
	more := changed(c, func(c *config.Config) {
		c.Limits.Memory = 128 << 10
		c.Tools.Disabled = []string{"large", "larch"}
	})
	for name, first := range map[string]string{"after the start": `"msg":"ready"`, "before its warnings": `"msg":"file refused"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := build(t, c)
			if strings.Contains(first, "ready") {
				run(t, r)
			}
			r.log.Wait(t, first)
			if err := r.Reload(more); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(first, "ready") {
				run(t, r)
			}
			r.log.Wait(t, `"key":"tools.disabled[1]"}`)
			if text := r.log.String(); strings.Count(text, matchesNothing) != 1 {
				t.Errorf("there is a warning about a tool that exists:\n%s", text)
			}
		})
	}
}

// TestDisabledReason checks that callers are told why a tool is disabled.
func TestDisabledReason(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Tools.Disabled, c.Tools.Reasons = []string{"shop"}, map[string]string{"shop": "being repaired"}
	r := start(t, c)
	status, body, err := r.call("/shop/echo", "")
	if err != nil || status != 503 || !strings.Contains(body, "Tool /shop/echo is disabled: being repaired") {
		t.Errorf("got %d %s (%v)", status, body, err)
	}
}

const notWrong = `"level":"INFO","msg":"an entry of the configuration is no longer wrong",`
