package sandbox

import (
	"fmt"
	"runtime/debug"
	"time"
)

// A lease is an instance that is lent to one run. The instance is new, or was reset. The lease does not point to the run, since the compiler would
// then have to put the run on the heap.
type lease struct {
	module   *module
	begun    time.Time
	instance *instance // nil: there is none yet
	intact   bool      // the instance can serve another run
}

// serve serves a run by an instance of the module. Guest code runs only here, and only this function recovers from panics on the way. The
// error is an *Error.
func (m *module) serve(r *run) (output []byte, err error) {
	l := lease{module: m, begun: r.begun}
	if !l.begin(r) {
		return nil, closing(ErrClosed)
	}
	defer func() {
		if p := recover(); p != nil {
			l.intact = false
			output, err = nil, internal(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
		l.end(r)
	}()
	if err := l.prepare(r); err != nil {
		return nil, err
	}
	return l.serve(r)
}

// begin counts the run, and takes the idle instance that was used last, if there is one, because its pages are warm. It returns false if the engine
// is closed; then the lease must not be ended.
func (l *lease) begin(r *run) bool {
	m := l.module
	m.mu.Lock()
	r.key = &m.key
	last := len(m.idle) - 1
	if last < 0 || !m.attached {
		m.mu.Unlock()
		return m.enter()
	}
	m.count(1)
	r.first = r.key.Take()
	l.instance = m.idle[last]
	m.idle[last] = nil
	m.idle = m.idle[:last]
	m.mu.Unlock()
	return true
}

// prepare provides an instance, and room in the account for what the run will need. It waits until the run's deadline at the latest.
func (l *lease) prepare(r *run) (err error) {
	m := l.module
	if l.instance != nil && !m.fits(l.instance, r) {
		m.discard(l.instance)
		l.instance = nil
		r.returnKey()
	}
	if i := l.instance; i != nil {
		// If the run has to wait for room for more than a moment, it gives the instance up: a waiting run holds nothing.
		if more := m.callRoom(r, i.snapshot, i.overhead) - i.claimed; more <= 0 || r.seizeSoon(m.engine, more) {
			i.claimed += max(0, more)
			i.tell()
			l.intact = true
		} else {
			m.discard(i)
			l.instance = nil
			r.returnKey()
		}
	}
	if l.instance == nil {
		if l.instance, err = m.make(r); err != nil {
			return err
		}
		l.intact = l.instance.snapshot != nil
		// Nothing has checked the time while the instance was made.
		if !time.Now().Before(r.deadline) {
			return &Error{Outcome: ToolTimeout, Message: fmt.Sprintf("The tool's time limit of %s expired before an instance was ready.", r.limits.Timeout)}
		}
	}
	l.instance.since = r.begun
	if r.ctx.Err() != nil {
		return notBegun(r.ctx, "its turn", r.limits.Timeout)
	}
	return nil
}

// serve runs the guest, and resets the instance.
func (l *lease) serve(r *run) (output []byte, err error) {
	i := l.instance
	l.intact = false
	f := i.entry
	if r.describe {
		f = i.guest.ExportedFunction(i.convention.Describe.Name)
	}
	r.clock.tick()
	output, intact, err := i.serve(r, f)
	r.clock.tick()
	if !intact || i.snapshot == nil {
		return output, err
	}
	if problem := l.module.restore(i); problem != nil {
		return nil, internal(problem)
	}
	l.intact = true
	r.clock.tick()
	return output, err
}

// restore resets an instance. In paranoid mode it compares the result with the snapshot.
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

// end ends the lease. The instance is kept for the next run if it is intact and there is room. Otherwise it is closed.
func (l *lease) end(r *run) {
	m, e, i := l.module, l.module.engine, l.instance
	r.returnKey() // must come before the memory is given back and others receive it
	// If others wait for memory, idle instances are not kept.
	if i != nil && (!l.intact || e.account.Wanted()) {
		m.discard(i)
		i = nil
	}
	if i != nil {
		i.cool()
	}
	m.mu.Lock()
	if i != nil && (!m.attached || len(m.idle) >= e.idleInstances) {
		m.mu.Unlock()
		m.discard(i) // while the call still counts: Close waits for it
		i = nil
		m.mu.Lock()
	}
	m.called = l.begun
	m.heat++
	if i != nil {
		m.idle = append(m.idle, i)
	}
	last := m.count(-1)
	m.mu.Unlock()
	if last {
		e.forget(m)
	}
}

// enter counts a use of the module, which leave ends. It returns false if the engine is closed.
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

// leave ends a use of the module.
func (m *module) leave() {
	m.mu.Lock()
	last := m.count(-1)
	m.mu.Unlock()
	if last {
		m.engine.forget(m)
	}
}

// count adds n to the uses of the module. It reports whether nobody uses or holds it any more. m.mu is held.
func (m *module) count(n int) (last bool) {
	m.users += n
	m.calls += n
	if m.calls == 0 && m.drained != nil {
		close(m.drained)
		m.drained = nil
	}
	return m.users == 0
}

// discard closes an instance.
func (m *module) discard(i *instance) {
	m.mu.Lock()
	delete(m.made, i)
	m.mu.Unlock()
	if err := i.close(); err != nil {
		m.engine.log.Warn("close an instance", "digest", m.digest, "error", err)
	}
}
