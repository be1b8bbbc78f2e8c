package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestStart has modules that run without end to be described: meanwhile the probes answer, listed tools do, and a path
// without a tool is not ready; afterwards it is not found.
// Proves: One file holds up no other
func TestStart(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Tools.DescribeFuel = 2_000_000_000 // long enough for a few requests meanwhile
	spin := testkit.Fixture(t, "wat/hostile/describe_spin")
	for i := range 3 {
		module, err := wasmbin.SetCustom(spin, "name", []byte{0, 2, 1, byte('a' + i)})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.Tools.Directory, fmt.Sprintf("a%d.wasm", i)), module, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, build(t, c))
	r.log.Wait(t, `"tool added","path":"/shop/echo"`)
	probe := func(path string) int {
		t.Helper()
		a, err := http.Get(r.url + path)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503} {
		if got := probe(path); got != want {
			t.Errorf("%s at the start: got %d, want %d", path, got, want)
		}
	}
	if got := r.status("/shop/echo", ""); got != http.StatusOK {
		t.Errorf("a tool that is listed: got %d", got)
	}
	if status, body, err := r.call("/shop/ecko", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, `"not_ready"`) {
		t.Errorf("a path without a tool at the start: got %d %s %v, want 503 not_ready", status, body, err)
	}
	if all := r.log.String(); strings.Contains(all, `"msg":"ready"`) {
		t.Error("the log says ready before all files are known")
	}
	r.log.Wait(t, `"msg":"ready","tools":10,"refused":3,"took":"`)
	if got := probe("/readyz"); got != http.StatusOK {
		t.Errorf("/readyz after the start: got %d", got)
	}
	if status, body, err := r.call("/shop/ecko", ""); status != http.StatusNotFound || !strings.Contains(body, "did you mean /shop/echo?") {
		t.Errorf("a path without a tool: got %d %s %v, want 404 with a guess", status, body, err)
	}
}
