package mcp

import (
	"io"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/web"
)

// serveCall answers a request whose header says that it calls a tool. The call begins before the body is read, because the tool decides how large its
// arguments may be, and provides the memory for them.
func (x *exchange) serveCall() {
	x.SetOperation(protocol.Call)
	r, p := &x.request, x.door.protocol
	name, named := encoded(x.Request().Header, headerName)
	defer r.End() // harmless if the call has not begun
	begun := named && p.Begin(r, name)
	body, err := x.readCall(begun)
	if err != nil {
		x.failCall(begun, err)
		return
	}
	if changed, err := x.Renew(); err != nil {
		x.failCall(begun, err)
		return
	} else if changed && named {
		begun = p.Resume(r, name)
	}
	wrong := r.Parse(body)
	if wrong == nil {
		wrong = x.checkCall(name, named)
	}
	if wrong == nil && begun && r.Invocation.Headers() != nil {
		wrong = checkParams(r.Invocation.Headers(), r.Arguments, x.Request().Header)
	}
	if wrong != nil {
		r.Abandon(x.Context(), wrong)
		x.refuse(wrong)
		return
	}
	x.answer()
}

// failCall answers a call that can't be run.
func (x *exchange) failCall(begun bool, err error) {
	if begun {
		_, _ = x.request.Invocation.Fail(x.Context(), err)
	}
	x.Fail(err)
}

// readCall reads the body. If a call was admitted, it reads into the memory of that call.
func (x *exchange) readCall(begun bool) (body []byte, err error) {
	if begun && !x.request.Invocation.Refused() {
		err = x.ReadBody((*framed)(x))
		return x.Call().Arguments, err
	}
	if err = x.ReadBody(&x.body); err != nil && begun {
		// The error that says why the call was refused is more useful than the error about the unread arguments.
		if result, wrong := x.request.Invocation.Run(x.Context()); wrong == nil {
			err = result.Failed()
		}
	}
	return x.body, err
}

// A framed is an exchange that reads a message with the arguments of a call. It is a web.Body.
type framed exchange

var _ web.Body = (*framed)(nil)

// Limit returns the largest size of the message.
func (x *framed) Limit() int64 { return x.request.Invocation.Limit() + frame }

// TooLarge returns the error for a larger message.
func (x *framed) TooLarge() error { return x.request.Invocation.TooLarge() }

// Read reads the message.
func (x *framed) Read(r io.Reader, length int64) error {
	return x.request.Invocation.ReadFramed(r, length, frame)
}

// checkCall checks that the headers agree with a call.
func (x *exchange) checkCall(name string, named bool) *rpc.Fault {
	if wrong := x.check(x.Request().Header); wrong != nil {
		return wrong
	}
	m := &x.request.Message
	switch {
	case m.ID == nil:
		return rpc.Invalid("A request needs an id")
	case m.Name == nil: // the message is at fault, not the header
	case !named:
		return rpc.Mismatch("Mcp-Name is missing or not well-formed")
	case string(m.Name) != name:
		return rpc.Mismatch("Mcp-Name is not the name in the params")
	}
	return m.CheckCall()
}
