package apart_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/apart"
)

// TestMemory checks that processes leave enough memory for the server itself and for calls.
func TestMemory(t *testing.T) {
	t.Parallel()
	for machine, want := range map[int64]int64{64: 24, 128: 72, 160: 104, 256: 176, 512: 352, 1024: 384, 2048: 768, 65536: 1024} {
		if got := apart.Memory(machine << 20); got != want<<20 {
			t.Errorf("of %d MiB a process may have %d, want %d", machine, got>>20, want)
		}
	}
}
