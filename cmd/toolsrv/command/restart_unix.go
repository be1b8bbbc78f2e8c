//go:build unix

package command

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// notifyRestart makes c receive the signal for a restart in place.
func notifyRestart(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR2) }

// replace replaces this process with the successor's program, with the same arguments and with the listeners. Its environment has a few more variables.
// replace returns only if that fails.
func replace(next *successor, environ []string) error {
	// Until the new program handles signals, signals that end a process by default must not end it.
	signal.Ignore(syscall.SIGHUP, syscall.SIGUSR2)
	var fds []string
	for _, l := range next.listeners {
		fd := l.Fd()
		if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETFD, 0); errno != 0 {
			return fmt.Errorf("keep the listener open: %w", errno)
		}
		fds = append(fds, strconv.FormatUint(uint64(fd), 10))
	}
	environ = append(append(os.Environ(), environ...), handover(fds, next.addresses))
	return fmt.Errorf("run %s: %w", next.path, syscall.Exec(next.path, os.Args, environ))
}
