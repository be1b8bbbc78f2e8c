package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dial connects to a server for a test of raw bytes.
func (r *running) dial() net.Conn {
	r.tb.Helper()
	conn, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		r.tb.Fatal(err)
	}
	return conn
}

// TestHostileRequests sends what no client library would.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Auth.Tokens = []string{"sesame"}
	r := start(t, c)
	const (
		post   = "POST /shop/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sesame\r\nContent-Type: application/json\r\n"
		body   = `{"a":1}`
		length = "Content-Length: 7\r\n"
	)
	for _, c := range []struct {
		name, sends string
		status      int // of the first answer
	}{
		{"plain", post + length + "\r\n" + body, 200},
		{"HTTP/1.0", strings.Replace(post, "1.1", "1.0", 1) + length + "\r\n" + body, 200},
		{"HTTP/1.0 in chunks", strings.Replace(post, "1.1", "1.0", 1) + "Transfer-Encoding: chunked\r\n\r\n7\r\n" + body + "\r\n0\r\n\r\n", 422},
		{"HTTP/1.0 without a body", strings.Replace(post, "1.1", "1.0", 1) + "Content-Length: 0\r\n\r\n", 200},
		{"absolute form", strings.Replace(post, "POST ", "POST http://y", 1) + length + "\r\n" + body, 200},
		{"encoded letter", strings.Replace(post, "echo", "ech%6f", 1) + length + "\r\n" + body, 200},
		{"encoded slash", strings.Replace(post, "shop/", "shop%2F", 1) + length + "\r\n" + body, 404},
		{"encoded slash in small letters", strings.Replace(post, "shop/", "shop%2f", 1) + length + "\r\n" + body, 404},
		{"double slash", strings.Replace(post, "shop/", "shop//", 1) + length + "\r\n" + body, 404},
		{"double slash in front", strings.Replace(post, "/shop/", "//shop/", 1) + length + "\r\n" + body, 404},
		{"dot segments", strings.Replace(post, "/shop/", "/x/../shop/", 1) + length + "\r\n" + body, 404},
		{"path parameter", strings.Replace(post, "echo", "echo;a=b", 1) + length + "\r\n" + body, 404},
		{"NUL", strings.Replace(post, "echo", "echo%00", 1) + length + "\r\n" + body, 404},
		{"bad escape", strings.Replace(post, "echo", "echo%zz", 1) + length + "\r\n" + body, 400},
		{"two lengths", post + length + "Content-Length: 8\r\n\r\n" + body, 400},
		{"a signed length", post + "Content-Length: +7\r\n\r\n" + body, 400},
		{"a length over 63 bits", post + "Content-Length: 9999999999999999999\r\n\r\n" + body, 400},
		{"a length of 63 bits", post + "Content-Length: 9223372036854775807\r\n\r\n" + body, 413},
		{"unknown transfer coding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
		{"a blank before the colon", post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
		{"bad chunk", post + "Transfer-Encoding: chunked\r\n\r\nZZ\r\n" + body + "\r\n0\r\n\r\n", 422},
		{"huge trailer", post + "Transfer-Encoding: chunked\r\n\r\n7\r\n" + body + "\r\n0\r\nX: " + strings.Repeat("y", 64<<10) + "\r\n\r\n", 422},
		{"no host", strings.Replace(post, "Host: x\r\n", "", 1) + length + "\r\n" + body, 400},
		{"two hosts", post + "Host: y\r\n" + length + "\r\n" + body, 400},
		{"two types", post + "Content-Type: application/json\r\n" + length + "\r\n" + body, 415},
		{"two tokens", post + "Authorization: Bearer sesame\r\n" + length + "\r\n" + body, 401},
		{"a token in the trailer", "GET /tools HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n0\r\nAuthorization: Bearer sesame\r\n\r\n", 401},
		{"a token in the target", "GET /tools?access_token=sesame HTTP/1.1\r\nHost: x\r\n\r\n", 401},
		{"user in the target", "GET http://sesame:sesame@x/tools HTTP/1.1\r\nHost: x\r\n\r\n", 401},
		{"OPTIONS * without a token", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 401},
		{"OPTIONS * with a token", "OPTIONS * HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sesame\r\n\r\n", 204},
		{"CONNECT", "CONNECT y:443 HTTP/1.1\r\nHost: y:443\r\n\r\n", 401},
		{"TRACE", "TRACE /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 405},
		{"a probe by dot segments", "GET /healthz/../tools HTTP/1.1\r\nHost: x\r\n\r\n", 401},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 401},
		{"other expectation", post + "Expect: 200-ok\r\n" + length + "\r\n" + body, 417},
		{"too many headers", "GET /healthz HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("a: b\r\n", 8000) + "\r\n", 431},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := r.dial()
			go func() { _, _ = io.WriteString(conn, c.sends) }() // the server may stop to read
			a, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			if a.StatusCode != c.status {
				t.Errorf("got %s, want %d", a.Status, c.status)
			}
		})
	}
	t.Cleanup(func() {
		if text, _ := r.log.read(); strings.Contains(text, "sesame") {
			t.Error("the log shows the token")
		}
	})
}

// TestUnreadBody has the body of a refused request not be taken for the next request.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	r := start(t, settings(t))
	conn := r.dial()
	inner := "POST /shop/trap HTTP/1.1\r\nHost: x\r\n\r\n"
	fmt.Fprintf(conn, "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%sGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", len(inner), inner)
	reader := bufio.NewReader(conn)
	for _, want := range []int{404, 200} {
		a, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, a.Body)
		a.Body.Close()
		if a.StatusCode != want {
			t.Errorf("got %s, want %d", a.Status, want)
		}
	}
}

// TestConnectionLimit has connections above the limit closed, and others let in when one has ended.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	r := build(t, settings(t))
	r.SetMaxConns(2)
	run(t, r)
	ask := func(conn net.Conn) (status int) {
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return 0
		}
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0
		}
		a.Body.Close()
		return a.StatusCode
	}
	one, two := r.dial(), r.dial()
	if a, b := ask(one), ask(two); a != 200 || b != 200 {
		t.Fatalf("within the limit: got %d and %d", a, b)
	}
	if got := ask(r.dial()); got != 0 {
		t.Errorf("above the limit: got %d, want a closed connection", got)
	}
	r.log.wait(t, "too many open connections")
	if got := ask(two); got != 200 {
		t.Errorf("a connection that was there: got %d", got)
	}
	one.Close()
	for deadline := time.Now().Add(patience); ask(r.dial()) != 200; { // when the server has seen it
		if time.Now().After(deadline) {
			t.Fatal("no place is free after a connection has ended")
		}
	}
}
