// Package apart has processes of its own work on foreign bytes, and bounds them: how much one may take, and how many may run at a time. One
// that breaks a bound ends, and where memory runs out, they end before the server does.
package apart

import (
	"slices"
	"strings"
)

// What a process may have of the machine's memory, in bytes: mostMemory at most.
const (
	mostMemory  = 1 << 30
	smallMemory = 384 << 20
	// serverMemory is what the server itself takes meanwhile.
	serverMemory = 56 << 20
)

// Memory returns how many bytes of memory a process may have, of those that the machine has: mostMemory at most, three eighths, or up to
// smallMemory what leaves room for the server.
func Memory(machine int64) int64 {
	return min(mostMemory, max(machine/8*3, min(smallMemory, max(machine/4, machine-max(serverMemory, machine/16*5)))))
}

// Ample is the memory with which it is the foreign bytes' fault if it does not do, in bytes.
const Ample = mostMemory

// NoMemory reports whether a process that ended with exit code 2 says on its standard error that Go's runtime got no memory, or a goroutine
// no more stack. Where the garbage collector of Go 1.26 gets none, it reads what is at address 0, outside any goroutine.
func NoMemory(stderr string) bool {
	return slices.ContainsFunc([]string{"out of memory", "cannot allocate memory", "failed to allocate", "stack overflow"}, func(text string) bool { return strings.Contains(stderr, text) }) ||
		strings.Contains(stderr, "SIGSEGV: segmentation violation\nPC=") && strings.Contains(stderr, " addr=0x0\n")
}
