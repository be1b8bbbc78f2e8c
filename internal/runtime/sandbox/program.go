package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
)

// A Program is a hold on a loaded module. It is safe for concurrent use.
type Program struct {
	module *module
	digest string
	closed atomic.Bool
	kept   atomic.Int64
}

// Digest returns the SHA-256 of the module as it was loaded, in lower-case hexadecimal.
func (p *Program) Digest() string { return p.digest }

// Command reports whether the program is a plain WASI program, which has one tool, number 0.
func (p *Program) Command() bool { return p.module.shape.convention.Command }

// Describes reports whether the program has an export toolsrv_describe.
func (p *Program) Describes() bool { return p.module.shape.describe }

// Memory returns the size in bytes of the memory that the program declares. A tool with a lower limit can't run.
func (p *Program) Memory() int64 { return p.module.shape.memory }

// Compile compiles the program; otherwise the first call would do so. If there is a cache, the code is then in the cache, and the first call loads
// it. Programs that a call waits for are compiled first, then cheap ones. If ctx is done or the engine closes, Compile returns, but the work goes on.
// An error in the module is final. The error is an *Error.
func (p *Program) Compile(ctx context.Context) error {
	if !p.module.enter() {
		return closing(ErrClosed)
	}
	defer p.module.leave()
	err := p.module.code.Prepare(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return &Error{Outcome: Cancelled, Message: "The caller gave up while the tool was being compiled.", Err: err}
	}
	return uncompiled(err)
}

// Keep counts bytes of memory that the program's owner uses for it until Close, such as descriptions of its tools. It returns false, and counts
// nothing, if all programs together would then use more than a quarter of Config.Memory. An eighth of that quarter is reserved for programs that
// replace others. Keep must not be called after Close, or at the same time.
func (p *Program) Keep(bytes int64, replaces bool) bool {
	e := p.module.engine
	if !e.account.Take(account.Manifests, bytes, replaces) {
		return false
	}
	e.account.Add(account.Memory, bytes)
	p.kept.Add(bytes)
	return true
}

// Close gives up the hold. Running calls finish; the code is freed after the last hold and the last call. A Tool of the program can still be called
// later: the code is then made again for as long as the call runs. Close can be called twice.
func (p *Program) Close() error {
	if p.closed.CompareAndSwap(false, true) {
		p.module.engine.keep(-p.kept.Swap(0))
		p.module.release()
	}
	return nil
}

// A sum identifies the code of a module.
type sum [sha256.Size]byte

// A module is a checked module with its snapshot and its idle instances. All holds on it and all running calls share it.
type module struct {
	engine   *Engine
	code     *code
	sum      sum
	plain    sum    // the sum without settings
	digest   string // digest of the file that it was first loaded from
	shape    shape
	bundle   *bundle      // the part of the module besides its interpreter; nil: the module has no interpreter
	settings []byte       // JSON for its guests; nil: none
	largest  atomic.Int64 // largest memory limit of its tools, in bytes
	paces    instrument.Paces
	key      account.Key // of its calls

	mu       sync.Mutex
	attached bool                   // it is registered with the engine, and is not closed
	users    int                    // holds and calls; without any, the module is freed
	calls    int                    // calls that run or wait, and compilations that somebody waits for
	drained  chan struct{}          // closed when the last of calls ends; nil: Engine.Close is not waiting
	called   time.Time              // start of the last call
	heat     uint32                 // calls since its code was loaded; older calls count less
	snapshot *snapshot              // nil: none yet
	starting chan struct{}          // closed when the current start is over; nil: none is under way
	idle     []*instance            // idle instances, in the order in which they were used
	made     map[*instance]struct{} // instances that are not closed: idle ones, and those in use
}

// enlist adds the module to its code's modules, with holds on its sources. Engine.mu is held.
func (m *module) enlist() {
	if _, ok := m.code.modules[m]; ok {
		return
	}
	m.code.modules[m] = struct{}{}
	m.code.Source().Hold()
	if m.bundle != nil {
		m.bundle.source.Hold()
	}
}

// delist undoes enlist.
func (m *module) delist() {
	if _, ok := m.code.modules[m]; !ok {
		return
	}
	delete(m.code.modules, m)
	m.code.Source().Release()
	if m.bundle != nil {
		m.bundle.source.Release()
	}
}

// released is what was removed from a module or its code. It is freed without a lock.
type released struct {
	instances []*instance
	snapshot  *snapshot
	code      func() // frees the code; nil: there is none
}

// strip removes from the module what can be made again. m.mu is held, and no call runs.
func (m *module) strip() released {
	r := released{instances: m.idle, snapshot: m.snapshot}
	m.idle, m.snapshot, m.heat = nil, nil, 0
	return r
}

// unused reports whether there is a snapshot, but no instance of it. m.mu is held.
func (m *module) unused() bool { return m.snapshot != nil && m.snapshot.holds.Load() == 0 }

// free frees what was removed. Code comes last, once no instance of it is left.
func (r released) free(e *Engine) {
	for _, i := range r.instances {
		i.call.module.discard(i)
	}
	e.drop(r.snapshot)
	if r.code != nil {
		r.code()
	}
}

// detach refuses new calls of the module, because the engine closes. It returns a channel that is closed once running calls have ended, or nil if
// there are none.
func (m *module) detach() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attached = false
	if m.calls > 0 {
		m.drained = make(chan struct{})
	}
	return m.drained
}

// hold counts a hold, which release gives up.
func (m *module) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users++
}

// release gives up a hold.
func (m *module) release() {
	m.mu.Lock()
	m.users--
	last := m.users == 0
	m.mu.Unlock()
	if last {
		m.engine.forget(m)
	}
}

// allow makes future instances large enough for tools with that memory limit.
func (m *module) allow(limit int64) {
	for {
		largest := m.largest.Load()
		if limit <= largest || m.largest.CompareAndSwap(largest, limit) {
			return
		}
	}
}

// A ProgramState is what an engine holds for one program.
type ProgramState struct {
	Code CodeState
	// CodeMemory is the size of the code in memory, in bytes. Modules of one interpreter share it.
	CodeMemory int64
	// Snapshot reports whether the program has been initialised.
	Snapshot bool
	// Idle is how many instances are idle.
	Idle int
	// Calls is how many calls run or wait.
	Calls int
	// Called is when the last call began, or when the program was loaded.
	Called time.Time
}

// State returns what the engine holds for the program, and for those that differ from it only in custom sections.
func (p *Program) State() ProgramState { return p.module.state() }

func (m *module) state() ProgramState {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := ProgramState{Snapshot: m.snapshot != nil, Idle: len(m.idle), Calls: m.calls, Called: m.called}
	code, bytes := m.code.State()
	s.Code, s.CodeMemory = CodeState(code), bytes
	return s
}
