package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/internal/foundry"
	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
	"github.com/toolsrv/toolsrv/internal/text"
)

// make makes an instance that is ready for a call. The error is an *Error.
func (m *module) make(r *run) (*instance, error) {
	ctx, done := m.engine.limit(r.ctx, r.deadline)
	defer done()
	if m.shape.memory > r.limits.Memory {
		return nil, tooLarge(m.shape.memory, r.limits.Memory)
	}
	since := r.clock.now()
	code, err := m.code.Compile(ctx)
	r.clock.compiled(since)
	if err != nil && ctx.Err() != nil {
		return nil, notBegun(ctx, "the tool to be compiled", r.limits.Timeout)
	}
	if err != nil {
		return nil, uncompiled(err)
	}
	defer r.yield(m.engine)
	for m.code.Native().Rewritten.Fresh == "" {
		m.mu.Lock()
		s, starting := m.snapshot, m.starting
		needs := m.startRoom(r, m.shape.memory)
		again := s != nil && s.size() > r.limits.Memory // the first start took more than this run may use; perhaps the module can do with less
		if s != nil && !again {
			needs = m.callRoom(r, s, m.overhead())
		}
		first, ready := s == nil && starting == nil, r.room >= needs
		switch {
		case s != nil && !again && ready:
			s.hold()
		case first && ready:
			m.starting = make(chan struct{})
		}
		m.mu.Unlock()
		switch {
		case again:
			return m.startedAgain(ctx, code, r)
		case s == nil && !first:
			r.retire(m.engine)
			err = r.await(m.engine, starting)
		case !ready:
			if err = r.claim(ctx, m.engine, needs); err != nil { // after a successful wait, look at everything again: much may have changed
				r.needed(0) // each time that there is no room, less is expected
				m.code.starts.note(0)
			}
		case first:
			var i *instance
			if i, err = m.first(ctx, code, r); i != nil {
				return i, nil
			}
		default:
			return m.instantiate(ctx, r, code, s, needs)
		}
		if err != nil {
			return nil, err
		}
	}
	return m.startedAgain(ctx, code, r)
}

// callRoom returns how many bytes a run needs for a call in an instance of a snapshot. overhead is what the instance takes in addition to its memory.
func (m *module) callRoom(r *run, s *snapshot, overhead int64) int64 {
	return max(s.size()+overhead, min(r.expects(s.size())+overhead, m.engine.Memory()))
}

// startRoom returns how many bytes a run needs for a start that begins with size bytes of memory, and for the call after it.
func (m *module) startRoom(r *run, size int64) int64 {
	expected := max(r.least, max(r.expects(size), m.code.starts.expect(size, r.limits.Memory))+m.overhead())
	return max(size+m.overhead(), min(expected, m.engine.Memory()))
}

func tooLarge(needs, limit int64) *Error {
	return &Error{Outcome: ToolMemory, Message: fmt.Sprintf("The tool needs %s of memory to start; its limit is %s.", text.Size(needs), text.Size(limit))}
}

// first makes the snapshot from which the instances of calls are made. One run at a time does this; others wait for m.starting. It returns the
// started instance only if it made no snapshot of it.
func (m *module) first(ctx context.Context, code *foundry.Native, r *run) (i *instance, err error) {
	var s *snapshot
	defer func() {
		m.mu.Lock()
		m.snapshot, m.called = s, time.Now()
		close(m.starting)
		m.starting = nil
		m.mu.Unlock()
	}()
	if i, err = m.started(ctx, code, r); err != nil {
		r.burn(r.started)
		return nil, err
	}
	if i.adapted {
		r.burn(r.started)
		return i, nil // its state depends on this tool's limit, and must not be used for other tools
	}
	r.ahead = true
	s, err = m.capture(r, i)
	return nil, err
}

// capture makes a snapshot of an instance that was started, and closes the instance. The run keeps what is left of its room. The error is an *Error.
func (m *module) capture(r *run, i *instance) (*snapshot, error) {
	taken, err := i.takeSnapshot()
	if err == nil {
		// The snapshot is no larger than the memory that it was made from, and takes over that memory's room in the account. If the snapshot had
		// to wait for room of its own, it would not be counted while it waits.
		i.claimed -= taken.resident()
		m.code.starts.note(r.took + taken.resident())
	}
	i.cede(r)
	m.discard(i)
	if err != nil {
		return nil, failed(err)
	}
	return taken, nil
}

// startFuel is the least fuel that a start has if calls have a limit. A module in Go needs 15 million, and whether it starts must not depend on which
// tool is called first.
const startFuel = 1_000_000_000

// started makes an instance without a snapshot, and starts it within the limits of the call.
func (m *module) started(ctx context.Context, code *foundry.Native, r *run) (*instance, error) {
	base, err := m.basis(ctx, code, r)
	if err != nil {
		return nil, err
	}
	return m.attempt(ctx, r, code, base, m.start)
}

