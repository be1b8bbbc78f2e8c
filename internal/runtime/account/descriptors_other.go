//go:build !unix

package account

import "math"

// MachineDescriptors returns how many files and connections the process may have open: this system has no limit.
func MachineDescriptors() int64 { return math.MaxInt32 }
