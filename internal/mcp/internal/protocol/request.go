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
	// Transport is what it came over.
	Transport Transport
	// Conversation is what it belongs to. If nil, it stands for itself.
	Conversation *Conversation
	// Namespace has the tools that the client sees. If empty, all tools.
	Namespace string
	// Call is what becomes the call of a tool. It has the principal, and the generation that the request goes by.
	Call *wasmtools.Call
	// Counted is called when the call of a tool counts the memory of its arguments. If nil, nobody waits for that.
	Counted func()
	// Out is memory for the answer, or nil.
	Out []byte
	// Invocation is the call of a tool that has begun: see [Server.Begin].
	Invocation toolset.Invocation

	sought  bool  // the tool has been looked for
	unknown error // why there is no invocation
	silent  atomic.Bool
	cancel  context.CancelCauseFunc // of a conversation
}

// A Transport brings a client what the server says to one request.
type Transport interface {
	// ID names the request in the log, and in the answer where that is an internal error.
	ID() string
	// SetOperation and SetTool say for the log what the request does, as soon as that is known.
	SetOperation(method string)
	SetTool(path string)
	// Trace returns what the request says of the trace that it is part of, for whoever records it, or nil if nobody does.
	Trace() *trace.Request
	// Notify sends a notification that belongs to the request, before its answer. An error says that nobody will read that. The
	// message belongs to the caller.
	Notify(message []byte) error
}

// A Listener is a Transport that can tell of changes for as long as a client wants.
type Listener interface {
	Transport
	// Listen answers subscriptions/listen. A client that did not ask for changes of tools hears only of the end.
	Listen(ctx context.Context, tools bool) Answer
}

// An Answer is the last thing that is said to a request.
type Answer struct {
	// Text, Page and Tail are the response. Page is shared by many answers and must not be changed. No Text: the client gets no
	// response, because it has cancelled the request, or the transport has seen to it (Sent).
	Text, Page, Tail []byte
	Sent             bool
	// Failed says for the log why the request, or the call, failed. If nil, it did not.
	Failed *wasmtools.Error
	// Wrong is what is wrong with the message. If nil, nothing is.
	Wrong *rpc.Fault
}

// Whole returns the response in one piece.
func (a *Answer) Whole() []byte {
	if a.Page == nil {
		return a.Text
	}
	return slices.Concat(a.Text, a.Page, a.Tail)
}

// End gives back what the call of a tool holds. It is called once, when the answer has been sent.
func (r *Request) End() { r.Invocation.End() }

// isModern reports whether the request is one of the versions without sessions.
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

// Panicked answers a request whose Go function has panicked.
func (r *Request) Panicked(ctx context.Context, cause error) Answer {
	return r.fail(ctx, &wasmtools.Error{Code: wasmtools.CodeInternal, Err: cause})
}

// codeOf returns the code that the log has for a fault.
func codeOf(f *rpc.Fault) wasmtools.Code {
	switch f.Code {
	case rpc.CodeMethodNotFound:
		return wasmtools.CodeNotFound
	case rpc.CodeInternal:
		return wasmtools.CodeInternal
	}
	return wasmtools.CodeInvalidArguments
}
