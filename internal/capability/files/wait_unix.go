//go:build unix

package files

import "syscall"

// noWait makes the system open a file without waiting for anybody: the other end of a pipe, or who holds a lease. A terminal does not
// become the process's own.
const noWait = syscall.O_NONBLOCK | syscall.O_NOCTTY
