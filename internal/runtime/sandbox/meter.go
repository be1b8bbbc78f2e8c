package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/text"
)

// Reasons to end a run before the guest is done.
var (
	errTimeout   = errors.New("time limit reached")
	errFuel      = errors.New("instruction limit reached")
	errCancelled = errors.New("the caller gave up")
	errClosing   = errors.New("the engine is closing")
)

// over returns the reason why the run has to end, or nil.
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

// A meter counts what a run has used. Fuel comes in slices. The deadline, the caller's cancellation and the host's garbage collector have to wait at
// most for the end of a slice.
type meter struct {
	most   int64           // fuel; 0 means no limit
	used   int64           // fuel
	slice  int32           // fuel that the guest had left when it was last counted
	pace   instrument.Pace // the guest's
	give   int32           // fuel of the next slice at this pace
	since  time.Time       // start of the slice; zero means it is the first one, or others have run meanwhile
	from   int64           // value of used when the slice began
	turn   time.Time       // start of the guest's turn, or of the last part of it; zero means not known yet
	ran    time.Duration   // length of the earlier parts of the turn
	long   bool            // the guest has had its first turn, so it needs a seat for the next ones
	seated bool
	party  string // the party whose seats the guest uses; set before it needs a seat
}

// next returns how much fuel the guest may use until it must call refill.
func (c *call) next() int32 {
	m := &c.meter
	m.slice = m.give
	if m.most > 0 {
		m.slice = int32(max(0, min(int64(m.give), m.most-m.used)))
	}
	return m.slice
}

// spent returns how much fuel the run has used so far.
func (c *call) spent() int64 {
	c.meter.count(int32(uint32(c.owner.fuel.Get())))
	c.meter.used += c.abi.Spent()
	return c.meter.used
}

// count counts what the guest has used of its slice; left is the rest.
func (m *meter) count(left int32) {
	m.used += int64(m.slice) - int64(left)
	m.slice = left
}

// Fuel returns how much fuel the run has left.
func (c *call) Fuel() int64 {
	if c.meter.most == 0 {
		return math.MaxInt64
	}
	return c.meter.most - c.spent()
}

// Burn counts fuel that another run has used.
func (c *call) Burn(fuel int64) { c.meter.used += fuel }

// turn is how long a guest runs before other goroutines get their turn. The garbage collector does not wait that long: Go can stop the goroutine each
// time that the host checks the time. Gosched wakes an idle thread even if nothing waits, which takes 6 µs. Calling it at every check (each 25 µs in
// fast code) made computing guests a quarter slower.
const turn = 200 * time.Microsecond

// look ends the run if its time or its fuel is used up, or its caller has given up. If the guest has had its turn, look lets other goroutines run.
// now is the time; look returns the time at which the guest goes on.
func (c *call) look(now time.Time) time.Time {
	m := &c.meter
	m.used += c.abi.Spent()
	if err := c.over(now); err != nil {
		panic(err)
	}
	if m.most > 0 && m.used > m.most {
		panic(errFuel)
	}
	if c.reports != nil && c.reports.Due(now, false) {
		c.tell(now)
	}
	return c.share(now)
}

// refill is called by the guest when its slice is used up. The parameter is the fuel that is left, a negative number. The result is the next slice.
func refill(ctx context.Context, _ api.Module, stack []uint64) {
	c := ctx.(*call)
	m := &c.meter
	now := time.Now()
	m.count(int32(uint32(stack[0])))
	begun, from := m.since, m.from
	m.since = c.look(now) // the time of other goroutines does not count, but the host's work for the guest does
	m.from = m.used
	took := time.Duration(0)
	if !begun.IsZero() {
		took = now.Sub(begun)
	}
	m.give = m.pace.Next(m.used-from, took)
	stack[0] = uint64(uint32(c.next()))
}

// A call stack grows in steps, by the estimate of what the guest's functions take. wazero doubles a stack and copies it, so at each step the account
// holds twice the additional bytes.
const (
	firstStack = 64 << 10 // the stack that a guest has at first
	stackStep  = 4        // the factor by which each step enlarges the stack
	// keptStack is the largest stack that an idle instance keeps after a call has needed it: interpreters need more than firstStack in each call. wazero
	// never makes a stack smaller, so an instance that has needed more than this gets a new one when it is reset.
	keptStack = 256 << 10
)

// firstPart returns how many bytes of call stack a guest has at first.
func (c *call) firstPart() int64 {
	c.granted = min(c.limits.Stack, c.owner.stackSize)
	return c.granted
}

// overflow is called by the guest when its call stack is used up. The parameter is the bytes that are left, a negative number. The result is how
// many are left after the stack has grown.
func overflow(ctx context.Context, _ api.Module, stack []uint64) {
	c := ctx.(*call)
	left := int64(int32(uint32(stack[0])))
	for left < 0 && c.granted < c.limits.Stack {
		more := min((stackStep-1)*c.granted, c.limits.Stack-c.granted)
		c.extend(2 * more)
		c.granted += more
		left += more
	}
	if left < 0 {
		panic(&fault{ToolStack, fmt.Sprintf("The tool used up its call stack of %s: it calls itself too deeply.", text.Size(c.limits.Stack))})
	}
	stack[0] = uint64(uint32(left))
}

