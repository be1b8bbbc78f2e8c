package server_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestStart starts a server with modules that run forever while they are described, until they are replaced. Meanwhile probes and listed tools
// answer, and a path without a tool is not ready; afterwards it is not found.
// Proves: Nothing stops the server
func TestStart(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Tools.DescribeFuel = sandboxtest.Endless
	spin := testkit.Fixture(t, "wat/hostile/describe_spin")
	var spinning []string
	for i := range 3 {
		module, err := wasmbin.SetCustom(spin, "name", []byte{0, 2, 1, byte('a' + i)})
		if err != nil {
			t.Fatal(err)
		}
		spinning = append(spinning, testkit.Put(t, c.Tools.Directory, fmt.Sprintf("a%d.wasm", i), module))
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
		t.Errorf("a listed tool: got %d", got)
	}
	if status, body, err := r.call("/shop/ecko", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, `"not_ready"`) {
		t.Errorf("a path without a tool at the start: got %d %s %v, want 503 not_ready", status, body, err)
	}
	if all := r.log.String(); strings.Contains(all, `"msg":"ready"`) {
		t.Error("the log says ready before all files are known")
	}
	for _, file := range spinning {
		if err := os.Rename(testkit.Put(t, t.TempDir(), "none", "not a module"), file); err != nil {
			t.Fatal(err)
		}
	}
	r.log.Wait(t, `"msg":"ready","tools":10,"refused":3,"took":"`)
	if got := probe("/readyz"); got != http.StatusOK {
		t.Errorf("/readyz after the start: got %d", got)
	}
	testkit.Until(t, "a path without a tool is not found, and a similar path is suggested", func() bool {
		status, body, _ := r.call("/shop/ecko", "")
		return status == http.StatusNotFound && strings.Contains(body, "did you mean /shop/echo?")
	})
}
