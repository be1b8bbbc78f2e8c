// Package listen binds addresses: host:port of TCP, and sockets of the file system, which are written unix:PATH.
package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"
)

// Check returns an error that says what to do if a server could not listen on one of these addresses. Addresses that it already listens on are not
// checked.
func Check(ctx context.Context, addresses, already []string) error {
	all, err := All(ctx, slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return slices.Contains(already, a) }))
	return errors.Join(err, Close(all))
}

// All binds all addresses, or none if one of them can't be bound. Its errors say what to do.
func All(ctx context.Context, addresses []string) ([]net.Listener, error) {
	var all []net.Listener
	for _, address := range addresses {
		l, err := on(ctx, address)
		if err != nil {
			return nil, errors.Join(err, Close(all))
		}
		all = append(all, l)
	}
	return all, nil
}

// Close closes listeners.
func Close(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

func on(ctx context.Context, address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, Unix); ok {
		return onSocket(ctx, path)
	}
	return TCP(ctx, address, "server.address or --address")
}

// TCP binds host:port. Its errors say what to do; setting names the setting of the address.
func TCP(ctx context.Context, address, setting string) (net.Listener, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address)
	if err == nil {
		return l, nil
	}
	remedy := "set " + setting + " to a free host:port of this machine"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		remedy = "another program listens there: stop it, or set " + setting + " to another port"
	case errors.Is(err, fs.ErrPermission):
		remedy = "ports below 1024 need a privilege: set " + setting + " to a higher one"
	}
	return nil, fmt.Errorf("listen on %s: %w; %s", address, cause(err), remedy)
}

// cause returns an error without the address, which the message already has.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
