//go:build !unix

package project

import (
	"os/exec"
	"time"
)

// patience is how long to wait for the output of programs that a killed compiler has started.
const patience = 2 * time.Second

// group bounds the wait for a killed command. This system has no process groups, so the programs that the command has started must end by themselves.
func group(cmd *exec.Cmd) (release func()) {
	cmd.WaitDelay = patience
	return func() {}
}
