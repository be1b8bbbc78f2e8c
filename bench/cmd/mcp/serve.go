package main

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// serve starts the real server on the tools that fill puts into a directory, and returns when the server is idle. The tables are added to its
// configuration. The function "each" is called with every line of its log.
func (b *bench) serve(ctx context.Context, tables string, each func(line []byte), fill func(tools string) error) (*service.Service, error) {
	return service.InFolder(ctx, service.Options{Binary: b.server, Rest: tables, Each: each}, fill)
}

// servePeer makes this program a peer, which serves at a given port.
func servePeer(serve func(net.Listener) error) measure.Child {
	return func(arguments []string, _ io.Writer) error {
		if len(arguments) != 1 {
			return errors.New("the port is missing")
		}
		port, err := strconv.Atoi(arguments[0])
		if err != nil {
			return err
		}
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			return err
		}
		return serve(l)
	}
}
