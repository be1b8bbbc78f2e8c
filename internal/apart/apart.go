// Package apart runs work on foreign bytes in child processes, and limits what each process may use and how many run at a time. A process that
// exceeds a limit is ended. Where memory runs out, the system ends these processes before the server.
package apart

import (
	"slices"
	"strings"
)

// How much of the machine's memory a process may have, in bytes: at most mostMemory.
const (
	mostMemory  = 1 << 30
	smallMemory = 384 << 20
	// serverMemory is how much memory the server itself needs while a process works.
	serverMemory = 56 << 20
)

// Memory returns how many bytes of memory a process may have on a machine that has machine bytes: three eighths of these, but at most mostMemory.
// On a small machine, a process may have more than three eighths, up to smallMemory, if that leaves room for the server.
func Memory(machine int64) int64 {
	return min(mostMemory, max(machine/8*3, min(smallMemory, max(machine/4, machine-max(serverMemory, machine/16*5)))))
}

// Ample is how much memory should suffice, in bytes: if a process with this much runs out of it, the foreign bytes are to blame.
const Ample = mostMemory

// NoMemory reports whether a process that ended with exit code 2 ran out of memory or stack, judging by its standard error. If the garbage collector
// of Go 1.26 gets no memory, it reads address 0, outside any goroutine.
func NoMemory(stderr string) bool {
	return slices.ContainsFunc([]string{"out of memory", "cannot allocate memory", "failed to allocate", "stack overflow"}, func(text string) bool { return strings.Contains(stderr, text) }) ||
		strings.Contains(stderr, "SIGSEGV: segmentation violation\nPC=") && strings.Contains(stderr, " addr=0x0\n")
}
