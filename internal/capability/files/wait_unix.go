//go:build unix

package files

import "syscall"

// noWait makes the system open a file without waiting, for the other end of a pipe or for the holder of a lease. It also keeps a terminal from
// becoming the process's controlling terminal.
const noWait = syscall.O_NONBLOCK | syscall.O_NOCTTY
