package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// answers asks the server at an address for /healthz, over a connection of its own, with TLS or without.
func answers(ctx context.Context, at net.Addr, secured bool) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, at.Network(), at.String()) // of all addresses, it takes one of this machine
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if secured {
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
