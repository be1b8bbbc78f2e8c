// Package invoke is how a program calls tools, and is told of calls. Whatever door a call comes through, the same rules apply: the
// principal's scopes, the switches, the limits and the tool's schema.
package invoke

import (
	"context"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// An Invoker calls tools. It is safe for concurrent use. A call that fails ends with a [wasmtools.Error], which a door translates.
type Invoker interface {
	// Call calls the tool of a route. When it is called, call.Arguments are as the client sent them; when it returns, they have the
	// defaults filled in. If the call has a client, the client's current generation and principal are used, since they may have changed
	// while the arguments were read. A large result counts until the client has been answered. The error is a *wasmtools.Error. A panic of
	// a Go function reaches the caller.
	Call(ctx context.Context, route wasmtools.Route, call *wasmtools.Call) (result []byte, err error)
}

// Find returns the route of a path such as "/math/add". It fails with CodeNotReady if the path has no tool, but may have one in a moment,
// and otherwise with CodeNotFound. A tool that the principal may not call counts as missing, even while files are still being read.
func Find(g *wasmtools.Generation, path string, p *wasmtools.Principal) (wasmtools.Route, error) {
	if p.May(path) {
		if route, ok := g.Lookup(path); ok {
			return route, nil
		}
		if soon := NotYet(g, path); soon != nil {
			return wasmtools.Route{}, soon
		}
	}
	return wasmtools.Route{}, &wasmtools.Error{Code: wasmtools.CodeNotFound}
}

// NotYet returns the error with CodeNotReady for a path that has no tool, but may have one in a moment, and nil for any other path. The path "/"
// means any, for a door whose clients use something other than paths.
func NotYet(g *wasmtools.Generation, path string) *wasmtools.Error {
	if !g.Coming(path) {
		return nil
	}
	return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "There is no such tool yet, but files that may contain it are still being read; try again."}
}

// An Observer is told that calls begin and end, for metrics, traces, an audit trail or a journal. Each call is reported once: either as
// refused, or as begun and later ended. Package web tells its own observers what is refused before it is a call.
//
// The methods are called concurrently, and the call's client waits for them. The Record, and everything in it, must be neither changed
// nor kept.
type Observer interface {
	// Began is told that a call begins, once its arguments have been read and before they are checked. It returns ctx, or a context derived
	// from it. The call continues with the returned context, which reaches the tool, host functions, and the calls inside this one.
	Began(ctx context.Context, r *Record) context.Context
	// Ended is told how a call ended. ctx is the context that Began returned.
	Ended(ctx context.Context, r *Record)
	// Refused is told of a call that did not begin: the principal may not call the tool, the tool is disabled, there is no room, or the
	// arguments are too large or could not be read. For a call inside another one this includes a tool that does not exist, and one that
	// the outer tool may not call.
	Refused(r *Record)
}

// A Record is what observers are told of a call.
type Record struct {
	// Door, RequestID and Principal come from the [wasmtools.Call]. Principal is nil if there was none.
	Door, RequestID string
	Principal       *wasmtools.Principal
	// Tool has the version and the digest. It is the same value for as long as the tool is served unchanged, and may be used as a key. It is
	// nil where a call was refused before its tool was found.
	Tool *wasmtools.Tool
	// Path is the tool's path. Without a Tool, it is the requested path, which may be any text that a guest has chosen.
	Path string
	// Depth is how many calls the call is inside: 0 for one that a client made.
	Depth int
	// Arguments are the client's, without the defaults, or the part of them that was read. Result is empty where the call failed. Both are
	// the bytes themselves, which cost nothing until an observer copies them.
	Arguments, Result []byte
	// Error is why the call failed, with the cause that its client is not shown. It is nil if there is a result.
	Error *wasmtools.Error
	// Took is how long the call took, and Times are its phases.
	Took  time.Duration
	Times wasmtools.Times
	// Fuel is how many instructions the tool has run, including calls inside it.
	Fuel int64
	// Uses are the call's uses of its tool's grants.
	Uses []wasmtools.Use
}

// Code returns why the call failed, or "" where it has a result.
func (r *Record) Code() wasmtools.Code {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}
