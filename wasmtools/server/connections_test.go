package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

const probe = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

// said returns the bytes of a request for the guest's tool echo, with a token or without.
func said(token string) string {
	if token != "" {
		token = "Authorization: Bearer " + token + "\r\n"
	}
	return "POST /shop/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + token + "Content-Length: 2\r\n\r\n{}"
}

// send sends on a connection, and returns the status of the answer, or 0 if the connection ended without one.
func send(t *testing.T, conn net.Conn, text string) int {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		return 0
	}
	a, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil {
		t.Errorf("half an answer: %v", err)
	}
	return a.StatusCode
}

// await waits until the given numbers of connections wait for a request and for a body.
func (r *running) await(requests, bodies int) {
	r.tb.Helper()
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		gotRequests, gotBodies := r.Waiting()
		if gotRequests == requests && gotBodies == bodies {
			return
		}
		if time.Now().After(deadline) {
			r.tb.Fatalf("%d connections wait for a request and %d for a body, want %d and %d", gotRequests, gotBodies, requests, bodies)
		}
	}
}

// TestLongestGoes opens more connections than there are places for: the one that has kept the server waiting longest is closed.
// Proves: Clients keep nobody out
func TestLongestGoes(t *testing.T) {
	t.Parallel()
	const half = "POST /shop/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer sesame\r\nContent-Length: 20\r\n\r\n{\"it"
	const token = "sesame"
	for _, c := range []struct {
		name  string
		first []string // the bytes that each of the first connections sends; a complete request is answered
		gone  int      // the number of the connection that is closed
	}{
		{"idle", []string{probe, probe, probe}, 0},
		{"nothing sent", []string{"", probe, probe}, 0},
		{"half a head", []string{"GET /hea", probe, probe}, 0},
		{"half a body and idle ones", []string{half, probe, probe}, 1},
		{"half bodies", []string{half, half, half}, 0},
		{"a client known by a token", []string{said(token), probe, probe, probe}, 1},
		{"a wrong token", []string{said("other"), probe, probe, probe}, 0},
		{"more known clients than places for them", []string{said(token), probe, probe, said(token)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := settings(t)
			settings.Auth.Tokens = []string{token}
			r := build(t, settings)
			r.SetConnections(int64(len(c.first)), 1)
			run(t, r)
			r.log.Wait(t, `"msg":"ready"`)
			var conns []net.Conn
			requests, bodies := 0, 0
			for i, text := range c.first {
				conn := r.dial()
				conns = append(conns, conn)
				switch {
				case text == half:
					bodies++
					fallthrough
				case !strings.Contains(text, "\r\n\r\n"):
					if _, err := io.WriteString(conn, text); err != nil {
						t.Fatal(err)
					}
				default:
					if got := send(t, conn, text); got != 200 && got != 401 {
						t.Fatalf("connection %d: got status %d", i, got)
					}
				}
				requests = i + 1 - bodies
				r.await(requests, bodies)
			}
			if got := send(t, r.dial(), probe); got != 200 {
				t.Errorf("one more connection: got status %d", got)
			}
			for i, conn := range conns {
				gone := false
				if i == c.gone {
					_, err := conn.Read(make([]byte, 1))
					gone = err != nil
				} else if c.first[i] == probe {
					gone = send(t, conn, probe) == 0
				}
				if gone != (i == c.gone) {
					t.Errorf("connection %d of %d: gone is %t", i, len(conns), gone)
				}
			}
		})
	}
}

// TestSparePlaces lets calls take all places: probes and clients with a token are still answered, but nobody else.
// Proves: Clients keep nobody out
func TestSparePlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, token, sends string
		want               int
	}{
		{"a probe", "", probe, 200},
		{"a call", "", said(""), 503},
		{"a call whose body never ends", "", strings.Replace(said(""), "Content-Length: 2", "Content-Length: 20", 1), 503},
		{"a call with a token", "sesame", said("sesame"), 200},
		{"a call without the token", "sesame", said(""), 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			arrived, leave := make(chan struct{}), make(chan struct{})
			defer close(leave)
			busy := gotool.New("own/busy", "Waits.", func(context.Context, struct{}) (int, error) {
				arrived <- struct{}{}
				<-leave
				return 1, nil
			})
			settings := settings(t)
			if c.token != "" {
				settings.Auth.Tokens = []string{c.token}
			}
			r := build(t, settings, busy)
			r.SetConnections(2, 1)
			run(t, r)
			r.log.Wait(t, `"msg":"ready"`)
			for range 2 {
				if _, err := io.WriteString(r.dial(), strings.Replace(said(c.token), "shop/echo", "own/busy", 1)); err != nil {
					t.Fatal(err)
				}
				<-arrived
			}
			for i := range 3 { // the spare place is free again each time
				if got := send(t, r.dial(), c.sends); got != c.want {
					t.Errorf("time %d: got status %d, want %d", i, got, c.want)
				}
			}
		})
	}
}

