package core_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func TestHeapLimit(t *testing.T) {
	t.Parallel()
	machine, c := account.MachineMemory(), config.Default()
	if got := core.HeapLimit(c); got < machine/4 || got > machine/2 {
		t.Errorf("by default: got %d of %d bytes, want 27 to 40 percent", got, machine)
	}
	c.Server.Memory = machine * 2
	if got := core.HeapLimit(c); got != machine/4 {
		t.Errorf("beside tools that may take all: got %d of %d bytes, want a quarter", got, machine)
	}
}

// TestBodyMemory has a server with little memory let calls hold less of it.
// Proves: Limits hold, one by one and in sum
func TestBodyMemory(t *testing.T) {
	t.Parallel()
	for machine, want := range map[int64]int64{256 << 20: 32 << 20, 2 << 30: 256 << 20, 64 << 30: 256 << 20} {
		if got := core.BodyMemory(machine); got != want {
			t.Errorf("of %d bytes: got %d, want %d", machine, got, want)
		}
	}
}
