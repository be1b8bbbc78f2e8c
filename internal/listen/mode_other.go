//go:build !linux

package listen

// closeToOthers does nothing: other systems take the mode of a socket's file from the umask alone.
func closeToOthers(uintptr) {}
