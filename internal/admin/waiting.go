package admin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// mostLocal is how many may wait for lines or events at a time who come over the socket: half of its connections, so that the others do their work.
	mostLocal = 32
	// mostWaiting is how many may over HTTP.
	mostWaiting = 64
	// mostOfCaller is how many of these may be one caller's, so that one token keeps no others out.
	mostOfCaller = mostWaiting / 4
	// lookAgain is how long somebody who was woken for nothing looks at nothing more: each call has a line, and what wakes all who wait for
	// others makes calls slow.
	lookAgain = 75 * time.Millisecond
)

// waiting are the callers that wait for what happens. The zero value has none.
type waiting struct {
	mu    sync.Mutex
	local int // over the socket
	far   int
	by    map[rates.Caller]int // of those who are far
}

// await returns a context that ends with the time that somebody waits for what happens, and what ends it before. Only so many may wait.
func (w *waiting) await(ctx context.Context, r *Request, seconds int) (context.Context, func(), error) {
	leave := func() {}
	if seconds > 0 {
		caller := rates.CallerOf(&wasmtools.Call{Principal: r.Principal})
		if err := w.enter(caller, r.Local); err != nil {
			return nil, nil, err
		}
		leave = func() { w.leave(caller, r.Local) }
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	return ctx, func() { cancel(); leave() }, nil
}

// enter counts somebody who begins to wait, or returns why they may not.
func (w *waiting) enter(caller rates.Caller, local bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, most := &w.far, mostWaiting
	if local {
		all, most = &w.local, mostLocal
	}
	switch {
	case *all >= most:
		return &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: fmt.Sprintf("%d clients are following the log or events already: try again later", most)}
	case local:
		w.local++
		return nil
	case w.by[caller] >= mostOfCaller:
		return &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: fmt.Sprintf("The caller is following the log or events %d times already: end some of them, or try again later", mostOfCaller)}
	}
	if w.by == nil {
		w.by = map[rates.Caller]int{}
	}
	w.far++
	w.by[caller]++
	return nil
}

func (w *waiting) leave(caller rates.Caller, local bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if local {
		w.local--
		return
	}
	w.far--
	if w.by[caller]--; w.by[caller] == 0 {
		delete(w.by, caller)
	}
}

// pause lets some time pass, or ctx end.
func pause(ctx context.Context) {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
