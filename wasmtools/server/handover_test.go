package server_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// unread are requests that are never complete, from clients without a token.
var unread = map[string]string{
	"half a head":                  "POST /shop/echo HTTP/1.1\r\nHost: x\r\n",
	"a body announced":             strings.Replace(said(""), "Content-Length: 2\r\n\r\n{}", "Content-Length: 1000\r\n\r\n", 1),
	"half a body":                  strings.Replace(said(""), "Content-Length: 2", "Content-Length: 1000", 1),
	"a chunked body announced":     strings.Replace(said(""), "Content-Length: 2\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n", 1),
	"a body that no handler reads": "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
}

// TestUnreadHoldsUpNobody stops servers, and hands them over, while there are requests that are never complete: the server waits for the running
// call, but not for these.
// Proves: Clients keep nobody out
func TestUnreadHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for _, handsOver := range []bool{false, true} {
		for name, text := range unread {
			t.Run(map[bool]string{false: "stop/", true: "hand over/"}[handsOver]+name, func(t *testing.T) {
				t.Parallel()
				begun, end := make(chan struct{}), make(chan struct{})
				held := gotool.New("own/held", "Waits.", func(context.Context, struct{}) (string, error) {
					close(begun)
					<-end
					return "done", nil
				})
				r := build(t, settings(t), held)
				r.SetDrain(time.Hour)
				r.HTTP().ReadTimeout, r.HTTP().ReadHeaderTimeout = time.Hour, time.Hour
				run(t, r)
				r.log.Wait(t, `"msg":"ready"`)
				answered := make(chan int, 1)
				go func() {
					status, _, _ := r.call("/own/held", "")
					answered <- status
				}()
				<-begun
				conn := r.dial()
				if _, err := io.WriteString(conn, text); err != nil {
					t.Fatal(err)
				}
				if name == "half a head" {
					r.await(1, 0)
				} else {
					r.await(0, 1)
				}
				if handsOver {
					files, err := r.HandOver()
					if err != nil {
						t.Fatal(err)
					}
					defer files[0].Close()
				}
				r.stop()
				if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, conn); err != nil && isTimeout(err) {
					t.Errorf("the server goes on waiting: %v", err)
				}
				close(end)
				if got := <-answered; got != 200 {
					t.Errorf("the call that ran got status %d, want 200", got)
				}
				if err := r.result(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// TestKnownUnread checks that clients with a token get more time to send the rest of a request.
// Proves: Clients keep nobody out
func TestKnownUnread(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Auth.Tokens = []string{"sesame"}
	r := start(t, c)
	half := func(token string) net.Conn {
		conn := r.dial()
		if _, err := io.WriteString(conn, strings.Replace(said(token), "Content-Length: 2", "Content-Length: 4", 1)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	unknown := half("")
	r.await(0, 1)
	known, slow := half("sesame"), half("sesame")
	r.await(0, 3)
	now := time.Now()
	r.EndUnread(now)
	r.EndUnread(now.Add(900 * time.Millisecond))
	r.await(0, 3)
	r.EndUnread(now.Add(time.Second))
	if got := send(t, unknown, ""); got != 401 {
		t.Errorf("an unknown client: got status %d, want 401", got)
	}
	if got := send(t, known, "  "); got != 200 {
		t.Errorf("a known client that sends the rest: got status %d, want 200", got)
	}
	r.EndUnread(now.Add(4 * time.Second))
	if got := send(t, slow, ""); got != 408 {
		t.Errorf("a known client that does not send the rest: got status %d, want 408", got)
	}
	if got := send(t, known, said("sesame")); got != 200 {
		t.Errorf("another request: got status %d, want 200", got)
	}
}
