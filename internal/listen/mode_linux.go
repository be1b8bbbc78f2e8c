package listen

import "syscall"

// closeToOthers has the file of a socket made for its owner alone: until the right mode is set, anybody whom the umask allows could connect.
func closeToOthers(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }
