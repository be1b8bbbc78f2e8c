package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/instrument"
)

// Why a run has to end before the guest is done.
var (
	errTimeout   = errors.New("time limit reached")
	errFuel      = errors.New("instruction limit reached")
	errCancelled = errors.New("the caller gave up")
	errClosing   = errors.New("the engine closes")
)

// over tells why the run has to end, or nil.
func (c *call) over(now time.Time) error {
	switch {
	case c.engine.stop.Err() != nil:
		return errClosing
	case !now.Before(c.deadline):
		return errTimeout
	case c.ctx.Err() != nil:
		return errCancelled
	}
	return nil
}

// A meter counts what a run has used. Fuel comes in slices: one bounds how long the deadline, the caller's
// cancellation and the host's garbage collector wait for a guest.
type meter struct {
	used  int64     // fuel
	slice int32     // what the guest was given last
	pace  int32     // fuel of a slice, as the guest's speed suggests
	since time.Time // begin of the slice; zero: it is the first
	turn  time.Time // begin of the guest's turn; zero: there was no look yet
}

// next returns how much fuel the guest may use until it calls refill.
func (c *call) next() int32 {
	c.meter.slice = c.meter.pace
	if c.limits.Fuel > 0 {
		c.meter.slice = int32(max(0, min(int64(c.meter.pace), c.limits.Fuel-c.meter.used)))
	}
	return c.meter.slice
}

// turn is how long a guest runs before other goroutines get their turn. The garbage collector need not wait for that:
// Go can stop a goroutine at every look. Gosched wakes an idle thread even where nobody waits, for 6 µs: at every look,
// which fast code makes each 25 µs, that made computing guests a quarter slower.
const turn = 200 * time.Microsecond

// look ends the run where its time, its fuel or its caller's patience is over, and lets other goroutines run where the
// guest has had its turn. now is the time, and the result the time when the guest goes on.
func (c *call) look(now time.Time) time.Time {
	m := &c.meter
	m.used += c.host.Spent()
	if err := c.over(now); err != nil {
		panic(err)
	}
	if c.limits.Fuel > 0 && m.used > c.limits.Fuel {
		panic(errFuel)
	}
	switch {
	case m.turn.IsZero():
		m.turn = now
	case now.Sub(m.turn) >= turn:
		c.memory.Unwatch()
		runtime.Gosched()
		now = time.Now()
		m.turn = now
	}
	return now
}

// refill is the guest's call when its slice is used up; left is what is left of it, less than zero.
func refill(ctx context.Context, _ api.Module, stack []uint64) {
	c := ctx.(*call)
	m := &c.meter
	now := time.Now()
	m.used += int64(m.slice) - int64(int32(uint32(stack[0])))
	if !m.since.IsZero() {
		m.pace = instrument.NextSlice(m.pace, now.Sub(m.since))
	}
	m.since = c.look(now) // what others ran for does not count
	stack[0] = uint64(uint32(c.next()))
}

// firstStack is the call stack in bytes that a guest is given without asking. wazero keeps what it once needed for a
// stack, which would be megabytes in every idle instance, so one that asked for more gets a new one when it is reset.
const firstStack = 64 << 10

// firstPart returns what a guest may use of its call stack until it asks for the rest.
func (c *call) firstPart() int64 {
	c.deep = false
	return min(c.limits.Stack, firstStack)
}

// overflow is the guest's call when its call stack is used up; left is what is left of it, less than zero.
func overflow(ctx context.Context, _ api.Module, stack []uint64) {
	c := ctx.(*call)
	left := int64(int32(uint32(stack[0])))
	if rest := c.limits.Stack - firstStack; rest > 0 && !c.deep {
		c.deep = true
		c.extend(rest)
		left += rest
	}
	if left < 0 {
		panic(&fault{ToolStack, fmt.Sprintf("The tool used up its call stack of %s: it calls itself too deeply.", text.Size(c.limits.Stack))})
	}
	stack[0] = uint64(uint32(left))
}

// extend has the account hold more for the call than its memory takes. Where there is no room, it ends the call.
func (c *call) extend(bytes int64) {
	c.beside += bytes
	c.owner.grow(int64(len(c.memory.Bytes())))
}
