package invoke

import (
	"context"
	"errors"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// An Observer is told that calls begin and end, for metrics, traces, an audit trail or a journal. Each call is told once: either it was
// refused, or it began and ended. What is refused before it is a call, package web tells its own observers.
//
// The methods are called concurrently, and the call's client waits for them. The Record, and all that it has, must be neither changed nor kept.
type Observer interface {
	// Began is told that a call begins, once its arguments have been read and before they are checked. It returns ctx, or a context made of
	// it: the call goes on with that, into the tool, into host functions, and into the calls inside it.
	Began(ctx context.Context, r *Record) context.Context
	// Ended is told that a call that began has ended, and how. ctx is the one that the call went on with.
	Ended(ctx context.Context, r *Record)
	// Refused is told of a call that did not begin: the principal may not call the tool, it is disabled, there is no room, or the arguments
	// are too large or could not be read. Of a call inside another one it is also told where there is no such tool, or where the outer tool
	// may not call it.
	Refused(r *Record)
}

// A Record is what observers are told of a call.
type Record struct {
	// Door, RequestID and Principal come from the [wasmtools.Call]. Principal is nil where there was none.
	Door, RequestID string
	Principal       *wasmtools.Principal
	// Tool has the version and the digest. It is the same value for as long as the tool is served unchanged, and may be used as a key. It is
	// nil where a call was refused before its tool was found.
	Tool *wasmtools.Tool
	// Path is the tool's. Without a Tool, it is what was asked for, which may be any text of a guest.
	Path string
	// Depth is how many calls the call is inside: 0 for one that a client made.
	Depth int
	// Arguments are the client's, without the defaults, or what was read of them. Result is empty where the call failed. They are the
	// bytes themselves, which cost nothing until an observer copies them.
	Arguments, Result []byte
	// Error is why the call failed, with the cause that its client is not shown. Nil: it has a result.
	Error *wasmtools.Error
	// Took is how long the call took from its beginning, and Times are its phases.
	Took  time.Duration
	Times wasmtools.Times
	// Uses are what the call used of what its tool was granted.
	Uses []wasmtools.Use
}

// Code returns why the call failed, or "" where it has a result.
func (r *Record) Code() wasmtools.Code {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// told is what a call's observers know of it. It is a part of the Invocation, so that it takes no memory of its own.
type told struct {
	record Record
	ctx    context.Context // with which the call goes on; nil: it has not begun
	began  time.Time
	times  wasmtools.Times // for a call that brings none
}

// describe fills in what is known of a call from its beginning.
func (r *Record) describe(path string, tool *wasmtools.Tool, call *wasmtools.Call) {
	r.Door, r.RequestID, r.Principal = call.Door, call.RequestID, call.Principal
	r.Tool, r.Path, r.Depth = tool, path, call.Depth()
}

// Refuse tells observers of a call of the tool at a path that does not get as far as [Invoker.Begin], as its maker has found why it can't
// be made. A call that was handed to Begin or to Call is told of already.
func (v *Invoker) Refuse(path string, call *wasmtools.Call, err error) {
	v.tellRefused(path, nil, call, err)
}

// tellRefused tells that a call was refused before its arguments were read.
func (v *Invoker) tellRefused(path string, tool *wasmtools.Tool, call *wasmtools.Call, err error) {
	if len(v.observers) == 0 {
		return
	}
	r := &Record{Error: wasmtools.AsError(context.Background(), err)}
	r.describe(path, tool, call)
	for _, o := range v.observers {
		o.Refused(r)
	}
}

// tellBegan tells that the call begins, and returns the context with which it goes on.
func (i *Invocation) tellBegan(ctx context.Context) context.Context {
	t := &i.told
	t.record.describe(i.path, i.tool, i.call)
	t.record.Arguments = i.call.Arguments
	if i.call.Times == nil {
		i.call.Times = &t.times
	}
	t.began = time.Now()
	for _, o := range i.invoker.observers {
		ctx = o.Began(ctx, &t.record)
	}
	t.ctx = ctx
	return ctx
}

// tellEnd tells that the call has ended, or that it never began.
func (i *Invocation) tellEnd(err error) {
	t := &i.told
	if err == nil && i.inside {
		err = errors.New("a panic")
	}
	r := &t.record
	if err != nil {
		r.Result, r.Error = nil, wasmtools.AsError(context.Background(), err)
	}
	if t.ctx == nil {
		r.describe(i.path, i.tool, i.call)
		r.Arguments = i.call.Arguments
		for _, o := range i.invoker.observers {
			o.Refused(r)
		}
		return
	}
	r.Took, r.Times, r.Uses = time.Since(t.began), *i.call.Times, i.call.Uses
	if i.call.Times == &t.times {
		i.call.Times = nil
	}
	for _, o := range i.invoker.observers {
		o.Ended(t.ctx, r)
	}
}
