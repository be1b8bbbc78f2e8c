//go:build !unix

package project

import (
	"os/exec"
	"time"
)

// patience is how long the output of what a killed compiler has started is waited for.
const patience = 2 * time.Second

// group bounds the wait for a command that was killed. There are no process groups here: what it has started ends by
// itself.
func group(cmd *exec.Cmd) (release func()) {
	cmd.WaitDelay = patience
	return func() {}
}
