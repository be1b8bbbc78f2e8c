//go:build unix

package project

import (
	"os/exec"
	"syscall"
	"time"
)

// patience is how long a compiler may take to clean up after it was interrupted.
const patience = 2 * time.Second

// group makes the command run in its own process group, so that the programs that it starts end with it. The group is first interrupted, so that
// compilers remove their temporary files, and killed if that takes too long. release must be called when the command has ended.
func group(cmd *exec.Cmd) (release func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = patience
	cancelled := false
	cmd.Cancel = func() error {
		cancelled = true
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
	}
	return func() {
		if cancelled { // kills the rest of the group
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}
