package sandbox

import (
	"context"
	"fmt"
	"runtime/debug"
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

// serve runs a guest in an instance that nobody has used or
// that was reset. It is the one place where guest code runs, and the one place that recovers from a panic on its way.
func (m *module) serve(r *run) (output []byte, err error) {
	i, ok := m.borrow(r)
	if !ok {
		return nil, closing(ErrClosed)
	}
	intact := false
	defer func() {
		if p := recover(); p != nil {
			intact = false
			output, err = nil, internal(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
		m.giveBack(i, intact, r.begun)
	}()
	if i != nil && !m.fits(i, r) {
		m.discard(i)
		i = nil
	}
	if i == nil {
		if i, err = m.make(r); err != nil {
			return nil, err
		}
		// What that took is not metered.
		if !time.Now().Before(r.deadline) {
			intact = i.snapshot != nil
			return nil, &Error{Outcome: ToolTimeout, Message: fmt.Sprintf("The tool's limit of %s was over before an instance was ready.", r.limits.Timeout)}
		}
	} else if err = i.claim(r, r.expects(i.snapshot.size())+i.overhead); err != nil {
		intact = true
		return nil, err
	}
	i.since = r.begun
	if r.ctx.Err() != nil {
		intact = i.snapshot != nil
		return nil, notBegun(r.ctx, "its turn", r.limits.Timeout)
	}
	f := i.entry
	if r.describe {
		f = i.guest.ExportedFunction(exportDescribe)
	}
	r.clock.tick()
	output, intact, err = i.serve(r, f)
	r.clock.tick()
	if intact = intact && i.snapshot != nil; intact {
		if problem := m.restore(i); problem != nil {
			intact = false
			return nil, internal(problem)
		}
		r.clock.tick()
	}
	return output, err
}

// restore resets an instance, and makes sure of it in paranoid mode.
func (m *module) restore(i *instance) error {
	err := i.reset()
	if err == nil && m.engine.paranoid {
		err = i.same()
	}
	if err != nil {
		m.engine.log.Error("an instance could not be reset", "digest", m.digest, "error", err)
	}
	return err
}

// enter counts a call, which leave ends. It reports false when the engine is closed.
func (m *module) enter() bool {
	m.mu.Lock()
	if !m.attached {
		m.mu.Unlock()
		return m.engine.attach(m)
	}
	m.count(1)
	m.mu.Unlock()
	return true
}

// leave ends a call that has no instance.
func (m *module) leave() { m.giveBack(nil, false, time.Time{}) }

// borrow is enter for a call that needs an instance: it gets the one that was used last, because its pages are warm, or
// nil where none is idle. giveBack ends the call.
func (m *module) borrow(r *run) (*instance, bool) {
	m.mu.Lock()
	last := len(m.idle) - 1
	if last < 0 || !m.attached {
		r.first = m.calls == 0
		m.mu.Unlock()
		return nil, m.enter()
	}
	r.first = m.calls == 0
	m.count(1)
	i := m.idle[last]
	m.idle[last] = nil
	m.idle = m.idle[:last]
	m.mu.Unlock()
	return i, true
}

// count counts calls that begin or end. m.mu is held.
func (m *module) count(n int) {
	m.users += n
	m.calls += n
	m.engine.running.Add(n)
}

// giveBack ends a call that was begun then. Its instance is kept for the next one if it is intact and there is room, and closed otherwise.
func (m *module) giveBack(i *instance, intact bool, begun time.Time) {
	if i != nil && !intact {
		m.discard(i)
		i = nil
	}
	e := m.engine
	if i != nil && e.account.Wanted() {
		m.discard(i) // rather than keep what somebody waits for
		i = nil
	}
	if i != nil {
		i.settle()
	}
	m.mu.Lock()
	if !begun.IsZero() {
		m.called = begun
		m.heat++
	}
	if i != nil && m.attached && len(m.idle) < e.idleInstances {
		m.idle = append(m.idle, i)
		i = nil
	}
	m.count(-1)
	last := m.users == 0
	m.mu.Unlock()
	if i != nil {
		m.discard(i)
	}
	if last {
		e.forget(m)
	}
}

// discard closes an instance.
func (m *module) discard(i *instance) {
	if err := i.close(); err != nil {
		m.engine.log.Warn("close an instance", "digest", m.digest, "error", err)
	}
}
