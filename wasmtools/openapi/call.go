package openapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/web"
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
	x.sendResult(result, x.state.entries[n].media)
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
	if err := web.CheckEncoding(h); err != nil {
		x.Header().Set("Accept-Encoding", "identity")
		return err
	}
	if err := web.CheckType(h); err != nil {
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
