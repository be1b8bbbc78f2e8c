package server_test

import (
	"context"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// TestToolsOfTheProgram serves a Go function and a file of the directory in one namespace, with the same tokens and switches.
func TestToolsOfTheProgram(t *testing.T) {
	t.Parallel()
	hours := &wasmtools.Tool{Namespace: "shop", Name: "hours", Description: "Tell when the shop is open.", Parameters: schema.MustCompile(`{"type":"object"}`),
		Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte(`"9 to 5"`), nil })}
	c := settings(t)
	c.Auth.Tokens = []string{"one"}
	r := run(t, build(t, c, hours))
	r.log.Wait(t, `"msg":"ready"`)
	if status, body, err := r.call("/shop/hours", "one"); status != 200 || body != `"9 to 5"` || err != nil {
		t.Errorf("the function: got %d %s %v", status, body, err)
	}
	if got := r.status("/shop/echo", "one"); got != 200 {
		t.Errorf("the file: got %d", got)
	}
	if got := r.status("/shop/hours", "two"); got != 401 {
		t.Errorf("without a good token: got %d, want 401", got)
	}
	if err := r.Reload(changed(c, func(c *config.Config) { c.Tools.Disabled = []string{"shop/hours"} })); err != nil {
		t.Fatal(err)
	}
	if got := r.status("/shop/hours", "one"); got != 503 {
		t.Errorf("disabled by the configuration: got %d, want 503", got)
	}
}
