package account

import (
	"math"
	"syscall"
)

// MachineAddresses returns how many bytes of address space the process may have (ulimit -v), or 0 if that is not limited.
func MachineAddresses() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil || limit.Cur > math.MaxInt64 {
		return 0
	}
	return int64(limit.Cur)
}
