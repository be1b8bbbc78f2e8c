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

// connections bounds the open connections. Where one more comes than there are places for, the client makes room that has kept the server
// waiting for longest; a client with a token is kept for longer. It bounds what unfinished heads take, too.
//
// It is the last [web.Dependency], which is told who makes a request.
type connections struct {
	most   int64             // of clients
	spare  int64             // places besides, for probes and for clients that are known by a token
	both   *core.Connections // which counts the connections of tools, too
	heads  int64             // bytes that all large heads may take together
	logger *slog.Logger

	tardy    time.Duration // how long a client may keep the server waiting, at most for 4 KiB of a body, before it makes room for others
	newcomer time.Duration // the same for one that has just come, even if there are no spare places

	open    sync.WaitGroup
	leaving atomic.Bool // another process takes new connections

	mu      sync.Mutex
	all     map[*watchedConn]struct{} // those that have not ended
	number  int64                     // of clients, but those that go
	going   int64                     // are being closed, by us
	unknown queue                     // wait for a request, by the time since when
	known   queue                     // likewise, of clients that have shown a token
	bodies  queue                     // waiting for the next part of a body, by the time of the last one
	writing queue                     // writing a part of an answer, by the time when that began
	large   queue                     // have a large head that has not ended
	held    int64                     // bytes of large heads, until their requests have been answered
	closed  closings                  // since told
	told    time.Time
	shook   time.Time   // when a failed handshake was told last
	calm    *time.Timer // until the log says that none are closed any more; if nil, it has

	left chan struct{} // holds a value when one has left
}

// closings count the connections that were closed because there was no room.
type closings struct {
	waited  int // for longest
	refused int
}

const (
	// closedEvery is the least time between two lines of the log on closed connections, since they come as fast as a client likes.
	closedEvery = time.Second
	// tardy and newcomer are as in connections. A client sends its request a moment after it has connected.
	tardy    = time.Second
	newcomer = 50 * time.Millisecond
	// throttle is how long a connection waits at most until another one makes room for it.
	throttle = 250 * time.Millisecond
	// unreadTime and knownTime are for endUnread.
	unreadTime = time.Second
	knownTime  = 4 * time.Second
	// bodyStep is how many bytes of a body count as a sign of life.
	bodyStep = 4 << 10
)

// A client is what connections know of one of theirs.
type client struct {
	place   place // in one of the queues but these:
	inHead  place // in large
	inWrite place // in writing
	gone    bool  // it is not counted any more

	spare atomic.Bool                         // it came when all places were taken
	known atomic.Bool                         // by a token
	by    atomic.Pointer[wasmtools.Principal] // who made the last request; if nil, nobody whose name is known
	asked atomic.Bool                         // something of the request has come that it waits for
	head  head                                // of the goroutine that reads
	body  body                                // likewise

	streams int // requests of HTTP/2 that have not ended; guarded by connections.mu
}

// count counts n more connections, or less. c.mu is held.
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

// holders returns how many connections each client has, and requests of HTTP/2 that count as one. A client is named by who made its last request, or
// by its address, which is a proxy's where one is in between.
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

// holderOf returns who has a connection.
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
	network, _ := address.Prefix(64) // what one client has at least
	return network.String()
}

// note keeps who makes a request over a connection.
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

// changed is the http.Server's ConnState.
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
		if w.isHTTP2 { // another goroutine is reading already
			c.await(w)
		} else {
			w.head, w.body = head{awaited: true}, body{}
		}
	case http.StateClosed, http.StateHijacked:
		c.ended(w)
		c.open.Done()
	}
}

// await makes a connection wait for its client from now on.
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

// forget takes a connection out of all queues, and stops counting what its request takes. c.mu is held.
func (c *connections) forget(w *watchedConn) {
	w.place.leave()
	w.inHead.leave()
	w.inWrite.leave()
	c.held -= w.head.held
	w.head.held = 0
	w.place.late = time.Time{}
}

// expel makes a connection leave; close closes it then. c.mu is held.
func (c *connections) expel(w *watchedConn) {
	c.forget(w)
	w.gone = true
	c.count(-1)
	c.going++
}

// ended stops counting a connection.
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

// enter counts a new connection, and closes one where there are too many. It waits a little if connections come faster than they can go,
// or faster than clients send their requests: then the others wait in the system's queue.
func (c *connections) enter(w *watchedConn) {
	for end := time.Now().Add(throttle); ; {
		switch out, ok := c.room(w, time.Now().After(end)); {
		case out == w:
			_ = w.socket.Close() // at once: nobody reads from it yet
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

// room counts a new connection, and returns the one to close for it, or nil. Unless it must close one, it may report that it has
// done nothing, since no such connection exists yet.
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
	case over <= c.spare: // nobody is sent away who has just come
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

// tardiest returns the connection that makes room for another, or nil. It has had the server wait for so long at least. Known clients keep
// a quarter of the places: as long as no more of them wait, somebody unknown has to go. c.mu is held.
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
	// To close a connection waits for the goroutine that reads from it. The goroutine that accepts connections has no time for that, and
	// c.going allows few of these goroutines.
	go func() { _ = w.socket.Close() }()
	c.tell()
}

// admit lets a request over a connection be served, or reports that all places for such requests are taken.
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

// closeUnasked closes the connections on which no request is being read or answered, and none was since a time.
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
		_ = w.socket.Close() // there is nothing to be said to its client
	}
}

// endUnread ends requests that stay half read for unreadTime after its first call, or for knownTime if the client is known. Otherwise
// anybody could hold up the end of a server, with a body that is announced and never sent. It is not prolonged by a part that comes.
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

// isSpare reports whether a request came over a connection in a spare place, which ends with it.
func isSpare(r *http.Request) bool {
	w := connOf(r)
	return w != nil && w.spare.Load()
}

// Check lets every request in.
func (c *connections) Check(*http.Request) error { return nil }

// Principal notes who makes requests over a connection. In a spare place only callers with a token are served, and probes, which need none.
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

// tell logs how many connections were closed since the last line.
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

// tellEnd logs what has not been told for a while, or else that there is room again.
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

// quiet stops all reports.
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
