package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
)

// Answers asks the server for /healthz, through its first listener as a client does, and returns an error if no answer comes until ctx ends:
// for a watchdog. A server that ends is not asked, since its time is limited otherwise.
func (s *Server) Answers(ctx context.Context) error {
	err := s.answers(ctx)
	if err == nil || s.draining.Load() || s.conns.leaving.Load() {
		return nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil // the system forbids the process to ask, which says nothing of the server
	}
	return fmt.Errorf("ask %s for /healthz: %w", s.Addr(), err)
}

func (s *Server) answers(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, s.Addr().Network(), s.Addr().String()) // of all addresses, it takes one of this machine
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if s.files != nil && s.Addr().Network() == "tcp" {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // it is this process that answers, or nobody
	}
	if _, err := conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
