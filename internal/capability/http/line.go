package http

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/reach"
)

// These bound the connections that a call keeps.
const (
	maxKept   = 4        // connections
	keptBytes = 48 << 10 // bytes of memory that are accounted for each connection: its buffers, those of TLS, and those of the system
	maxWhole  = 16 << 10 // bytes of a request that is written in one piece, since the system accepts these without waiting for the server
)

// lines are the connections that one call keeps. No other call uses them, not even one of the same caller. So a service that is wrong about where
// its answer ends can't answer one call with data for another. The zero value has no connections.
type lines struct {
	kept        []*line // the oldest first
	connections *Connections
}

// has reports whether a connection is kept for requests to o by r.
func (s *lines) has(r *rule, o reach.Origin) bool { return s.index(r, o) >= 0 }

func (s *lines) index(r *rule, o reach.Origin) int {
	return slices.IndexFunc(s.kept, func(l *line) bool { return l.rule == r && l.origin == o })
}

// find takes the connection that is kept for requests to o by r. It returns nil if that has been closed meanwhile.
func (s *lines) find(r *rule, o reach.Origin) (l *line, kept bool) {
	i := s.index(r, o)
	if i < 0 {
		return nil, false
	}
	l = s.kept[i]
	s.kept = slices.Delete(s.kept, i, i+1)
	if !s.connections.wake(l) {
		return nil, true
	}
	return l, true
}

// keep keeps a connection for the next request.
func (s *lines) keep(l *line) {
	s.kept = append(s.kept, l)
	s.connections.rest(l)
}

// shorten closes the oldest connection.
func (s *lines) shorten() {
	s.drop(s.kept[0])
	s.kept = slices.Delete(s.kept, 0, 1)
}

func (s *lines) drop(l *line) {
	s.connections.wake(l)
	l.close()
}

// close closes all connections.
func (s *lines) close() {
	for _, l := range s.kept {
		s.drop(l)
	}
	s.kept = nil
}

// A line is a connection to an origin that is used for one request after the other. The Transport of net/http would do that, too, but it reuses a
// connection before it has checked whether the server has sent more than its answer.
type line struct {
	rule   *rule
	origin reach.Origin
	conn   net.Conn // for writing and reading; encrypted if the origin uses TLS
	raw    net.Conn // of the system
	used   bool     // a request has been sent on it
	in     *bufio.Reader
	left   int64         // how many bytes the head of an answer may still have
	wrote  chan struct{} // closed once a request has been written whose answer is read meanwhile; nil if it was written in one piece
}

// newLine returns the line for a new connection.
func newLine(r *rule, o reach.Origin, conn net.Conn) *line {
	l := &line{rule: r, origin: o, conn: conn, raw: conn}
	if secure, ok := l.raw.(*tls.Conn); ok {
		l.raw = secure.NetConn()
	}
	if c, ok := l.raw.(*connection); ok {
		l.raw = c.Conn
	}
	l.in = bufio.NewReader(l)
	return l
}

// errLongHead is returned if the head of an answer is too long.
var errLongHead = errors.New("the head is too long")

// Read reads what the server sends. It is the source of the field in.
func (l *line) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLongHead
	}
	n, err := l.conn.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// close closes the connection properly, as after a complete exchange.
func (l *line) close() { _ = l.conn.Close() }

// cut closes the connection abruptly.
func (l *line) cut() {
	if secure, ok := l.conn.(*tls.Conn); ok {
		_ = secure.NetConn().Close()
		return
	}
	_ = l.conn.Close()
}

