//go:build unix

package account

import (
	"math"
	"syscall"
)

// MachineDescriptors returns how many files and connections the process may have open. Go has already raised that limit as far as it can.
func MachineDescriptors() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 {
		return math.MaxInt32
	}
	return int64(limit.Cur)
}
