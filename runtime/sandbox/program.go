package sandbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// A Program is a hold on a loaded module. It is safe for concurrent use.
type Program struct {
	module *module
	closed atomic.Bool
}

// Digest returns the SHA-256 of the module as it was loaded, in lower-case hexadecimal.
func (p *Program) Digest() string { return p.module.digest }

// Command reports whether the program is a plain WASI program, which holds one tool, number 0.
func (p *Program) Command() bool { return p.module.shape.command }

// Describes reports whether the program has an export toolsrv_describe.
func (p *Program) Describes() bool { return p.module.shape.describe }

// Compile waits until the program is compiled, which is once, when it is first called at the latest; an error of the module
// stays. Programs are compiled in the order of loading, but those that a call waits for come first. When ctx is done, or
// the engine closes, only the waiting ends. The error is an *Error.
func (p *Program) Compile(ctx context.Context) error {
	if !p.module.enter() {
		return closing(ErrClosed)
	}
	defer p.module.leave()
	err := p.module.prepare(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return &Error{Outcome: Cancelled, Message: "The caller gave up while the tool was being compiled.", Err: err}
	}
	return asError(err)
}

// Close gives up the hold. Calls that run finish; the code is freed with the last hold and the last call. A call
// that comes later, through a Tool that was looked up before, is still right: it brings the code back for as long as
// it runs. Closing twice is fine.
func (p *Program) Close() error {
	if p.closed.CompareAndSwap(false, true) {
		p.module.release()
	}
	return nil
}

// A module is a checked module with its compiled code, shared by all holds on it and by all running calls.
type module struct {
	engine *Engine
	digest string
	shape  shape
	source []byte // hardened
	order  uint64 // modules are compiled in the order of loading

	mu    sync.Mutex
	users int    // holds and running calls
	build *build // nil: not compiled
}

// enter is for a call what acquire is for a hold; it reports false when the engine is closed.
func (m *module) enter() bool {
	if !m.engine.begin() {
		return false
	}
	m.acquire()
	return true
}

func (m *module) leave() {
	m.release()
	m.engine.end()
}

func (m *module) acquire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users++
}

// release frees the code with the last user.
func (m *module) release() {
	m.mu.Lock()
	m.users--
	last := m.users == 0
	var over *build
	if last {
		over, m.build = m.build, nil
	}
	m.mu.Unlock()
	if !last {
		return
	}
	m.engine.forget(m)
	if over != nil && over.over() && over.code != nil {
		if err := over.code.Close(m.engine.stop); err != nil {
			m.engine.log.Warn("free compiled code", "digest", m.digest, "error", err)
		}
	}
}

func (m *module) unused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.users == 0
}
