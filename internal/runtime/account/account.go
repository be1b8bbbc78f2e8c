// Package account counts what all tools together take of the process's scarce resources, so that not only each of them has a
// limit but also their sum.
package account

import (
	"container/list"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A Kind is a scarce resource.
type Kind int

const (
	// Memory is in bytes: running calls with what they may touch, idle instances and snapshots with what they keep, and compiling.
	Memory Kind = iota
	// Mappings are of the process's address space; the system bounds their number.
	Mappings
	// Addresses are bytes of the process's address space that memories of guests reserve.
	Addresses
	// Code is compiled code, in bytes.
	Code
	// Descriptors are of files that guests have open.
	Descriptors
	// Manifests is the memory of what is kept of manifests, in bytes: schemas as checks need them, and documents.
	Manifests
	// Sources are the modules of tools as they were written, in bytes, and what scripts have besides their interpreter.
	Sources

	kinds
)

// One part in reserve of each limit is only for tools without running calls, so that a tool that takes all it can get leaves
// room for the others.
const reserve = 8

// A Key opens the reserve to one at a time of those who share it: a tool's calls. Who waits does not have it, since then one that waits
// would keep out another whose turn it is. It is safe for concurrent use.
type Key struct{ taken atomic.Bool }

// Take takes the key if nobody has it. A nil Key is never there.
func (k *Key) Take() bool { return k != nil && !k.taken.Load() && k.taken.CompareAndSwap(false, true) }

// Return gives the key back.
func (k *Key) Return() { k.taken.Store(false) }

// An Account bounds what is taken of each kind. It is safe for concurrent use.
type Account struct {
	lines [kinds]line

	waiters atomic.Int32 // calls of Wait; a caller that gives something back serves them
	wanting atomic.Int32 // those that have waited for longer than Moment
	mu      sync.Mutex
	waiting list.List // of *waiter: those ahead, then the others, each in the order in which they came
}

// Moment is how long a wait takes before it looks around: many calls are over by then, and what is idle is worth keeping for so long.
const Moment = 10 * time.Millisecond

// patience is how long it then takes before it looks around again. Each further time is twice as long.
const patience = 100 * time.Millisecond

// unlimited is the limit of a kind that has none.
const unlimited = math.MaxInt64

// A line counts what is taken of a kind. Each has a cache line of its own, since every call changes one.
type line struct {
	limit int64
	held  atomic.Int64
	_     [48]byte
}

// A Claim is a request for memory or mappings that may have to wait.
type Claim struct {
	Kind Kind
	// N is how much of it.
	N int64
	// First has the meaning that it has in Take.
	First bool
	// Key makes it First, if it is there when the claim's turn comes. The claimant has it then.
	Key *Key
	// Ahead puts the claim before others: its claimant keeps what it has until it gets more.
	Ahead bool
}

type waiter struct {
	*Claim
	granted chan struct{}
}

// New returns an account with a limit for each kind. A kind without a limit above 0 is unlimited.
func New(limits map[Kind]int64) *Account {
	a := &Account{}
	for k := range a.lines {
		a.lines[k].limit = limits[Kind(k)]
		if a.lines[k].limit <= 0 {
			a.lines[k].limit = unlimited
		}
	}
	return a
}

// Most returns how much of a kind may be taken in all, by a tool that has nothing yet (first) or by others.
func (a *Account) Most(k Kind, first bool) int64 {
	most := a.lines[k].limit
	if !first {
		most -= most / reserve
	}
	return most
}

// Held returns how much is taken of a kind.
func (a *Account) Held(k Kind) int64 { return a.lines[k].held.Load() }

// A Use is how much of a kind is taken.
type Use struct {
	Held    int64
	Limit   int64 // 0: unlimited
	Waiting int   // how many wait for more
}

// Use returns how much is taken of a kind.
func (a *Account) Use(k Kind) Use {
	u := Use{Held: a.Held(k), Limit: a.lines[k].limit}
	if u.Limit == unlimited {
		u.Limit = 0
	}
	if a.waiters.Load() == 0 {
		return u
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for e := a.waiting.Front(); e != nil; e = e.Next() {
		if e.Value.(*waiter).Kind == k {
			u.Waiting++
		}
	}
	return u
}

// Take takes n of a kind if there is room. With first, it may use the reserve: the tool has nothing yet. It takes some 10 ns.
func (a *Account) Take(k Kind, n int64, first bool) bool {
	l, limit := &a.lines[k], a.Most(k, first)
	// To add first and look then would be wrong: somebody else might see what is only taken for a moment, and wait for ever.
	for {
		held := l.held.Load()
		if n > 0 && held+n > limit {
			return false
		}
		if l.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

// Grant takes what is claimed if there is room, with its key if that is there.
func (a *Account) Grant(c *Claim) bool {
	with := !c.First && c.Key.Take()
	switch {
	case a.Take(c.Kind, c.N, c.First || with):
		c.First = c.First || with
		return true
	case with:
		c.Key.Return()
	}
	return false
}

// Add takes n of a kind whether or not there is room. It is for what exists already.
func (a *Account) Add(k Kind, n int64) { a.lines[k].held.Add(n) }

// Give gives n of a kind back. Those who wait for it are served in their order, but nobody waits behind one who needs more than there
// is.
func (a *Account) Give(k Kind, n int64) {
	a.lines[k].held.Add(-n)
	if a.waiters.Load() > 0 {
		a.pass()
	}
}

// Wanted reports whether somebody has waited for longer than Moment.
func (a *Account) Wanted() bool { return a.wanting.Load() > 0 }

// Wait takes what is claimed as soon as there is room. When ctx is done first, it takes nothing and returns the cause. Where it took the
// claim's key, too, c.First is true from then on.
//
// After Moment, and now and then, it calls look, unless that is nil, to give back what is idle. look may stop when granted is closed.
func (a *Account) Wait(ctx context.Context, c *Claim, look func(granted <-chan struct{})) error {
	w := &waiter{c, make(chan struct{})}
	a.mu.Lock()
	// It is counted before the last attempt, so that whatever is given back after that is passed on.
	a.waiters.Add(1)
	defer a.waiters.Add(-1)
	if a.Grant(c) {
		a.mu.Unlock()
		return nil
	}
	place := a.queue(w)
	a.mu.Unlock()
	pause, wanting := patience/2, int32(0)
	defer func() { a.wanting.Add(-wanting) }()
	timer := time.NewTimer(Moment)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-w.granted:
			return nil
		case <-ctx.Done():
		case <-timer.C:
			if wanting == 0 {
				wanting = 1
				a.wanting.Add(wanting)
			}
			if look != nil {
				look(w.granted)
			}
			pause *= 2
			timer.Reset(pause)
		}
	}
	a.mu.Lock()
	select {
	case <-w.granted: // at the same moment
		a.mu.Unlock()
		return nil
	default:
	}
	a.waiting.Remove(place)
	a.mu.Unlock()
	return context.Cause(ctx)
}

// queue gives a waiter its place. a.mu is held.
func (a *Account) queue(w *waiter) *list.Element {
	if w.Ahead {
		for e := a.waiting.Front(); e != nil; e = e.Next() {
			if !e.Value.(*waiter).Ahead {
				return a.waiting.InsertBefore(w, e)
			}
		}
	}
	return a.waiting.PushBack(w)
}

// pass serves the waiters, as far as there is room.
func (a *Account) pass() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for e := a.waiting.Front(); e != nil; {
		w, this := e.Value.(*waiter), e
		e = e.Next()
		if a.Grant(w.Claim) {
			a.waiting.Remove(this)
			close(w.granted)
		}
	}
}
