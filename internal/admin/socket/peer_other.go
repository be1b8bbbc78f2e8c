//go:build !linux

package socket

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// peerOf returns the user whom the socket's file belongs to: its mode lets in no other, but root, who is taken for that user.
func peerOf(*net.UnixConn) (uid int, err error) { return os.Getuid(), nil }

func closeToOthers(_, _ string, _ syscall.RawConn) error { return nil }

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
