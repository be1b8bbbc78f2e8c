//go:build unix

package command

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// notifyRestart has c told of the signal that asks for a restart in place.
func notifyRestart(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR2) }

// replace has the program at path take this process's place, with the same arguments, and go on with a listener. It returns only if that
// fails.
func replace(path string, l *os.File, address string) error {
	// Until the program asks for signals, one that ends a process by default must not end it.
	signal.Ignore(syscall.SIGHUP, syscall.SIGUSR2)
	fd := l.Fd()
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETFD, 0); errno != 0 {
		return fmt.Errorf("keep the listener open: %w", errno)
	}
	env := append(os.Environ(), handover(fd, address))
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, os.Args, env))
}
