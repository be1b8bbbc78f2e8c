package server

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// connections limits the open connections. If there is no place for a new one, the client that has kept the server waiting longest is disconnected; a
// client with a token is kept for longer. It also limits the memory that unfinished heads take.
//
// It is the last dependency of the doors, so it learns who makes a request.
type connections struct {
	most   int64             // of clients
	spare  int64             // extra places for probes, and for clients with a token
	both   *core.Connections // shared with the connections of tools
	heads  int64             // the bytes that all large heads together may take
	logger *slog.Logger

	tardy    time.Duration // how long a client may keep the server waiting, such as for 4 KiB of a body, before it can be disconnected to make room
	newcomer time.Duration // the same for a client that has just connected, even if there are no spare places

	open    sync.WaitGroup
	leaving atomic.Bool // another process takes new connections

	mu      sync.Mutex
	all     map[*watchedConn]struct{} // the connections that have not ended
	number  int64                     // how many clients' connections there are, without those that are leaving
	going   int64                     // how many connections the server is closing
	unknown queue                     // connections waiting for a request, by the time when the wait began
	known   queue                     // the same for clients that have shown a token
	bodies  queue                     // waiting for the next part of a body, by the time when the last part came
	writing queue                     // writing a part of an answer, by the time when that began
	large   queue                     // reading a large head that has not ended
	held    int64                     // the bytes of large heads, each counted until its request has been answered
	closed  closings                  // since told
	told    time.Time
	shook   time.Time   // when a failed handshake was last logged
	calm    *time.Timer // runs until the log says that no more connections are closed; nil after that

	left chan struct{} // holds a value when a connection has left
}

// closings count the connections that were closed because there was no room.
type closings struct {
	waited  int // for longest
	refused int
}

const (
	// closedEvery is the shortest time between two log lines on closed connections, since a client can cause them as fast as it likes.
	closedEvery = time.Second
	// tardy and newcomer are the defaults of the fields of connections. A client usually sends its request a moment after it has connected.
	tardy    = time.Second
	newcomer = 50 * time.Millisecond
	// throttle is how long a new connection waits at most until another one makes room for it.
	throttle = 250 * time.Millisecond
	// unreadTime and knownTime are for endUnread.
	unreadTime = time.Second
	knownTime  = 4 * time.Second
	// bodyStep is how many bytes of a body count as a sign of life.
	bodyStep = 4 << 10
)

// A client is what connections knows about one connection.
type client struct {
	place   place // in one of the queues other than large and writing
	inHead  place // in large
	inWrite place // in writing
	gone    bool  // the connection is no longer counted

	spare atomic.Bool                         // the connection came when all other places were taken
	known atomic.Bool                         // by a token
	by    atomic.Pointer[wasmtools.Principal] // who made the last request; nil if the name is not known
	asked atomic.Bool                         // a part of the awaited request has come
	head  head                                // used only by the goroutine that reads
	body  body                                // likewise

	streams int // HTTP/2 requests that have not ended; guarded by connections.mu
}

// count adds n, which may be negative, to the number of connections. c.mu is held.
func (c *connections) count(n int64) {
	c.number += n
	c.both.AddClients(n)
}

// clients returns how many connections there are.
func (c *connections) clients() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.number
}

// holders returns how many connections each client has, counting an HTTP/2 request that takes a place as a connection. A client has the name of the
// caller of its last request or, without one, its address, which is the proxy's if a proxy is in between.
func (c *connections) holders() map[string]int64 {
	by := map[string]int64{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.all {
		if !w.gone {
			by[holderOf(w)] += int64(max(1, w.streams))
		}
	}
	return by
}

// holderOf returns the name of the client of a connection.
func holderOf(w *watchedConn) string {
	if p := w.by.Load(); p != nil {
		for q := p.Within(); q != nil; q = q.Within() {
			p = q
		}
		return p.String()
	}
	peer, err := netip.ParseAddrPort(w.socket.RemoteAddr().String())
	if err != nil {
		return "clients without an address"
	}
	address := peer.Addr().Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	network, _ := address.Prefix(64) // the smallest network of one client
	return network.String()
}

// note records who makes a request over a connection.
func (c *client) note(p *wasmtools.Principal) {
	if p.Origin() == wasmtools.OriginOpen {
		p = nil
	}
	if c.by.Load() != p {
		c.by.Store(p)
	}
}

// places returns how many connections there may be. c.mu is held.
func (c *connections) places() int64 { return min(c.most, c.both.ForClients()-c.spare) }

// changed is the ConnState function of the http.Server.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	w, ok := conn.(*watchedConn)
	if !ok { // the listener is not ours
		return
	}
	switch state {
	case http.StateNew:
		c.open.Add(1)
		w.head.awaited = true
		c.enter(w)
	case http.StateActive:
		if !w.isHTTP2 {
			w.head.awaited = false
		}
		c.mu.Lock()
		w.place.leave()
		w.inHead.leave()
		c.mu.Unlock()
	case http.StateIdle:
		c.mu.Lock()
		c.forget(w)
		c.mu.Unlock()
		w.asked.Store(false)
		if w.isHTTP2 { // another goroutine is already reading
			c.await(w)
		} else {
			w.head, w.body = head{awaited: true}, body{}
		}
	case http.StateClosed, http.StateHijacked:
		c.ended(w)
		c.open.Done()
	}
}

