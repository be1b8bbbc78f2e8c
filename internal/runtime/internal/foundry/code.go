package foundry

import (
	"context"
	"sync"
)

// A Code is the machine code of a module: none yet, under way, on disk or in memory. It is safe for concurrent use.
type Code struct {
	foundry *Foundry
	sum     sum
	digest  string // of the file that it was first loaded from
	order   uint64 // code is compiled in the order of loading
	source  *Source
	native  *Native // set before the build is done, and read by calls only

	mu     sync.Mutex
	cost   cost   // of compiling it, predicted
	stored bool   // the cache has it, as far as is known
	build  *build // nil: not compiled
	// failures is how often in a row compiling failed for a reason that passes.
	failures int
}

// Native returns what Compile has returned to a call, until the code is stripped.
func (c *Code) Native() *Native { return c.native }

// Source returns the bytes that the code is made of.
func (c *Code) Source() *Source { return c.source }

// Compile returns the code for a call, which may use it until somebody strips the code. The error is ErrClosed, one for which Scarce
// reports true, the module's, or the cause of ctx.
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
		// The build was for the cache only, and was done before it learned that a call waits.
	}
}

// Prepare waits until the code is in the cache, or in memory if there is no cache. Builds for calls come before it, and it does
// not hold up Close. A problem that passes, such as a lack of memory, is not an error: the next call compiles again.
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

// begin returns the code's build, and queues one if there is none.
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
	Missing State = "missing"   // nothing: the next call compiles it
	Stored  State = "stored"    // on disk: the next call loads it
	Pending State = "compiling" // under way, or queued
	Loaded  State = "loaded"    // in memory
	Refused State = "refused"   // it can't be compiled, and every call fails
)

// State returns the state of the code, and what it takes in memory, in bytes.
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

// Disused reports whether there is code that the cache has, too, so that it can be dropped when no call uses it.
func (c *Code) Disused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.build != nil && c.build.over() && c.build.native != nil && c.build.native.stored
}

// Quiet reports whether nobody is about to compile the code.
func (c *Code) Quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.build == nil {
		return c.stored
	}
	return c.build.over()
}

// Strip takes from the code what can be made again. No call uses it. free frees that, once no instance of the code is left.
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