// maxInside is how deeply calls of a guest's functions by host functions may be nested. Each of these calls also takes a Go stack.
const maxInside = 8

// enterStack is what wazero needs, in bytes, for a call of the guest by a host function, in addition to the call stack that the guest uses. It
// includes the stack with which wazero begins.
const enterStack = 16 << 10

// Enter runs an export for a host function. It uses the run's fuel and call stack. What wazero needs for a second stack is counted until Enter
// returns. If anything ends the guest inside the export, the whole run ends.
func (c *call) Enter(export, params, results string, stack []uint64) bool {
	i := c.owner
	if c.inside == 0 {
		panic(fmt.Errorf("%s was called after the guest had ended", export))
	}
	f := i.guest.ExportedFunction(export) // made anew, with a stack of its own
	if f == nil || !typed(f.Definition().ParamTypes(), params) || !typed(f.Definition().ResultTypes(), results) {
		return false
	}
	if c.inside > maxInside {
		panic(&fault{ToolStack, fmt.Sprintf("The tool used up its call stack: calls between the tool and the host are nested more than %d deep.", maxInside)})
	}
	left, granted := i.stack.Get(), c.granted
	part := max(0, min(int64(int32(uint32(left))), firstStack))
	c.extend(enterStack + 2*part)
	i.stack.Set(uint64(part))
	c.inside++
	if err := f.CallWithStack(c, stack); err != nil {
		panic(err)
	}
	for n, result := range results {
		if result == 'i' { // see hostFunc.Call
			stack[n] = uint64(uint32(stack[n]))
		}
	}
	c.inside--
	i.stack.Set(left)
	c.beside -= enterStack + 2*part + 2*(c.granted-granted)
	c.granted = granted
	return true
}

// typed reports whether types are the ones that the letters stand for.
func typed(types []api.ValueType, letters string) bool {
	want, known := valueTypes(letters)
	return known && slices.Equal(types, wazeroTypes(want))
}

// extend makes the account hold more bytes for the call, in addition to its memory. If there is no room, it ends the call.
func (c *call) extend(bytes int64) {
	c.beside += bytes
	c.owner.grow(int64(len(c.memory.Bytes())))
}

// A guest has its first turn as soon as Go lets it run. For each further turn it needs a seat, of which the engine has one for each processor. The
// party with the fewest seats comes first and, within a party, the module with the fewest. So a guest of another party, or of another module of the
// same party, waits for only one turn, however many guests are waiting. A guest keeps its seat while other parties have more seats, so it gets as
// much time as eight guests of another party. With two seats for each processor, it got only half as much. Without seats, Go would run thousands
// of computing guests one after another before anybody else. A guest that waits for anything other than a seat has no seat.

// sit waits for a seat, at most until the end of the run. It returns false if it need not wait.
func (c *call) sit() (waited bool) {
	m := &c.meter
	if m.party == "" {
		m.party = partyOf(c.principal)
	}
	if !c.engine.seats.Try(m.party, c.module) {
		if err := c.engine.seats.Enter(c.patience(), m.party, c.module); err != nil {
			if over := c.over(time.Now()); over != nil {
				err = over
			}
			panic(err)
		}
		waited = true
	}
	m.seated = true
	return waited
}

// stand gives up the guest's seat, if it has one.
func (c *call) stand() {
	if c.meter.seated {
		c.meter.seated = false
		c.engine.seats.Leave(c.meter.party, c.module)
	}
}

// pause ends a part of the guest's turn, because it is about to wait.
func (c *call) pause() {
	c.stand()
	if m := &c.meter; !m.turn.IsZero() {
		m.ran += time.Since(m.turn)
		m.turn = time.Time{}
	}
}

// share lets others run if the guest has had its turn. now is the time; share returns the time at which the guest goes on.
func (c *call) share(now time.Time) time.Time {
	m := &c.meter
	if m.turn.IsZero() {
		m.turn = now
	}
	back := m.long && !m.seated // the guest has waited for something other than a seat
	if !back && m.ran+now.Sub(m.turn) < c.length() {
		return now
	}
	c.memory.Unwatch()
	if m.seated && c.engine.seats.Pass(m.party, c.module) {
		m.seated = false
	}
	if waited := !m.seated && c.sit(); waited || !back {
		// It also yields after it has waited for a seat. Go runs a goroutine that was just woken before all others, so guests that hand seats to each other
		// would keep new requests waiting for tens of milliseconds.
		runtime.Gosched()
	}
	m.long, m.ran, m.turn = true, 0, time.Now()
	return m.turn
}

// length returns how long a turn is. The first one is short while others wait for seats, since thousands may begin at the same time.
func (c *call) length() time.Duration {
	if !c.meter.long && c.engine.seats.Waiting() > 0 {
		return turn / 8
	}
	return turn
}
