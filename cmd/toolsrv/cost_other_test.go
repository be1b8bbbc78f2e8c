//go:build unix && !linux

package main_test

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// peak runs a command, and returns the most memory that it had.
func peak(t *testing.T, cmd *exec.Cmd) int64 {
	t.Helper()
	_ = cmd.Run() // its exit code is checked elsewhere
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Skip("this system does not report how much memory a process took")
	}
	memory := int64(usage.Maxrss)
	if runtime.GOOS != "darwin" { // which counts bytes
		memory <<= 10
	}
	return memory
}
