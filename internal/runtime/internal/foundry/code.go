package foundry

import (
	"context"
	"sync"
)

// A Code is the machine code of a module: not made yet, being made, on disk or in memory. It is safe for concurrent use.
type Code struct {
	foundry *Foundry
	sum     sum
	digest  string // digest of the file that it was first loaded from
	order   uint64 // code is compiled in this order
	source  *Source
	native  *Native // set before the build is done, and read only by calls

	mu     sync.Mutex
	cost   cost   // predicted cost of compiling it
	stored bool   // the cache has it, as far as is known
	build  *build // nil: not compiled
	// failures is how often in a row compiling has failed for a temporary reason.
	failures int
}

// Native returns the code that Compile has returned to a call. It is valid until the code is stripped.
func (c *Code) Native() *Native { return c.native }

// Source returns the bytes from which the code is made.
func (c *Code) Source() *Source { return c.source }

// Compile returns the code for a call, which may use it until the code is stripped. The error is ErrClosed, one for which Scarce returns true, the
// module's own, or the cause of ctx.
func (c *Code) Compile(ctx context.Context) (*Native, error) {
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
		if b.native.Code != nil {
			return b.native, nil
		}
		// The build was only for the cache, and was done before it learned that a call waits for the code.
	}
}

// Prepare waits until the code is in the cache, or in memory if there is no cache. Builds for calls come first, and Prepare does not delay Close. A
// temporary problem, such as a lack of memory, is not an error: the next call compiles again.
func (c *Code) Prepare(ctx context.Context) error {
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
	case <-c.foundry.closing:
		return ErrClosed
	}
}

// begin returns the code's build. If there is none, it queues one.
func (c *Code) begin(needed bool) *build {
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
		c.foundry.add(b, stored)
	case needed && !b.over():
		c.foundry.hurry(b)
	}
	return b
}

// A State says where a module's machine code is.
type State string

// The states of code.
const (
	Missing State = "missing"   // not made: the next call compiles it
	Stored  State = "stored"    // on disk: the next call loads it
	Pending State = "compiling" // under way, or queued
	Loaded  State = "loaded"    // in memory
	Refused State = "refused"   // it can't be compiled, and every call fails
)

// State returns the state of the code, and its size in memory in bytes.
func (c *Code) State() (State, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch b := c.build; {
	case b == nil && c.stored:
		return Stored, 0
	case b == nil:
		return Missing, 0
	case !b.over():
		return Pending, 0
	case !b.again.IsZero():
		return Missing, 0
	case b.native == nil:
		return Refused, 0
	default:
		return Loaded, b.native.size
	}
}

// Disused reports whether the code is in memory and also in the cache, so that it can be dropped while no call uses it.
func (c *Code) Disused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.build != nil && c.build.over() && c.build.native != nil && c.build.native.stored
}

// Quiet reports whether the code is not about to be compiled.
func (c *Code) Quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.build == nil {
		return c.stored
	}
	return c.build.over()
}

// Strip removes what can be made again. No call may be using it. free frees its memory, once no instance of the code is left.
func (c *Code) Strip() (free func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.build
	c.build, c.native = nil, nil
	return func() {
		if b != nil && b.over() && b.native != nil {
			c.foundry.drop(c, b.native)
		}
	}
}
