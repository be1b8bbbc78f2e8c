package protocol

import (
	"context"
	"strconv"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
)

// Listen is the method that is answered for as long as a client listens.
const Listen = "subscriptions/listen"

// discovery is how clients without sessions find out what the server can do, and hear of changes.
func (s *Server) discovery() feature {
	return feature{methods: []method{
		{name: "server/discover", eras: modernOnly, answer: s.discover},
		{name: Listen, eras: modernOnly, answer: s.listen},
	}}
}

// discover says what the server is, and can do.
func (s *Server) discover(_ context.Context, r *Request) Answer {
	s.openResult(r)
	r.Out = append(r.Out, s.discovered...)
	s.closeResult(r, rpc.FreshDiscover)
	return Answer{Text: r.Out}
}

// listen tells a client of changes until it, or its transport, ends that.
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

// openResult begins a response that is a result.
func (s *Server) openResult(r *Request) {
	r.open()
	r.Out = append(r.Out, `"result":{`...)
	if r.isModern() {
		r.Out = append(r.Out, `"resultType":"complete",`...)
	}
}

// closeResult ends a result that clients may keep for a time, in milliseconds. Older versions are not told of that.
func (s *Server) closeResult(r *Request, fresh int64) {
	if r.isModern() {
		r.Out = strconv.AppendInt(append(r.Out, `,"ttlMs":`...), fresh, 10)
		r.Out = append(append(append(r.Out, `,"cacheScope":"`...), r.scope()...), `","_meta":{`...)
		r.Out = append(append(r.Out, s.identity...), '}')
	}
	r.Out = append(r.Out, "}}"...)
}
