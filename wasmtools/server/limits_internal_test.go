package server

import (
	"testing"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func TestConnections(t *testing.T) {
	t.Parallel()
	for descriptors, want := range map[int64]int64{1024: 768, 20: 15, 1: 1, 1 << 20: maxConns, 13_000: 9750} {
		if got := mostConnections(descriptors); got != want {
			t.Errorf("with %d descriptors: got %d connections, want %d", descriptors, got, want)
		}
	}
	if n := account.MachineDescriptors(); n < 3 {
		t.Errorf("the process may have %d descriptors", n)
	}
}

func TestHeapLimit(t *testing.T) {
	t.Parallel()
	machine, c := account.MachineMemory(), config.Default()
	if got := HeapLimit(c); got < machine/4 || got > machine/2 {
		t.Errorf("by default: got %d of %d bytes, want 27 to 40 percent", got, machine)
	}
	c.Server.Memory = machine * 2
	if got := HeapLimit(c); got != machine/4 {
		t.Errorf("beside tools that may take all: got %d of %d bytes, want a quarter", got, machine)
	}
}
