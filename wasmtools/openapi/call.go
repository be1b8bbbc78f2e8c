package openapi

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// call answers a POST to the tool that is number n of the state.
func (x exchange) call(n int) {
	route := x.state.generation.Routes()[n]
	x.SetTool(route.Path)
	i, err := x.state.door.invoker.Begin(route, x.Call())
	if err != nil {
		x.refuse(err)
		return
	}
	defer func() { i.End(err) }()
	if err = x.readBody(i); err != nil {
		x.Fail(err)
		return
	}
	var result []byte
	if result, err = i.Run(x.Context()); err != nil {
		x.Fail(err)
		return
	}
	x.Send(http.StatusOK, result)
}

// refuse answers a call that was not admitted. What a principal may not call is missing, with all that this means for the
// answer.
func (x exchange) refuse(err error) {
	if failed, ok := errors.AsType[*wasmtools.Error](err); ok && failed.Code == wasmtools.CodeNotFound {
		x.answerMissing()
		return
	}
	x.Fail(err)
}

// readBody reads the request's body. A body of another type than JSON is refused before it is read.
func (x exchange) readBody(i *invoke.Invocation) error {
	r := x.Request()
	if err := checkEncoding(r.Header); err != nil {
		x.Header().Set("Accept-Encoding", "identity")
		return err
	}
	typeErr := checkType(r.Header)
	if typeErr != nil && (r.ContentLength > 0 || isCrossSite(r)) {
		x.Header().Set("Accept-Post", "application/json")
		return typeErr
	}
	if r.ContentLength > i.Limit() {
		return i.TooLarge()
	}
	if r.Body == nil || r.ContentLength == 0 {
		// net/http drops the Transfer-Encoding of HTTP/1.0 and takes the body for empty: the tool would run without
		// the arguments that the client sent.
		if typeErr == nil && !r.ProtoAtLeast(1, 1) && len(r.Header["Content-Length"]) == 0 {
			return incomplete("A body of HTTP/1.0 needs a Content-Length")
		}
		return nil
	}
	most := i.Limit()
	if typeErr != nil {
		most = 0 // of unknown length: without a type it must be empty
	}
	err := i.Read(r.Body, r.ContentLength, most)
	size := int64(len(x.Call().Arguments))
	switch {
	case typeErr != nil && size > 0:
		x.Header().Set("Accept-Post", "application/json")
		return typeErr
	case size > i.Limit():
		return i.TooLarge()
	case err != nil:
		return x.unread(i, err)
	}
	return nil
}

// unread returns what the client is told of a body that could not be read. A body that can be read must not pay for finding
// out which error it is: the variables for that are allocated.
func (x exchange) unread(i *invoke.Invocation, err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return i.TooLarge()
	}
	if own, ok := errors.AsType[*wasmtools.Error](err); ok {
		return own
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // net/http cancels the request then, too
		return &wasmtools.Error{Code: wasmtools.CodeRequestTimeout, Err: fmt.Errorf("read body: %w", err)}
	}
	if x.Context().Err() != nil {
		return &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: fmt.Errorf("read body: %w", err)}
	}
	return incomplete("The body could not be read to its end")
}

func incomplete(message string) error {
	return &wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Violations: []wasmtools.Violation{
		{Type: "body_incomplete", Loc: []any{"body"}, Msg: message}}}
}

// checkType reports why the request's type is not JSON in UTF-8, or nil. Without a type a body is refused, too: a
// page of another site can make a browser send one that is missing, text/plain or a form, but not this one.
func checkType(h http.Header) error {
	values := h["Content-Type"]
	if len(values) == 1 && values[0] == "application/json" {
		return nil
	}
	unsupported := func(what string) error {
		return &wasmtools.Error{Code: wasmtools.CodeUnsupportedMediaType, Message: what + "; send Content-Type: application/json"}
	}
	switch len(values) {
	case 0:
		return unsupported("The body has no Content-Type")
	case 1:
	default:
		return unsupported("There is more than one Content-Type")
	}
	media, parameters, err := mime.ParseMediaType(values[0])
	if err != nil {
		return unsupported("The Content-Type cannot be read")
	}
	kind, isApplication := strings.CutPrefix(media, "application/")
	if !isApplication || (kind != "json" && (!strings.HasSuffix(kind, "+json") || kind == "+json")) {
		return unsupported(fmt.Sprintf("The body is %q", text.Clip(media, 80)))
	}
	if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return unsupported(fmt.Sprintf("The body's charset is %q, not utf-8", text.Clip(charset, 80)))
	}
	return nil
}

// isCrossSite reports whether a browser says that it sends this for a page of another origin. An empty body needs
// no type, but it must not be a way around the type for such a page.
func isCrossSite(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "cross-site" || site == "same-site"
	}
	// To a plain-HTTP address of another machine browsers say nothing of the site, but always the origin.
	origin := r.Header.Get("Origin")
	_, host, _ := strings.Cut(origin, "://")
	return origin != "" && !strings.EqualFold(host, r.Host)
}

func checkEncoding(h http.Header) error {
	for _, value := range h["Content-Encoding"] {
		if value != "" && !strings.EqualFold(value, "identity") {
			return &wasmtools.Error{
				Code:    wasmtools.CodeUnsupportedMediaType,
				Message: fmt.Sprintf("The body has the Content-Encoding %q; send it as it is", text.Clip(value, 80)),
			}
		}
	}
	return nil
}