// attempt makes an instance, from base or, if base is nil, with an empty memory, and runs a part of its start in it. It takes over the hold on base.
// If there is less room than the start needs, it begins again with more.
func (m *module) attempt(ctx context.Context, r *run, code *foundry.Native, base *snapshot, part func(i *instance) error) (*instance, error) {
	defer m.engine.drop(base)
	size := m.shape.memory
	if base != nil {
		size = base.size()
	}
	for {
		i, err := m.instantiate(ctx, r, code, base.hold(), m.startRoom(r, size))
		if err != nil {
			return nil, err
		}
		i.base, i.snapshot = i.snapshot, nil
		err = m.within(r, i, part)
		r.took = int64(len(i.memory.linear.Bytes())) + i.call.beside
		short := i.call.short
		i.call.wipe()
		if err == nil {
			return i, nil
		}
		i.cede(r)
		m.discard(i)
		if short == 0 {
			return nil, err
		}
		// It gets half as much again, since it may need still more: otherwise it would begin again for each page.
		r.least, r.ahead = min(short+short/2, m.engine.account.Most(account.Memory, true)), true
	}
}

// startedAgain is like started, for a module of which no snapshot can be made, or whose snapshot exceeds the run's limits. A start in a call uses
// the outer call's fuel: otherwise a call with little fuel left could have others work for it.
func (m *module) startedAgain(ctx context.Context, code *foundry.Native, r *run) (*instance, error) {
	i, err := m.started(ctx, code, r)
	r.burn(r.started)
	return i, err
}

// within runs a part of an instance's start within the limits of a run.
func (m *module) within(r *run, i *instance, part func(i *instance) error) error {
	start, limits := *r, *r.limits
	start.CallSpec, start.grants, start.start = CallSpec{}, nil, true // the same for all calls
	if limits.Fuel > 0 {
		limits.Fuel = max(limits.Fuel, startFuel)
	}
	start.limits = &limits
	i.call.begin(&start)
	defer i.call.end()
	i.call.starting = true
	i.call.outer = r.Outer // inside a call, a start does not wait for memory either, and logs no more than that call may
	i.memory.limit = limits.Memory
	err := part(i)
	r.started += i.call.spent()
	return err
}

// start brings an instance to the point where calls can begin. It begins with the module's initial state or, for a module of an interpreter, with the
// initialised interpreter. The error is an *Error.
func (m *module) start(i *instance) error {
	if m.bundle == nil {
		m.configure(i)
	}
	if i.base == nil {
		if err := m.initialize(i); err != nil {
			return err
		}
	}
	if m.bundle != nil {
		m.configure(i) // only now: everything before is the same for all modules of the interpreter
		if err := m.writeBundle(i); err != nil {
			return err
		}
	}
	if !m.shape.warm {
		return nil
	}
	return i.step(m.shape.convention.Warm.Name)
}

// configure gives the module's settings to an instance that is starting.
func (m *module) configure(i *instance) {
	i.call.abi.Begin(hostcall.Run{Settings: m.settings})
}

// initialize copies the module's data segments, and runs its start function and initialisation. The error is an *Error.
func (m *module) initialize(i *instance) error {
	b := i.memory.linear.Bytes()
	for n, d := range m.code.Native().Rewritten.Data {
		if uint64(d.Offset)+uint64(len(d.Content)) > uint64(len(b)) {
			return &Error{Outcome: ToolTrapped, Message: fmt.Sprintf("The tool broke: its data segment %d (%d bytes at %d) does not fit into its memory of %d bytes.",
				n, len(d.Content), d.Offset, len(b))}
		}
		copy(b[d.Offset:], d.Content)
	}
	if start := m.code.Native().Rewritten.Start; start != "" {
		if err := i.step(start); err != nil {
			return err
		}
	}
	if !m.shape.initialize {
		return nil
	}
	return i.step(m.shape.convention.Initialize.Name)
}

// reserve returns how much address space an instance gets: as much as the largest memory limit of the module's tools allows.
func (m *module) reserve() uint64 {
	return min(uint64(m.largest.Load()), m.code.Native().Rewritten.MemoryMax*pageSize)
}

// fits reports whether the instance was made for limits like r's.
func (m *module) fits(i *instance, r *run) bool {
	return i.reserved >= min(uint64(r.limits.Memory), m.code.Native().Rewritten.MemoryMax*pageSize) && i.snapshot.size() <= r.limits.Memory
}

// writeBundle writes the module's bundle to the memory of an instance. The error is an *Error.
func (m *module) writeBundle(i *instance) error {
	content, err := m.bundle.source.Plain()
	if err != nil {
		return internal(fmt.Errorf("unpack the bundle: %w", err))
	}
	b := i.memory.linear.Bytes()
	if uint64(m.bundle.address)+uint64(len(content)) > uint64(len(b)) {
		return &Error{Outcome: ToolTrapped, Message: fmt.Sprintf("The tool broke: its bundle (%d bytes at %d) does not fit into its memory of %d bytes.",
			len(content), m.bundle.address, len(b))}
	}
	copy(b[m.bundle.address:], content)
	return nil
}