// await records that from now on the server waits for the client of a connection.
func (c *connections) await(w *watchedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.place.leave()
	switch {
	case w.gone:
	case w.known.Load():
		c.known.push(&w.place)
	default:
		c.unknown.push(&w.place)
	}
}

// forget removes a connection from all queues, and stops counting the memory of its request. c.mu is held.
func (c *connections) forget(w *watchedConn) {
	w.place.leave()
	w.inHead.leave()
	w.inWrite.leave()
	c.held -= w.head.held
	w.head.held = 0
	w.place.late = time.Time{}
}

// expel marks a connection as leaving; close then closes it. c.mu is held.
func (c *connections) expel(w *watchedConn) {
	c.forget(w)
	w.gone = true
	c.count(-1)
	c.going++
}

// ended is called when a connection has ended, and stops counting it.
func (c *connections) ended(w *watchedConn) {
	c.mu.Lock()
	delete(c.all, w)
	c.forget(w)
	if w.gone {
		c.going--
	} else {
		c.count(-1)
		w.gone = true
	}
	c.mu.Unlock()
	select {
	case c.left <- struct{}{}:
	default:
	}
}

// enter counts a new connection, and closes one if there are too many. It waits a little if connections come faster than they can be closed, or
// faster than clients send their requests. Meanwhile, further connections wait in the system's queue.
func (c *connections) enter(w *watchedConn) {
	for end := time.Now().Add(throttle); ; {
		switch out, ok := c.room(w, time.Now().After(end)); {
		case out == w:
			_ = w.socket.Close() // closing it takes no time, since nothing reads from it yet
			c.tell()
			return
		case ok:
			c.close(out)
			return
		}
		pause := time.NewTimer(c.newcomer)
		select {
		case <-c.left:
		case <-pause.C:
		}
		pause.Stop()
	}
}

// room counts a new connection, and returns the connection to close for it, or nil. If no connection may be closed yet, and must is false, it does
// nothing and returns false.
func (c *connections) room(w *watchedConn, must bool) (out *watchedConn, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.going > c.spare && !must {
		return nil, false
	}
	c.count(1)
	c.all[w] = struct{}{}
	over := c.number - c.places()
	switch {
	case over <= 0:
	case over <= c.spare: // a client that has just connected is not sent away
		out = c.tardiest(c.tardy)
	case must:
		if out = c.tardiest(0); out == nil {
			out = w
		}
	default:
		if out = c.tardiest(c.newcomer); out == nil {
			c.count(-1)
			delete(c.all, w)
			return nil, false
		}
	}
	if out == w {
		c.closed.refused++
	} else if out != nil {
		c.closed.waited++
	}
	if out != nil {
		c.expel(out)
	}
	w.spare.Store(c.number > c.places())
	return out, true
}

// tardiest returns the connection to close for another one, or nil. It must have kept the server waiting for at least the given time. A quarter of
// the places is kept for known clients: as long as known clients take no more than that, an unknown client has to go. c.mu is held.
func (c *connections) tardiest(least time.Duration) *watchedConn {
	p, now := c.unknown.first, time.Now()
	if k := c.known.first; k != nil && (p == nil || int64(c.known.n) > c.most/4 && k.since.Before(p.since)) {
		p = k
	}
	if p != nil && now.Sub(p.since) >= least {
		return p.conn
	}
	for _, q := range []*queue{&c.bodies, &c.writing} {
		if p := q.first; p != nil && now.Sub(p.since) >= c.tardy {
			return p.conn
		}
	}
	return nil
}

// close closes a connection that was expelled.
func (c *connections) close(w *watchedConn) {
	if w == nil {
		return
	}
	// Closing a connection waits for the goroutine that reads from it. The goroutine that accepts connections can't wait for that, so another
	// goroutine does; c.going allows only a few of those.
	go func() { _ = w.socket.Close() }()
	c.tell()
}

