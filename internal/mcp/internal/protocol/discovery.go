package protocol

import (
	"context"
	"strconv"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
)

// Listen is the method whose answer is a stream that lasts as long as the client listens.
const Listen = "subscriptions/listen"

// discovery is the feature by which clients without sessions find out what the server can do, and are notified of changes.
func (s *Server) discovery() feature {
	return feature{methods: []method{
		{name: "server/discover", eras: modernOnly, answer: s.discover},
		{name: Listen, eras: modernOnly, answer: s.listen},
	}}
}

// discover answers with what the server is and can do.
func (s *Server) discover(_ context.Context, r *Request) Answer {
	s.openResult(r)
	r.Out = append(r.Out, s.discovered...)
	s.closeResult(r, rpc.FreshDiscover)
	return Answer{Text: r.Out}
}

// listen notifies a client of changes until the client or the transport ends that.
func (s *Server) listen(ctx context.Context, r *Request) Answer {
	listener, ok := r.Transport.(Listener)
	if !ok {
		return r.Refuse(rpc.NoMethod())
	}
	tools, wrong := r.WantsTools()
	if wrong != nil {
		return r.Refuse(wrong)
	}
	return listener.Listen(ctx, tools)
}

// openResult begins a response with a result.
func (s *Server) openResult(r *Request) {
	r.open()
	r.Out = append(r.Out, `"result":{`...)
	if r.isModern() {
		r.Out = append(r.Out, `"resultType":"complete",`...)
	}
}

// closeResult ends a result that clients may cache for a time, in milliseconds. It does not tell clients of older versions.
func (s *Server) closeResult(r *Request, fresh int64) {
	if r.isModern() {
		r.Out = strconv.AppendInt(append(r.Out, `,"ttlMs":`...), fresh, 10)
		r.Out = append(append(append(r.Out, `,"cacheScope":"`...), r.scope()...), `","_meta":{`...)
		r.Out = append(append(r.Out, s.identity...), '}')
	}
	r.Out = append(r.Out, "}}"...)
}
