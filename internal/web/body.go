package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// A Body is what the body of a request is read into, such as an invocation of package invoker. It bounds the size, and may first reserve the memory.
type Body interface {
	// Limit returns the largest size in bytes.
	Limit() int64
	// TooLarge returns the error for a larger body.
	TooLarge() error
	// Read reads r to its end. length is the announced length in bytes, or -1. Read returns an error from r, TooLarge as soon as there are more bytes
	// than Limit, or an *wasmtools.Error of its own.
	Read(r io.Reader, length int64) error
}

// ReadBody reads the request's body into b. A body whose announced length is above the limit is not read at all. The error
// is an *wasmtools.Error for [Exchange.Fail].
func (x *Exchange) ReadBody(b Body) error {
	r := x.request
	if r.ContentLength > b.Limit() {
		return b.TooLarge()
	}
	if r.Body == nil || r.ContentLength == 0 {
		// net/http ignores Transfer-Encoding in HTTP/1.0 and treats the body as empty. The client's arguments would be lost.
		if !r.ProtoAtLeast(1, 1) && len(r.Header["Content-Length"]) == 0 {
			return incomplete("A body of HTTP/1.0 needs a Content-Length")
		}
		return nil
	}
	if err := b.Read(x.whole(), r.ContentLength); err != nil {
		return x.bodyError(err, b.TooLarge)
	}
	return nil
}

// A boundedBody is the body of a request, for doors that read it themselves. Reading more than 1 MiB fails. Each error is an *wasmtools.Error for
// [Exchange.Fail].
type boundedBody struct {
	io.ReadCloser
	x    *Exchange
	left int64
}

// boundBody bounds the body that the door sees, unless the door does so itself. The server's own request keeps the body that net/http made: by
// its type, net/http knows whether the client waits for "100 Continue".
func (x *Exchange) boundBody() {
	r := x.request
	if x.at.policy.Unbounded || r.Body == nil || r.Body == http.NoBody {
		return
	}
	shown := *r
	shown.Body = &boundedBody{r.Body, x, wasmtools.DefaultMaxInput}
	x.request = &shown
}

// whole returns the unbounded body.
func (x *Exchange) whole() io.Reader {
	if b, ok := x.request.Body.(*boundedBody); ok {
		return b.ReadCloser
	}
	return x.request.Body
}

// Read reads the body, and at most one byte beyond the limit.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 || b.x.request.ContentLength > wasmtools.DefaultMaxInput {
		return 0, errBodyTooLarge()
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n - 1, errBodyTooLarge()
	}
	if err != nil && err != io.EOF {
		err = b.x.bodyError(err, errBodyTooLarge)
	}
	return n, err
}

func errBodyTooLarge() error {
	return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge, Message: fmt.Sprintf("The body is larger than %d bytes", wasmtools.DefaultMaxInput)}
}

// HasBody reports whether the request has a body that is not empty. If the header does not say so, HasBody reads the first byte, and then the body
// can't be read any more. The error is an *wasmtools.Error for [Exchange.Fail].
func (x *Exchange) HasBody() (bool, error) {
	r := x.request
	if r.ContentLength >= 0 || r.Body == nil {
		return r.ContentLength > 0, nil
	}
	n, err := io.ReadFull(x.whole(), make([]byte, 1))
	if n > 0 || err == io.EOF {
		return n > 0, nil
	}
	return false, x.bodyError(err, func() error { return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge} })
}

// bodyError returns the client's error for a body that could not be read. It is a separate function because it allocates, which should not happen for
// a body that can be read.
func (x *Exchange) bodyError(err error, tooLarge func() error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge()
	}
	if own, ok := errors.AsType[*wasmtools.Error](err); ok {
		return own
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // checked before the context, which net/http cancels in this case
		return &wasmtools.Error{Code: wasmtools.CodeRequestTimeout, Err: fmt.Errorf("read body: %w", err)}
	}
	if x.Context().Err() != nil {
		return &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: fmt.Errorf("read body: %w", err)}
	}
	return incomplete("The body could not be read to its end")
}

func incomplete(message string) error {
	return &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Violations: []misfit.Violation{
		{Type: "body_incomplete", Loc: []any{"body"}, Msg: message}}}
}
