package session

import (
	"net/http"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/response"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A post is a request of a session, with its response.
type post struct {
	response.Response
	request protocol.Request
}

// run answers a request of a session.
func (s *Sessions) run(x *web.Exchange, q Request, own *session) {
	p := &post{Response: response.Response{Exchange: x}}
	p.request = protocol.Request{Message: *q.Message, Transport: p, Conversation: own.Conversation, Namespace: own.namespace, Call: x.Call(), Counted: q.Counted}
	if !response.AcceptsEvents(x.Request().Header) {
		p.request.Token = nil // without a stream, reports of progress can't be sent
	}
	defer p.request.End()
	p.Answer(http.StatusOK, s.answer(x, own, &p.request))
}

// answer waits for the answer to a request.
func (s *Sessions) answer(x *web.Exchange, own *session, r *protocol.Request) protocol.Answer {
	ctx, ok := own.Enter(x.Context(), r)
	if !ok {
		return r.Ended()
	}
	defer own.Leave(r)
	if t := x.Trace(); t != nil {
		t.Message.Session = own.shown()
	}
	return s.protocol.Answer(ctx, r)
}

// refuse answers with a fault.
func refuse(x *web.Exchange, status int, id []byte, f *rpc.Fault) {
	code := wasmtools.CodeInvalidArguments
	switch status {
	case http.StatusNotFound:
		code = wasmtools.CodeNotFound
	case http.StatusServiceUnavailable:
		code = wasmtools.CodeOverloaded
	}
	x.SetFailure(&wasmtools.Error{Code: code})
	x.Send(status, rpc.AppendFault(nil, id, f))
}
