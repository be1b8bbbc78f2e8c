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

// Command reports whether the program is a plain WASI program, which holds one tool, number 0.
func (p *Program) Command() bool { return p.module.shape.convention.Command }

// Describes reports whether the program has an export toolsrv_describe.
func (p *Program) Describes() bool { return p.module.shape.describe }

// Memory returns the size in bytes of the memory that the program declares. A tool with a lower limit can't run.
func (p *Program) Memory() int64 { return p.module.shape.memory }

// Compile compiles the program, which the first call would do otherwise. Where there is a cache, the code is then in the cache, and
// the first call loads it. Programs that a call waits for are compiled first, then cheap ones. When ctx is done, or the engine
// closes, only the waiting ends. An error of the module is final. The error is an *Error.
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

// Keep counts bytes of memory that the program's owner keeps because of it, such as what it says of its tools, until Close. It reports false,
// and counts nothing, where all programs together would have more than a quarter of Config.Memory. An eighth of that is only for a
// program that takes the place of another one. Keep must not be called after Close, or beside it.
func (p *Program) Keep(bytes int64, replaces bool) bool {
	e := p.module.engine
	if !e.account.Take(account.Manifests, bytes, replaces) {
		return false
	}
	e.account.Add(account.Memory, bytes)
	p.kept.Add(bytes)
	return true
}

// Close gives up the hold. Running calls finish; the code is freed after the last hold and the last call. A later call of a Tool
// of the program works, too: it brings the code back for as long as it runs. Close can be called twice.
func (p *Program) Close() error {
	if p.closed.CompareAndSwap(false, true) {
		p.module.engine.keep(-p.kept.Swap(0))
		p.module.release()
	}
	return nil
}

// A sum identifies the code of a module.
type sum [sha256.Size]byte

// A module is a checked module with its snapshot and its idle instances, shared by all holds on it and by all running calls.
type module struct {
	engine   *Engine
	code     *code
	sum      sum
	plain    sum    // what it is without settings
	digest   string // of the file that it was first loaded from
	shape    shape
	bundle   *bundle      // what it has besides its engine; if nil, it has no engine
	settings []byte       // JSON for its guests; if nil, none
	largest  atomic.Int64 // largest memory limit of its tools, in bytes
	paces    instrument.Paces
	key      account.Key // of its calls

	mu       sync.Mutex
	attached bool                   // the engine knows of it, and is not closed
	users    int                    // holds and calls; without any, the module is freed
	calls    int                    // that run or wait, and compilations that somebody waits for
	drained  chan struct{}          // closed when the last of calls ends, for Engine.Close; if nil, it does not wait
	called   time.Time              // start of the last call
	heat     uint32                 // calls since its code was loaded, those long ago counting less
	snapshot *snapshot              // nil: none yet
	starting chan struct{}          // closed when the start under way is over; if nil, none is
	idle     []*instance            // in the order of use
	made     map[*instance]struct{} // those that are not closed: idle ones, and those of calls
}

// enlist makes the module one of its code's, which holds the sources. Engine.mu is held.
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

// delist is the reverse of enlist.
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

// released is what a module, or its code, has let go of. It is freed without a lock.
type released struct {
	instances []*instance
	snapshot  *snapshot
	code      func() // frees it; if nil, there is none
}

// strip takes from the module all that can be made again. m.mu is held, and no call runs.
func (m *module) strip() released {
	r := released{instances: m.idle, snapshot: m.snapshot}
	m.idle, m.snapshot, m.heat = nil, nil, 0
	return r
}

// unused reports whether there is a snapshot that no instance is left of. m.mu is held.
func (m *module) unused() bool { return m.snapshot != nil && m.snapshot.holds.Load() == 0 }

// free frees what was let go of. Code comes last, when no instance of it is left.
func (r released) free(e *Engine) {
	for _, i := range r.instances {
		i.call.module.discard(i)
	}
	e.drop(r.snapshot)
	if r.code != nil {
		r.code()
	}
}

// detach refuses new calls of the module, because the engine closes. It returns what is closed when the calls under way have ended,
// nil if there are none.
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

// A ProgramState is what an engine holds of one program.
type ProgramState struct {
	Code CodeState
	// CodeMemory is what the code takes in memory, in bytes. Modules of one engine share it.
	CodeMemory int64
	// Snapshot reports whether the program has been initialised.
	Snapshot bool
	// Idle is how many instances wait for a call.
	Idle int
	// Calls is how many calls run or wait.
	Calls int
	// Called is when the last call began, or the program was loaded.
	Called time.Time
}

// State tells what the engine holds of the program, and of those that differ from it only in custom sections.
func (p *Program) State() ProgramState { return p.module.state() }

func (m *module) state() ProgramState {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := ProgramState{Snapshot: m.snapshot != nil, Idle: len(m.idle), Calls: m.calls, Called: m.called}
	code, bytes := m.code.State()
	s.Code, s.CodeMemory = CodeState(code), bytes
	return s
}
