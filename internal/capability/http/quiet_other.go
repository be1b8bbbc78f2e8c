//go:build !unix

package http

import "net"

// nothingArrived can't be told here, so no connection is used again.
func nothingArrived(net.Conn) bool { return false }
