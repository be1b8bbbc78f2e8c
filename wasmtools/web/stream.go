package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	// defaultStreamWrite is Options.StreamWrite where it is zero.
	defaultStreamWrite = 10 * time.Second
	// streamPart is how many bytes have a time limit of their own: a client that reads 6.4 KiB a second keeps up with
	// the default.
	streamPart = 64 << 10
)

// errStreamsEnd is why the context of a stream is done once EndStreams was called.
var errStreamsEnd = errors.New("the service ends its streams")

// A stream is a response that may take any time, as long as its client reads it.
type stream struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	control *http.ResponseController
}

// Stream makes the response a stream: the server's write time-out no longer ends it. Instead, each part that is written
// has a limit of its own, Options.StreamWrite, so that a client that stops reading is dropped: Write and Flush return an
// error then.
//
// The context ends when the client goes away, when [Mux.EndStreams] is called, and when Serve returns. The door must
// return soon after. Call Stream once the request's body has been read: until then, nobody watches whether the client
// is still there.
func (x *Exchange) Stream() context.Context {
	if x.stream == nil {
		s := &stream{control: http.NewResponseController(x.w)}
		s.ctx, s.cancel = context.WithCancelCause(&x.ctx)
		x.stream = s
		x.mux.streams.add(s)
		s.limit(0)
	}
	return x.stream.ctx
}

// limit has what is written from now on fail after a time; zero: never. Between writes there is no limit, because in
// HTTP/2 a deadline that passes ends the stream even where nothing is being written.
func (s *stream) limit(d time.Duration) {
	var deadline time.Time
	if d > 0 {
		deadline = time.Now().Add(d)
	}
	// A ResponseWriter without deadlines is not a connection's, but a test's or that of an embedder who hides it.
	_ = s.control.SetWriteDeadline(deadline)
}

func (s *stream) write(m *Mux, w http.ResponseWriter, p []byte) (written int, err error) {
	defer s.limit(0)
	for {
		s.limit(m.streamWrite)
		n, err := w.Write(p[:min(len(p), streamPart)])
		written, p = written+n, p[n:]
		if err != nil || len(p) == 0 {
			return written, err
		}
	}
}

func (s *stream) flush(m *Mux) error {
	s.limit(m.streamWrite)
	defer s.limit(0)
	return s.control.Flush()
}

// end gives the rest, which net/http sends after the door has returned, its time.
func (s *stream) end(m *Mux) {
	m.streams.remove(s)
	s.cancel(nil)
	s.limit(m.streamWrite)
}

// streams are those that are open.
type streams struct {
	mu    sync.Mutex
	open  map[*stream]struct{}
	ended bool
}

func (o *streams) add(s *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		s.cancel(errStreamsEnd)
		return
	}
	o.open[s] = struct{}{}
}

func (o *streams) remove(s *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, s)
}

func (o *streams) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for s := range o.open {
		s.cancel(errStreamsEnd)
	}
	clear(o.open)
}

// EndStreams ends the contexts of all streams, and of those that begin later. A service that shuts down calls it,
// because streams would not end by themselves.
func (m *Mux) EndStreams() { m.streams.end() }
