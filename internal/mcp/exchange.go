package mcp

import (
	"bytes"
	"io"
	"net/http"
	"slices"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/response"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/mcp/session"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// frame bounds the bytes of a message in addition to a call's arguments, and the size of a message that calls no tool.
	frame = 64 << 10
	// kept is the largest buffer that is kept for the next request, in bytes.
	kept = 64 << 10
	// firstRead is the first size of a buffer, in bytes: more than most messages have.
	firstRead = 4 << 10
)

// An exchange is a request with its response. It is reused for later requests.
type exchange struct {
	response.Response
	request protocol.Request
	door    *Door
	// subscription is the stream that starts after the request has been read, or nil.
	subscription *subscription
	body         buffer
}

var (
	_ web.Failer        = (*exchange)(nil)
	_ protocol.Listener = (*exchange)(nil)
)

// begin prepares the exchange for a request.
func (x *exchange) begin(of *web.Exchange, namespace string) {
	of.SetFailer(x)
	x.Exchange = of
	x.request.Transport, x.request.Namespace, x.request.Call = x, namespace, of.Call()
}

// release gives the exchange back. It must not be used afterwards.
func (x *exchange) release() {
	x.Exchange.SetFailer(nil)
	*x = exchange{door: x.door, body: x.body[:0], request: protocol.Request{Out: x.request.Out[:0]}}
	if cap(x.body) > kept {
		x.body = nil
	}
	if cap(x.request.Out) > kept {
		x.request.Out = nil
	}
	x.door.idle.Put(x)
}

// serve answers the request.
func (x *exchange) serve() {
	h := x.Request().Header
	if err := checkContent(h); err != nil {
		x.Fail(err)
		return
	}
	declared, ok := plain(h, headerVersion)
	if ok && declared == protocol.Version {
		if method, ok := plain(h, headerMethod); ok && method == protocol.Call {
			x.serveCall()
			return
		}
	} else if session.HasSession(h) {
		x.serveSession()
		return
	}
	err := x.ReadBody(&x.body)
	if err == nil {
		_, err = x.Renew()
	}
	if err != nil {
		x.Fail(err)
		return
	}
	wrong := x.request.Parse(x.body)
	if wrong == nil && x.beginsSession(declared) {
		x.door.sessions.Serve(x.Exchange, session.Request{Namespace: x.request.Namespace, Message: &x.request.Message})
		return
	}
	if wrong == nil {
		wrong = x.check(h)
	}
	switch {
	case wrong != nil:
		x.refuse(wrong)
	case x.request.ID == nil:
		x.note()
	default:
		x.answer()
	}
}

// answer answers a valid message.
func (x *exchange) answer() {
	if x.request.Token != nil && !response.AcceptsEvents(x.Request().Header) {
		x.request.Token = nil // without a stream, reports of progress can't be sent
	}
	a := x.door.protocol.Answer(x.Context(), &x.request)
	status := http.StatusOK
	if a.Wrong != nil {
		status = statusOf(a.Wrong)
	}
	x.Answer(status, a)
}

// refuse answers with the fault of the message.
func (x *exchange) refuse(f *rpc.Fault) {
	x.Answer(statusOf(f), x.request.Refuse(f))
}

// note answers a notification. The server ignores all of them: to cancel a request, the client closes the connection.
func (x *exchange) note() {
	if !bytes.HasPrefix(x.request.Method, []byte("notifications/")) {
		x.refuse(rpc.Invalid("A request needs an id"))
		return
	}
	x.SetOperation("notification")
	x.WriteHeader(http.StatusAccepted)
}

// check checks that the headers agree with the message.
func (x *exchange) check(h http.Header) *rpc.Fault {
	m := &x.request.Message
	declared, ok := plain(h, headerVersion)
	switch {
	case m.Method == nil:
		return rpc.Invalid("The message is a response; the server sends no requests")
	case !ok && len(h[headerVersion]) > 0:
		return rpc.Mismatch("MCP-Protocol-Version is not well-formed")
	case !ok && m.MetaVersion != nil:
		return rpc.Mismatch("MCP-Protocol-Version is missing")
	case !ok:
		return rpc.Mismatch("MCP-Protocol-Version is missing; clients with older versions begin with initialize")
	case declared != protocol.Version:
		if m.MetaVersion != nil && string(m.MetaVersion) != declared {
			return rpc.Mismatch("MCP-Protocol-Version is not the version of the request's _meta")
		}
		return rpc.Unsupported(protocol.Versions(), declared)
	case m.ID == nil:
		return nil
	}
	if wrong := checkVersion(m, declared); wrong != nil {
		return wrong
	}
	return checkMethod(m, h)
}

// beginsSession reports whether a request without a session belongs to a version that has sessions.
func (x *exchange) beginsSession(declared string) bool {
	m := &x.request.Message
	return m.MetaVersion == nil && declared != protocol.Version && (protocol.Begins(m) || protocol.HasSessions(declared))
}

// serveSession answers a message of a session. Its method is not known before the message is read.
func (x *exchange) serveSession() {
	body := x.door.set.ViewOf(x.Generation(), x.request.Namespace, x.request.Call.Principal).NewBody(x.request.Call, frame)
	defer body.Release()
	x.door.sessions.Serve(x.Exchange, session.Request{
		Namespace: x.request.Namespace,
		Message:   &x.request.Message,
		Read:      func() ([]byte, error) { err := x.ReadBody(body); return body.Bytes(), err },
		Counted:   body.Release,
	})
}

// Failure expresses the errors of the service in JSON-RPC.
func (x *exchange) Failure(e *wasmtools.Error) (status int, body []byte) {
	status, f := faultOf(e, web.RequestID(x.Context()))
	return status, rpc.AppendFault(nil, x.request.ID, f)
}

// checkContent returns an error if the body must not be read, because of its encoding or its type.
func checkContent(h http.Header) error {
	if err := web.CheckEncoding(h); err != nil {
		return err
	}
	return web.CheckType(h)
}

// A buffer holds a message that calls no tool. It is a web.Body.
type buffer []byte

// Limit returns the largest size.
func (b *buffer) Limit() int64 { return frame }

// TooLarge returns the error for a larger message.
func (b *buffer) TooLarge() error {
	return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge, Message: "A message that doesn't call a tool may have at most 65536 bytes"}
}

// Read reads the message. The buffer grows as bytes arrive.
func (b *buffer) Read(r io.Reader, _ int64) error {
	for *b = (*b)[:0]; len(*b) <= frame; {
		if len(*b) == cap(*b) {
			*b = slices.Grow(*b, firstRead)
		}
		n, err := r.Read((*b)[len(*b):cap(*b)])
		if *b = (*b)[:len(*b)+n]; err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	return b.TooLarge()
}
