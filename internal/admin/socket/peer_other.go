//go:build !linux

package socket

import (
	"net"
	"os"
)

// peerOf returns the user whom the socket's file belongs to: its mode lets in no other, but root, who is taken for that user.
func peerOf(*net.UnixConn) (uid int, err error) { return os.Getuid(), nil }
