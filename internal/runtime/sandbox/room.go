package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/text"
)

// These rules say how runs wait for room in the account, so that they never wait for each other in a circle:
//
//   - A run takes the room for an instance before it makes one, as much as it expects to need. While it waits for that room, it holds nothing.
//   - A start that needs more than expected does not wait. What it has made is thrown away, and it begins again with more room.
//   - Only a call whose guest is running keeps what it has while it waits for more. It comes before runs that have not begun, and waits for
//     only a part of its time: if all calls that hold room wait, the first one to give up makes room for the others. The tool's next calls take as
//     much as this one wanted before they begin.

// A peak is how many bytes of memory recent runs needed. It is safe for concurrent use.
type peak struct{ bytes atomic.Int64 }

// note records what a run needed. A run that needed much is forgotten after some ten others.
func (p *peak) note(size int64) {
	if before := p.bytes.Load(); size < before {
		size += (before - size) * 3 / 4
	}
	p.bytes.Store(size)
}

// expect returns how many bytes the next run will probably need: at least size, which it begins with. limit bounds the estimate.
func (p *peak) expect(size, limit int64) int64 { return max(size, min(p.bytes.Load(), limit)) }

// claim reserves at least that many bytes of memory in the account, for an instance that the run is going to make. If there is no room, the run gives
// back what it has, and waits for the whole amount until ctx is done. At first it only waits for other calls to end; after a moment it also frees
// idle memory. The error is an *Error.
func (r *run) claim(ctx context.Context, e *Engine, bytes int64) error {
	more := bytes - r.room
	switch {
	case more <= 0:
		return nil
	case bytes > e.account.Most(account.Memory, true):
		return e.neverRoom(bytes)
	case r.takes(e, account.Memory, more) || r.Outer != nil && r.seize(e, account.Memory, more):
		r.room = bytes
		return nil
	}
	r.retire(e)
	if err := r.wait(ctx, e, r.claimOf(account.Memory, bytes)); err != nil {
		return err
	}
	r.room, r.ahead = bytes, true // if the run turns out to need more, it comes before runs that have not had a turn
	return nil
}

// claimSpace makes the account hold mappings, and bytes of address space, for a run that has already claimed that many bytes of memory, and keeps
// them. If there is no room, it waits until ctx is done. All runs wait for the kinds in this order. The error is an *Error.
func (r *run) claimSpace(ctx context.Context, e *Engine, bytes, mappings, addresses int64) (err error) {
	if most := e.account.Most(account.Addresses, true); addresses > most {
		return &Error{Outcome: ToolMemory, Message: "The tool may take more memory than the service has room for.",
			Err: fmt.Errorf("its memory may grow to %s, but all tools together may reserve only %s of address space: lower limits.memory, or raise the limit of the process (ulimit -v)",
				text.Size(addresses), text.Size(most))}
	}
	claims := []account.Claim{{Kind: account.Mappings, N: mappings}, {Kind: account.Addresses, N: addresses}}
	for k, c := range claims {
		if r.seize(e, c.Kind, c.N) {
			continue
		}
		r.retire(e)
		if err = r.take(ctx, e, r.claimOf(c.Kind, c.N)); err == nil {
			k++
			err = r.claim(ctx, e, bytes)
		}
		if err != nil {
			for _, held := range claims[:k] {
				e.account.Give(held.Kind, held.N)
			}
			return err
		}
	}
	return nil
}

// seizeSoon takes more memory for a run that has an idle instance. For a moment it waits for other calls to end before it frees idle instances of
// others: if many short calls take turns in little memory, each would otherwise have to start its tool again.
func (r *run) seizeSoon(e *Engine, more int64) bool {
	if r.takes(e, account.Memory, more) {
		return true
	}
	if r.Outer == nil && more <= e.account.Most(account.Memory, true) {
		ctx, done := context.WithTimeout(r.ctx, account.Moment)
		defer done()
		c := r.claimOf(account.Memory, more)
		if e.account.Wait(ctx, c, nil) == nil {
			r.first = c.First
			return true
		}
	}
	return r.seize(e, account.Memory, more)
}

// yield gives back the room that no instance has taken.
func (r *run) yield(e *Engine) {
	if r.room > 0 {
		e.account.Give(account.Memory, r.room)
		r.room = 0
	}
}

// retire makes the run hold nothing before it waits: no room, and not the key, which another run of the module may need.
func (r *run) retire(e *Engine) {
	r.yield(e)
	r.returnKey()
}

// returnKey lets another run of the module use the reserve.
func (r *run) returnKey() {
	if r.first {
		r.first = false
		r.key.Return()
	}
}

// claimOf returns a claim for the run.
func (r *run) claimOf(k account.Kind, n int64) *account.Claim {
	return &account.Claim{Kind: k, N: n, First: r.first, Key: r.key, Ahead: r.ahead}
}

// takes takes n of a kind from the account if there is room.
func (r *run) takes(e *Engine, k account.Kind, n int64) bool {
	c := account.Claim{Kind: k, N: n, First: r.first, Key: r.key}
	taken := e.account.Grant(&c)
	r.first = c.First
	return taken
}

// seize takes n of a kind from the account if there is room, or if freeing idle resources makes some.
func (r *run) seize(e *Engine, k account.Kind, n int64) bool {
	if r.takes(e, k, n) {
		return true
	}
	if n > e.account.Most(k, true) {
		return false
	}
	e.reclaim(nil, k, n)
	return r.takes(e, k, n)
}

// take is seize for a claim, but waits if there is no room.
func (r *run) take(ctx context.Context, e *Engine, c *account.Claim) error {
	if r.seize(e, c.Kind, c.N) {
		return nil
	}
	return r.wait(ctx, e, c)
}

