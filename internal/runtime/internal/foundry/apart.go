package foundry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/compile"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
)

// What compiling a module in a separate process may take: at most apart.Memory, and helperTimes the prediction, with helperBase
// for a slow processor. It first gets helperGuess times the predicted memory, and helperOwn for the process itself. It gets all memory
// only if that is too little, since on a small machine calls lack what a process may take.
const (
	helperTimes = 4
	helperBase  = 5 * time.Second
	helperGuess = 2
	helperOwn   = 24 << 20
	// roomTime is how long a module that takes more than was thought waits for memory that calls have.
	roomTime = 5 * time.Second
)

// newPool returns the processes that compile for an engine, bounded by the machine's memory. tight reports whether their memory for
// large modules must be held by the account of all programs.
func newPool(c Config) (p *compile.Pool, tight bool, err error) {
	a := c.Account
	machine := account.MachineMemory()
	each := apart.Memory(machine)
	spare := machine - a.Most(account.Memory, true) - a.Most(account.Code, true) - machine/4 // a quarter is Go's heap, at least
	large := max(each, min(2*apart.Ample, spare))
	p, err = compile.NewPool(compile.Config{
		Command: c.CompileHelper,
		Each:    each,
		Large:   large,
		Small:   min(machine/8, int64(runtime.GOMAXPROCS(0)+2)*compile.SmallBytes),
		Logger:  c.Logger,
	})
	return p, spare < large, err
}

// limitOf returns what compiling a rewritten module may take at first.
func limitOf(r *instrument.Rewritten) compile.Limit {
	return compile.Limit{CPU: helperBase + helperTimes*r.Weight.Time(), Bytes: helperOwn + helperGuess*r.Weight.Bytes}
}

// apart makes a separate process compile a module. It reports false where no process can: then weighing the module has to do. Without a
// scratch directory, the module is only tried, and most becomes what it may take. An error that is not the module's fault will pass.
func (f *furnace) apart(of sum, scratch string, module []byte, most *compile.Limit) (m compile.File, done bool, err error) {
	if f.pool == nil {
		return m, false, nil
	}
	m, err = f.within(scratch, module, *most, false)
	much := (*compile.TooMuch)(nil)
	if errors.As(err, &much) && much.Memory && much.Bytes < f.pool.Most() {
		most.Bytes = f.pool.Most()
		m, err = f.within(scratch, module, *most, true)
	}
	if errors.Is(err, compile.ErrUnavailable) {
		f.notApart.Add(err)
		return m, false, nil
	}
	if err == nil {
		f.notApart.Over()
	}
	if errors.Is(err, compile.ErrClosed) {
		err = ErrClosed
	}
	if much = nil; errors.As(err, &much) {
		f.bar(of, bar{TooMuch: &compile.TooMuch{Limit: compile.Limit{CPU: much.CPU, Bytes: f.pool.Most()}, Memory: much.Memory}}) // with more than most.Bytes, too
	}
	return m, true, err
}

// ready starts a process, if there is to be one: a module may be about to be compiled.
func (f *furnace) ready() {
	if f.pool == nil {
		return
	}
	f.pool.Ready(func() (string, error) {
		if f.cache == nil || f.failing() {
			return "", nil
		}
		return f.cache.Scratch()
	})
}

// within has a process compile a module once there is room for what that may take. sure waits for room, for a while.
func (f *furnace) within(scratch string, module []byte, most compile.Limit, sure bool) (m compile.File, err error) {
	give, err := f.claim(most.Bytes, sure)
	if err != nil {
		return m, err
	}
	defer give()
	return f.pool.Compile(scratch, module, most)
}

// A claim takes what compiling takes, until give is called. If it must be sure, it waits for running calls, too.
type claim func(bytes int64, sure bool) (give func(), err error)

// claimFor returns how a furnace takes what compiling takes from the account of all programs, for one large module at a time. What is idle
// makes room for it, and the account's reserve stays for calls. If it must be sure, it waits for running calls, too; otherwise it takes
// only what is free, since they may be waiting for the code.
func (f *Foundry) claimFor(tight bool) claim {
	turn := make(chan struct{}, 1)
	return func(bytes int64, sure bool) (func(), error) {
		if !tight || bytes <= compile.SmallBytes {
			return func() {}, nil
		}
		a := f.account
		most := a.Most(account.Memory, false)
		bytes = min(bytes, most)
		give := func() {
			a.Give(account.Memory, bytes)
			<-turn
		}
		select {
		case turn <- struct{}{}:
		case <-f.stop.Done():
			return nil, compile.ErrClosed
		}
		if a.Take(account.Memory, bytes, false) {
			return give, nil
		}
		if f.reclaim(nil, account.Memory, bytes); a.Take(account.Memory, bytes, false) {
			return give, nil
		}
		if !sure {
			if bytes = min(bytes, max(0, most-a.Held(account.Memory))); !a.Take(account.Memory, bytes, false) {
				bytes = 0 // a call was quicker
			}
			return give, nil
		}
		ctx, cancel := context.WithTimeout(f.stop, roomTime)
		defer cancel()
		look := func(granted <-chan struct{}) { f.reclaim(granted, account.Memory, bytes) }
		if err := a.Wait(ctx, &account.Claim{Kind: account.Memory, N: bytes, Ahead: true}, look); err != nil {
			<-turn
			return nil, fmt.Errorf("%w: running calls use it, and compiling the module may take %d MiB", compile.ErrNoMemory, bytes>>20)
		}
		return give, nil
	}
}

// A bar is why a module is not compiled.
type bar struct {
	TooMuch *compile.TooMuch // it broke a bound; if nil, it did not
	Refused string           // what the rewriter said of it; "": it took it
}

// barred are modules that must not be compiled; it serves where the cache can't keep that. The zero value is ready to use.
type barred struct {
	mu   sync.Mutex
	sums map[sum]bar
}

// mostBarred is how many modules are remembered in memory, some 300 bytes each.
const mostBarred = 4096

// bar remembers why a module is not compiled, with the cache if there is one.
func (f *furnace) bar(of sum, why bar) {
	f.barred.mu.Lock()
	if f.barred.sums == nil || len(f.barred.sums) >= mostBarred {
		f.barred.sums = map[sum]bar{}
	}
	f.barred.sums[of] = why
	f.barred.mu.Unlock()
	if f.cache == nil {
		return
	}
	text, err := json.Marshal(why)
	if err == nil {
		err = f.cache.Put(f.key(of, aboutBound), text)
	}
	if err != nil {
		f.notKept.Add(err)
	}
}

// isBarred returns the error of a module that is not compiled, or nil. A module that broke a bound may be tried again where it can have
// more memory, since garbage collection then takes less time, too.
func (f *furnace) isBarred(of sum) error {
	f.barred.mu.Lock()
	why, known := f.barred.sums[of]
	f.barred.mu.Unlock()
	if !known && f.cache != nil && f.cache.Has(f.key(of, aboutBound)) {
		parts, err := f.cache.Get(f.key(of, aboutBound))
		if err != nil || len(parts) != 1 || json.Unmarshal(parts[0], &why) != nil {
			return nil // it is found out anew
		}
	}
	switch {
	case why.Refused != "":
		return errors.New(why.Refused)
	case why.TooMuch == nil || f.pool == nil || why.TooMuch.Bytes < f.pool.Most():
		return nil
	}
	return why.TooMuch
}
