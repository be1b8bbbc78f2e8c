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

// TestSlowClients has clients that stop in the middle. The server must end each of their connections by itself.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	r := build(t, settings(t))
	const short = 50 * time.Millisecond
	h := r.HTTP()
	h.ReadHeaderTimeout, h.ReadTimeout, h.IdleTimeout = short, short, short
	run(t, r)
	for _, c := range []struct {
		name, sends string
		status      int // the status of the answer before the connection ends; 0 if there is none
	}{
		{"nothing", "", 0},
		{"half a request line", "POST /shop/ec", 400},
		{"half a header", "POST /shop/echo HTTP/1.1\r\nHost: x\r\nContent-Ty", 400},
		{"half a body", "POST /shop/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{\"it", 408},
		{"half a chunk", "POST /shop/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{", 408},
		{"nothing after an answer", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", r.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, c.sends); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(conn)
			if err != nil {
				t.Fatalf("the connection did not end: %v", err)
			}
			if c.status == 0 {
				if len(answer) > 0 {
					t.Errorf("got %q, want nothing", answer)
				}
				return
			}
			a, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(answer))), nil)
			if err != nil {
				t.Fatalf("%v in %q", err, answer)
			}
			a.Body.Close()
			if a.StatusCode != c.status {
				t.Errorf("got %q, want status %d", answer, c.status)
			}
		})
	}
}

// TestPipelined sends requests without waiting for answers.
func TestPipelined(t *testing.T) {
	t.Parallel()
	r := start(t, settings(t))
	conn, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range 20 {
		body := fmt.Sprintf(`{"i":%d}`, i)
		fmt.Fprintf(conn, "POST /shop/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	reader := bufio.NewReader(conn)
	for i := range 20 {
		a, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(a.Body)
		a.Body.Close()
		if want := fmt.Sprintf(`{"i":%d}`, i); err != nil || string(body) != want {
			t.Errorf("answer %d is %s (%v), want %s", i, body, err, want)
		}
	}
}
