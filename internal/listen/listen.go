// Package listen binds addresses.
package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
)

// Check returns an error where a server could not listen on an address. It says what to do.
func Check(ctx context.Context, address string) error {
	l, err := On(ctx, address)
	if err == nil {
		err = l.Close()
	}
	return err
}

// On binds an address. Its errors say what to do.
func On(ctx context.Context, address string) (net.Listener, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address)
	if err == nil {
		return l, nil
	}
	remedy := "set server.address or --address to a free host:port of this machine"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		remedy = "another program listens there: stop it, or set server.address or --address to another port"
	case errors.Is(err, fs.ErrPermission):
		remedy = "ports below 1024 need a privilege: set server.address or --address to a higher one"
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err // without the address, which is said already
	}
	return nil, fmt.Errorf("listen on %s: %w; %s", address, err, remedy)
}
