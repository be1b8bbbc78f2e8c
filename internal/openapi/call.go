package openapi

import (
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// call answers a POST to tool number n of the generation. The call begins before the body is read, because the tool decides how large the body may
// be. Once the body has been read, the call continues with the generation and the principal that are current then.
func (x *exchange) call(n int) {
	route := x.derived.generation.Routes()[n]
	x.SetTool(route.Path)
	if x.Generation() == nil {
		x.Call().Generation = x.derived.generation
	}
	i, err := x.derived.door.invoker.Begin(route, x.Call())
	if err != nil {
		x.refuse(err)
		return
	}
	defer func() { i.End(err) }()
	if err = x.readBody(i); err != nil {
		x.Fail(err)
		return
	}
	e := x.derived.entries[n]
	if changed, failed := x.Renew(); failed != nil {
		err = failed
		x.Fail(err)
		return
	} else if changed {
		if e, err = x.resume(i, route.Path); err != nil {
			x.refuseRead(err)
			return
		}
	}
	var result []byte
	if result, err = i.Run(x.Context()); err != nil {
		x.Fail(err)
		return
	}
	x.sendResult(result, e.media)
}

// resume moves a call to the present generation and principal of the request.
func (x *exchange) resume(i *invoker.Invocation, path string) (*entry, error) {
	x.derived = x.derived.door.made.Of(x.Generation())
	route, err := invoke.Find(x.derived.generation, path, x.Call().Principal)
	if err == nil {
		err = i.Resume(route)
	}
	if err != nil {
		return nil, err
	}
	return x.derived.entryOf(path), nil
}

// refuse answers a call that was not admitted. A tool that the principal may not call is answered exactly like a missing one.
func (x *exchange) refuse(err error) {
	if isNotFound(err) {
		x.answerMissing()
		return
	}
	x.Fail(err)
}

// refuseRead is refuse for a call whose body has been read, so that the request can't be routed again.
func (x *exchange) refuseRead(err error) {
	if isNotFound(err) {
		x.answerNotFound()
		return
	}
	x.Fail(err)
}

// readBody reads the arguments. A body that is not JSON is refused before it is read.
func (x *exchange) readBody(i *invoker.Invocation) error {
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

// refuseType returns an error if a body has the wrong type. An empty body needs no type.
func (x *exchange) refuseType(wrong error) error {
	if has, err := x.HasBody(); !has {
		return err
	}
	x.Header().Set("Accept-Post", "application/json")
	return wrong
}
