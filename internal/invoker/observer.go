package invoker

import (
	"context"
	"errors"
	"time"

	"github.com/toolsrv/toolsrv/internal/fault"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// told is what a call's observers know about it. It is part of the Invocation, so that it needs no allocation.
type told struct {
	record invoke.Record
	ctx    context.Context // the context of the call; nil if it has not begun
	began  time.Time
	times  wasmtools.Times // used if the call brings none of its own
}

// describe fills in what is known about a call at its beginning.
func describe(r *invoke.Record, path string, tool *wasmtools.Tool, call *wasmtools.Call) {
	r.Door, r.RequestID, r.Principal = call.Door, call.RequestID, call.Principal
	r.Tool, r.Path, r.Depth = tool, path, depth(call)
}

// Refuse tells observers of a call of the tool at a path that was refused before [Invoker.Begin]. A call that was passed to Begin or Call has been
// reported already.
func (v *Invoker) Refuse(path string, call *wasmtools.Call, err error) {
	v.tellRefused(path, nil, call, err)
}

// tellRefused tells observers that a call was refused before its arguments were read.
func (v *Invoker) tellRefused(path string, tool *wasmtools.Tool, call *wasmtools.Call, err error) {
	if len(v.observers) == 0 {
		return
	}
	r := &invoke.Record{Error: fault.Of(context.Background(), err)}
	describe(r, path, tool, call)
	for _, o := range v.observers {
		o.Refused(r)
	}
}

// tellBegan tells observers that the call begins, and returns the context for the call.
func (i *Invocation) tellBegan(ctx context.Context) context.Context {
	t := &i.told
	describe(&t.record, i.path, i.tool, i.call)
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

// tellEnd tells observers that the call has ended, or that it never began.
func (i *Invocation) tellEnd(err error) {
	t := &i.told
	if err == nil && i.inside {
		err = errors.New("a panic")
	}
	r := &t.record
	if err != nil {
		r.Result, r.Error = nil, fault.Of(context.Background(), err)
	}
	if t.ctx == nil {
		describe(r, i.path, i.tool, i.call)
		r.Arguments = i.call.Arguments
		for _, o := range i.invoker.observers {
			o.Refused(r)
		}
		return
	}
	r.Took, r.Times, r.Fuel, r.Uses = time.Since(t.began), *i.call.Times, i.call.Fuel, i.call.Uses
	if i.call.Times == &t.times {
		i.call.Times = nil
	}
	for _, o := range i.invoker.observers {
		o.Ended(t.ctx, r)
	}
}
