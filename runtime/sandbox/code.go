package sandbox

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/internal/foundry"
)

// A code is what modules of one engine share, which differ only in their bundle: the machine code of the engine without a bundle, and the
// snapshot that they begin with.
type code struct {
	*foundry.Code
	sum     sum
	modules map[*module]struct{} // those that have users; guarded by Engine.mu
	starts  peak                 // of what the starts of its modules take, with the snapshots that are made

	mu     sync.Mutex
	base   *snapshot     // of an engine, with which its modules begin; nil: none yet, or it is not of an engine
	basing chan struct{} // closed when the base that is being made is there, or can't be; nil: none is
}

// strip takes from the code all that can be made again. No call uses it.
func (c *code) strip() (r released) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.snapshot, c.base = c.base, nil
	r.code = c.Code.Strip()
	return r
}

// whileUnused calls f while no call of any module of the code can begin, if none runs and unused reports true of each module. It locks
// them all, and nobody else locks two modules.
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

// dropCode drops the code and all that is made of it, if the cache has it, no call uses it, and unused reports true of each module.
func (e *Engine) dropCode(c *code, unused func(m *module) bool) {
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
	})
	for _, r := range ofModules {
		r.free(e)
	}
	ofCode.free(e)
}

// dropBase drops what modules begin with, if no call uses it. Snapshots that share its pages keep them.
func (e *Engine) dropBase(c *code) {
	var base *snapshot
	e.whileUnused(c, func(*module) bool { return true }, func() {
		c.mu.Lock()
		base, c.base = c.base, nil
		c.mu.Unlock()
	})
	e.drop(base)
}

// cooling is the time after which a call counts half.
const cooling = time.Minute

// shed drops code where there is more than there is room for, until a sixteenth of the room is free. Code that was called least goes
// first, in random order among equals. If it went by the time of the last call, many modules that are called in turn would each
// drop the one that is called next.
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
		e.dropCode(c, func(*module) bool { return true })
	}
}
