package server

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/tlsfiles"
)

// A request must not say in two ways where its body ends. A proxy that reads it the other way would take a part of the body for the next request, or
// for a part of somebody else's (request smuggling). net/http uses Transfer-Encoding, as it should, but ignores Content-Length and keeps the
// connection open, which RFC 9112 (6.1) forbids. So the lines that a connection reads are inspected, which takes 0.2 µs for each request.

// A watchedListener accepts connections that are watched for such requests, and may be closed to make room for others.
type watchedListener struct {
	net.Listener
	conns *connections
	files *tlsfiles.Source // nil: no TLS
}

// Accept returns the next connection.
func (w watchedListener) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	switch c := c.(type) {
	case *net.TCPConn:
		return newWatchedConn(c, w.conns, w.files), err
	case *net.UnixConn: // the mode of its file says who may connect, and there is no proxy in between
		return newWatchedConn(c, w.conns, nil), err
	}
	return c, err
}

func newWatchedConn(socket duplex, conns *connections, files *tlsfiles.Source) *watchedConn {
	w := &watchedConn{duplex: socket, socket: socket, conns: conns}
	w.place.conn, w.inHead.conn, w.inWrite.conn = w, w, w
	w.flow.changed.L = &w.flow.mu
	if files != nil {
		w.tls = newSecured(w, files)
		w.duplex = w.tls.conn
	}
	return w
}

// A duplex is a connection whose directions can be closed separately.
type duplex interface {
	net.Conn
	CloseWrite() error
}

// A watchedConn remembers how its requests said where their bodies end. It may take lines of a body for a header: then it closes a connection that
// could have been kept open. In HTTP/2, package http checks the framing, and the connection is only watched for slow clients.
type watchedConn struct {
	duplex          // the connection that HTTP uses: the TLS connection, or the plain one
	socket duplex   // below TLS
	tls    *secured // nil: no TLS
	conns  *connections
	client

	flow flow // of HTTP/2
	// isHTTP2 is set by the goroutine that reads, before other goroutines read and before the first request.
	isHTTP2 bool
	preface int // how many bytes of the HTTP/2 preface have come

	// The line that is being read, and what the lines before it have said. Only one goroutine at a time reads.
	line    [len("transfer-encoding:")]byte
	n       int // bytes of line
	coded   bool
	counted bool

	hasCoded atomic.Bool // a header had Transfer-Encoding
	hasBoth  atomic.Bool // a header had both Transfer-Encoding and Content-Length
}

func (w *watchedConn) watch(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		w.head.count(b, end)
		if end < 0 {
			w.n += copy(w.line[w.n:], b)
			return
		}
		line := b[:min(end, len(w.line))]
		if w.n > 0 { // the line began in an earlier read
			w.n += copy(w.line[w.n:], line)
			line = w.line[:w.n]
			w.n = 0
		}
		w.ended(line)
		b = b[end+1:]
	}
}

// ended inspects a line that has ended; it gets the line's beginning.
func (w *watchedConn) ended(line []byte) {
	switch {
	case len(line) == 0, len(line) == 1 && line[0] == '\r': // the end of a header, or a blank line of a body
		w.head.over = true
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

type connKey struct{}

// withConn puts a connection into the context of its requests.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request, or nil if it is not one of the listener's.
func connOf(r *http.Request) *watchedConn {
	w, _ := r.Context().Value(connKey{}).(*watchedConn)
	return w
}

// socketOf returns the TCP connection of a request, below any TLS, or nil if the request came over another kind of connection.
func socketOf(r *http.Request) *net.TCPConn {
	w := connOf(r)
	if w == nil {
		return nil
	}
	socket, _ := w.socket.(*net.TCPConn)
	return socket
}

// isDoubtful reports whether a proxy may see a different end of the body than we do, because the request has both headers, or
// Transfer-Encoding in HTTP/1.0.
func isDoubtful(r *http.Request) bool {
	if len(r.TransferEncoding) == 0 && r.ProtoAtLeast(1, 1) {
		return false
	}
	w := connOf(r)
	return w != nil && !w.isHTTP2 && (w.hasBoth.Load() || !r.ProtoAtLeast(1, 1) && w.hasCoded.Load())
}
