package admin

import (
	"context"
	"fmt"
	"sync"

	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/turns"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// mostUploads is how many uploads may run at a time, since each takes room on disk before it is checked. In addition, the same number may run over
// the socket.
const mostUploads = 8

// uploads has the running uploads, and whose turn it is to change a file. The zero value has none. A caller that sends many files, or sends them
// slowly, keeps nobody else out: no caller gets more places than it leaves free, and callers take turns.
type uploads struct {
	mu    sync.Mutex
	local int // how many uploads run over the socket
	far   int
	by    map[rates.Caller]int // how many uploads each caller over HTTP has

	begin sync.Once
	turn  *turns.Places[rates.Caller, struct{}] // a single place, for whoever changes a file, or which version of it is served
}

// enter counts a new upload until leave is called, or returns an error if it may not start.
func (u *uploads) enter(r *Request) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r.Local {
		if u.local == mostUploads {
			return nil, &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "Too many files are being put over the socket: try again later"}
		}
		u.local++
		return func() { u.mu.Lock(); u.local--; u.mu.Unlock() }, nil
	}
	caller := callerOf(r)
	switch own, free := u.by[caller], mostUploads-u.far; {
	case free == 0:
		return nil, &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "Too many files are being put: try again later"}
	case own >= free:
		return nil, &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: fmt.Sprintf("The caller is putting %d files already, and the remaining places are for other callers: try again later", own)}
	}
	if u.by == nil {
		u.by = map[rates.Caller]int{}
	}
	u.far++
	u.by[caller]++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.far--
		if u.by[caller]--; u.by[caller] == 0 {
			delete(u.by, caller)
		}
	}, nil
}

// change waits until it is the caller's turn to change a file. end ends the turn.
func (u *uploads) change(ctx context.Context, r *Request) (end func(), err error) {
	u.begin.Do(func() { u.turn = turns.New[rates.Caller, struct{}](1) })
	caller := callerOf(r)
	if err := u.turn.Enter(ctx, caller, struct{}{}); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { u.turn.Leave(caller, struct{}{}) }), nil
}

// callerOf returns the caller of a request.
func callerOf(r *Request) rates.Caller {
	return rates.CallerOf(&wasmtools.Call{Principal: r.Principal})
}
