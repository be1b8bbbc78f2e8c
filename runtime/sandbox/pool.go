package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/toolsrv/toolsrv/runtime/account"
)

// A run is what a guest is to do, on whose behalf, and within which bounds.
type run struct {
	ctx      context.Context // the caller's
	begun    time.Time
	deadline time.Time
	limits   *Limits
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

// serve runs the tool with that number, or toolsrv_describe where describe is set, in an instance that nobody has used or
// that was reset. It is the one place where guest code runs, and the one place that recovers from a panic on its way.
func (m *module) serve(r *run, describe bool, index int32, input []byte) (output []byte, err error) {
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
	if describe {
		f = i.guest.ExportedFunction(exportDescribe)
	}
	r.clock.tick()
	output, intact, err = i.serve(r, f, index, input)
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

func tooLarge(needs, limit int64) *Error {
	return &Error{Outcome: ToolMemory, Message: fmt.Sprintf("The tool needs %s of memory to start; its limit is %s.", size(needs), size(limit))}
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

// reserve is how much address space an instance gets: what the largest limit of the module's tools allows.
func (m *module) reserve() uint64 {
	return min(uint64(m.largest.Load()), m.rewritten.MemoryMax*pageSize)
}

// fits reports whether the instance was made for limits like those of r.
func (m *module) fits(i *instance, r *run) bool {
	return i.reserved >= min(uint64(r.limits.Memory), m.rewritten.MemoryMax*pageSize) && i.snapshot.size() <= r.limits.Memory
}

// make makes an instance that is ready for a call. The error is an *Error.
func (m *module) make(r *run) (*instance, error) {
	ctx, done := m.engine.limit(r.ctx, r.deadline)
	defer done()
	if m.shape.memory > r.limits.Memory {
		return nil, tooLarge(m.shape.memory, r.limits.Memory)
	}
	code, err := m.compile(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = notBegun(ctx, "the tool to be compiled", r.limits.Timeout)
		}
		return nil, err
	}
	for m.rewritten.Fresh == "" {
		m.mu.Lock()
		s, starting := m.snapshot, m.starting
		first := s == nil && starting == nil
		if first {
			m.starting = make(chan struct{})
		}
		m.mu.Unlock()
		switch {
		case s != nil && s.size() > r.limits.Memory:
			return m.started(ctx, code, r) // it took more where it might; perhaps it makes do with less
		case s != nil:
			return m.instantiate(ctx, r, code, s)
		case first:
			return m.first(ctx, code, r)
		}
		select {
		case <-starting:
		case <-ctx.Done():
			return nil, notBegun(ctx, "the tool to be started", r.limits.Timeout)
		}
	}
	return m.started(ctx, code, r)
}

// first makes the snapshot, and an instance. It is called by one call at a time, while m.starting tells others to wait.
func (m *module) first(ctx context.Context, code wazero.CompiledModule, r *run) (i *instance, err error) {
	var s *snapshot
	defer func() {
		m.mu.Lock()
		m.snapshot = s
		close(m.starting)
		m.starting = nil
		m.mu.Unlock()
	}()
	if i, err = m.started(ctx, code, r); err != nil {
		return nil, err
	}
	if i.adapted {
		return i, nil // what it made of that is due to this tool's limit, and no state for others
	}
	taken, err := i.take()
	if err == nil {
		// It is no larger than the memory that it was taken of, and gets that one's room: to wait for some, while it is there
		// already, would be memory that nobody counts.
		i.claimed -= taken.resident()
	}
	m.discard(i)
	if err != nil {
		return nil, failed(err)
	}
	if i, err = m.instantiate(ctx, r, code, taken); err != nil {
		m.engine.drop(taken)
		return nil, err
	}
	s = taken
	return i, nil
}

// startFuel is the least that a start may use where calls have a limit of fuel: a module in Go takes 15 million, and whether it
// starts must not depend on whose call is the first.
const startFuel = 1_000_000_000

// started makes an instance without a snapshot and starts it, within the limits of the call.
func (m *module) started(ctx context.Context, code wazero.CompiledModule, r *run) (*instance, error) {
	i, err := m.instantiate(ctx, r, code, nil)
	if err != nil {
		return nil, err
	}
	start, limits := *r, *r.limits
	if limits.Fuel > 0 {
		limits.Fuel = max(limits.Fuel, startFuel)
	}
	start.limits = &limits
	if err := m.start(i, &start); err != nil {
		m.discard(i)
		return nil, err
	}
	i.call.wipe()
	return i, nil
}

// tidy is the janitor: it closes what has been idle for long, until the engine stops.
func (e *Engine) tidy() {
	defer close(e.janitor)
	tick := time.NewTicker(max(e.idleTime/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-e.stop.Done():
			return
		case now := <-tick.C:
			e.sweep(now.Add(-e.idleTime), now.Add(-e.unusedTime))
			e.packAll()
		}
	}
}

// sweep closes the instances that no call has used since idle, and strips the modules that none has since unused.
func (e *Engine) sweep(idle, unused time.Time) {
	for _, m := range e.attached() {
		m.mu.Lock()
		var r released
		if m.calls == 0 && m.called.Before(unused) && (m.build == nil || m.disused()) {
			r = m.strip()
		} else {
			old := 0
			for old < len(m.idle) && m.idle[old].since.Before(idle) {
				old++
			}
			r.instances = slices.Clone(m.idle[:old])
			m.idle = slices.Delete(m.idle, 0, old)
		}
		m.mu.Unlock()
		m.free(r)
	}
}

// reclaim lets go of what is idle, used longest ago first, until there is room for n of a kind and a sixteenth of all beside, so
// that the next who asks finds some; or until done is closed. Instances go before snapshots, which take longer to make again. One
// at a time does it.
func (e *Engine) reclaim(done <-chan struct{}, k account.Kind, n int64) {
	select {
	case <-done:
		return
	case e.reclaiming <- struct{}{}:
	}
	defer func() { <-e.reclaiming }()
	most := e.account.Most(k, false)
	most -= most/16 + n
	enough := func() bool {
		select {
		case <-done:
			return true
		default:
			return e.account.Held(k) <= most
		}
	}
	if enough() { // by what another has let go of
		return
	}
	code := k == account.Mappings // which it takes; its memory is another account's
	type candidate struct {
		module *module
		since  time.Time
	}
	var instances, modules []candidate
	for _, m := range e.attached() {
		m.mu.Lock()
		for _, i := range m.idle {
			instances = append(instances, candidate{m, i.since})
		}
		if m.calls == 0 && (m.snapshot != nil || code && m.disused()) {
			modules = append(modules, candidate{m, m.called})
		}
		m.mu.Unlock()
	}
	bySince := func(a, b candidate) int { return a.since.Compare(b.since) }
	slices.SortFunc(instances, bySince)
	for _, c := range instances {
		if enough() {
			return
		}
		m := c.module
		m.mu.Lock()
		var r released
		if len(m.idle) > 0 && !m.idle[0].since.After(c.since) {
			r.instances = []*instance{m.idle[0]}
			m.idle = slices.Delete(m.idle, 0, 1)
		}
		m.mu.Unlock()
		m.free(r)
	}
	slices.SortFunc(modules, bySince)
	for _, c := range modules {
		if enough() {
			return
		}
		m := c.module
		m.mu.Lock()
		var r released
		if m.calls == 0 && !m.called.After(c.since) {
			if code && m.disused() {
				r = m.strip()
			} else { // to compile it again would be dearer than anything
				r.instances, r.snapshot = m.idle, m.snapshot
				m.idle, m.snapshot = nil, nil
			}
		}
		m.mu.Unlock()
		m.free(r)
	}
}

// newAccount returns the account of an engine.
func newAccount(c Config) *account.Account {
	if c.Memory <= 0 {
		c.Memory = account.DefaultMemory()
	}
	if c.Mappings <= 0 {
		c.Mappings = account.MachineMappings() / 4 * 3 // Go's heap and threads need some, too
	}
	if c.CodeMemory <= 0 {
		c.CodeMemory = account.DefaultCode()
	}
	return account.New(map[account.Kind]int64{account.Memory: c.Memory, account.Mappings: c.Mappings, account.Code: c.CodeMemory})
}

// take takes n of a kind from the account. It lets go of what is idle where there is no room, and waits then until ctx is
// done. The error is an *Error.
func (e *Engine) take(ctx context.Context, k account.Kind, n int64, first bool) error {
	if e.account.Take(k, n, first) {
		return nil
	}
	if n > e.account.Most(k, first) {
		return overloaded(nil)
	}
	e.reclaim(ctx.Done(), k, n)
	look := func(granted <-chan struct{}) { e.reclaim(granted, k, n) }
	switch err := e.account.Wait(ctx, k, n, first, look); {
	case err == nil:
		return nil
	case errors.Is(err, errTimeout):
		return overloaded(nil)
	default:
		return notBegun(ctx, "memory", 0)
	}
}

// attached returns the modules that the engine knows of.
func (e *Engine) attached() []*module {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.live))
}
