//go:build !linux

package web

import (
	"net"
	"time"
)

// setUnreadTimeout does nothing, since the system has no such timeout. What it buffers is bounded all the same.
func setUnreadTimeout(*net.TCPConn, time.Duration) error { return nil }
