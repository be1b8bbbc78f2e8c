package sandbox

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A run is what a guest has to do, on whose behalf, and within which limits.
type run struct {
	index    int32       // of the tool
	describe bool        // rather than call a tool
	guest    hostabi.Run // what host functions may know
	listener hostabi.Listener
	counter  hostabi.Counter // nil: nobody counts what the guest uses
	ctx      context.Context // the caller's
	begun    time.Time
	deadline time.Time
	limits   *limits.Limits
	tool     string
	clock    *clock        // nil: its phases are not timed
	peak     *atomic.Int64 // bytes of memory that recent calls of the tool needed; nil: not counted
	first    bool          // no other call of the module runs
}

// expects returns how many bytes of memory the run will probably need, where the memory has size now.
func (r *run) expects(size int64) int64 {
	if r.peak != nil {
		size = max(size, min(r.peak.Load(), r.limits.Memory))
	}
	return size
}

// needed notes what the run needed. A call that needed much is forgotten in the course of some ten others.
func (r *run) needed(size int64) {
	if r.peak == nil {
		return
	}
	if peak := r.peak.Load(); size > peak {
		r.peak.Store(size)
	} else if size < peak {
		r.peak.Store(size + (peak-size)*3/4)
	}
}

// limit returns a context that is also done at the deadline, and when the engine closes. A call that never waits does without it.
func (e *Engine) limit(ctx context.Context, deadline time.Time) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, release := context.WithDeadlineCause(ctx, deadline, errTimeout)
	unhook := context.AfterFunc(e.stop, func() { cancel(errClosing) })
	return ctx, func() {
		unhook()
		release()
		cancel(nil)
	}
}
