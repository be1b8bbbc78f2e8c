package core

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
)

// TestMemory divides the memory of small and large machines.
// Proves: Limits hold, one by one and in sum
func TestMemory(t *testing.T) {
	t.Parallel()
	const mib, gib = 1 << 20, 1 << 30
	for _, test := range []struct {
		name           string
		machine        int64
		tools, code    int64 // as configured
		want           Memory
		heapAtLeast    int64
		heapNoMoreThan int64
	}{
		{name: "small", machine: 256 * mib, want: Memory{Tools: 128 * mib, Code: 32 * mib, Bodies: 32 * mib}, heapAtLeast: 69 * mib, heapNoMoreThan: 71 * mib},
		{name: "middling", machine: 2 * gib, want: Memory{Tools: gib, Code: 256 * mib, Bodies: 256 * mib}, heapAtLeast: 550 * mib, heapNoMoreThan: 600 * mib},
		{name: "large", machine: 64 * gib, want: Memory{Tools: 32 * gib, Code: gib, Bodies: 256 * mib}, heapAtLeast: 24 * gib, heapNoMoreThan: 25 * gib},
		{name: "configured", machine: 2 * gib, tools: 512 * mib, code: 64 * mib, want: Memory{Tools: 512 * mib, Code: 64 * mib, Bodies: 256 * mib}, heapAtLeast: 1200 * mib, heapNoMoreThan: 1300 * mib},
		{name: "tools that may take all memory", machine: 2 * gib, tools: 4 * gib, want: Memory{Tools: 4 * gib, Code: 256 * mib, Bodies: 256 * mib}, heapAtLeast: 512 * mib, heapNoMoreThan: 512 * mib},
	} {
		c := config.Default()
		c.Server.Memory, c.Server.CodeMemory = test.tools, test.code
		got := memoryOf(test.machine, c)
		heap := got.Heap
		test.want.Machine, got.Heap = test.machine, 0
		if got != test.want || heap < test.heapAtLeast || heap > test.heapNoMoreThan {
			t.Errorf("%s: got %+v and a heap of %d, want %+v and a heap of %d to %d", test.name, got, heap, test.want, test.heapAtLeast, test.heapNoMoreThan)
		}
	}
}
