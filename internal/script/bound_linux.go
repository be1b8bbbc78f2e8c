package script

import (
	"runtime/debug"
	"syscall"

	"github.com/toolsrv/toolsrv/internal/apart"
)

// bound makes this process end when it takes more than a helper may: by a signal, or by Go's runtime.
func bound(memory int64) error {
	debug.SetMaxStack(helperStack)
	if memory > helperSmall { // to keep garbage small takes time of the processor, and the script can have more
		debug.SetMemoryLimit(memory / 8 * 7)
	}
	cpu := syscall.Rlimit{Cur: helperCPU, Max: helperCPU + 1} // where both are the same, the system sends no SIGXCPU
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &cpu); err != nil {
		return err
	}
	_, err := apart.Bound(memory, nil)
	return err
}
