//go:build unix

package project

import (
	"os/exec"
	"syscall"
	"time"
)

// patience is how long a compiler may take to tidy up after it was interrupted.
const patience = 2 * time.Second

// group runs the command in a process group of its own, so that what it starts ends with it. The group is interrupted first, since
// compilers then remove their temporary files, and killed if that takes too long. release must be called when the
// command has ended.
func group(cmd *exec.Cmd) (release func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = patience
	cancelled := false
	cmd.Cancel = func() error {
		cancelled = true
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
	}
	return func() {
		if cancelled { // what is left of the group
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}
