// Package account counts how much of the process's scarce resources all tools use together. So there is a limit for each tool, and one for all
// tools together.
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
	// Memory is in bytes. It counts the memory that running calls may use, what idle instances and snapshots keep, and compiling.
	Memory Kind = iota
	// Mappings are parts of the process's address space; the system limits their number.
	Mappings
	// Addresses are the bytes of address space that guests' memories reserve.
	Addresses
	// Code is compiled code, in bytes.
	Code
	// Descriptors are the descriptors of files that guests have open.
	Descriptors
	// Manifests is the memory that is kept for manifests, in bytes: compiled schemas, and documents.
	Manifests
	// Sources are the bytes of tools' modules as they were written, and what scripts have in addition to their interpreter.
	Sources

	kinds
)

// A part of each limit, 1/reserve of it, is only for tools without running calls. So a tool that takes all it can get leaves room for others.
const reserve = 8

// A Key opens the reserve to a tool's calls, one at a time. A call that waits must not hold the key, since it would keep out another call whose turn
// it is. A Key is safe for concurrent use.
type Key struct{ taken atomic.Bool }

// Take takes the key, and reports false if another call has it. A nil Key can't be taken.
func (k *Key) Take() bool { return k != nil && !k.taken.Load() && k.taken.CompareAndSwap(false, true) }

// Return gives the key back.
func (k *Key) Return() { k.taken.Store(false) }

// An Account limits how much of each kind is taken. It is safe for concurrent use.
type Account struct {
	lines [kinds]line

	waiters atomic.Int32 // calls of Wait; a caller that gives something back serves them
	wanting atomic.Int32 // claims that have waited for longer than Moment
	mu      sync.Mutex
	waiting list.List // of *waiter: first those with Ahead, then the others, each group in order of arrival
}

// Moment is how long a waiter waits before it asks for idle resources to be freed: many calls end within that time, and idle resources are worth
// keeping for so long.
const Moment = 10 * time.Millisecond

// patience is how long a waiter then waits before it asks for that again. Each further pause is twice as long.
const patience = 100 * time.Millisecond

// unlimited is the limit of a kind without a limit.
const unlimited = math.MaxInt64

// A line counts how much of a kind is taken. It fills a cache line, since every call changes one.
type line struct {
	limit int64
	held  atomic.Int64
	_     [48]byte
}

// A Claim is a request for memory or mappings that may have to wait.
type Claim struct {
	Kind Kind
	// N is the amount.
	N int64
	// First is the argument first of Take.
	First bool
	// Key sets First if it can be taken when the claim's turn comes. The claimant then has the key.
	Key *Key
	// Ahead puts the claim before others. It is for a claimant that already holds something while it waits for more.
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

// Most returns how much of a kind may be taken in total. If first is true, that is for a tool that has nothing yet; otherwise it is for a tool that
// has something, and so may not use the reserve.
func (a *Account) Most(k Kind, first bool) int64 {
	most := a.lines[k].limit
	if !first {
		most -= most / reserve
	}
	return most
}

// Held returns how much of a kind is taken.
func (a *Account) Held(k Kind) int64 { return a.lines[k].held.Load() }

// A Use says how much of a kind is taken.
type Use struct {
	Held    int64
	Limit   int64 // 0: unlimited
	Waiting int   // how many claims wait
}

// Use returns how much of a kind is taken.
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

// Take takes n of a kind if there is room. If first is true, as for a tool that has nothing yet, it may use the reserve. It takes some 10 ns.
func (a *Account) Take(k Kind, n int64, first bool) bool {
	l, limit := &a.lines[k], a.Most(k, first)
	// It would be wrong to add first and check afterwards: another caller might see an amount that is taken only for a moment, and then wait forever.
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

// Grant takes what is claimed if there is room. It takes the claim's key, if that is free.
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

// Add takes n of a kind whether or not there is room. It is for resources that are in use already.
func (a *Account) Add(k Kind, n int64) { a.lines[k].held.Add(n) }

// Give gives n of a kind back. Waiters are served in their order, but none waits behind one that needs more than there is.
func (a *Account) Give(k Kind, n int64) {
	a.lines[k].held.Add(-n)
	if a.waiters.Load() > 0 {
		a.pass()
	}
}

// Wanted reports whether a claim has waited for longer than Moment.
func (a *Account) Wanted() bool { return a.wanting.Load() > 0 }

// Wait takes what is claimed as soon as there is room. If ctx is done first, it takes nothing and returns the cause. If it also took the claim's key,
// c.First is true afterwards.
//
// After Moment, and again from time to time, it calls look, if that is not nil, to free idle resources. look may stop as soon as granted is closed.
func (a *Account) Wait(ctx context.Context, c *Claim, look func(granted <-chan struct{})) error {
	w := &waiter{c, make(chan struct{})}
	a.mu.Lock()
	// The waiter is counted before the last attempt, so that whatever is given back afterwards is passed on to it.
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
	case <-w.granted: // granted at the same moment
		a.mu.Unlock()
		return nil
	default:
	}
	a.waiting.Remove(place)
	a.mu.Unlock()
	return context.Cause(ctx)
}

// queue adds a waiter at its place. a.mu is held.
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
