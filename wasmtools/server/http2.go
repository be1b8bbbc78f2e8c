package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// Over HTTP/2 a connection has many requests at once, which are called streams. Package http checks how they are framed and bounds what one
// connection has of them. The sum of all connections is bounded here: a stream takes one of the client's places, as a connection does, and the
// heads of streams are counted with the others.

const (
	// mostStreamsOfOne is how many requests a connection may have at once, as RFC 9113 (6.5.2) recommends at least.
	mostStreamsOfOne = 100
	// window is how many bytes of a body may come before they are read, of a stream and of all those of a connection.
	window = 64 << 10
	// frameSize is how long a frame may be: the least that is allowed.
	frameSize = 16 << 10
	// stalledRead is how many bytes are read from a client who does not read, as long as that is so. Package http keeps an answer to each ping and
	// the like until it is written, up to 10,000 of them: some megabytes for each connection.
	stalledRead = 16 << 10
	// fewConnections is the part of the connections that are few.
	fewConnections = 16
)

// http2Preface is what a client says first that speaks HTTP/2, after TLS or without.
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// http2Settings bound what one connection takes.
func http2Settings() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams:          mostStreamsOfOne,
		MaxReadFrameSize:              frameSize,
		MaxReceiveBufferPerConnection: window,
		MaxReceiveBufferPerStream:     window,
		WriteByteTimeout:              replyTimeout,
	}
}

// newHTTP2 returns a server that only has connections of HTTP/2, which of takes from it. Its Shutdown ends them as soon as their
// requests are answered, while the other server goes on. Clients learn which requests to send elsewhere.
func newHTTP2(of *http.Server) *http.Server {
	s := &http.Server{IdleTimeout: of.IdleTimeout, HTTP2: of.HTTP2, ErrorLog: of.ErrorLog, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	_ = s.Serve(noListener{}) // which prepares it
	of.TLSNextProto = s.TLSNextProto
	of.Protocols = new(http.Protocols)
	of.Protocols.SetHTTP1(true)
	of.Protocols.SetUnencryptedHTTP2(true) // as seen from package http, TLS is below the connection
	return s
}

// A noListener accepts nothing.
type noListener struct{}

func (noListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (noListener) Close() error              { return nil }
func (noListener) Addr() net.Addr            { return &net.TCPAddr{} }

// watchPreface notes whether the first bytes of a connection are those of HTTP/2.
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

// A flow lets a client that does not read what it asks for be read from no further.
type flow struct {
	mu      sync.Mutex
	changed sync.Cond
	writing bool
	read    int // bytes since that began
}

func (f *flow) write(begins bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing, f.read = begins, 0
	f.changed.Broadcast()
}

// wait waits until n further bytes may be read.
func (f *flow) wait(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.writing && f.read >= stalledRead {
		f.changed.Wait()
	}
	f.read += n
}

// readFrames reads what belongs to any request of HTTP/2.
func (w *watchedConn) readFrames(p []byte) (int, error) {
	n, err := w.duplex.Read(p)
	w.flow.wait(n)
	return n, err
}

// A stream is a request of HTTP/2, and its body.
type stream struct {
	io.ReadCloser
	conn    *watchedConn
	control *http.ResponseController

	inBody  place // in bodies
	inWrite place // in writing
	read    int   // bytes of the body since it was put there
	counted bool  // as a client: another of the connection's requests was there before
	spare   bool  // all places were taken
	held    int64 // bytes of the head that are counted
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

// begin counts a request of HTTP/2 until end. Where there is no room, it answers, and reports false. It returns nil for what is not watched.
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
		// The client does not read, and this goroutine, which is not counted, would wait for it.
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable) // without a body, for which the client could have us wait
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

// take counts a stream, or reports that there is no room, and whether something is being written over its connection.
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

// of returns the request and the writer of a stream as doors see them.
func (s *stream) of(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request) {
	r = r.WithContext(context.WithValue(r.Context(), streamKey{}, s))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = s
	}
	return &streamWriter{w, s}, r
}

// end ends the count of a stream that has been answered. Nobody counts what package http still keeps of the answer while the client
// delays it. So it is sent before, except with few connections, since that costs a frame.
func (s *stream) end() {
	c := s.conn.conns
	c.mu.Lock()
	s.inBody.leave()
	few := c.number <= c.most/fewConnections
	c.mu.Unlock()
	if !few {
		c.write(&s.inWrite, true)
		_ = s.control.Flush() // its client has gone
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

// admitStream lets a request be served, or reports that all places for such requests are taken.
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

// Read reads the body, for which the server waits meanwhile.
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

// awaitStream has the server wait for more of a stream's body, as of now where it is anew.
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

// A streamWriter is where the answer to a request of HTTP/2 is written to. The client may have it wait, also where it reads from the connection.
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