// basis returns a hold on the snapshot of the module's interpreter, just before it gets a bundle. All modules of the interpreter begin with that
// snapshot. It returns nil if the module has no interpreter, or if the interpreter does not start within the memory that the run may use. The first
// run makes the snapshot, within its limits, while others wait. The error is an *Error.
func (m *module) basis(ctx context.Context, native *foundry.Native, r *run) (*snapshot, error) {
	c := m.code
	if m.bundle == nil || c.Native().Rewritten.Fresh != "" {
		return nil, nil
	}
	for {
		c.mu.Lock()
		s, basing := c.base, c.basing
		first := s == nil && basing == nil
		switch {
		case s != nil:
			s.holds.Add(1)
		case first:
			c.basing = make(chan struct{})
		}
		c.mu.Unlock()
		switch {
		case s != nil && s.size() > r.limits.Memory:
			m.engine.drop(s)
			return nil, nil
		case s != nil:
			return s, nil
		case first:
			return m.makeBase(ctx, native, r)
		}
		r.retire(m.engine)
		if err := r.await(m.engine, basing); err != nil {
			return nil, err
		}
	}
}

// makeBase makes what basis returns. One call at a time does this; others wait for c.basing.
func (m *module) makeBase(ctx context.Context, native *foundry.Native, r *run) (s *snapshot, err error) {
	c := m.code
	defer func() {
		c.mu.Lock()
		if s != nil {
			s.holds.Add(1)
			c.base = s
		}
		close(c.basing)
		c.basing = nil
		c.mu.Unlock()
	}()
	i, err := m.attempt(ctx, r, native, nil, m.initialize)
	if err != nil {
		return nil, err
	}
	if i.adapted { // an interpreter's state must not depend on one tool's limit
		m.discard(i)
		return nil, nil
	}
	return m.capture(r, i)
}

// instanceSize is what every instance takes in addition to its memory, in bytes: its call stack and bookkeeping.
const instanceSize = 32 << 10

// overhead returns what an instance of the module takes in addition to its memory, in bytes.
func (m *module) overhead() int64 {
	const element, reference, global, segment = 40, 8, 120, 24 // the bytes that wazero allocates for each
	r := m.code.Native().Rewritten
	return instanceSize + element*int64(r.Elements) + reference*int64(r.TableMost) + global*int64(r.AllGlobals) + segment*int64(r.DataSegments)
}

// instantiate makes an instance of code for a run, from snapshot s or, if s is nil, with an empty memory. It takes over the hold on the snapshot, and
// that many bytes of the run's room. It waits for room until ctx is done. No guest code has run in the instance yet. The error is an *Error.
func (m *module) instantiate(ctx context.Context, r *run, code *foundry.Native, s *snapshot, bytes int64) (*instance, error) {
	defer m.engine.drop(s) // the instance has a hold of its own
	i, err := m.allot(ctx, r, code, s, bytes)
	if scarce(err) { // other processes may leave less than the account assumes
		m.engine.reclaim(nil, account.Mappings, m.engine.account.Most(account.Mappings, false))
		i, err = m.allot(ctx, r, code, s, bytes)
	}
	return i, err
}

// allot is instantiate without a second attempt. The caller keeps its hold.
func (m *module) allot(ctx context.Context, r *run, code *foundry.Native, s *snapshot, bytes int64) (*instance, error) {
	e := m.engine
	mappings := int64(linmem.MaxMappings)
	if s != nil {
		mappings = int64(s.image.Mappings())
	}
	if err := r.claim(ctx, e, bytes); err != nil {
		return nil, err
	}
	reserved := m.reserve()
	if err := r.claimSpace(ctx, e, bytes, mappings, int64(reserved)); err != nil {
		return nil, err
	}
	r.room -= bytes
	i := &instance{
		snapshot: s.hold(), linear: m.code.Native().Rewritten.LinearStack, overhead: m.overhead(), stackSize: firstStack,
		reserved: reserved, most: int64(m.code.Native().Rewritten.MemoryMax) * pageSize, claimed: bytes, mappings: mappings,
	}
	i.resident = i.overhead // until it is reset
	i.call = call{engine: e, owner: i, module: m}
	i.memory.owner = i
	built := false
	defer func() {
		if built {
			return
		}
		i.release() // also after a panic
		if i.memory.linear != nil {
			_ = i.memory.linear.Free() // its error matters less than the one that is returned
		}
	}()
	if err := i.build(m, code); err != nil {
		return nil, failed(err)
	}
	built = true
	m.add(i)
	return i, nil
}
