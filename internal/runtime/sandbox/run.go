package sandbox

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A run is a task for a guest: what to do, on whose behalf, and within which limits.
type run struct {
	CallSpec                 // zero for a description and for a start
	index    int32           // number of the tool
	describe bool            // run Describe instead of a tool
	start    bool            // run a start instead of either
	grants   []any           // indexed by the numbers of the sets of functions
	filter   filter          // for the guest's words
	started  int64           // fuel that the start of its instance has used
	ctx      context.Context // the caller's
	begun    time.Time
	deadline time.Time
	limits   *limits.Limits
	tool     string
	clock    *clock       // nil: its phases are not timed
	peak     *peak        // how much memory the tool's calls needed; nil: not recorded
	key      *account.Key // the module's key to the reserve
	first    bool         // the run has the key, which only one run of the module can have at a time
	room     int64        // bytes of memory that the account holds for it, and that no instance has taken yet
	least    int64        // bytes that its start needs, as far as is known
	took     int64        // bytes that its last start took
	ahead    bool         // the run has had its turn before, but had too little room, so it now comes before others
}

// fuel returns how much fuel the run may use; 0 means no limit.
func (r *run) fuel() int64 {
	most := r.limits.Fuel
	if r.Outer == nil {
		return most
	}
	if left := r.Outer.Fuel(); left < math.MaxInt64 && (most == 0 || left < most) {
		return max(left, 1)
	}
	return most
}

// burn counts fuel that the run has used. It counts for the outer call, too.
func (r *run) burn(fuel int64) {
	if r.Fuel != nil {
		*r.Fuel += fuel
	}
	if r.Outer != nil {
		r.Outer.Burn(fuel)
	}
}

// patience returns the time until which the run may wait for what other calls hold. A run inside another call waits for less time: meanwhile its
// outer call keeps what it has, and others may be waiting for that.
func (r *run) patience() time.Time {
	if r.Outer == nil {
		return r.deadline
	}
	now := time.Now()
	return now.Add(r.deadline.Sub(now) / 4)
}

// await waits until another run has closed done, as long as this run may wait. The error is an *Error.
func (r *run) await(e *Engine, done <-chan struct{}) error {
	ctx, release := e.limit(r.ctx, r.patience())
	defer release()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	if r.Outer != nil && errors.Is(context.Cause(ctx), errTimeout) {
		return &Error{Outcome: Overloaded, Message: "The tool is being started for another call, and a call inside another can't wait any longer."}
	}
	return notBegun(ctx, "the tool to be started", r.limits.Timeout)
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// expects returns how many bytes of memory the run will probably need, if the memory has size bytes now.
func (r *run) expects(size int64) int64 {
	if r.peak == nil {
		return size
	}
	return r.peak.expect(size, r.limits.Memory)
}

// needed records how much memory the run needed.
func (r *run) needed(size int64) {
	if r.peak != nil {
		r.peak.note(size)
	}
}