// quiet reports whether everything that has arrived was read: nothing is left in our buffers or the system's, not even the end of the connection.
func (l *line) quiet() bool {
	if l.in.Buffered() > 0 {
		return false
	}
	if _, secure := l.conn.(*tls.Conn); secure {
		// TLS has a buffer of its own. With an expired deadline, it reads only from that.
		_ = l.conn.SetReadDeadline(time.Unix(1, 0))
		n, err := l.conn.Read(make([]byte, 1))
		var late net.Error
		if n > 0 || !errors.As(err, &late) || !late.Timeout() || l.conn.SetReadDeadline(time.Time{}) != nil {
			return false
		}
		if !l.used { // the system's buffer may still have TLS session tickets
			return true
		}
	}
	return nothingArrived(l.raw)
}

// errUnsent means that a kept connection can't be used: the server has closed it, or sent something unasked.
var errUnsent = errors.New("the connection can't be reused")

// ask sends a request and reads the head of its answer. again means that the request can be sent again on another connection: the line had been used
// before, and was closed without an answer.
func (l *line) ask(r *http.Request) (response *http.Response, again bool, err error) {
	if l.used && !l.quiet() {
		return nil, true, errUnsent
	}
	again = l.used && slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method)
	l.used, l.left, l.wrote = true, maxHeadBytes, nil
	if r.ContentLength <= maxWhole {
		var whole bytes.Buffer
		if err := r.Write(&whole); err != nil {
			return nil, false, err
		}
		if _, err := l.conn.Write(whole.Bytes()); err != nil {
			return nil, again, err
		}
	} else { // a server may answer before it has read the whole request, and then read no more
		l.wrote = make(chan struct{})
		go func() {
			defer close(l.wrote)
			_ = r.Write(l.conn) // an error shows when the answer is missing
		}()
	}
	for {
		if _, err := l.in.Peek(1); err != nil {
			return nil, again, err
		}
		again = false
		response, err := http.ReadResponse(l.in, r)
		if err != nil && l.left <= 0 { // whatever error the truncated head causes
			err = errLongHead
		}
		if err != nil {
			return nil, false, err
		}
		if s := response.StatusCode; s < 100 || s >= 200 || s == http.StatusSwitchingProtocols {
			l.left = math.MaxInt64
			return response, false, nil
		}
	}
}

// written reports whether the request has been written.
func (l *line) written() bool {
	select {
	case <-l.wrote:
		return true
	default:
		return l.wrote == nil
	}
}

// roundTrip sends a request on a connection that the call keeps, or on a new one. The connection is x.line until finish.
func (x *exchange) roundTrip(r *http.Request) (response *http.Response, err error) {
	if r.ContentLength <= maxWhole {
		x.line = x.reuse()
	}
	for again := true; again; {
		x.wait(func() {
			if x.line == nil {
				if x.line, err = x.rule.dialer.connect(x.ctx, x.rule, x.target.Origin); err != nil {
					again = false
					return
				}
			}
			x.stop = context.AfterFunc(x.ctx, x.line.cut)
			response, again, err = x.line.ask(r)
		})
		if again {
			x.finish(false)
			if !errors.Is(err, errUnsent) {
				if f := x.count(); f != nil {
					return nil, f
				}
			}
			if r.GetBody != nil {
				r.Body, _ = r.GetBody()
			}
		}
	}
	return response, err
}

// reuse takes the connection that the call keeps for the next request, or nil.
func (x *exchange) reuse() *line {
	l, kept := x.lines.find(x.rule, x.target.Origin)
	if kept {
		x.c.Hold(-keptBytes)
	}
	return l
}

// finish ends the use of x.line. If whole is true, the answer was read to its end, so that another request may follow.
func (x *exchange) finish(whole bool) {
	l := x.line
	if l == nil {
		return
	}
	if whole && l.written() && !x.lines.has(l.rule, l.origin) && x.stop() {
		if len(x.lines.kept) == maxKept {
			x.lines.shorten()
			x.c.Hold(-keptBytes)
		}
		x.c.Hold(keptBytes) // this may end the call
		x.line = nil
		x.lines.keep(l)
		return
	}
	x.line = nil
	if x.stop != nil {
		x.stop()
	}
	l.cut()
	if l.wrote != nil {
		<-l.wrote
	}
}