// wait waits until the run has what it claims, or ctx is done. From time to time it frees resources that have become idle. A run inside another call
// does not wait: its outer calls hold resources, and all others that hold some may be such calls, too. The error is an *Error.
func (r *run) wait(ctx context.Context, e *Engine, c *account.Claim) error {
	if r.Outer != nil || c.N > e.account.Most(c.Kind, c.First || c.Key != nil) {
		return overloaded(nil)
	}
	look := func(granted <-chan struct{}) { e.reclaim(granted, c.Kind, c.N) }
	switch err := e.account.Wait(ctx, c, look); {
	case err == nil:
		r.first = c.First
		return nil
	case errors.Is(err, errTimeout):
		return overloaded(nil)
	default:
		return notBegun(ctx, "memory", 0)
	}
}

// ErrTooMuch is returned by Room if all tools together may not use that much.
var ErrTooMuch = errors.New("more memory than all tools together may take")

// Room takes bytes of the memory that all tools together may use, for the host's own work on their behalf. It waits until ctx is done. Its error is
// ErrTooMuch or the cause of ctx. give gives the bytes back.
func (e *Engine) Room(ctx context.Context, bytes int64) (give func(), err error) {
	if bytes > e.account.Most(account.Memory, true) {
		return nil, ErrTooMuch
	}
	if r := (run{first: true}); !r.seize(e, account.Memory, bytes) {
		look := func(granted <-chan struct{}) { e.reclaim(granted, account.Memory, bytes) }
		if err := e.account.Wait(ctx, &account.Claim{Kind: account.Memory, N: bytes, First: true}, look); err != nil {
			return nil, err
		}
	}
	return func() { e.account.Give(account.Memory, bytes) }, nil
}

// neverRoom returns the error of a call that needs more memory than all tools together may use.
func (e *Engine) neverRoom(bytes int64) *Error {
	most := e.account.Most(account.Memory, true)
	return &Error{Outcome: ToolMemory, Message: "The tool needs more memory than the service has for all tools together.",
		Err: fmt.Errorf("it needs %s, and all tools together may take %s: raise server.memory", text.Size(bytes), text.Size(most))}
}

// Claim counts bytes of memory that will be used for a moment, until give is called. Idle memory is freed for them. Claim does not wait: the caller
// must bound what it claims at a time.
func (e *Engine) Claim(bytes int64) (give func()) {
	if !e.account.Take(account.Memory, bytes, true) {
		e.reclaim(nil, account.Memory, bytes)
		e.account.Add(account.Memory, bytes)
	}
	return func() { e.account.Give(account.Memory, bytes) }
}

// Memory returns how many bytes all programs may use together.
func (e *Engine) Memory() int64 { return e.account.Most(account.Memory, true) }

// keep counts memory that is kept for programs, whether or not there is room.
func (e *Engine) keep(bytes int64) {
	e.account.Add(account.Manifests, bytes)
	e.account.Give(account.Memory, -bytes)
}

// limit returns a context that is also done at the deadline, and when the engine closes. A call that never waits does not need it.
func (e *Engine) limit(ctx context.Context, deadline time.Time) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, release := context.WithDeadlineCause(ctx, deadline, errTimeout)
	unhook := context.AfterFunc(e.stop, func() { cancel(errClosing) })
	return ctx, func() {
		unhook()
		release()
		cancel(nil)
	}
}

// maxDescriptors is how many files guests may have open by default if the system sets no limit.
const maxDescriptors = 16 << 10

// The manifests of all programs may use at most a quarter of Config.Memory, and their modules another quarter. Calls have the rest.
const (
	manifestShare = 4
	sourceShare   = 4
)

// ownAddresses is how many bytes of its address space the process needs apart from the memories of guests. Go's runtime reserves 800 MiB when
// it starts, and the C library 64 or 128 MiB for each thread. Go ends the process if it gets no more. leastAddresses is the least that the
// process must have.
const (
	ownAddresses   = 3 << 30
	leastAddresses = 4 << 30
)

// checkAddresses returns an error if the process may have too little address space; 0 means no limit.
func checkAddresses(most int64) error {
	if most == 0 || most >= leastAddresses {
		return nil
	}
	return fmt.Errorf("the process may have %s of address space (ulimit -v), but needs %s, because it reserves much that it never uses: remove that limit, and limit its memory with a control group, server.memory or GOMEMLIMIT",
		text.Size(most), text.Size(leastAddresses))
}

// newAccount returns the account of an engine.
func newAccount(c Config) *account.Account {
	if c.Memory <= 0 {
		c.Memory = account.DefaultMemory(account.MachineMemory())
	}
	if c.Mappings <= 0 {
		c.Mappings = account.MachineMappings() / 4 * 3 // Go's heap and threads need some, too
	}
	if most := account.MachineAddresses(); c.Addresses <= 0 && most > 0 {
		c.Addresses = max(leastAddresses, most) - ownAddresses
	}
	if c.CodeMemory <= 0 {
		c.CodeMemory = account.DefaultCode(account.MachineMemory())
	}
	if c.Descriptors <= 0 {
		c.Descriptors = max(1, min(account.MachineDescriptors()/8, maxDescriptors))
	}
	return account.New(map[account.Kind]int64{
		account.Memory: c.Memory, account.Mappings: c.Mappings, account.Addresses: c.Addresses, account.Code: c.CodeMemory, account.Descriptors: c.Descriptors,
		account.Manifests: max(1, c.Memory/manifestShare), account.Sources: max(1, c.Memory/sourceShare),
	})
}
