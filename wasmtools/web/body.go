package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// A Body is where the body of a request is read into, such as an invocation of package invoke. It bounds the body, and may
// have the memory for it granted.
type Body interface {
	// Limit returns the largest size in bytes.
	Limit() int64
	// TooLarge returns the error of a larger body.
	TooLarge() error
	// Read reads r to its end. length is how many bytes the client announced, or -1. Read returns an error of r, TooLarge as
	// soon as there is a byte more than Limit, or an *wasmtools.Error of its own.
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
		// net/http ignores Transfer-Encoding in HTTP/1.0 and takes the body for empty. The client's arguments would be lost.
		if !r.ProtoAtLeast(1, 1) && len(r.Header["Content-Length"]) == 0 {
			return incomplete("A body of HTTP/1.0 needs a Content-Length")
		}
		return nil
	}
	if err := b.Read(r.Body, r.ContentLength); err != nil {
		return x.bodyError(err, b.TooLarge)
	}
	return nil
}

// HasBody reports whether the request has a body that is not empty. Where the header does not tell, it reads the first byte:
// afterwards the body can't be read any more. The error is an *wasmtools.Error for [Exchange.Fail].
func (x *Exchange) HasBody() (bool, error) {
	r := x.request
	if r.ContentLength >= 0 || r.Body == nil {
		return r.ContentLength > 0, nil
	}
	n, err := io.ReadFull(r.Body, make([]byte, 1))
	if n > 0 || err == io.EOF {
		return n > 0, nil
	}
	return false, x.bodyError(err, func() error { return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge} })
}

// bodyError returns what the client is told of a body that could not be read. It is a function of its own because finding
// that out allocates, which a body that can be read should not pay for.
func (x *Exchange) bodyError(err error, tooLarge func() error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge()
	}
	if own, ok := errors.AsType[*wasmtools.Error](err); ok {
		return own
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // before the context, which net/http cancels in this case
		return &wasmtools.Error{Code: wasmtools.CodeRequestTimeout, Err: fmt.Errorf("read body: %w", err)}
	}
	if x.Context().Err() != nil {
		return &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: fmt.Errorf("read body: %w", err)}
	}
	return incomplete("The body could not be read to its end")
}

func incomplete(message string) error {
	return &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Violations: []schema.Violation{
		{Type: "body_incomplete", Loc: []any{"body"}, Msg: message}}}
}
