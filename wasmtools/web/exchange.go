package web

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	maxRequestID  = 64   // characters of a client's X-Request-Id
	maxLoggedPath = 256  // bytes
	maxLoggedText = 4096 // bytes of a cause; a panic's stack fits
)

// An Exchange is one request with its response, of which it is the http.ResponseWriter. It must not be used once the
// door's Serve has returned, except for its context.
type Exchange struct {
	// Local is the door's own: what it found when the request began, for its handlers. A pointer takes no allocation.
	Local any

	w       http.ResponseWriter
	mux     *Mux
	request *http.Request
	start   time.Time
	ctx     requestContext
	id      [1]string // the value of X-Request-Id
	length  [1]string // the value of Content-Length

	tool   string         // path of the tool that is called, or empty
	call   wasmtools.Call // of that tool
	status int            // 0 until the header is written
	code   wasmtools.Code // why the request failed, or empty
	cause  error          // for the log, or nil
}

// Request returns the request. Its context lacks the id: see [Exchange.Context].
func (x *Exchange) Request() *http.Request { return x.request }

// Context returns the request's context, with the id that [RequestID] returns.
func (x *Exchange) Context() context.Context { return &x.ctx }

// Header returns the header of the response.
func (x *Exchange) Header() http.Header { return x.w.Header() }

// SetTool names the tool that the request calls. The log counts refused calls by it.
func (x *Exchange) SetTool(path string) { x.tool = path }

// Call returns the call that the request makes of a tool, with its principal. It is part of the exchange, to save an allocation.
func (x *Exchange) Call() *wasmtools.Call { return &x.call }

// requestContext is a request's context with its id, in one allocation with the exchange.
type requestContext struct {
	context.Context
	id string
}

type requestIDKey struct{}

func (c *requestContext) Value(key any) any {
	if key == (requestIDKey{}) {
		return c.id
	}
	return c.Context.Value(key)
}

// RequestID returns the id of the request that a [wasmtools.Caller] is called for: the X-Request-Id of the
// response. It is empty for a context that no Mux made.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// identify gives the exchange its id: the client's own where it is well-formed, so that a gateway's logs and ours
// tell of the same request; else a new one.
func (x *Exchange) identify() {
	id := ""
	if own := x.request.Header["X-Request-Id"]; len(own) == 1 && isRequestID(own[0]) {
		id = own[0]
	} else {
		var raw [16]byte
		binary.NativeEndian.PutUint64(raw[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(raw[8:], rand.Uint64())
		id = hex.EncodeToString(raw[:])
	}
	x.id[0] = id
	x.ctx = requestContext{Context: x.request.Context(), id: id}
	h := x.Header()
	h["X-Request-Id"] = x.id[:1:1]
	h["X-Content-Type-Options"] = x.mux.fixed.nosniff
}

func isRequestID(s string) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// WriteHeader records the status for the log.
func (x *Exchange) WriteHeader(status int) {
	x.status = status
	x.w.WriteHeader(status)
}

// Write writes a part of the response's body.
func (x *Exchange) Write(p []byte) (int, error) {
	return x.w.Write(p)
}

// Send answers with a JSON body that no cache keeps.
func (x *Exchange) Send(status int, body []byte) {
	h := x.Header()
	h["Content-Type"] = x.mux.fixed.json
	h["Cache-Control"] = x.mux.fixed.noStore
	x.length[0] = strconv.Itoa(len(body))
	h["Content-Length"] = x.length[:1:1]
	x.WriteHeader(status)
	// A failed write means that the client is gone: there is nobody left to tell.
	_, _ = x.Write(body)
}

// finish recovers a panic of a tool, a schema or a dependency, and writes the log line.
func (x *Exchange) finish() {
	v := recover()
	if v == nil {
		x.logRequest()
		return
	}
	abort := v == http.ErrAbortHandler
	if !abort {
		err := fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		// With the header sent, only cutting the connection tells the client that the body is not whole.
		if abort = x.status != 0; abort {
			x.code, x.cause = wasmtools.CodeInternal, err
		} else {
			x.Fail(err)
		}
	}
	x.logRequest()
	if abort {
		panic(http.ErrAbortHandler)
	}
}
