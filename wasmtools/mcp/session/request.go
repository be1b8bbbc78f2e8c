package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/toolset"
)

// A request is one of a client's, from its arrival to its answer.
type request struct {
	rpc.Message
	conversation *conversation
	namespace    string
	call         *wasmtools.Call // with its principal
	carrier      carrier
	counted      func() // called when the call counts the memory of its arguments; nil: nobody waits for that
	place        *place // where go-sdk has it from
	answered     atomic.Bool
	silent       atomic.Bool // the client wants no answer

	ctx    context.Context
	cancel context.CancelCauseFunc
}

// A carrier brings a client what the server says to one request.
type carrier interface {
	// id names the request in the log, and in the answer where that is an internal error.
	id() string
	// notify sends a notification that belongs to the request. It may be left out where the client reads slowly, or takes none.
	// It is called before answer, by one goroutine at a time.
	notify(text []byte)
	// answer is called once, with the last thing that is said.
	answer(a answer)
}

// An answer ends a request.
type answer struct {
	text   []byte           // the response, or its beginning; nil: the client wants none
	page   []byte           // what follows: a part that answers share; nil: nothing
	tail   []byte           // what follows that
	tool   string           // the path of the tool that was called, or empty
	failed *wasmtools.Error // why the call failed, or nil: for the log
	fault  *rpc.Fault       // why the request failed, or nil
	end    func()           // called once the answer has been written, or nil
}

// whole returns the response in one piece.
func (a *answer) whole() []byte {
	if a.page == nil {
		return a.text
	}
	return slices.Concat(a.text, a.page, a.tail)
}

// isModern reports whether the request is one of the versions without initialize.
func (r *request) isModern() bool { return string(r.MetaVersion) >= modernVersion }

func (r *request) era() toolset.Era {
	if r.isModern() {
		return toolset.Modern
	}
	return toolset.Legacy
}

// scope says who may use what the client keeps of the answer.
func (r *request) scope() string { return rpc.Scope(r.call.Principal == wasmtools.Everybody()) }

// silence cancels the request because the client does not want its answer any more.
func (r *request) silence() {
	r.silent.Store(true)
	r.cancel(context.Canceled)
}

// finish sends the answer, once.
func (r *request) finish(a answer) {
	if r.answered.Swap(true) {
		return
	}
	if r.place != nil {
		r.place.request.Store(nil)
	}
	if r.silent.Load() {
		a.text = nil
	}
	r.cancel(nil)
	r.carrier.answer(a)
}

// succeed answers with a result, JSON.
func (r *request) succeed(result []byte) {
	text := rpc.AppendHead(make([]byte, 0, len(result)+len(r.ID)+40), r.ID)
	text = append(text, `"result":`...)
	text = append(text, result...)
	r.finish(answer{text: append(text, '}')})
}

// refuse answers with a fault.
func (r *request) refuse(f *rpc.Fault) {
	r.finish(answer{text: rpc.AppendFault(nil, r.ID, f), fault: f})
}

// refuseFor answers with an error of package toolset.
func (r *request) refuseFor(err error) {
	e, ok := errors.AsType[*toolset.Error](err)
	if !ok {
		r.fail(wasmtools.AsError(r.ctx, err))
		return
	}
	f := &rpc.Fault{Code: int64(e.Code), Message: e.Message}
	failed, _ := errors.AsType[*wasmtools.Error](err)
	r.finish(answer{text: rpc.AppendFault(nil, r.ID, f), failed: failed, fault: f})
}

// fail answers a request that the server failed at.
func (r *request) fail(e *wasmtools.Error) {
	f := r.internal(e)
	r.finish(answer{text: rpc.AppendFault(nil, r.ID, f), failed: e, fault: f})
}

// errEnded is the end of a request whose session has ended.
var errEnded = errors.New("the session has ended")

// end answers a request whose session has ended.
func (r *request) end() {
	r.cancel(errEnded)
	r.fail(&wasmtools.Error{Code: wasmtools.CodeCancelled, Err: errEnded})
}

// internal returns what the client sees of an error that is not about its request.
func (r *request) internal(e *wasmtools.Error) *rpc.Fault {
	f := &rpc.Fault{Code: rpc.CodeInternal, Message: "Internal error"}
	data := struct {
		Code      wasmtools.Code `json:"code"`
		RequestID string         `json:"request_id,omitempty"`
	}{Code: e.Code}
	switch {
	case context.Cause(r.ctx) == errEnded:
		f.Message = "The session has ended"
	case e.Code == wasmtools.CodeCancelled:
		f.Message = cmp.Or(e.Message, "The request was cancelled")
	case e.Code == wasmtools.CodeNotReady:
		f.Message = rpc.NotReady
	case e.Code == wasmtools.CodeInternal:
		data.RequestID = r.carrier.id()
	}
	f.Data, _ = json.Marshal(data) // strings only
	return f
}
