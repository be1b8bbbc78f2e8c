package account

import (
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// unknown is the memory in bytes that is assumed if the system does not tell.
const unknown = 4 << 30

// MachineMemory returns how many bytes of memory the process may use: the limit of its control group, or the machine's memory.
func MachineMemory() int64 {
	n, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)()
	if system, e := memlimit.FromSystem(); err == nil && e == nil {
		n = min(n, system) // a group's limit may exceed the machine's memory
	}
	if err != nil || n == 0 || n > math.MaxInt64 {
		return unknown
	}
	return int64(n)
}

// DefaultMemory returns how many of the machine's bytes of memory all tools may use together by default: half.
func DefaultMemory(machine int64) int64 { return machine / 2 }

// DefaultCode returns how many of the machine's bytes of memory compiled code may use by default: an eighth, 1 GiB at most.
func DefaultCode(machine int64) int64 { return min(machine/8, 1<<30) }

// MachineMappings returns how many mappings the process may have, or 0 if that is not limited.
func MachineMappings() int64 {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
