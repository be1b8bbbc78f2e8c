package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// An HTTP/2 connection has many requests at once, which are called streams. Package http checks their framing and limits the streams of one
// connection. The streams of all connections together are limited here: a stream takes a place, as a connection does, and its head is counted with
// the others.

const (
	// mostStreamsOfOne is how many requests a connection may have at once, as RFC 9113 (6.5.2) recommends at least.
	mostStreamsOfOne = 100
	// window is how many bytes of bodies may arrive before they are read, for one stream and for all streams of a connection together.
	window = 64 << 10
	// frameSize is the largest frame: the smallest value that the standard allows.
	frameSize = 16 << 10
	// stalledRead is how many bytes are read from a client as long as the client itself does not read. Package http keeps the answer to each ping and
	// the like until it is written, up to 10,000 of them: a few megabytes for each connection.
	stalledRead = 16 << 10
	// Connections count as few while there are no more of them than the allowed number divided by
	// fewConnections.
	fewConnections = 16
)

// http2Preface is what an HTTP/2 client sends first, with TLS or without.
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// http2Settings limit what one connection uses.
func http2Settings() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams:          mostStreamsOfOne,
		MaxReadFrameSize:              frameSize,
		MaxReceiveBufferPerConnection: window,
		MaxReceiveBufferPerStream:     window,
		WriteByteTimeout:              replyTimeout,
	}
}

