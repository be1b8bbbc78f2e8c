package admin

import (
	"context"
	"fmt"
	"sync"

	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/turns"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// mostUploads is how many files may come at a time. Each takes room on disk before it is checked. As many may come over the socket.
const mostUploads = 8

// uploads are the files that are coming, and whose turn it is to change one. The zero value has none. One who sends many files, or sends them slowly, keeps
// nobody else out: a caller has no more of the places than stay free, and callers take turns.
type uploads struct {
	mu    sync.Mutex
	local int // over the socket
	far   int
	by    map[rates.Caller]int // of those who are far

	begin sync.Once
	turn  *turns.Places[rates.Caller, struct{}] // one place: for who changes a file, or which version of one is served
}

// enter counts a file that begins to come, until leave is called, or returns why it may not.
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

// change waits until it is the caller's turn to change a file, which ends with end.
func (u *uploads) change(ctx context.Context, r *Request) (end func(), err error) {
	u.begin.Do(func() { u.turn = turns.New[rates.Caller, struct{}](1) })
	caller := callerOf(r)
	if err := u.turn.Enter(ctx, caller, struct{}{}); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { u.turn.Leave(caller, struct{}{}) }), nil
}

// callerOf returns who asks.
func callerOf(r *Request) rates.Caller {
	return rates.CallerOf(&wasmtools.Call{Principal: r.Principal})
}
