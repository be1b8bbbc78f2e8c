package sandbox

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A run is what a guest has to do, on whose behalf, and within which limits.
type run struct {
	CallSpec                 // zero for a description and for a start
	index    int32           // of the tool
	describe bool            // rather than call a tool
	start    bool            // rather than either
	grants   []any           // by the numbers of the sets of functions
	filter   filter          // of what the guest says
	started  int64           // fuel that the start of its instance has used
	ctx      context.Context // the caller's
	begun    time.Time
	deadline time.Time
	limits   *limits.Limits
	tool     string
	clock    *clock       // nil: its phases are not timed
	peak     *peak        // of the tool's calls; if nil, not counted
	key      *account.Key // to the reserve; the module's
	first    bool         // it has the key: no other run of the module that has it holds memory
	room     int64        // bytes of memory that the account holds for it, and that no instance has taken yet
	least    int64        // bytes that its start needs, as far as is known
	took     int64        // bytes that its last start took
	ahead    bool         // it was to start already, and had too little room: it comes before those that were not
}

// fuel returns how much fuel the run may use; 0 means there is no limit.
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

// burn counts fuel that the run has used, as used by the call inside which it runs, too.
func (r *run) burn(fuel int64) {
	if r.Fuel != nil {
		*r.Fuel += fuel
	}
	if r.Outer != nil {
		r.Outer.Burn(fuel)
	}
}

// patience returns until when the run may wait for what other calls hold. One inside another call gives up in time: its outer call
// keeps what it has meanwhile, and others may wait for that.
func (r *run) patience() time.Time {
	if r.Outer == nil {
		return r.deadline
	}
	now := time.Now()
	return now.Add(r.deadline.Sub(now) / 4)
}

// await waits until another run has closed done, as long as the run may. The error is an *Error.
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

// expects returns how many bytes of memory the run will probably need, where the memory has size now.
func (r *run) expects(size int64) int64 {
	if r.peak == nil {
		return size
	}
	return r.peak.expect(size, r.limits.Memory)
}

// needed notes what the run needed.
func (r *run) needed(size int64) {
	if r.peak != nil {
		r.peak.note(size)
	}
}
