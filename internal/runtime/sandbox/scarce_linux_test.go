package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestSystemHasLess has the system refuse address space that the account takes for available. Freeing idle resources must make room. It runs in a
// process of its own, whose address space it uses up.
// Proves: Limits hold, one by one and in sum
func TestSystemHasLess(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "the test can't start the process that it limits")
	if testkit.Race(t) {
		t.Skip("the race detector needs address space of its own, and ends the process if it gets none")
	}
	if os.Getenv("SANDBOX_SCARCE") == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSystemHasLess$", "-test.v")
		child.Env = append(os.Environ(), "SANDBOX_SCARCE=1")
		if out, err := child.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS: TestSystemHasLess")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	e, err := New(t.Context(), Config{Imports: abi1.Sets()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	programs := kin(t, e, hoard(t), 12)
	for _, p := range programs {
		if err := p.Compile(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	call := func(k int, limit int64) {
		t.Helper()
		if out, err := programs[k].Tool("x", 0, limits.Limits{Memory: limit}).Call(t.Context(), CallSpec{}); err != nil || string(out) != "1" {
			t.Fatalf("tool %d: got %s, %v, want 1", k, out, err)
		}
	}
	const reserve = 1 << 30
	call(0, reserve)
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseUint(strings.Fields(string(text))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	const spare = reserve / 2 // for Go, which ends the process if it gets none
	limit := syscall.Rlimit{Cur: pages*uint64(os.Getpagesize()) + 3*reserve + spare, Max: syscall.RLIM_INFINITY & (1<<63 - 1)}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		t.Skipf("no limit on the address space: %v", err)
	}
	for range 3 {
		for k := range programs {
			call(k, reserve)
		}
	}
}

// TestAddressSpace has too little address space for an engine. That must be an error at once, and not the end of the process later. It runs in a
// process of its own.
func TestAddressSpace(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "the test can't start the process that it limits")
	if testkit.Race(t) {
		t.Skip("the race detector needs more address space")
	}
	if os.Getenv("SANDBOX_ADDRESSES") == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAddressSpace$", "-test.v")
		child.Env = append(os.Environ(), "SANDBOX_ADDRESSES=1")
		if out, err := child.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS: TestAddressSpace")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	for _, c := range []struct {
		limit uint64
		says  string
	}{{5 << 30, ""}, {2 << 30, "the process may have 2 GiB of address space (ulimit -v), but needs 4 GiB"}} {
		if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: c.limit, Max: 5 << 30}); err != nil {
			t.Skipf("no limit on the address space: %v", err)
		}
		e, err := New(t.Context(), Config{Imports: abi1.Sets()})
		if got := fmt.Sprint(err); (err != nil) != (c.says != "") || !strings.Contains(got, c.says) {
			t.Fatalf("with %d bytes: got %v, want %q", c.limit, err, c.says)
		}
		if err != nil {
			continue
		}
		if most := e.account.Most(account.Addresses, true); most != 2<<30 {
			t.Errorf("with %d bytes: memories may reserve %d, want 2 GiB", c.limit, most)
		}
		e.Close(context.Background())
	}
}
