package main_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestFewAddresses starts a server with less address space than it reserves. The server prints a sentence that says so and what to do, and exits.
func TestFewAddresses(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("the race detector itself needs more address space")
	}
	cmd := exec.Command("sh", "-c", `ulimit -v 1048576 && exec "$0" "$@"`, binary, "openapi", "--config", filepath.Join(site(t, "", nil), "toolsrv.toml"), "--address", "127.0.0.1:0")
	out, err := cmd.CombinedOutput()
	if want := "the process may have 1 GiB of address space (ulimit -v), but needs 4 GiB"; err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "goroutine ") {
		t.Errorf("got %v, %s, want %q", err, out, want)
	}
}
