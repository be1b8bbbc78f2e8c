package mcp

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/response"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// changes wakes the goroutines that wait for a change of the tools.
type changes struct {
	mu   sync.Mutex
	next chan struct{}
}

// wait returns a channel that is closed with the next change.
func (c *changes) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// tell signals a change.
func (c *changes) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// takeStream takes a place for a stream, or returns an error if there is none. give gives the place back.
func (d *Door) takeStream(x *web.Exchange) (give func(), err error) {
	leave, err := d.places.Take(x)
	if err != nil {
		return nil, err
	}
	d.streams.Add(1)
	return func() {
		d.streams.Add(-1)
		leave()
	}, nil
}

// A subscription is a stream of subscriptions/listen.
type subscription struct {
	x         *web.Exchange
	door      *Door
	leave     func() // gives back the stream's place
	namespace string
	principal *wasmtools.Principal
	id        []byte          // id of the request, as it was written
	changed   <-chan struct{} // nil if the client did not ask for changes
	edition   toolset.Edition // edition of the list that the client may have cached
}

// Listen starts to answer subscriptions/listen.
func (x *exchange) Listen(_ context.Context, tools bool) protocol.Answer {
	leave, err := x.door.takeStream(x.Exchange)
	if err != nil {
		x.Fail(err)
		return protocol.Answer{Sent: true}
	}
	r := &x.request
	s := &subscription{x: x.Exchange, door: x.door, leave: leave, namespace: r.Namespace, principal: r.Call.Principal, id: bytes.Clone(r.ID)}
	if tools {
		s.watch()
	}
	x.subscription = s
	return protocol.Answer{Sent: true}
}

// watch starts to wait for the next change, and then notes the present list. In this order no change is missed.
func (s *subscription) watch() (changed bool) {
	s.changed = s.door.changes.wait()
	before := s.edition
	s.edition = s.door.set.Edition(s.namespace, s.principal)
	return s.edition.List != before.List
}

// serve sends notifications until the client goes away or the service ends its streams.
func (s *subscription) serve() {
	defer s.leave()
	ctx := s.x.StreamEvents()
	if s.acknowledge() != nil {
		return
	}
	alive := time.NewTicker(rpc.KeepAlive)
	defer alive.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			s.finish()
			return
		case <-alive.C:
			var told bool
			if told, err = s.recheck(ctx); err == nil && !told {
				err = response.Comment(s.x) // shows that the connection is alive
			}
		case <-s.x.Recheck():
			_, err = s.recheck(ctx)
		case <-s.changed:
			if err = s.identify(); err == nil && s.watch() {
				err = s.notify(ctx)
			}
		}
		if err != nil {
			return
		}
	}
}

// acknowledge sends what must be the first message.
func (s *subscription) acknowledge() error {
	return response.Event(s.x, rpc.AppendAcknowledged(nil, s.id, s.changed != nil))
}

// notify sends a notification of a change.
func (s *subscription) notify(ctx context.Context) error {
	if err := response.Event(s.x, rpc.AppendListChanged(nil, s.id)); err != nil {
		return err
	}
	pause := time.NewTimer(rpc.Breather)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	return nil
}

// identify identifies the caller again. If the caller is no longer admitted, the stream ends.
func (s *subscription) identify() error {
	p, err := s.x.Identify()
	if err != nil {
		s.finish()
		return err
	}
	s.principal = p
	return nil
}

// recheck identifies the caller again, and notifies a client that may now see other tools.
func (s *subscription) recheck(ctx context.Context) (told bool, err error) {
	before := s.principal
	if err := s.identify(); err != nil {
		return false, err
	}
	if s.principal != before && s.changed != nil && s.watch() {
		return true, s.notify(ctx)
	}
	return false, nil
}

// finish sends the response that ends the stream, unless the client has gone.
func (s *subscription) finish() {
	if s.x.Context().Err() == nil {
		_ = response.Event(s.x, rpc.AppendUnsubscribed(nil, s.id))
	}
}
