package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/internal/convention"
	"github.com/toolsrv/toolsrv/internal/runtime/internal/foundry"
	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
)

// An instance is one sandbox: a guest with its memory, its globals and the state of its call. It serves one call at a time.
type instance struct {
	snapshot   *snapshot // the snapshot that it is reset to, on which it has a hold; nil: it serves only one call
	base       *snapshot // the snapshot that it began with, on which it has a hold; nil: none, or a snapshot has the hold
	guest      api.Module
	convention *convention.Convention // the guest's
	memory     memory
	globals    []api.MutableGlobal // the guest's
	fuel       api.MutableGlobal
	stack      api.MutableGlobal
	refused    api.MutableGlobal       // how often the guest was refused memory
	linear     *instrument.LinearStack // the stack in the guest's memory; nil: none known
	entry      api.Function            // the convention's Call
	params     [1]uint64               // arguments and results of entry
	call       call

	since     time.Time    // start of the last call
	resident  int64        // bytes that it takes while it is idle
	overhead  int64        // bytes that it takes in addition to its memory
	stackSize int64        // call stack that a call has at first, in bytes of the estimate
	claimed   int64        // bytes that the account holds for it
	told      atomic.Int64 // the value of claimed when the call began or last grew: others may read it while the call runs
	mappings  int64        // mappings that the account holds for it
	reserved  uint64       // bytes of address space
	most      int64        // largest memory that the module declares, in bytes
	adapted   bool         // it was refused memory while it started
}

// build makes the memory and the guest.
func (i *instance) build(m *module, code *foundry.Native) (err error) {
	s := i.snapshot
	if s != nil {
		i.memory.linear, err = s.image.Map(i.reserved)
	} else {
		i.memory.linear, err = linmem.New(i.reserved)
	}
	if err != nil {
		return fmt.Errorf("make memory: %w", err)
	}
	i.memory.limit = maxMemory
	i.call.memory = i.memory.linear
	if err := i.attach(m, code); err != nil {
		return errors.Join(err, i.memory.linear.Free())
	}
	// The memory may take fewer mappings than were reserved for it.
	less := i.mappings - int64(i.memory.linear.Mappings())
	i.mappings -= less
	m.engine.account.Give(account.Mappings, less)
	return nil
}

// grow makes the account hold what the instance takes once its memory has size bytes. If there is no room, it ends the call. It waits at most a
// quarter of the remaining time: meanwhile the call keeps what it has, and others may wait for that. A start does not wait, since it can begin again.
func (i *instance) grow(size int64) {
	c := &i.call
	bytes := size + i.overhead + c.beside
	if bytes <= i.claimed {
		return
	}
	c.memory.Unwatch()
	if err := i.enlarge(bytes); err != nil {
		panic(err)
	}
	i.claimed = bytes
	i.tell()
}

// enlarge takes the room for grow. The error is an *Error.
func (i *instance) enlarge(bytes int64) error {
	c, e, more := &i.call, i.call.engine, bytes-i.claimed
	if bytes > e.account.Most(account.Memory, true) {
		return e.neverRoom(bytes)
	}
	c.short = bytes
	if c.starting {
		if r := (run{first: c.first}); !r.seize(e, account.Memory, more) {
			return overloaded(nil)
		}
	} else if !e.account.Take(account.Memory, more, false) {
		c.stand()
		ctx, done := e.limit(c.ctx, time.Now().Add(time.Until(c.deadline)/4))
		defer done()
		r := run{CallSpec: CallSpec{Outer: c.outer}}
		if err := r.take(ctx, e, &account.Claim{Kind: account.Memory, N: more, Ahead: true}); err != nil {
			return err
		}
	}
	c.short = 0
	return nil
}

// tell stores what the account holds for an instance whose call is running. Usually the amount has not changed, and tell only reads it.
func (i *instance) tell() {
	if i.told.Load() != i.claimed {
		i.told.Store(i.claimed)
	}
}

// cool gives back to the account what an idle instance does not need.
func (i *instance) cool() {
	i.call.engine.account.Give(account.Memory, i.claimed-i.resident)
	i.claimed = i.resident
}

// release gives the instance's memory back to the account, and drops its holds on snapshots.
func (i *instance) release() {
	e := i.call.engine
	e.account.Give(account.Memory, i.claimed)
	e.account.Give(account.Mappings, i.mappings)
	e.account.Give(account.Addresses, int64(i.reserved))
	i.claimed, i.mappings, i.reserved = 0, 0, 0
	e.drop(i.snapshot)
	e.drop(i.base)
	i.snapshot, i.base = nil, nil
}

// cede passes the memory that the account holds for the instance to a run.
func (i *instance) cede(r *run) {
	r.room += i.claimed
	i.claimed = 0
}

