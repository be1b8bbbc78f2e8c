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

// Limits on compiling a module in a separate process. It may use at most apart.Memory of memory, and helperTimes the predicted time plus helperBase,
// for a slow processor. At first it gets only helperGuess times the predicted memory, plus helperOwn for the process itself: on a small machine, the
// process takes memory from calls. Only if that is too little does the process get all the memory.
const (
	helperTimes = 4
	helperBase  = 5 * time.Second
	helperGuess = 2
	helperOwn   = 24 << 20
	// roomTime is how long a module that needs more memory than predicted waits for memory that calls use.
	roomTime = 5 * time.Second
)

// newPool returns the processes that compile for an engine, within the machine's memory. tight reports whether the account of all programs must count
// their memory for large modules.
func newPool(c Config) (p *compile.Pool, tight bool, err error) {
	a := c.Account
	machine := account.MachineMemory()
	each := apart.Memory(machine)
	spare := machine - a.Most(account.Memory, true) - a.Most(account.Code, true) - machine/4 // at least a quarter is Go's heap
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

// limitOf returns the first limit for compiling a rewritten module.
func limitOf(r *instrument.Rewritten) compile.Limit {
	return compile.Limit{CPU: helperBase + helperTimes*r.Weight.Time(), Bytes: helperOwn + helperGuess*r.Weight.Bytes}
}

// apart compiles a module in a separate process. done is false if no process can: then the prediction has to be enough. Without a scratch
// directory, the module is only tried, and most becomes the limit that was enough. An error that is not the module's fault is temporary.
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
		f.bar(of, bar{TooMuch: &compile.TooMuch{Limit: compile.Limit{CPU: much.CPU, Bytes: f.pool.Most()}, Memory: much.Memory}}) // even with more than most.Bytes
	}
	return m, true, err
}

// ready starts a process, if processes are used: a module may be about to be compiled.
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

// within makes a process compile a module once there is room for the memory that the module may use. If sure is true, it waits for that room, for a
// while.
func (f *furnace) within(scratch string, module []byte, most compile.Limit, sure bool) (m compile.File, err error) {
	give, err := f.claim(most.Bytes, sure)
	if err != nil {
		return m, err
	}
	defer give()
	return f.pool.Compile(scratch, module, most)
}

// A claim takes the memory for compiling until give is called. If sure is true, it also waits for running calls.
type claim func(bytes int64, sure bool) (give func(), err error)

// claimFor returns a claim that takes memory from the account of all programs, for one large module at a time. Idle memory is freed for it, and the
// account's reserve stays for calls. If sure is true, it also waits for running calls. Otherwise it takes only what is free, since running calls
// may be waiting for the code.
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
				bytes = 0 // a call took the memory first
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

// A bar is the reason why a module is not compiled.
type bar struct {
	TooMuch *compile.TooMuch // the module exceeded this limit; nil if it did not
	Refused string           // the rewriter's error; "" if it accepted the module
}

// barred remembers modules that must not be compiled, for when the cache can't. The zero value is ready to use.
type barred struct {
	mu   sync.Mutex
	sums map[sum]bar
}

// mostBarred is how many modules are remembered in memory. Each takes some 300 bytes.
const mostBarred = 4096

// bar remembers why a module is not compiled, also in the cache if there is one.
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

// isBarred returns the error of a module that must not be compiled, or nil. A module that exceeded its memory or time may be tried again if more
// memory is allowed now, since garbage collection then takes less time, too.
func (f *furnace) isBarred(of sum) error {
	f.barred.mu.Lock()
	why, known := f.barred.sums[of]
	f.barred.mu.Unlock()
	if !known && f.cache != nil && f.cache.Has(f.key(of, aboutBound)) {
		parts, err := f.cache.Get(f.key(of, aboutBound))
		if err != nil || len(parts) != 1 || json.Unmarshal(parts[0], &why) != nil {
			return nil // then the module is checked once more
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
