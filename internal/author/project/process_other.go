//go:build !unix

package project

import (
	"os/exec"
	"time"
)

// patience is how long to wait for the output of programs that a killed compiler has started.
const patience = 2 * time.Second

// group bounds the wait for a command that was killed. This system has no process groups: what it has started ends by itself.
func group(cmd *exec.Cmd) (release func()) {
	cmd.WaitDelay = patience
	return func() {}
}
