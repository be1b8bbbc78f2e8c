//go:build unix

package http

import (
	"net"
	"syscall"
)

// nothingArrived reports whether there is nothing to read from a connection, not even its end. If there is something, a part of it is lost.
func nothingArrived(conn net.Conn) bool {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, err := syscall.Read(int(fd), one[:])
		quiet = err == syscall.EAGAIN
		return true
	})
	return err == nil && quiet
}
