package script

import (
	"runtime/debug"
	"syscall"
)

// bound has this process end when it takes more than a helper may: by a signal, or by Go's runtime.
func bound() error {
	debug.SetMaxStack(helperStack)
	debug.SetMemoryLimit(helperMemory / 2)
	cpu := syscall.Rlimit{Cur: helperCPU, Max: helperCPU + 1} // where both are the same, the system sends no SIGXCPU
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &cpu); err != nil {
		return err
	}
	for resource, most := range map[int]uint64{syscall.RLIMIT_DATA: helperMemory, syscall.RLIMIT_CORE: 0} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return nil
}
