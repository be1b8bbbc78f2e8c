package web_test

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/web"
)

// short is a write timeout that each stream of these tests outlives.
const short = 100 * time.Millisecond

// listen serves door over a real listener with a short write time-out.
func listen(t *testing.T, o web.Options, door web.Door, http2 bool) *httptest.Server {
	t.Helper()
	mux := web.NewMux(o)
	mux.Mount("/", door)
	server := httptest.NewUnstartedServer(mux)
	server.Config.WriteTimeout = short
	if server.EnableHTTP2 = http2; http2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(func() {
		_ = mux.Close() // ends the streams, since Close of the server waits for them
		server.Close()
	})
	return server
}

// TestStreamOutlivesWriteTimeout keeps a stream open for several write timeouts, even if nothing is written for longer than one of them. The same
// response without a stream is cut.
// Proves: Clients keep nobody out
func TestStreamOutlivesWriteTimeout(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		http2  bool
		stream bool
	}{
		{"HTTP/1.1", false, true},
		{"HTTP/2", true, true},
		{"HTTP/1.1, not a stream", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			const part = 3 * short // the time limit of a write, which must not end a pause
			server := listen(t, web.Options{StreamWrite: part}, doorFunc(func(x *web.Exchange) {
				if test.stream {
					x.Stream()
				}
				for _, pause := range []time.Duration{0, 2 * part, 0, 2 * part} {
					time.Sleep(pause) // the timeouts of a connection need real time
					// This is how a handler that does not know this package streams.
					if _, err := x.Write([]byte("event\n")); err != nil {
						return
					}
					if err := http.NewResponseController(x).Flush(); err != nil {
						return
					}
				}
			}), test.http2)
			answer, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			if got := answer.ProtoMajor == 2; got != test.http2 {
				t.Fatalf("the answer came by %s", answer.Proto)
			}
			body, err := readAll(answer)
			if got := err == nil && body == strings.Repeat("event\n", 4); got != test.stream {
				t.Errorf("got %q (%v); the whole: %t, want %t", body, err, got, test.stream)
			}
		})
	}
}

// TestSlowReaderIsDropped has a client that reads nothing: the stream ends after the time limit of a part, not earlier and not much later.
// Proves: Clients keep nobody out
func TestSlowReaderIsDropped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		size int // size of each write in bytes
	}{
		{"small writes", 1 << 10}, {"one huge write", 1 << 30},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			type end struct {
				err  error
				took time.Duration
			}
			ended := make(chan end, 1)
			server := listen(t, web.Options{StreamWrite: short}, doorFunc(func(x *web.Exchange) {
				x.Stream()
				part := make([]byte, test.size)
				for {
					began := time.Now()
					if _, err := x.Write(part); err != nil {
						ended <- end{err, time.Since(began)}
						return
					}
				}
			}), false)
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			select {
			case e := <-ended:
				if !errors.Is(e.err, os.ErrDeadlineExceeded) || e.took < short {
					t.Errorf("Write returned %v after %v, want the deadline's error after %v", e.err, e.took, short)
				}
			case <-time.After(time.Minute):
				t.Fatal("the stream goes on without a reader")
			}
		})
	}
}

// TestStreamEnds checks that the context of a stream ends with its client, and with the service.
// Proves: Clients keep nobody out
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  func(mux *web.Mux, answer *http.Response)
		want string
	}{
		{"the client goes", func(_ *web.Mux, a *http.Response) { _ = a.Body.Close() }, "context canceled"},
		{"the service ends", func(m *web.Mux, _ *http.Response) { m.EndStreams() }, "the service ends its streams"},
		{"the Mux is closed", func(m *web.Mux, _ *http.Response) { _ = m.Close() }, "the service ends its streams"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			mux, door := web.NewMux(web.Options{}), newToy()
			mux.Mount("/toy.api", door)
			server := httptest.NewServer(mux)
			defer server.Close()
			answer, err := server.Client().Get(server.URL + "/toy.api/events")
			if err != nil {
				t.Fatal(err)
			}
			test.end(mux, answer)
			if err := <-door.ended; err.Error() != test.want {
				t.Errorf("the stream ended with %v, want %s", err, test.want)
			}
			_ = answer.Body.Close()

			mux.EndStreams()
			answer, err = server.Client().Get(server.URL + "/toy.api/events")
			if err != nil {
				t.Fatal(err)
			}
			if body, err := readAll(answer); body != "" || err != nil {
				t.Errorf("a stream that begins later: got %q (%v), want its end", body, err)
			}
		})
	}
}

// TestStreamLeavesConnection checks that requests after a stream, on the same connection, have the server's time limits.
// Proves: Clients keep nobody out
func TestStreamLeavesConnection(t *testing.T) {
	t.Parallel()
	blocked := make(chan error, 1)
	server := listen(t, web.Options{}, doorFunc(func(x *web.Exchange) {
		if x.Request().URL.Path == "/stream" {
			x.Stream()
			x.Header().Set("Content-Length", "1")
			_, _ = x.Write([]byte("1"))
			return
		}
		part := make([]byte, 1<<20)
		for {
			if _, err := x.Write(part); err != nil {
				blocked <- err
				return
			}
		}
	}), false)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	first, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := readAll(first); body != "1" || err != nil {
		t.Fatalf("the stream is %q (%v)", body, err)
	}
	if _, err := conn.Write([]byte("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-blocked:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write returned %v, want the deadline's error", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the request after a stream has no write time-out")
	}
}

// TestStreamWithoutConnection checks that a stream works if the ResponseWriter has no deadlines and cannot flush.
func TestStreamWithoutConnection(t *testing.T) {
	t.Parallel()
	mux := web.NewMux(web.Options{})
	var flushed error
	mux.Mount("/", doorFunc(func(x *web.Exchange) {
		if x.Stream() != x.Stream() {
			t.Error("two calls of Stream return two contexts")
		}
		_, _ = x.Write([]byte("all"))
		flushed = x.FlushError()
		x.Flush()
	}))
	w := httptest.NewRecorder()
	mux.ServeHTTP(struct{ http.ResponseWriter }{w}, httptest.NewRequest("GET", "/", nil))
	if w.Body.String() != "all" || !errors.Is(flushed, http.ErrNotSupported) {
		t.Errorf("got %q, Flush: %v", w.Body, flushed)
	}
}

// piped is a listener with one unbuffered connection: whatever the client does not read blocks the server.
type piped struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p piped) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p piped) Close() error   { close(p.closed); return nil }
func (p piped) Addr() net.Addr { return &net.TCPAddr{} }

// TestRestOfStreamIsLimited has a door that returns before its response has been sent, to a client that does not read.
// Proves: Clients keep nobody out
func TestRestOfStreamIsLimited(t *testing.T) {
	t.Parallel()
	mux := web.NewMux(web.Options{StreamWrite: short})
	mux.Mount("/", doorFunc(func(x *web.Exchange) {
		x.Stream()
		_, _ = x.Write([]byte("event\n")) // net/http keeps it until Serve returns
	}))
	ended := make(chan struct{})
	server := &http.Server{Handler: mux, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			close(ended)
		}
	}}
	listener := piped{make(chan net.Conn, 1), make(chan struct{})}
	client, conn := net.Pipe()
	defer client.Close()
	listener.conns <- conn
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	if _, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the server waits for a client that does not read")
	}
}
