package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/service"
)

// A served is a directory of tools and the real server on it.
type served struct {
	*service.Service
	directory string
}

// serve starts the real server on the tools that fill puts into a directory, and returns once it has nothing more to do. The
// tables are added to its configuration; each is given the lines of its log.
func (b *bench) serve(ctx context.Context, tables string, each func(line []byte), fill func(tools string) error) (_ *served, err error) {
	s := &served{}
	if s.directory, err = os.MkdirTemp("", "toolsrv-mcp-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	tools := service.Tools(s.directory)
	if err := errors.Join(os.Mkdir(tools, 0o700), fill(tools)); err != nil {
		return nil, err
	}
	s.Service, err = service.Start(ctx, service.Options{Binary: b.server, Directory: s.directory, Rest: tables, Each: each})
	if err != nil {
		return nil, err
	}
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	_, err = s.Quiet(ctx)
	return s, err
}

func (s *served) host() string { return strings.TrimPrefix(s.URL, "http://") }

func (s *served) close() {
	if s.Service != nil {
		_ = s.Stop(time.Minute) // the measurement has failed for another reason, if at all
	}
	os.RemoveAll(s.directory)
}

// servePeer is what this program does as a peer: it serves at the port that it is given.
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
