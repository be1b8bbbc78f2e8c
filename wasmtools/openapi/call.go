package openapi

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
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

// readBody reads the arguments. A body of another type than JSON is refused before it is read.
func (x exchange) readBody(i *invoke.Invocation) error {
	h := x.Request().Header
	if err := checkEncoding(h); err != nil {
		x.Header().Set("Accept-Encoding", "identity")
		return err
	}
	if err := checkType(h); err != nil {
		return x.refuseType(err)
	}
	return x.ReadBody(i)
}

// refuseType returns why a body has the wrong type, or nil if there is none: an empty body needs no type, except for a page of
// another origin, which must not get around the type in this way. An App without Access has no other defence against it.
func (x exchange) refuseType(wrong error) error {
	if !isCrossSite(x.Request()) {
		if has, err := x.HasBody(); !has {
			return err
		}
	}
	x.Header().Set("Accept-Post", "application/json")
	return wrong
}

// checkType returns why the request's type is not JSON in UTF-8, or nil. A missing type is wrong, too: a page of another site
// can make a browser send a body without a type, as text/plain or as a form, but not as JSON.
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

// isCrossSite reports whether a browser says that it sends the request for a page of another origin.
func isCrossSite(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "cross-site" || site == "same-site"
	}
	// Browsers don't send Sec-Fetch-Site to plain-HTTP addresses of other machines, but they do send the origin.
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
