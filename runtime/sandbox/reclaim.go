package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/account"
)

// tidy is the janitor: until the engine stops, it closes what has been idle for long.
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

// sweep closes the instances that were not used since idle, and drops the code that was not used since unused, with all that is
// made of it. What a module of an engine has besides the code is dropped if only other modules of the engine are used.
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
		e.dropCode(c, disused)
	}
}

// maxDescriptors is how many files guests may have open by default where the system allows any number.
const maxDescriptors = 16 << 10

// manifestShare and sourceShare say which part of Config.Memory the manifests of all programs may take, and their modules, so that calls
// have the rest.
const (
	manifestShare = 4
	sourceShare   = 4
)

// ownAddresses is what the process takes of its address space besides the memories of guests, in bytes: Go's runtime reserves 800 MiB when it
// starts, the C library 64 or 128 MiB for each thread, and Go ends the process where it gets no more. leastAddresses is what it must have.
const (
	ownAddresses   = 3 << 30
	leastAddresses = 4 << 30
)

// checkAddresses returns an error where the process may have too little address space; 0 means that there is no limit.
func checkAddresses(most int64) error {
	if most == 0 || most >= leastAddresses {
		return nil
	}
	return fmt.Errorf("the process may have %s of address space (ulimit -v), and needs %s: it reserves much that it never uses; leave out that limit, and bound its memory by a control group, server.memory or GOMEMLIMIT",
		text.Size(most), text.Size(leastAddresses))
}

// newAccount returns the account of an engine.
func newAccount(c Config) *account.Account {
	if c.Memory <= 0 {
		c.Memory = account.DefaultMemory()
	}
	if c.Mappings <= 0 {
		c.Mappings = account.MachineMappings() / 4 * 3 // Go's heap and threads need some, too
	}
	if most := account.MachineAddresses(); c.Addresses <= 0 && most > 0 {
		c.Addresses = max(leastAddresses, most) - ownAddresses
	}
	if c.CodeMemory <= 0 {
		c.CodeMemory = account.DefaultCode()
	}
	if c.Descriptors <= 0 {
		c.Descriptors = max(1, min(account.MachineDescriptors()/8, maxDescriptors))
	}
	return account.New(map[account.Kind]int64{
		account.Memory: c.Memory, account.Mappings: c.Mappings, account.Addresses: c.Addresses, account.Code: c.CodeMemory, account.Descriptors: c.Descriptors,
		account.Manifests: max(1, c.Memory/manifestShare), account.Sources: max(1, c.Memory/sourceShare),
	})
}

// reclaim frees what is idle, the least recently used first, until there is room for n of a kind, and for a sixteenth of all so
// that the next call finds some, too. It stops when done is closed. Instances go before snapshots, which take longer to make again.
// Only one goroutine at a time does this.
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
	if enough() { // because of what another goroutine has let go of
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
	if k == account.Mappings { // which code takes, but snapshots don't; the memory of code is of another kind
		for _, c := range codes {
			if enough() {
				return
			}
			e.dropCode(c, func(m *module) bool { return !m.called.After(called[c]) })
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
		// Calls that wait for room have no use for it before they get some. The code stays: nothing takes longer to make again.
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

// attached returns the modules that the engine knows of.
func (e *Engine) attached() []*module {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.live))
}
