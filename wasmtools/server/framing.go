package server

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// Where a request's body ends must not be told in two ways: a proxy in front that goes by the other one takes a part of the
// body for the next request, or for the body of somebody else's (request smuggling). net/http goes by Transfer-Encoding, as
// it should, but forgets what else it saw and keeps the connection, which RFC 9112 (6.1) forbids. So the lines that a
// connection reads are looked at on their way: 0.2 µs for a request.

// wires are connections that are watched for such requests.
type wires struct{ net.Listener }

// Accept returns the next connection.
func (w wires) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return &wire{TCPConn: tcp}, err
	}
	return c, err
}

// A wire is a connection that remembers how its requests told the end of their bodies. What stands in a body may be taken
// for a header, too: then a connection is closed that might have been kept.
type wire struct {
	*net.TCPConn

	// The line that is being read, and what the header that it belongs to has; one goroutine at a time reads.
	line    [len("transfer-encoding:")]byte
	n       int // bytes of line
	coded   bool
	counted bool

	hasCoded atomic.Bool // there was a header with Transfer-Encoding
	hasBoth  atomic.Bool // and one that had Content-Length beside it
}

// Read reads, and looks at the lines.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.TCPConn.Read(p)
	w.watch(p[:n])
	return n, err
}

func (w *wire) watch(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			w.n += copy(w.line[w.n:], b)
			return
		}
		line := b[:min(end, len(w.line))]
		if w.n > 0 { // it began in what was read before
			w.n += copy(w.line[w.n:], line)
			line = w.line[:w.n]
			w.n = 0
		}
		w.ended(line)
		b = b[end+1:]
	}
}

// ended takes the beginning of a line.
func (w *wire) ended(line []byte) {
	switch {
	case len(line) == 0, len(line) == 1 && line[0] == '\r': // the end of a header, or within a body
		w.hasCoded.Store(w.hasCoded.Load() || w.coded)
		w.hasBoth.Store(w.hasBoth.Load() || w.coded && w.counted)
		w.coded, w.counted = false, false
	case line[0]|0x20 == 't':
		w.coded = w.coded || strings.EqualFold(string(line), "transfer-encoding:")
	case line[0]|0x20 == 'c':
		const length = "content-length:"
		w.counted = w.counted || len(line) >= len(length) && strings.EqualFold(string(line[:len(length)]), length)
	}
}

type wireKey struct{}

// withWire has requests know the connection that they came by.
func withWire(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, wireKey{}, c)
}

// isDoubtful reports whether somebody else may see another end of the request's body than we do: it has both headers, or the
// newer one in the older HTTP/1.0.
func isDoubtful(r *http.Request) bool {
	if len(r.TransferEncoding) == 0 && r.ProtoAtLeast(1, 1) {
		return false
	}
	w, ok := r.Context().Value(wireKey{}).(*wire)
	return ok && (w.hasBoth.Load() || !r.ProtoAtLeast(1, 1) && w.hasCoded.Load())
}
