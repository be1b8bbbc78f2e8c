package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
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

// TestHostileRequests sends requests that no client library would send.
// Proves: Clients keep nobody out
// Proves: Nothing stops the server
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
		status      int // the status of the first answer
	}{
		{"plain", post + length + "\r\n" + body, 200},
		{"HTTP/1.0", strings.Replace(post, "1.1", "1.0", 1) + length + "\r\n" + body, 200},
		{"HTTP/1.0 in chunks", strings.Replace(post, "1.1", "1.0", 1) + "Transfer-Encoding: chunked\r\n\r\n7\r\n" + body + "\r\n0\r\n\r\n", 422},
		{"HTTP/1.0 without a body", strings.Replace(post, "1.1", "1.0", 1) + "Content-Length: 0\r\n\r\n", 200},
		{"absolute form", strings.Replace(post, "POST ", "POST http://y", 1) + length + "\r\n" + body, 200},
		{"encoded letter", strings.Replace(post, "echo", "ech%6f", 1) + length + "\r\n" + body, 200},
		{"encoded slash", strings.Replace(post, "shop/", "shop%2F", 1) + length + "\r\n" + body, 404},
		{"encoded slash in lower case", strings.Replace(post, "shop/", "shop%2f", 1) + length + "\r\n" + body, 404},
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
		{"nearly HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rx", 421},
		{"other expectation", post + "Expect: 200-ok\r\n" + length + "\r\n" + body, 417},
		{"too many headers", "GET /healthz HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("a: b\r\n", 8000) + "\r\n", 431},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := r.dial()
			go func() { _, _ = io.WriteString(conn, c.sends) }() // the server may stop reading
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
		if text := r.log.String(); strings.Contains(text, "sesame") {
			t.Error("the log shows the token")
		}
	})
}

// TestUnreadBody checks that the body of a refused request is not taken for the next request.
// Proves: Clients keep nobody out
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

// TestTwoEnds checks that the connection is closed after a request that gives the end of its body in two ways, and that what follows is not taken for
// a request; other connections are kept open.
// Proves: Clients keep nobody out
func TestTwoEnds(t *testing.T) {
	t.Parallel()
	r := start(t, settings(t))
	const (
		chunks = "2\r\n{}\r\n0\r\n\r\n"
		plain  = "POST /shop/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
		next   = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	)
	post := func(version string, headers ...string) string {
		return "POST /shop/echo HTTP/" + version + "\r\nHost: x\r\nContent-Type: application/json\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
	}
	for _, c := range []struct {
		name, sends string
		statuses    []int // of all answers
		kept        bool  // the connection
	}{
		{"a length", plain + next, []int{200, 200}, true},
		{"chunks", post("1.1", "Transfer-Encoding: chunked") + chunks + next, []int{200, 200}, true},
		{"a length, then chunks", plain + post("1.1", "Transfer-Encoding: chunked") + chunks + next, []int{200, 200, 200}, true},
		{"both", post("1.1", "Content-Length: 2", "Transfer-Encoding: chunked") + chunks + next, []int{200}, false},
		{"both, the other way around", post("1.1", "Transfer-Encoding: chunked", "Content-Length: 12") + chunks + next, []int{200}, false},
		{"both, in unusual case", post("1.1", "tRANSFER-eNCODING: chunked", "CONTENT-LENGTH: 2") + chunks + next, []int{200}, false},
		{"both, with bare line feeds", strings.ReplaceAll(post("1.1", "Content-Length:2", "Transfer-Encoding:chunked"), "\r\n", "\n") + chunks + next, []int{200}, false},
		{"both, after others", plain + next + post("1.1", "Content-Length: 2", "Transfer-Encoding: chunked") + chunks + next, []int{200, 200, 200}, false},
		{"both, at a path without a tool", strings.Replace(post("1.1", "Content-Length: 2", "Transfer-Encoding: chunked"), "echo", "nobody", 1) + chunks + next, []int{404}, false},
		{"both, and the length ends in a request", post("1.1", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" + next, []int{200}, false},
		{"chunks in HTTP/1.0", post("1.0", "Connection: keep-alive", "Content-Length: 2", "Transfer-Encoding: chunked") + "{}" + next, []int{200}, false},
		{"a length in HTTP/1.0", post("1.0", "Connection: keep-alive", "Content-Length: 2") + "{}" + next, []int{200, 200}, true},
	} {
		for way, pieces := range map[string]int{"at once": len(c.sends), "byte by byte": 1} {
			t.Run(c.name+", "+way, func(t *testing.T) {
				t.Parallel()
				conn := r.dial()
				go func() {
					for from := 0; from < len(c.sends); from += pieces {
						if _, err := io.WriteString(conn, c.sends[from:min(from+pieces, len(c.sends))]); err != nil {
							return // the server has finished with the request
						}
					}
				}()
				reader := bufio.NewReader(conn)
				for i, want := range c.statuses {
					a, err := http.ReadResponse(reader, nil)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, a.Body)
					a.Body.Close()
					if a.StatusCode != want {
						t.Errorf("answer %d: got %s, want %d", i+1, a.Status, want)
					}
					if last := i == len(c.statuses)-1; a.Close != (last && !c.kept) {
						t.Errorf("answer %d: it says that the connection is closed: %t", i+1, a.Close)
					}
				}
				if c.kept {
					return
				}
				if rest, err := io.ReadAll(reader); len(rest) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("got %q (%v) after the last answer, want the end of the connection", rest, err)
				}
			})
		}
	}
}
