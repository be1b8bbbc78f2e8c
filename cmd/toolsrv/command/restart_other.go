//go:build !unix

package command

import (
	"errors"
	"os"
)

// notifyRestart does nothing: this system has no signal for a restart.
func notifyRestart(chan<- os.Signal) {}

// replace returns an error: this system can't replace a process.
func replace(*successor, []string) error {
	return errors.New("this system can't replace a running process")
}
