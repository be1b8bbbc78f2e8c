package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/session"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// serveCall answers a request that calls a tool, as its header says. The call begins before the body is read, because the tool
// says how large its arguments may be, and has the memory for them.
func (x *exchange) serveCall() {
	x.SetOperation("tools/call")
	name, named := encoded(x.Request().Header, headerName)
	var unknown error
	defer x.call.End() // one that has not begun needs none
	if named {
		if x.call, unknown = x.view().Begin(name, x.Call()); unknown == nil {
			x.SetTool(x.call.Tool())
		}
	}
	begun := named && unknown == nil
	body, err := x.readCall(begun)
	if err != nil {
		x.failCall(begun, err)
		return
	}
	if changed, err := x.Renew(); err != nil {
		x.failCall(begun, err)
		return
	} else if changed && named {
		unknown = x.call.Resume(x.view(), name, x.Call())
		begun = unknown == nil
	}
	wrong := x.message.Parse(body)
	if wrong == nil {
		wrong = x.checkCall(name, named)
	}
	if wrong == nil && begun && x.call.Headers() != nil {
		wrong = checkParams(x.call.Headers(), x.message.Arguments, x.Request().Header)
	}
	switch {
	case wrong != nil:
		if begun {
			_, _ = x.call.Fail(x.Context(), &wasmtools.Error{Code: codeOf(wrong)})
		}
		x.refuse(wrong)
	case unknown != nil:
		x.answerError(x.missing(unknown))
	default:
		x.Call().Arguments = x.message.Arguments
		x.run()
	}
}

// failCall answers a call that can't be run.
func (x *exchange) failCall(begun bool, err error) {
	if begun {
		_, _ = x.call.Fail(x.Context(), err)
	}
	x.Fail(err)
}

// readCall reads the body: into the memory of the call, if there is one that has it.
func (x *exchange) readCall(begun bool) (body []byte, err error) {
	if begun && !x.call.Refused() {
		err = x.ReadBody((*framed)(x))
		return x.Call().Arguments, err
	}
	if err = x.ReadBody(&x.body); err != nil && begun {
		// Why the call was refused says more than that nobody reads its arguments.
		if result, wrong := x.call.Run(x.Context()); wrong == nil {
			err = result.Failed()
		}
	}
	return x.body, err
}

// A framed is an exchange that reads a message with the arguments of its call. It is a web.Body.
type framed exchange

var _ web.Body = (*framed)(nil)

// Limit returns the largest size of the message.
func (x *framed) Limit() int64 { return x.call.Limit() + frame }

// TooLarge returns the error of a larger one.
func (x *framed) TooLarge() error { return x.call.TooLarge() }

// Read reads the message.
func (x *framed) Read(r io.Reader, length int64) error { return x.call.ReadFramed(r, length, frame) }

// checkCall compares what the headers say with a call.
func (x *exchange) checkCall(name string, named bool) *rpc.Fault {
	if wrong := x.check(x.Request().Header); wrong != nil {
		return wrong
	}
	switch {
	case x.message.ID == nil:
		return rpc.Invalid("A request needs an id")
	case x.message.Name == nil:
		return rpc.InvalidParams("The params have no name")
	case !named:
		return rpc.Mismatch("Mcp-Name is missing or not well-formed")
	case string(x.message.Name) != name:
		return rpc.Mismatch("Mcp-Name is not the name in the params")
	case string(x.message.Arguments) == "null":
		x.message.Arguments = nil
	case x.message.Arguments != nil && x.message.Arguments[0] != '{':
		return rpc.InvalidParams("The arguments must be an object")
	}
	return nil
}

// missing returns the error of a tool that there is not. It may come in a moment.
func (x *exchange) missing(unknown error) error {
	if settled := x.door.settled; settled == nil || settled() {
		return unknown
	}
	return &toolset.Error{Code: rpc.CodeInternal, Message: rpc.NotReady,
		Err: &wasmtools.Error{Code: wasmtools.CodeNotReady}}
}

// run runs the call and answers. A report of progress makes the answer a stream of events, of which the last one is the response.
func (x *exchange) run() {
	ctx := x.Context()
	var p *progress
	if x.message.Token != nil && session.AcceptsEvents(x.Request().Header) {
		p = &progress{x: x}
		ctx, p.cancel = context.WithCancelCause(ctx)
		defer p.cancel(nil)
		x.Call().Listener = p
	}
	result, err := x.call.Run(ctx)
	x.SetTool(x.call.Tool()) // call_tool knows it only now
	switch {
	case p != nil && p.failed != nil:
		x.SetFailure(&wasmtools.Error{Code: wasmtools.CodeCancelled, Err: p.failed})
		return // nobody reads the answer
	case err != nil:
		x.answerError(err)
		return
	}
	if failed := result.Failed(); failed != nil {
		x.SetFailure(failed)
	}
	x.open()
	x.out = append(x.out, `"result":{"resultType":"complete",`...)
	x.out = result.Append(x.out, toolset.Modern, x.door.meta)
	x.out = append(x.out, "}}"...)
	if !x.call.Refused() {
		x.call.Hold(int64(len(x.out)))
	}
	x.answer(http.StatusOK)
}

// open begins the response in x.out.
func (x *exchange) open() {
	x.out = x.out[:0]
	if x.streaming {
		x.out = append(x.out, eventHead...)
	}
	x.out = rpc.AppendHead(x.out, x.message.ID)
}

// answer sends the response that is in x.out. A stream has its status already.
func (x *exchange) answer(status int) {
	if x.streaming {
		_ = sendEvent(x.Exchange, x.out) // if it fails, the client is gone
		return
	}
	x.Send(status, x.out)
}

// answerError answers with an error of package toolset.
func (x *exchange) answerError(err error) {
	f := &rpc.Fault{Code: rpc.CodeInternal}
	if e, ok := errors.AsType[*toolset.Error](err); ok {
		f.Code, f.Message = int64(e.Code), e.Message
	}
	failed, ok := errors.AsType[*wasmtools.Error](err)
	if !ok {
		failed = &wasmtools.Error{Code: codeOf(f), Err: errors.Unwrap(err)}
	}
	if f.Code == rpc.CodeInternal {
		message := f.Message
		if _, f = faultOf(failed, web.RequestID(x.Context())); failed.Code != wasmtools.CodeInternal {
			f.Message = message
		}
	}
	x.SetFailure(failed)
	x.open()
	x.out = rpc.AppendError(x.out, f)
	// A client takes another status for the end of the connection, and shows no error of JSON-RPC then.
	x.answer(http.StatusOK)
}
