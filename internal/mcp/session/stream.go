package session

import (
	"net/http"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/response"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/web"
)

// A stream is what a session has open to hear of changes.
type stream struct {
	replaced chan struct{} // closed when the client opens another
}

// serveStream tells a client of changes until it goes away, the session ends, the service ends its streams, or the client opens
// another stream: it may know before us that this one is broken.
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
	for err := response.Comment(x); err == nil; { // for proxies that send nothing on before there is a body
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
			if !s.stays(x, own) { // it is nobody's business any more
				return
			}
			if err = response.Event(x, rpc.AppendListChanged(nil, nil)); err == nil {
				select { // a hundred files that are dropped in at once are one change to a client
				case <-time.After(rpc.Breather):
				case <-ctx.Done():
				}
			}
		}
	}
}

// stays reports whether the client of a stream may still have it, and notes its principal.
func (s *Sessions) stays(x *web.Exchange, own *session) bool {
	p, err := x.Identify()
	if err != nil || ownerOf(p) != own.owner {
		return false
	}
	s.see(own, p)
	return true
}

// attach gives a session its stream. The session lasts as long as the stream is open, no matter who uses it.
func (s *Sessions) attach(own *session, here *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.stream != nil {
		close(own.stream.replaced)
	}
	own.stream = here
	own.busy--
}

// detach ends what attach has begun.
func (s *Sessions) detach(own *session, here *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.stream == here {
		own.stream = nil
	}
	own.busy++ // until it is given back
}
