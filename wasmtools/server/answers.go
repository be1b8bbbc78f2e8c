package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// answers requests /healthz from the server at an address, over a new connection, with TLS or without.
func answers(ctx context.Context, at net.Addr, secured bool) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, at.Network(), at.String()) // instead of the unspecified address, one of this machine's own
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if secured {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // a listener on a port of this machine: only this process can answer there
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
