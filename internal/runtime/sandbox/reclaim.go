package sandbox

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
)

// tidy is the janitor: until the engine stops, it closes what has been idle for a long time.
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
			e.packAll(false)
		}
	}
}

// sweep closes the instances that were last used before the time idle. It drops the code that was last used before the time unused, with all that
// was made of it. For a module of an interpreter, it drops only the module's own part if other modules of the interpreter are in use.
func (e *Engine) sweep(idle, unused time.Time) {
	disused := func(m *module) bool { return m.called.Before(unused) }
	all := map[*code]struct{}{}
	for _, m := range e.attached() {
		m.mu.Lock()
		var r released
		if m.calls == 0 && disused(m) {
			all[m.code] = struct{}{}
			if m.bundle != nil {
				r = m.strip()
			}
		}
		old := 0
		for old < len(m.idle) && m.idle[old].since.Before(idle) {
			old++
		}
		r.instances = append(r.instances, m.idle[:old]...)
		m.idle = slices.Delete(m.idle, 0, old)
		m.mu.Unlock()
		r.free(e)
	}
	for c := range all {
		e.dropCode(c, &e.unused, disused)
	}
}

// reclaim frees idle resources, the least recently used first, until there is room for n of a kind. It also frees a sixteenth of the limit for
// the next call. It stops when done is closed. Instances are freed before snapshots, which take longer to make again. Only one goroutine at a
// time does this.
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
	if enough() { // another goroutine has freed something
		return
	}
	type candidate struct {
		module *module
		since  time.Time
		wanted bool // calls of the module run or wait
	}
	var instances, modules []candidate
	called := map[*code]time.Time{}
	for _, m := range e.attached() {
		m.mu.Lock()
		for _, i := range m.idle {
			instances = append(instances, candidate{module: m, since: i.since})
		}
		if m.snapshot != nil {
			modules = append(modules, candidate{m, m.called, m.calls > 0})
		}
		if m.called.After(called[m.code]) {
			called[m.code] = m.called
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
		r.free(e)
	}
	if k == account.Addresses {
		return
	}
	codes := slices.SortedFunc(maps.Keys(called), func(a, b *code) int { return called[a].Compare(called[b]) })
	if k == account.Mappings { // code takes mappings, but snapshots don't; the memory of code is a kind of its own
		for _, c := range codes {
			if enough() {
				return
			}
			e.dropCode(c, &e.crowded, func(m *module) bool { return !m.called.After(called[c]) })
		}
		return
	}
	slices.SortFunc(modules, func(a, b candidate) int {
		if a.wanted != b.wanted {
			if b.wanted {
				return -1
			}
			return 1
		}
		return bySince(a, b)
	})
	for _, c := range modules {
		if enough() {
			return
		}
		m := c.module
		m.mu.Lock()
		var r released
		// Calls that wait for room don't need the snapshot before they get room. The code stays, since it takes longest to make again.
		if m.unused() && !m.called.After(c.since) {
			r, m.snapshot = released{snapshot: m.snapshot}, nil
		}
		m.mu.Unlock()
		r.free(e)
	}
	for _, c := range codes {
		if enough() {
			return
		}
		e.dropBase(c)
	}
}

// attached returns the modules that are registered with the engine.
func (e *Engine) attached() []*module {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.live))
}

// whileUnused calls f while no call of any module of the code can begin. It does so only if no call runs, and unused returns true for each module. It
// locks all these modules; nothing else locks two modules at a time.
func (e *Engine) whileUnused(c *code, unused func(m *module) bool, f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	still := true
	for m := range c.modules {
		m.mu.Lock()
		defer m.mu.Unlock()
		still = still && m.calls == 0 && unused(m)
	}
	if still {
		f()
	}
}

// dropCode drops the code and all that was made of it, and then increments a counter. It does so only if the cache has the code, no call uses it, and
// unused returns true for each module.
func (e *Engine) dropCode(c *code, count *atomic.Uint64, unused func(m *module) bool) {
	var ofCode released
	var ofModules []released
	e.whileUnused(c, unused, func() {
		if !c.Disused() {
			return
		}
		for m := range c.modules {
			ofModules = append(ofModules, m.strip())
		}
		ofCode = c.strip()
		count.Add(1)
	})
	for _, r := range ofModules {
		r.free(e)
	}
	ofCode.free(e)
}

// dropBase drops the snapshot that modules begin with, if no call uses it. Snapshots that share its pages keep them.
func (e *Engine) dropBase(c *code) {
	var base *snapshot
	e.whileUnused(c, func(*module) bool { return true }, func() {
		c.mu.Lock()
		base, c.base = c.base, nil
		c.mu.Unlock()
	})
	e.drop(base)
}

// cooling is the time after which a call counts only half.
const cooling = time.Minute

// shed drops code until a sixteenth of the room is free, if there is more code than there is room for. The code with the fewest calls goes first,
// in random order among equals. If the time of the last call decided and many modules were called in turn, each call would drop the code that
// is needed next.
func (e *Engine) shed() {
	room := e.account.Most(account.Code, true)
	if e.account.Held(account.Code) <= room || !e.shedding.TryLock() {
		return
	}
	defer e.shedding.Unlock()
	now := time.Now()
	cool := now.Sub(e.cooled) > cooling
	if cool {
		e.cooled = now
	}
	heat := map[*code]uint32{}
	for _, m := range e.attached() {
		m.mu.Lock()
		heat[m.code] += m.heat
		if cool {
			m.heat /= 2
		}
		m.mu.Unlock()
	}
	var all []*code
	for c := range heat {
		if c.Disused() {
			all = append(all, c)
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortFunc(all, func(a, b *code) int { return cmp.Compare(heat[a], heat[b]) })
	for _, c := range all {
		if e.account.Held(account.Code) <= room-room/16 {
			return
		}
		e.dropCode(c, &e.crowded, func(*module) bool { return true })
	}
}

// drop gives up a hold on a snapshot, and frees it with the last one. s may be nil.
func (e *Engine) drop(s *snapshot) {
	if s == nil || s.holds.Add(-1) >= 0 {
		return
	}
	e.account.Give(account.Memory, s.resident())
	if err := s.image.Close(); err != nil {
		e.log.Warn("free snapshot", "error", err)
	}
	e.drop(s.base)
}
