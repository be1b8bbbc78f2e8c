package mcp

import (
	"bytes"
	"io"
	"net/http"
	"slices"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/session"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

const (
	// frame is how many bytes a message may have besides a call's arguments, and a message that calls nothing may have.
	frame = 64 << 10
	// kept is the largest buffer that is kept for the next request, in bytes.
	kept = 64 << 10
	// firstRead is the first size of a buffer, in bytes: more than most messages have.
	firstRead = 4 << 10
)

// An exchange is a request with its response. It is used again for the next one.
type exchange struct {
	*web.Exchange
	message   rpc.Message
	door      *Door
	namespace string
	call      toolset.Invocation
	streaming bool // the response is a stream of events
	// subscription is what goes on when all that the request said has been read, or nil.
	subscription *subscription
	body         buffer
	out          []byte
}

var _ web.Failer = (*exchange)(nil)

// release gives the exchange back. It must not be used afterwards.
func (x *exchange) release() {
	x.Exchange.Failer = nil
	*x = exchange{door: x.door, body: x.body[:0], out: x.out[:0]}
	if cap(x.body) > kept {
		x.body = nil
	}
	if cap(x.out) > kept {
		x.out = nil
	}
	x.door.idle.Put(x)
}

// view returns what the caller sees under the generation that the request goes by.
func (x *exchange) view() *toolset.View {
	return x.door.set.ViewOf(x.Generation(), x.namespace, x.Call().Principal)
}

// serve answers the request.
func (x *exchange) serve() {
	h := x.Request().Header
	if err := checkContent(h); err != nil {
		x.Fail(err)
		return
	}
	declared, ok := plain(h, headerVersion)
	if ok && declared == version {
		if method, ok := plain(h, headerMethod); ok && method == "tools/call" {
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
	wrong := x.message.Parse(x.body)
	if wrong == nil && x.beginsSession(declared) {
		x.door.sessions.Serve(x.Exchange, session.Request{Namespace: x.namespace, ID: web.RequestID(x.Context()), Body: x.body})
		return
	}
	if wrong == nil {
		wrong = x.check(h)
	}
	if wrong == nil {
		wrong = x.route()
	}
	if wrong != nil {
		x.refuse(wrong)
	}
}

// check compares what the headers say with the message.
func (x *exchange) check(h http.Header) *rpc.Fault {
	m := &x.message
	declared, ok := plain(h, headerVersion)
	switch {
	case m.Method == nil:
		return rpc.Invalid("The message is a response; the server sends no requests")
	case !ok && len(h[headerVersion]) > 0:
		return rpc.Mismatch("MCP-Protocol-Version is not well-formed")
	case !ok && m.MetaVersion != nil:
		return rpc.Mismatch("MCP-Protocol-Version is missing")
	case !ok:
		return rpc.Mismatch("MCP-Protocol-Version is missing; clients of older versions begin with initialize")
	case declared != version:
		if m.MetaVersion != nil && string(m.MetaVersion) != declared {
			return rpc.Mismatch("MCP-Protocol-Version is not the version of the request's _meta")
		}
		return rpc.Unsupported(x.door.supported, declared)
	case m.ID == nil:
		return nil
	}
	if wrong := checkVersion(m, declared); wrong != nil {
		return wrong
	}
	return checkMethod(m, h)
}

// beginsSession reports whether a request without a session belongs to a version that has them.
func (x *exchange) beginsSession(declared string) bool {
	m := &x.message
	return m.MetaVersion == nil && declared != version && (string(m.Method) == "initialize" || session.Speaks(declared))
}

// serveSession answers a message of a session. What it calls is not known before it is read.
func (x *exchange) serveSession() {
	body := x.view().NewBody(frame)
	defer body.Release()
	x.door.sessions.Serve(x.Exchange, session.Request{
		Namespace: x.namespace,
		ID:        web.RequestID(x.Context()),
		Read:      func() ([]byte, error) { err := x.ReadBody(body); return body.Bytes(), err },
		Counted:   body.Release,
	})
}

// route answers a message that calls no tool, or returns what is wrong with it.
func (x *exchange) route() *rpc.Fault {
	if x.message.ID == nil {
		if !bytes.HasPrefix(x.message.Method, []byte("notifications/")) {
			return rpc.Invalid("A request needs an id")
		}
		x.SetOperation("notification")
		// There is none that the server would have to know of: closing the connection cancels a request.
		x.WriteHeader(http.StatusAccepted)
		return nil
	}
	switch string(x.message.Method) {
	case "server/discover":
		x.SetOperation("server/discover")
		x.discover()
		return nil
	case "tools/list":
		x.SetOperation("tools/list")
		return x.list()
	case "subscriptions/listen":
		x.SetOperation("subscriptions/listen")
		return x.listen()
	}
	return rpc.NoMethod()
}

// refuse answers with what is wrong with the message.
func (x *exchange) refuse(f *rpc.Fault) {
	x.SetFailure(&wasmtools.Error{Code: codeOf(f)})
	x.out = rpc.AppendFault(x.out, x.message.ID, f)
	x.Send(statusOf(f), x.out)
}

// Failure words the errors of the service as those of JSON-RPC.
func (x *exchange) Failure(e *wasmtools.Error) (status int, body []byte) {
	status, f := faultOf(e, web.RequestID(x.Context()))
	return status, rpc.AppendFault(nil, x.message.ID, f)
}

// checkContent reports why the body is not read, or nil.
func checkContent(h http.Header) error {
	if err := web.CheckEncoding(h); err != nil {
		return err
	}
	return web.CheckType(h)
}

// A buffer holds a message that calls nothing. It is a web.Body.
type buffer []byte

// Limit returns the largest size.
func (b *buffer) Limit() int64 { return frame }

// TooLarge returns the error of a larger message.
func (b *buffer) TooLarge() error {
	return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge, Message: "A message that calls no tool of the server may have 65536 bytes"}
}

// Read reads the message. It grows as the bytes come.
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
