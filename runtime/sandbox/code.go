package sandbox

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/instrument"
)

// A code is the compiled code of a module. Modules of one engine, which differ only in their bundle, share it: what is rewritten,
// compiled and counted is the engine without a bundle.
type code struct {
	engine *Engine
	sum    sum
	digest string // of the file that it was first loaded from
	order  uint64 // code is compiled in the order of loading

	// These are set before the build is done, and only calls use them.
	rewritten *instrument.Rewritten
	runtime   wazero.Runtime

	modules map[*module]struct{} // those that have users; guarded by Engine.mu
	starts  peak                 // of what the starts of its modules take, with the snapshots that are made

	source *source // with a hold for each of modules

	mu     sync.Mutex
	cost   cost   // of compiling it, predicted
	stored bool   // the cache has it, as far as is known
	build  *build // nil: not compiled
	// failures is how often compiling failed in turn for a reason that passes.
	failures int
	base     *snapshot     // of an engine, with which its modules begin; nil: none yet, or it is not of an engine
	basing   chan struct{} // closed when the base that is being made is there, or can't be; nil: none is
}

// compile returns the code for a call. The caller has entered a module of the code, and may use it until it leaves. The error is
// an *Error, or the cause of ctx.
func (c *code) compile(ctx context.Context) (wazero.CompiledModule, error) {
	for {
		b := c.begin(true)
		if !b.over() {
			select {
			case <-b.done:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		if b.err != nil {
			return nil, b.err
		}
		if b.native.code != nil {
			return b.native.code, nil
		}
		// The build was for the cache only, and was done before it learned that a call waits.
	}
}

// prepare waits until the code is in the cache, or in memory where there is no cache. Builds for calls come before it, and it does
// not hold up Close. A problem that passes, such as a lack of memory, is not an error: the next call compiles again.
func (c *code) prepare(ctx context.Context) error {
	c.mu.Lock()
	there := c.stored && c.build == nil
	c.mu.Unlock()
	if there {
		return nil
	}
	b := c.begin(false)
	select {
	case <-b.done:
		if passing(b.err) {
			return nil
		}
		return b.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.engine.closing:
		return closing(ErrClosed)
	}
}

// begin returns the code's build, and queues one where there is none.
func (c *code) begin(needed bool) *build {
	c.mu.Lock()
	b, stored := c.build, c.stored
	first := b == nil || b.stale()
	if first {
		b = &build{code: c, cost: c.cost, done: make(chan struct{})}
		b.needed.Store(needed)
		c.build = b
	}
	c.mu.Unlock()
	switch {
	case first:
		c.engine.compiler.add(b, stored)
	case needed && !b.over():
		c.engine.compiler.hurry(b)
	}
	return b
}

// state returns the state of the code, and what it takes in memory, in bytes.
func (c *code) state() (CodeState, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch b := c.build; {
	case b == nil && c.stored:
		return CodeStored, 0
	case b == nil:
		return CodeMissing, 0
	case !b.over():
		return CodePending, 0
	case !b.again.IsZero():
		return CodeMissing, 0
	case b.native == nil:
		return CodeRefused, 0
	default:
		return CodeLoaded, b.native.size
	}
}

// disused reports whether there is code that the cache has, too, so that it can be dropped when no call uses it.
func (c *code) disused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.build != nil && c.build.over() && c.build.native != nil && c.build.native.stored
}

// strip takes from the code all that can be made again. No call uses it.
func (c *code) strip() (r released) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.build, r.snapshot = c.build, c.base
	c.build, c.base, c.rewritten, c.runtime = nil, nil, nil, nil
	return r
}

// free frees what the code has let go of, once no instance of it is left.
func (c *code) free(r released) {
	c.engine.drop(r.snapshot)
	if r.build != nil && r.build.over() && r.build.native != nil {
		c.engine.compiler.drop(c, r.build.native)
	}
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
	ofModules := map[*module]released{}
	e.whileUnused(c, unused, func() {
		if !c.disused() {
			return
		}
		for m := range c.modules {
			ofModules[m] = m.strip()
		}
		ofCode = c.strip()
	})
	for m, r := range ofModules {
		m.free(r)
	}
	c.free(ofCode)
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

// shed drops code where there is more than there is room for, until a sixteenth of the room is free. Code that was called least goes
// first, in random order among equals. If it went by the time of the last call, many modules that are called in turn would each
// drop the one that is called next.
func (e *Engine) shed() {
	room := e.account.Most(account.Code, true)
	if e.account.Held(account.Code) <= room || !e.compiler.shedding.TryLock() {
		return
	}
	defer e.compiler.shedding.Unlock()
	now := time.Now()
	cool := now.Sub(e.compiler.cooled) > cooling
	if cool {
		e.compiler.cooled = now
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
		if c.disused() {
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
