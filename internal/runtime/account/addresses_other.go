//go:build !linux

package account

// MachineAddresses returns how many bytes of address space the process may have, or 0 if that is not limited, or not known.
func MachineAddresses() int64 { return 0 }
