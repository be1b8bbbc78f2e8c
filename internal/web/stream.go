package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// defaultStreamWrite is Options.StreamWrite if that is zero.
	defaultStreamWrite = 10 * time.Second
	// streamPart is how many bytes of a stream share one time limit. With the default limit, a client that reads 6.4 KiB a second is fast enough.
	streamPart = 64 << 10
	// lastingBuffer is how many unread bytes of a lasting stream the system may buffer. By default it would buffer megabytes. For an HTTP/2
	// connection with such streams, the bound is sharedBuffer, since large answers use the connection, too.
	lastingBuffer, sharedBuffer = 64 << 10, 256 << 10
)

// errStreamsEnd is the cause of a stream's context after EndStreams.
var errStreamsEnd = errors.New("the service ends its streams")

// A stream is a response that may take any amount of time, as long as the client reads it.
type stream struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	control *http.ResponseController
	in      admitted     // how its client was last admitted
	socket  *net.TCPConn // used by this stream alone; nil if it is shared or not known
}

// cut makes the connection of a client that has not read discard its unsent data, which would otherwise stay in memory until the system gives up.
func (s *stream) cut(err error) error {
	if s.socket != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		_ = s.socket.SetLinger(0)
	}
	return err
}

// limit sets how long writes may take from now on. Zero means no limit, for the pauses between writes: in HTTP/2 a deadline that passes ends the
// stream even if nothing is being written.
func (s *stream) limit(d time.Duration) {
	var deadline time.Time
	if d > 0 {
		deadline = time.Now().Add(d)
	}
	// A ResponseWriter without deadlines belongs to a test, or to an embedder whose own writer hides the connection's.
	_ = s.control.SetWriteDeadline(deadline)
}

func (s *stream) write(m *Mux, w http.ResponseWriter, p []byte) (written int, err error) {
	defer s.limit(0)
	for {
		s.limit(m.streamWrite)
		n, err := w.Write(p[:min(len(p), streamPart)])
		written, p = written+n, p[n:]
		if err != nil || len(p) == 0 {
			return written, s.cut(err)
		}
	}
}

func (s *stream) flush(m *Mux) error {
	s.limit(m.streamWrite)
	defer s.limit(0)
	return s.cut(s.control.Flush())
}

// end closes the stream. What net/http still has to send after that has the time limit of one part.
func (s *stream) end(m *Mux) {
	m.streams.remove(s)
	s.cancel(nil)
	s.limit(m.streamWrite)
}

// streams are the open streams.
type streams struct {
	mu      sync.Mutex
	open    map[*stream]struct{}
	ended   bool
	recheck chan struct{} // closed by Recheck; if nil, nobody waits
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

// EndStreams ends the contexts of all streams, and of streams that begin later. A service calls it when it shuts down,
// because streams don't end by themselves.
func (m *Mux) EndStreams() { m.streams.end() }

// Recheck makes streams identify their clients again. A service calls it when tokens were removed or changed, since a stream makes no further
// requests that would be checked. It costs nothing for a stream whose client is still admitted as before.
func (m *Mux) Recheck() {
	m.streams.mu.Lock()
	defer m.streams.mu.Unlock()
	if m.streams.recheck != nil {
		close(m.streams.recheck)
		m.streams.recheck = nil
	}
}
