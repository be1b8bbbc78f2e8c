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
	// mostLocal is how many callers over the socket may wait for lines or events at a time: half of its connections, so that others can work.
	mostLocal = 32
	// mostWaiting is how many callers over HTTP may wait.
	mostWaiting = 64
	// mostOfCaller is how many of these waits one caller may have, so that one token keeps no others out.
	mostOfCaller = mostWaiting / 4
	// lookAgain is how long a waiting caller pauses after it was woken in vain. Each call of a tool makes a line, and calls would slow down if each
	// line woke all callers that wait for other lines.
	lookAgain = 75 * time.Millisecond
)

// waiting are the callers that wait for events. The zero value has none.
type waiting struct {
	mu    sync.Mutex
	local int // how many callers wait over the socket
	far   int
	by    map[rates.Caller]int // how many waits each caller over HTTP has
}

// await returns a context that ends when the wait is over, and a function that ends it earlier. The number of waits is bounded.
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

// enter counts a new wait, or returns an error if there are too many.
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

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context) {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
