package listen

import "syscall"

// closeToOthers makes the socket's file accessible to its owner alone from the start: otherwise, until its mode is set, anybody whom the umask allows
// could connect.
func closeToOthers(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }
