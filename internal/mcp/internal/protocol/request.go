package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Request is a client's request, from its arrival until its answer has been sent.
type Request struct {
	rpc.Message
	// Transport is what the request came over.
	Transport Transport
	// Conversation is the conversation that the request belongs to. If nil, the request is independent.
	Conversation *Conversation
	// Namespace restricts the tools that the client sees. If empty, it sees all tools.
	Namespace string
	// Call becomes the call of a tool. It has the principal and the generation of the request.
	Call *wasmtools.Call
	// Counted is called, if not nil, when the memory of a call's arguments has been counted.
	Counted func()
	// Out is memory for the answer, or nil.
	Out []byte
	// Invocation is the call of a tool once it has begun: see [Server.Begin].
	Invocation toolset.Invocation

	sought  bool  // the tool has been looked for
	unknown error // why there is no invocation
	silent  atomic.Bool
	cancel  context.CancelCauseFunc // cancels the request of a conversation
}

// A Transport sends a client the messages that answer one request.
type Transport interface {
	// ID returns the request id for the log. The answer shows it after an internal error.
	ID() string
	// SetOperation and SetTool tell the log what the request does, as soon as that is known.
	SetOperation(method string)
	SetTool(path string)
	// Trace returns the request's part of a trace, or nil if nobody records requests.
	Trace() *trace.Request
	// Notify sends a notification that belongs to the request, before its answer. An error means that nobody will read the answer. Notify must not
	// keep the message.
	Notify(message []byte) error
}

// A Listener is a Transport that can notify a client of changes for as long as the client wants.
type Listener interface {
	Transport
	// Listen answers subscriptions/listen. A client that did not ask for changes of tools gets only the end of the stream.
	Listen(ctx context.Context, tools bool) Answer
}

// An Answer is the final message for a request.
type Answer struct {
	// Text, Page and Tail together are the response. Page is shared by many answers and must not be changed. If Text is nil, there is no response to
	// send: the client has cancelled the request, or the transport has answered already (Sent).
	Text, Page, Tail []byte
	Sent             bool
	// Failed tells the log why the request, or the call, failed. It is nil if neither did.
	Failed *wasmtools.Error
	// Wrong is the fault of the message, or nil.
	Wrong *rpc.Fault
}

// Whole returns the response in one piece.
func (a *Answer) Whole() []byte {
	if a.Page == nil {
		return a.Text
	}
	return slices.Concat(a.Text, a.Page, a.Tail)
}

// End releases what the call of a tool holds. The transport calls it once, when the answer has been sent.
func (r *Request) End() { r.Invocation.End() }

// isModern reports whether the request's version has no sessions.
func (r *Request) isModern() bool { return string(r.MetaVersion) >= Version }

func (r *Request) era() toolset.Era {
	if r.isModern() {
		return toolset.Modern
	}
	return toolset.Legacy
}

// open begins the response in r.Out, up to its result or its error.
func (r *Request) open() {
	if r.Out == nil {
		r.Out = make([]byte, 0, 512)
	}
	r.Out = rpc.AppendHead(r.Out[:0], r.ID)
}

// Refuse answers a request whose message has a fault.
func (r *Request) Refuse(f *rpc.Fault) Answer {
	a := r.fault(f, &wasmtools.Error{Code: codeOf(f), Err: f})
	a.Wrong = f
	return a
}

// fault answers with a fault.
func (r *Request) fault(f *rpc.Fault, failed *wasmtools.Error) Answer {
	if t := r.Transport.Trace(); t != nil {
		t.Message.Fault = f.Code
	}
	r.open()
	r.Out = rpc.AppendError(r.Out, f)
	return Answer{Text: r.Out, Failed: failed}
}

// fail answers with an error of package toolset.
func (r *Request) fail(ctx context.Context, err error) Answer {
	f := &rpc.Fault{Code: rpc.CodeInternal}
	if e, ok := errors.AsType[*toolset.Error](err); ok {
		f.Code, f.Message = int64(e.Code), e.Message
	}
	failed, ok := errors.AsType[*wasmtools.Error](err)
	if !ok {
		failed = &wasmtools.Error{Code: codeOf(f), Err: errors.Unwrap(err)}
	}
	if f.Code == rpc.CodeInternal {
		data := struct { // strings only
			Code      wasmtools.Code `json:"code"`
			RequestID string         `json:"request_id,omitempty"`
		}{Code: failed.Code}
		switch {
		case failed.Code == wasmtools.CodeInternal:
			f.Message, data.RequestID = "Internal error; give the operator the request id", r.Transport.ID()
		case context.Cause(ctx) == errEnded:
			f.Message = "The session has ended"
		}
		f.Data, _ = json.Marshal(data)
	}
	return r.fault(f, failed)
}

// Panicked answers a request during which a Go function panicked.
func (r *Request) Panicked(ctx context.Context, cause error) Answer {
	return r.fail(ctx, &wasmtools.Error{Code: wasmtools.CodeInternal, Err: cause})
}

// codeOf returns the code of a fault for the log.
func codeOf(f *rpc.Fault) wasmtools.Code {
	switch f.Code {
	case rpc.CodeMethodNotFound:
		return wasmtools.CodeNotFound
	case rpc.CodeInternal:
		return wasmtools.CodeInternal
	}
	return wasmtools.CodeInvalidArguments
}
