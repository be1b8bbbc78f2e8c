package session

import (
	"net/http"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/response"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/web"
)

// A stream is the open stream of a session, which sends notifications of changes.
type stream struct {
	replaced chan struct{} // closed when the client opens another
}

// serveStream notifies a client of changes until the client goes away, the session ends, the service ends its streams, or the client opens another
// stream. A client may notice that a stream is broken before the server does.
func (s *Sessions) serveStream(x *web.Exchange, own *session) {
	if !response.AcceptsEvents(x.Request().Header) {
		refuse(x, http.StatusNotAcceptable, nil, rpc.Invalid("A GET must accept text/event-stream"))
		return
	}
	here := &stream{replaced: make(chan struct{})}
	s.attach(own, here)
	defer s.detach(own, here)
	ctx := x.StreamEvents()
	alive := time.NewTicker(s.keepAlive)
	defer alive.Stop()
	for err := response.Comment(x); err == nil; { // for proxies that forward nothing before there is a body
		select {
		case <-ctx.Done():
			return
		case <-own.Closed():
			return
		case <-here.replaced:
			return
		case <-alive.C:
			if !s.stays(x, own) {
				return
			}
			err = response.Comment(x)
		case <-x.Recheck():
			if !s.stays(x, own) {
				return
			}
		case <-own.changed:
			if !s.stays(x, own) { // the caller may have lost the right to the stream
				return
			}
			if err = response.Event(x, rpc.AppendListChanged(nil, nil)); err == nil {
				select { // to a client, a hundred files that are added at once are one change
				case <-time.After(rpc.Breather):
				case <-ctx.Done():
				}
			}
		}
	}
}

// stays reports whether the client may keep its stream, and notes its principal.
func (s *Sessions) stays(x *web.Exchange, own *session) bool {
	p, err := x.Identify()
	if err != nil || ownerOf(p) != own.owner {
		return false
	}
	s.see(own, p)
	return true
}

// attach gives a session its stream. The session does not expire while the stream is open.
func (s *Sessions) attach(own *session, here *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.stream != nil {
		close(own.stream.replaced)
	}
	own.stream = here
	own.busy--
}

// detach undoes attach.
func (s *Sessions) detach(own *session, here *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.stream == here {
		own.stream = nil
	}
	own.busy++ // until the session is given back
}