// attach makes the guest, which uses the existing memory.
func (i *instance) attach(m *module, code *foundry.Native) error {
	least := uint64(m.shape.memory)
	if uint64(len(i.memory.linear.Bytes())) < least && i.memory.linear.Grow(least) == nil {
		return fmt.Errorf("make memory of %d bytes: the system has no room", least)
	}
	guest, err := code.Runtime.InstantiateModule(experimental.WithMemoryAllocator(context.Background(), &i.memory), code.Code, m.engine.anonymous)
	if err != nil {
		return err
	}
	i.guest, i.convention = guest, m.shape.convention
	i.call.abi = hostcall.NewCall(&i.call, hostcall.Guest{Memory: guest.Memory(), Command: i.convention.Command, Sets: len(m.engine.offered.sets)})
	global := func(name string) api.MutableGlobal {
		g, ok := guest.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			err = fmt.Errorf("the rewritten module does not export the global %q", name)
		}
		return g
	}
	i.fuel, i.stack, i.refused = global(instrument.FuelGlobal), global(instrument.StackGlobal), global(instrument.RefusedGlobal)
	i.globals = make([]api.MutableGlobal, len(m.code.Native().Rewritten.Globals))
	for k, g := range m.code.Native().Rewritten.Globals {
		i.globals[k] = global(g.Name)
	}
	if err != nil {
		return errors.Join(err, i.close())
	}
	if s := i.snapshot; s != nil {
		if missing := (s.size() - int64(guest.Memory().Size())) / pageSize; missing > 0 {
			if _, ok := guest.Memory().Grow(uint32(missing)); !ok {
				return errors.Join(fmt.Errorf("the snapshot of %d bytes does not fit into the memory", s.size()), i.close())
			}
		}
		for k, v := range s.globals {
			i.globals[k].Set(v)
		}
	}
	i.memory.grown = false
	i.enter()
	return nil
}

// enter makes the guest's entry function, with a new call stack.
func (i *instance) enter() {
	i.entry = i.guest.ExportedFunction(i.convention.Call.Name)
}

// close frees the guest and its memory.
func (i *instance) close() error {
	defer i.release()
	i.call.rest() // after a panic
	return errors.Join(i.guest.Close(context.Background()), i.memory.linear.Free())
}

// invoke runs a function of the guest with the call's fuel and call stack.
func (i *instance) invoke(f api.Function, stack []uint64) error {
	i.fuel.Set(uint64(uint32(i.call.next())))
	i.stack.Set(uint64(uint32(i.call.firstPart())))
	i.refused.Set(0)
	i.call.inside = 1
	err := f.CallWithStack(&i.call, stack)
	i.call.inside = 0
	return err
}

// serve runs a function of the guest for a call, and returns the call's result. If intact is false, the instance must be closed. The
// error is an *Error.
func (i *instance) serve(r *run, f api.Function) (output []byte, intact bool, err error) {
	i.call.begin(r)
	i.memory.limit = r.limits.Memory
	i.convention.Begin(i.params[:], r.index)
	i.memory.linear.Watch() // until it is reset or freed
	err = i.invoke(f, i.params[:])
	i.call.end()
	r.burn(i.call.spent())
	if i.call.reports != nil {
		i.call.tell(time.Now())
	}
	r.needed(max(int64(len(i.memory.linear.Bytes())), i.call.short))
	end := i.convention.Result(i.params[:], err)
	switch {
	case end.End == convention.Broke:
		return nil, false, i.classify(err)
	case end.Starved && (i.starved() || i.adapted):
		if err != nil {
			err = clip(err)
		}
		return nil, false, i.wantedMemory(err)
	}
	output, err = i.call.result(end)
	return output, !i.memory.grown || i.shrink(), err
}

// shrink sets a memory that has grown back to its old size, and reports whether the guest sees that size. reset frees the rest. wazero can only
// grow a memory, but it accepts any slice that its allocator returns. It does not call the allocator if the memory already has its greatest size.
func (i *instance) shrink() bool {
	if i.snapshot == nil {
		return false
	}
	i.memory.shrunk = i.memory.linear.Bytes()[:i.snapshot.size():i.snapshot.size()]
	_, asked := i.guest.Memory().Grow(1)
	i.memory.shrunk = nil
	return asked && int64(i.guest.Memory().Size()) == i.snapshot.size()
}

// starved reports whether the guest was refused memory. If it breaks afterwards, lack of memory was the reason.
func (i *instance) starved() bool { return i.refused.Get() != 0 }

// reset puts the instance back into the state before its first call.
func (i *instance) reset() error {
	copied, err := i.memory.linear.Reset()
	if err != nil {
		return fmt.Errorf("reset memory: %w", err)
	}
	for k, v := range i.snapshot.globals {
		i.globals[k].Set(v)
	}
	i.keepStack()
	i.call.wipe()
	i.params[0] = 0
	i.memory.grown = false
	i.resident = int64(copied) + i.overhead
	return nil
}

// same returns an error if the instance differs from its snapshot.
func (i *instance) same() error {
	if !i.memory.linear.Equal() {
		return errors.New("the memory differs from the snapshot")
	}
	if n := i.guest.Memory().Size(); int64(n) != i.snapshot.size() {
		return fmt.Errorf("the memory has %d bytes; the snapshot has %d", n, i.snapshot.size())
	}
	got := make([]uint64, len(i.globals))
	for k, g := range i.globals {
		got[k] = g.Get()
	}
	if !slices.Equal(got, i.snapshot.globals) {
		return fmt.Errorf("the globals are %d, but the snapshot's are %d", got, i.snapshot.globals)
	}
	return nil
}

// step runs an export that is part of the guest's start. The error is an *Error.
func (i *instance) step(export string) error {
	err := i.invoke(i.guest.ExportedFunction(export), nil)
	i.adapted = i.adapted || i.starved()
	if err != nil {
		return i.classify(err)
	}
	i.call.spent() // before the next step gets a new slice
	return nil
}

// keepStack lets the instance keep the stack that the last call needed. If that was large, the instance gets a new one.
func (i *instance) keepStack() {
	more := i.call.granted - i.stackSize
	switch {
	case more <= 0:
	case i.call.granted <= keptStack:
		i.stackSize += more
		i.overhead += 2 * more
	default:
		i.enter()
	}
}