// TestNoPlaceAtAll lets calls take all places, including the spare ones: one more connection is closed without an answer, and the log says so.
// Proves: Clients keep nobody out
func TestNoPlaceAtAll(t *testing.T) {
	t.Parallel()
	arrived, leave := make(chan struct{}), make(chan struct{})
	busy := gotool.New("own/busy", "Waits.", func(context.Context, struct{}) (int, error) {
		arrived <- struct{}{}
		<-leave
		return 1, nil
	})
	settings := settings(t)
	settings.Auth.Tokens = []string{"sesame"}
	r := build(t, settings, busy)
	r.SetConnections(2, 1)
	run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	for range 3 {
		if _, err := io.WriteString(r.dial(), strings.Replace(said("sesame"), "shop/echo", "own/busy", 1)); err != nil {
			t.Fatal(err)
		}
		<-arrived
	}
	if got := send(t, r.dial(), probe); got != 0 {
		t.Errorf("one more: got status %d, want a closed connection", got)
	}
	r.log.Wait(t, `"refused":1`)
	close(leave)
	r.await(2, 0) // the connection in the spare place ended with its answer
	if got := send(t, r.dial(), probe); got != 200 {
		t.Errorf("afterwards: got status %d", got)
	}
}

// TestHeads lets clients send parts of large heads: together the heads take no more memory than they may, and the connection whose head has been
// large for longest is closed.
// Proves: Clients keep nobody out
func TestHeads(t *testing.T) {
	t.Parallel()
	r := build(t, settings(t))
	r.SetHeads(60 << 10)
	run(t, r)
	part := "GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 20<<10) // counted as some 32 KiB
	dial := func(text string) net.Conn {
		conn := r.dial()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first := dial(part)
	for deadline := time.Now().Add(patience); r.Heads() < 2*20<<10-8<<10; runtime.Gosched() { // the head has been read, and counts as large from now on
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are counted for a head of 20 KiB", r.Heads())
		}
	}
	small := dial("GET /healthz HTTP/1.1\r\nHost: x\r\n")
	r.await(2, 0)
	second := dial(part)
	if _, err := first.Read(make([]byte, 1)); err == nil {
		t.Error("the first of two large heads was answered, want its connection closed")
	}
	for name, conn := range map[string]net.Conn{"small": small, "second": second} {
		if got := send(t, conn, "\r\n\r\n"); got != 200 {
			t.Errorf("the %s head: got status %d", name, got)
		}
	}
	for range 5 { // the counted bytes are returned with each answer
		if got := send(t, second, part+"\r\n\r\n"); got != 200 {
			t.Errorf("a large head on a connection that is kept: got status %d", got)
		}
	}
}

// TestHeadsOfRunningCalls lets a running call hold its large head: another large head finds no room, and gets an answer that says so.
// Proves: Clients keep nobody out
func TestHeadsOfRunningCalls(t *testing.T) {
	t.Parallel()
	arrived, leave := make(chan struct{}), make(chan struct{})
	busy := gotool.New("own/busy", "Waits.", func(context.Context, struct{}) (int, error) {
		arrived <- struct{}{}
		<-leave
		return 1, nil
	})
	r := build(t, settings(t), busy)
	r.SetHeads(60 << 10)
	run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	large := "Host: x\r\nA: " + strings.Repeat("a", 20<<10)
	conn := r.dial()
	if _, err := io.WriteString(conn, strings.Replace(strings.Replace(said(""), "shop/echo", "own/busy", 1), "Host: x", large, 1)); err != nil {
		t.Fatal(err)
	}
	<-arrived
	other := strings.Replace(probe, "Host: x", large, 1)
	if got := send(t, r.dial(), other); got != 503 {
		t.Errorf("another large head: got status %d, want 503", got)
	}
	if got := send(t, r.dial(), probe); got != 200 {
		t.Errorf("a small head: got status %d", got)
	}
	close(leave)
	if got := send(t, conn, ""); got != 200 {
		t.Errorf("the call: got status %d", got)
	}
	// The bytes of its head are returned once it has been answered.
	testkit.Until(t, "another large head to find room", func() bool { return send(t, r.dial(), other) == 200 })
}

