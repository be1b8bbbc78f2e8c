package sandbox

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A run is what a guest is to do, on whose behalf, and within which bounds.
type run struct {
	index    int32       // of the tool
	describe bool        // rather than call a tool
	guest    hostabi.Run // what host functions may know
	listener hostabi.Listener
	ctx      context.Context // the caller's
	begun    time.Time
	deadline time.Time
	limits   *limits.Limits
	tool     string
	clock    *clock        // nil: nobody times it
	peak     *atomic.Int64 // bytes of memory that the tool's calls lately needed; nil: nobody counts
	first    bool          // no other call of the module runs
}

// expects returns how many bytes of memory the call will need as far as one can tell, of a memory that has size now.
func (r *run) expects(size int64) int64 {
	if r.peak != nil {
		size = max(size, min(r.peak.Load(), r.limits.Memory))
	}
	return size
}

// needed notes what a call needed. One that needed much is forgotten in the course of some ten others.
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
