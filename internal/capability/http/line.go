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

// What a call keeps of connections.
const (
	maxKept   = 4        // connections
	keptBytes = 48 << 10 // that are held for each: its buffers, those of TLS, and those of the system
	maxWhole  = 16 << 10 // bytes of a request that is written at once, which the system takes without waiting for the server
)

// lines are the connections that one call keeps. No other call uses them, not even one of the same caller. So a service that is wrong
// about the end of an answer can't answer one call with what was meant for another. The zero value has none.
type lines struct {
	kept        []*line // the oldest first
	connections *Connections
}

// has reports whether one is kept for requests to o by r.
func (s *lines) has(r *rule, o reach.Origin) bool { return s.index(r, o) >= 0 }

func (s *lines) index(r *rule, o reach.Origin) int {
	return slices.IndexFunc(s.kept, func(l *line) bool { return l.rule == r && l.origin == o })
}

// find takes the connection that is kept for requests to o by r. It is nil where it has been closed meanwhile.
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

// shorten closes the oldest one.
func (s *lines) shorten() {
	s.drop(s.kept[0])
	s.kept = slices.Delete(s.kept, 0, 1)
}

func (s *lines) drop(l *line) {
	s.connections.wake(l)
	l.close()
}

// close closes all of them.
func (s *lines) close() {
	for _, l := range s.kept {
		s.drop(l)
	}
	s.kept = nil
}

// A line is a connection to an origin, which answers one request after the other. Package net/http's Transport would do so, too, but
// gives a connection to the next request before it has looked whether the server has sent more than its answer.
type line struct {
	rule   *rule
	origin reach.Origin
	conn   net.Conn // what is written and read; with TLS, if the origin has it
	raw    net.Conn // of the system
	used   bool     // a request was sent before
	in     *bufio.Reader
	left   int64         // bytes that the head of an answer may still have
	wrote  chan struct{} // is closed when a request that is written beside its answer has been; nil where it was written at once
}

// newLine returns the line of a new connection.
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

// errLongHead is why the head of an answer is not read to its end.
var errLongHead = errors.New("the head is too long")

// Read reads what the server sends, for in.
func (l *line) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLongHead
	}
	n, err := l.conn.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// close closes the connection, as after an exchange that has come to its end.
func (l *line) close() { _ = l.conn.Close() }

// cut closes the connection without a word.
func (l *line) cut() {
	if secure, ok := l.conn.(*tls.Conn); ok {
		_ = secure.NetConn().Close()
		return
	}
	_ = l.conn.Close()
}

// quiet reports whether nothing has arrived that was not read: not in the buffers, not in the system's, not even the end.
func (l *line) quiet() bool {
	if l.in.Buffered() > 0 {
		return false
	}
	if _, secure := l.conn.(*tls.Conn); secure {
		// TLS has a buffer of its own. With a deadline that is over, it reads nothing else.
		_ = l.conn.SetReadDeadline(time.Unix(1, 0))
		n, err := l.conn.Read(make([]byte, 1))
		var late net.Error
		if n > 0 || !errors.As(err, &late) || !late.Timeout() || l.conn.SetReadDeadline(time.Time{}) != nil {
			return false
		}
		if !l.used { // the system's buffer may have tickets of TLS
			return true
		}
	}
	return nothingArrived(l.raw)
}

// errUnsent is why a kept connection is not used: the server has ended it, or said something unasked.
var errUnsent = errors.New("the connection can't be reused")

// ask sends a request and reads the head of its answer. again reports that the request can be sent on another connection: the line was
// used before, and has ended without a word.
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
	} else { // servers answer before they have read it all, and read no more then
		l.wrote = make(chan struct{})
		go func() {
			defer close(l.wrote)
			_ = r.Write(l.conn) // whose error shows in the answer, if there is none
		}()
	}
	for {
		if _, err := l.in.Peek(1); err != nil {
			return nil, again, err
		}
		again = false
		response, err := http.ReadResponse(l.in, r)
		if err != nil && l.left <= 0 { // whatever the text is found to be that was cut off
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

// roundTrip sends a request on a connection that the call keeps, or on a new one, which is x.line until finish.
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

// finish ends the use of x.line. With whole, the answer was read to its end, and another request may follow.
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
		x.c.Hold(keptBytes) // which may end the call
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