// newHTTP2 returns a server for HTTP/2 connections only, which it gets from the server that the parameter of names. Its Shutdown ends these
// connections as soon as their requests are answered, while the other server goes on. Clients learn which requests to send elsewhere.
func newHTTP2(of *http.Server) *http.Server {
	s := &http.Server{IdleTimeout: of.IdleTimeout, HTTP2: of.HTTP2, ErrorLog: of.ErrorLog, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	_ = s.Serve(noListener{}) // which prepares it
	of.TLSNextProto = s.TLSNextProto
	of.Protocols = new(http.Protocols)
	of.Protocols.SetHTTP1(true)
	of.Protocols.SetUnencryptedHTTP2(true) // package http does not see the TLS, which is below the connection
	return s
}

// A noListener accepts nothing.
type noListener struct{}

func (noListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (noListener) Close() error              { return nil }
func (noListener) Addr() net.Addr            { return &net.TCPAddr{} }

// watchPreface records whether the first bytes of a connection are the preface of HTTP/2.
func (w *watchedConn) watchPreface(b []byte) {
	if w.preface < 0 {
		return
	}
	for _, c := range b {
		if w.preface == len(http2Preface) || http2Preface[w.preface] != c {
			w.preface = -1
			return
		}
		w.preface++
	}
	w.isHTTP2 = w.preface == len(http2Preface)
}

// A flow stops reading from a client that does not read the server's answers.
type flow struct {
	mu      sync.Mutex
	changed sync.Cond
	writing bool
	read    int // bytes read since the client stopped reading
}

func (f *flow) write(begins bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing, f.read = begins, 0
	f.changed.Broadcast()
}

// wait waits until n more bytes may be read.
func (f *flow) wait(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.writing && f.read >= stalledRead {
		f.changed.Wait()
	}
	f.read += n
}

// readFrames reads frames. They may belong to any of the connection's HTTP/2 requests.
func (w *watchedConn) readFrames(p []byte) (int, error) {
	n, err := w.duplex.Read(p)
	w.flow.wait(n)
	return n, err
}

// A stream is an HTTP/2 request and its body.
type stream struct {
	io.ReadCloser
	conn    *watchedConn
	control *http.ResponseController

	inBody  place // in bodies
	inWrite place // in writing
	read    int   // bytes of the body since it was queued
	counted bool  // the stream takes a place of its own, since the connection already had another request
	spare   bool  // the stream came when all other places were taken
	held    int64 // the bytes of the head, as counted
}

type streamKey struct{}

// streamOf returns the stream of a request, or nil.
func streamOf(r *http.Request) *stream {
	if r.ProtoMajor != 2 {
		return nil
	}
	s, _ := r.Context().Value(streamKey{}).(*stream)
	return s
}

// begin counts an HTTP/2 request until end. If there is no room, it answers the request and returns false. It returns a nil stream for a request that
// is not watched.
func (c *connections) begin(w http.ResponseWriter, r *http.Request) (s *stream, ok bool) {
	conn := connOf(r)
	if conn == nil {
		return nil, true
	}
	lines, size := headOf(r)
	if lines > maxLines {
		w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
		return nil, false
	}
	s = &stream{ReadCloser: r.Body, conn: conn, control: http.NewResponseController(w), held: max(0, 2*size+lineCost*lines-headFree)}
	s.inBody.conn, s.inBody.stream, s.inWrite.conn, s.inWrite.stream = conn, s, conn, s
	ok, writes := c.take(s)
	switch {
	case ok:
		return s, true
	case writes:
		// Otherwise this goroutine, which is not counted, would wait for the client, which does not read.
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable) // without a body, since the client could delay the writing of one
	return nil, false
}

// headOf returns how many lines a request's head has, and their bytes.
func headOf(r *http.Request) (lines, size int64) {
	for name, values := range r.Header {
		for _, value := range values {
			lines++
			size += int64(len(name) + len(value))
		}
	}
	return lines, size + int64(len(r.RequestURI)+len(r.Host))
}

// take counts a stream, or returns false if there is no room. In that case, it also reports whether something is being written
// over the stream's connection.
func (c *connections) take(s *stream) (ok, writes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.counted = s.conn.streams > 0
	if s.counted && c.number >= c.places()+c.spare || c.held+s.held > c.heads {
		c.closed.refused++
		return false, s.conn.inWrite.in != nil
	}
	s.conn.streams++
	if s.counted {
		c.count(1)
		s.spare = c.number > c.places()
	}
	c.held += s.held
	return true, false
}

// of returns the stream's request and writer in the form that doors get.
func (s *stream) of(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request) {
	r = r.WithContext(context.WithValue(r.Context(), streamKey{}, s))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = s
	}
	return &streamWriter{w, s}, r
}

// end stops counting a stream that has been answered. While the client delays the answer, the part that package http still keeps would not
// be counted. So the answer is flushed first. Since a flush costs a frame, this is not done while there are few connections.
func (s *stream) end() {
	c := s.conn.conns
	c.mu.Lock()
	s.inBody.leave()
	few := c.number <= c.most/fewConnections
	c.mu.Unlock()
	if !few {
		c.write(&s.inWrite, true)
		_ = s.control.Flush() // the client has gone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.inWrite.leave()
	s.conn.streams--
	if s.counted {
		c.count(-1)
	}
	c.held -= s.held
}

// admitStream lets a request be served, or returns false if all places for such requests are taken.
func (c *connections) admitStream(s *stream, known bool) bool {
	if known || !s.spare {
		return true
	}
	c.mu.Lock()
	var out *watchedConn
	ok := c.number <= c.places()
	if !ok {
		if out = c.tardiest(c.newcomer); out == s.conn {
			out = nil
		}
		if ok = out != nil; ok {
			c.closed.waited++
			c.expel(out)
		}
	}
	c.mu.Unlock()
	c.close(out)
	return ok
}

// Read reads the body. Meanwhile the server counts as waiting for it.
func (s *stream) Read(p []byte) (int, error) {
	c := s.conn.conns
	c.awaitStream(s, s.read >= bodyStep)
	n, err := s.ReadCloser.Read(p)
	s.read += n
	if err != nil {
		c.mu.Lock()
		s.inBody.leave()
		c.mu.Unlock()
	}
	return n, err
}

// awaitStream records that the server waits for more of a stream's body. If anew is true, the wait counts from now.
func (c *connections) awaitStream(s *stream, anew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if anew {
		s.inBody.leave()
	}
	if s.inBody.in == nil && !s.conn.gone {
		s.read = 0
		c.bodies.push(&s.inBody)
	}
}

// A streamWriter writes the answer to an HTTP/2 request. The client can make it wait, even if it reads from the connection.
type streamWriter struct {
	http.ResponseWriter
	stream *stream
}

// Write writes a part of the answer.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.wait(true)
	defer w.wait(false)
	return w.ResponseWriter.Write(p)
}

// FlushError sends what has been written.
func (w *streamWriter) FlushError() error {
	w.wait(true)
	defer w.wait(false)
	return w.stream.control.Flush()
}

// Unwrap returns the writer for [http.ResponseController].
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *streamWriter) wait(begins bool) { w.stream.conn.conns.write(&w.stream.inWrite, begins) }