// admit lets a request over a connection be served, or returns false if all places for such requests are taken.
func (c *connections) admit(w *watchedConn, known bool) bool {
	if w.known.Load() != known {
		w.known.Store(known)
	}
	if known || !w.spare.Load() {
		return true
	}
	c.mu.Lock()
	var out *watchedConn
	ok := c.number <= c.places()
	if !ok {
		if out = c.tardiest(c.newcomer); out != nil {
			c.closed.waited++
			c.expel(out)
			ok = true
		}
	}
	if ok {
		w.spare.Store(false)
	} else if w.place.in == nil && !w.gone {
		c.unknown.push(&w.place) // the rest of its body may never come
	}
	c.mu.Unlock()
	c.close(out)
	return ok
}

// closeUnasked closes the connections on which no request is being read or answered, and none was since the given time.
func (c *connections) closeUnasked(since time.Time) {
	var out []*watchedConn
	c.mu.Lock()
	for _, q := range []*queue{&c.unknown, &c.known} {
		for p := q.first; p != nil && !p.since.After(since); {
			w := p.conn
			if p = p.next; !w.asked.Load() {
				c.expel(w)
				out = append(out, w)
			}
		}
	}
	c.mu.Unlock()
	for _, w := range out {
		_ = w.socket.Close() // its client waits for nothing
	}
}

// endUnread ends requests that are still incomplete unreadTime after its first call, or knownTime if the client is known, even if parts of them still
// arrive. Otherwise anybody could hold up the shutdown of a server with a body that is announced and never sent.
func (c *connections) endUnread(now time.Time) {
	var out []*watchedConn
	c.mu.Lock()
	for _, q := range []*queue{&c.unknown, &c.known, &c.bodies} {
		for p := q.first; p != nil; {
			this, w := p, p.conn
			p = p.next
			if q != &c.bodies && !w.asked.Load() {
				continue
			}
			if this.late.IsZero() {
				this.late = now
			}
			most := unreadTime
			if w.known.Load() {
				most = knownTime
			}
			switch {
			case now.Sub(this.late) < most:
			case q == &c.bodies:
				this.hurry()
			default:
				c.expel(w)
				out = append(out, w)
			}
		}
	}
	c.mu.Unlock()
	for _, w := range out {
		_ = w.socket.Close()
	}
}

// isSpare reports whether a request came over a connection in a spare place, which is closed after the request.
func isSpare(r *http.Request) bool {
	w := connOf(r)
	return w != nil && w.spare.Load()
}

// Check lets every request in.
func (c *connections) Check(*http.Request) error { return nil }

// Principal records who makes requests over a connection. In a spare place only callers with a token are served, and probes, which need no token.
func (c *connections) Principal(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error) {
	w := connOf(r)
	if w != nil {
		w.note(current)
	}
	if s := streamOf(r); s != nil && !c.admitStream(s, current.Origin() != wasmtools.OriginOpen) || w != nil && !c.admit(w, current.Origin() != wasmtools.OriginOpen) {
		return nil, &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "All connections are in use; try again later"}
	}
	return current, nil
}

// tell logs how many connections were closed since the last such line.
func (c *connections) tell() {
	c.mu.Lock()
	closed, limit, now := c.closed, c.places(), time.Now()
	due := now.Sub(c.told) >= closedEvery
	if due {
		c.told, c.closed = now, closings{}
		if c.calm == nil {
			c.calm = time.AfterFunc(closedEvery, c.tellEnd)
		}
	}
	c.mu.Unlock()
	if due {
		c.warn(limit, closed)
	}
}

// tellEnd logs the closed connections that have not been logged yet. If there are none, it logs that there is room again.
func (c *connections) tellEnd() {
	c.mu.Lock()
	closed, limit, over := c.closed, c.places(), false
	switch since := time.Since(c.told); {
	case c.calm == nil: // quiet was called
		closed = closings{}
	case since < closedEvery:
		c.calm.Reset(closedEvery - since)
		closed = closings{}
	case closed == closings{}:
		c.calm, over = nil, true
	default:
		c.told, c.closed = time.Now(), closings{}
		c.calm.Reset(closedEvery)
	}
	c.mu.Unlock()
	c.warn(limit, closed)
	if over {
		c.logger.Info("there is room for connections again", "limit", limit)
	}
}

// quiet stops all log lines.
func (c *connections) quiet() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calm != nil {
		c.calm.Stop()
		c.calm = nil
	}
}

func (c *connections) warn(limit int64, closed closings) {
	if closed.waited+closed.refused > 0 {
		c.logger.Warn("too many open connections, or too many bytes in unfinished heads: the longest waiting are closed, or new ones if none is waiting",
			"limit", limit, "closed", closed.waited, "refused", closed.refused)
	}
}
