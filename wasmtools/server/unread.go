package server

import (
	"io"
	"net"
	"time"
)

// An incomplete request costs memory, and a client without a token can send as large a head as one with a token. So large heads are counted before
// they are complete, and the first clients to be disconnected are those that stop sending a head or a body, or that don't read an answer.

// A head is the part of a request's head that has been read so far. Only the goroutine that reads may use it, except for held.
type head struct {
	awaited bool // the head has begun and not ended
	read    bool // its first byte has not come yet
	over    bool // bytes that come after the head have been read
	bytes   int64
	lines   int64
	held    int64 // the bytes counted for it; guarded by connections.mu
}

const (
	// headFree is how many bytes of a head are not counted: 4 KiB. They are already part of connMemory.
	headFree = 8 << 10
	// lineCost is how many bytes net/http needs for a line: a map entry with a name and a list of values.
	lineCost = 128
	// maxLines is how many lines a head may have. Thousands of short ones would take milliseconds to parse.
	maxLines = 256
	// lastRead is how long a client may take to read the answer to a refused head.
	lastRead = 500 * time.Millisecond
)

// count counts what has been read of a line of the head, whose end is at b[end], or is missing if end is -1.
func (h *head) count(b []byte, end int) {
	switch {
	case h.over:
	case end < 0:
		h.bytes += int64(len(b))
	default:
		h.bytes += int64(end) + 1
		h.lines++
	}
}

// cost returns the bytes that a head takes: its text, which is copied from the buffers into strings, and its lines.
func (h *head) cost() int64 { return 2*h.bytes + lineCost*h.lines }

// A body is the part of a request's body that has been read so far. Only the goroutine that reads may use it.
type body struct {
	awaited bool // the connection is in the queue of bodies
	bytes   int  // bytes since it was queued
}

// The answers to heads that are not read to the end. The answers have no request id, since there is no request yet.
const (
	busyHead = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
		`{"code":"overloaded","detail":"Too many large headers are being read; try again later"}`
	longHead = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
		"431 Request Header Fields Too Large: more than 256 lines"
)

// Read reads, inspects the lines, and counts the bytes of heads.
func (w *watchedConn) Read(p []byte) (int, error) {
	switch {
	case w.isHTTP2:
		return w.readFrames(p)
	case !w.head.awaited:
		return w.readBody(p)
	}
	if !w.head.read {
		w.head.read = true
		w.conns.await(w)
	}
	if w.tls != nil && !w.tls.shaken {
		if err := w.shake(); err != nil {
			return 0, err
		}
	}
	n, err := w.duplex.Read(p)
	if n > 0 && !w.asked.Load() {
		w.asked.Store(true)
	}
	w.watchPreface(p[:n])
	w.watch(p[:n])
	switch {
	case w.isHTTP2:
	case w.head.lines > maxLines:
		return 0, w.refuse(longHead)
	case w.head.cost() > headFree && !w.conns.hold(w):
		return 0, w.refuse(busyHead)
	}
	return n, err
}

// refuse answers a head that is not read to its end, and returns an error that net/http treats as the end of the connection.
func (w *watchedConn) refuse(answer string) error {
	// The connection ends whether or not the answer arrives; but closing it before everything is read may cut off the answer.
	return refuseOver(w.duplex, answer)
}

// refuseOver does the same as refuse, on a given connection.
func refuseOver(c duplex, answer string) error {
	end := time.Now().Add(lastRead)
	_ = c.SetDeadline(end)
	if _, err := io.WriteString(c, answer); err == nil && c.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, c, 2*maxHeader)
	}
	return &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed}
}

// readBody reads what follows a complete head. While the request is answered, net/http reads one byte to notice when the client goes away: then the
// server does not count as waiting.
func (w *watchedConn) readBody(p []byte) (int, error) {
	if watching := len(p) == 1; watching == w.body.awaited {
		w.conns.awaitBody(w, !watching)
	}
	n, err := w.duplex.Read(p)
	w.watch(p[:n])
	if w.body.awaited {
		if w.body.bytes += n; w.body.bytes >= bodyStep {
			w.conns.awaitBody(w, true)
		}
	}
	return n, err
}

// Write writes. It may wait for a client that does not read.
func (w *watchedConn) Write(p []byte) (int, error) {
	w.conns.write(&w.inWrite, true)
	if w.isHTTP2 {
		w.flow.write(true)
		defer w.flow.write(false)
	}
	n, err := w.duplex.Write(p)
	w.conns.write(&w.inWrite, false)
	return n, err
}

// write records that a write begins or has ended.
func (c *connections) write(p *place, begins bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.leave()
	if begins && !p.conn.gone {
		c.writing.push(p)
	}
}

// awaitBody records that from now on the server waits for the next part of a body, or that it no longer waits.
func (c *connections) awaitBody(w *watchedConn, awaited bool) {
	w.body = body{awaited: awaited}
	c.mu.Lock()
	defer c.mu.Unlock()
	w.place.leave()
	if awaited && !w.gone {
		c.bodies.push(&w.place)
	}
}

// hold counts the bytes of a head so far. If there is no room, it closes the connection whose unfinished head has been large for longest; if there is
// no such connection, it returns false.
func (c *connections) hold(w *watchedConn) bool {
	n := w.head.cost() - headFree
	c.mu.Lock()
	n -= w.head.held
	if w.gone {
		c.mu.Unlock()
		return true // reading will fail
	}
	c.held += n
	w.head.held += n
	if w.inHead.in == nil {
		c.large.push(&w.inHead)
	}
	var out []*watchedConn
	for p := c.large.first; p != nil && c.held > c.heads; {
		gone := p.conn
		if p = p.next; gone == w {
			continue
		}
		c.expel(gone)
		c.closed.waited++
		out = append(out, gone)
	}
	ok := c.held <= c.heads
	if !ok {
		c.forget(w)
		c.closed.refused++
	}
	c.mu.Unlock()
	for _, gone := range out {
		c.close(gone)
	}
	if !ok {
		c.tell()
	}
	return ok
}

// hurry gives up the slow body that the server has waited for longest: reading it fails with os.ErrDeadlineExceeded. It returns false if no body is
// slow.
func (c *connections) hurry() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.bodies.first
	if p == nil || time.Since(p.since) < c.tardy {
		return false
	}
	p.hurry()
	return true
}

// hurry makes reading the rest of a body fail. connections.mu is held.
func (p *place) hurry() {
	p.leave()
	var reader interface{ SetReadDeadline(time.Time) error } = p.conn
	if p.stream != nil {
		reader = p.stream.control
	}
	_ = reader.SetReadDeadline(time.Unix(1, 0)) // this takes no time, so it may be done under the lock
}
