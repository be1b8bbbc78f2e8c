//go:build !unix

package command

import (
	"errors"
	"os"
)

// notifyRestart does nothing: there is no signal for it.
func notifyRestart(chan<- os.Signal) {}

// replace is for systems that can replace a process.
func replace(*successor, []string) error {
	return errors.New("this system can't replace a running process")
}