// TestManyLines checks that heads of many lines are refused before they are parsed, and that lines of a body don't count.
// Proves: Clients keep nobody out
func TestManyLines(t *testing.T) {
	t.Parallel()
	r := start(t, settings(t))
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "a%d: b\r\n", i)
		}
		return b.String()
	}
	body := "{" + strings.Repeat("\n", 2000) + "}"
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"256", "GET /healthz HTTP/1.1\r\nHost: x\r\n" + lines(253) + "\r\n", 200},
		{"257", "GET /healthz HTTP/1.1\r\nHost: x\r\n" + lines(255) + "\r\n", 431},
		{"without an end", "GET /healthz HTTP/1.1\r\nHost: x\r\n" + lines(255), 431},
		{"a body of lines", fmt.Sprintf("POST /shop/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body), 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := r.dial()
			for range 2 {
				if got := send(t, conn, c.text); got != c.want {
					t.Fatalf("got status %d, want %d", got, c.want)
				}
				if c.want != 200 {
					return
				}
			}
		})
	}
}

// TestConnectionLimitLog opens one connection after another above the limit, and checks that the log does not get a line for each.
// Proves: Answers and logs show what is meant to be seen
func TestConnectionLimitLog(t *testing.T) {
	t.Parallel()
	r := build(t, settings(t))
	r.SetConnections(1, 1)
	run(t, r)
	const knocks = 200
	begun := time.Now()
	for range knocks {
		if got := send(t, r.dial(), probe); got != 200 {
			t.Fatalf("got status %d", got)
		}
	}
	r.log.Wait(t, "too many open connections")
	most := 1 + int(time.Since(begun)/time.Second)
	if lines := strings.Count(r.log.String(), "too many open connections"); lines > most {
		t.Errorf("got %d lines for %d connections in %v, want %d at most", lines, knocks, time.Since(begun), most)
	}
	r.log.Wait(t, `"level":"INFO","msg":"there is room for connections again"`)
}

// TestHurry gives up a body that arrives slowly, as a call does when there is no memory for its arguments.
// Proves: Limits hold, one by one and in sum
func TestHurry(t *testing.T) {
	t.Parallel()
	r := build(t, settings(t))
	r.SetConnections(10, 1)
	run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	if r.Hurry() {
		t.Error("a slow body is found before there is one")
	}
	slow := r.dial()
	if _, err := io.WriteString(slow, strings.Replace(said(""), "Content-Length: 2", "Content-Length: 20", 1)); err != nil {
		t.Fatal(err)
	}
	r.await(0, 1)
	if !r.Hurry() || r.Hurry() {
		t.Error("want exactly one body to be given up")
	}
	if got := send(t, slow, ""); got != 408 {
		t.Errorf("the slow body: got status %d, want 408", got)
	}
	if got := send(t, r.dial(), said("")); got != 200 {
		t.Errorf("another connection: got status %d", got)
	}
}

// TestUnreadAnswer has a client that does not read its answer: it is disconnected to make room when all places are taken.
// Proves: Clients keep nobody out
func TestUnreadAnswer(t *testing.T) {
	t.Parallel()
	r := build(t, settings(t))
	r.SetConnections(1, 1)
	door := endless{make(chan struct{}), make(chan struct{})}
	r.Mount("/endless.api", door)
	run(t, r)
	if _, err := io.WriteString(r.dial(), "GET /endless.api HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-door.begun
	for deadline := time.Now().Add(patience); ; { // once the buffers of the system are full
		if got := send(t, r.dial(), said("")); got == 200 {
			break
		} else if got != 503 || time.Now().After(deadline) {
			t.Fatalf("beside an answer that nobody reads: got status %d", got)
		}
	}
	<-door.ended
}

// An endless is a door that writes until writing fails.
type endless struct{ begun, ended chan struct{} }

func (e endless) Serve(x *web.Exchange) {
	close(e.begun)
	for {
		if _, err := x.Write(make([]byte, 64<<10)); err != nil {
			close(e.ended)
			return
		}
	}
}
