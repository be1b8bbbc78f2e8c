//go:build !linux

package web

import (
	"net"
	"time"
)

// setUnreadTimeout does nothing: the system has no such time-out. What it keeps is bounded all the same.
func setUnreadTimeout(*net.TCPConn, time.Duration) error { return nil }
