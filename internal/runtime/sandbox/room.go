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

// How runs wait for room in the account, so that they never wait for each other in a circle:
//
//   - A run takes room for an instance before it has one, all that it expects to need, and holds nothing while it waits for that.
//   - A start that needs more than was expected does not wait: what it has made is thrown away, and it begins again with more.
//   - Only a call whose guest runs keeps what it has while it waits for more. It comes before those that have not begun, and waits for
//     a part of its time: if all that hold some wait, the first to give up makes room for the others. Its tool's next calls take as
//     much as it wanted before they begin.

// A peak is how many bytes of memory recent runs needed. It is safe for concurrent use.
type peak struct{ bytes atomic.Int64 }

// note notes what a run needed. One that needed much is forgotten in the course of some ten others.
func (p *peak) note(size int64) {
	if before := p.bytes.Load(); size < before {
		size += (before - size) * 3 / 4
	}
	p.bytes.Store(size)
}

// expect returns how many bytes the next run will probably need, where it has size to begin with and may have limit.
func (p *peak) expect(size, limit int64) int64 { return max(size, min(p.bytes.Load(), limit)) }

// claim makes the account hold at least that many bytes of memory for the run, for an instance that is to be made. Where there is no room,
// the run gives back what it has, and waits for the whole until ctx is done: for a moment until others end, and then until idle memory is
// freed, too. The error is an *Error.
func (r *run) claim(ctx context.Context, e *Engine, bytes int64) error {
	more := bytes - r.room
	switch {
	case more <= 0:
		return nil
	case bytes > e.account.Most(account.Memory, true):
		return e.neverRoom(bytes)
	case e.account.Take(account.Memory, more, r.first) || r.Outer != nil && e.seize(account.Memory, more, r.first):
		r.room = bytes
		return nil
	}
	r.yield(e)
	if err := e.wait(ctx, account.Claim{Kind: account.Memory, N: bytes, First: r.first, Ahead: r.ahead}, r); err != nil {
		return err
	}
	r.room = bytes
	return nil
}

// claimSpace makes the account hold mappings, and bytes of address space, for a run that has claimed that many bytes of memory, and has them
// still afterwards. Where there is no room, it waits until ctx is done. All runs wait for the kinds in this order. The error is an *Error.
func (r *run) claimSpace(ctx context.Context, e *Engine, bytes, mappings, addresses int64) (err error) {
	if most := e.account.Most(account.Addresses, true); addresses > most {
		return &Error{Outcome: ToolMemory, Message: "The tool may take more memory than the service has room for.",
			Err: fmt.Errorf("its memory may grow to %s, but all tools together may reserve only %s of address space: lower limits.memory, or raise the limit of the process (ulimit -v)",
				text.Size(addresses), text.Size(most))}
	}
	claims := []account.Claim{{Kind: account.Mappings, N: mappings, First: r.first}, {Kind: account.Addresses, N: addresses, First: r.first}}
	for k, c := range claims {
		if e.seize(c.Kind, c.N, c.First) {
			continue
		}
		r.yield(e)
		if err = e.take(ctx, c, r); err == nil {
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

// seizeSoon takes more memory for a run that has an idle instance. For a moment it rather waits for calls to end than for others to lose
// theirs: where many short calls take turns in little memory, each would start its tool again.
func (r *run) seizeSoon(e *Engine, more int64) bool {
	if e.account.Take(account.Memory, more, r.first) {
		return true
	}
	if r.Outer == nil && more <= e.account.Most(account.Memory, r.first) {
		ctx, done := context.WithTimeout(r.ctx, account.Moment)
		defer done()
		if e.account.Wait(ctx, account.Claim{Kind: account.Memory, N: more, First: r.first}, nil) == nil {
			return true
		}
	}
	return e.seize(account.Memory, more, r.first)
}

// yield gives back the room that no instance has taken.
func (r *run) yield(e *Engine) {
	if r.room > 0 {
		e.account.Give(account.Memory, r.room)
		r.room = 0
	}
}

// seize takes n of a kind from the account if there is room, or if what is idle can make some.
func (e *Engine) seize(k account.Kind, n int64, first bool) bool {
	if e.account.Take(k, n, first) {
		return true
	}
	if n > e.account.Most(k, first) {
		return false
	}
	e.reclaim(nil, k, n)
	return e.account.Take(k, n, first)
}

// take is seize for what a run claims. Where there is no room, it waits.
func (e *Engine) take(ctx context.Context, c account.Claim, r *run) error {
	if e.seize(c.Kind, c.N, c.First) {
		return nil
	}
	return e.wait(ctx, c, r)
}

// wait waits until a run has what it claims, or ctx is done. Now and then it frees what has become idle. A run inside another call does
// not wait: its outer calls hold some, and all who hold some may be such calls. The error is an *Error.
func (e *Engine) wait(ctx context.Context, c account.Claim, r *run) error {
	if r.Outer != nil || c.N > e.account.Most(c.Kind, c.First) {
		return overloaded(nil)
	}
	look := func(granted <-chan struct{}) { e.reclaim(granted, c.Kind, c.N) }
	switch err := e.account.Wait(ctx, c, look); {
	case err == nil:
		return nil
	case errors.Is(err, errTimeout):
		return overloaded(nil)
	default:
		return notBegun(ctx, "memory", 0)
	}
}

// ErrTooMuch is the error of Room where all tools together may not take as much.
var ErrTooMuch = errors.New("more memory than all tools together may take")

// Room takes bytes of the memory that all tools together may take, for the host's own work on their behalf. It waits until ctx is done, and its
// error is ErrTooMuch or the cause of ctx. give gives them back.
func (e *Engine) Room(ctx context.Context, bytes int64) (give func(), err error) {
	if bytes > e.account.Most(account.Memory, true) {
		return nil, ErrTooMuch
	}
	if !e.seize(account.Memory, bytes, true) {
		look := func(granted <-chan struct{}) { e.reclaim(granted, account.Memory, bytes) }
		if err := e.account.Wait(ctx, account.Claim{Kind: account.Memory, N: bytes, First: true}, look); err != nil {
			return nil, err
		}
	}
	return func() { e.account.Give(account.Memory, bytes) }, nil
}

// neverRoom is the error of a call that needs more memory than all tools together may take.
func (e *Engine) neverRoom(bytes int64) *Error {
	most := e.account.Most(account.Memory, true)
	return &Error{Outcome: ToolMemory, Message: "The tool needs more memory than the service has for all tools together.",
		Err: fmt.Errorf("it needs %s, and all tools together may take %s: raise server.memory", text.Size(bytes), text.Size(most))}
}

// Claim counts bytes of memory that are about to be taken for a moment, until give is called. Idle memory is freed for them. It waits for
// nobody: the claimant bounds what it claims at a time.
func (e *Engine) Claim(bytes int64) (give func()) {
	if !e.account.Take(account.Memory, bytes, true) {
		e.reclaim(nil, account.Memory, bytes)
		e.account.Add(account.Memory, bytes)
	}
	return func() { e.account.Give(account.Memory, bytes) }
}

// Memory returns how many bytes all programs may take together.
func (e *Engine) Memory() int64 { return e.account.Most(account.Memory, true) }

// keep counts what is kept because of programs. It asks nobody.
func (e *Engine) keep(bytes int64) {
	e.account.Add(account.Manifests, bytes)
	e.account.Give(account.Memory, -bytes)
}

// limit returns a context that is also done at the deadline, and when the engine closes. A call that never waits does without it.
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
