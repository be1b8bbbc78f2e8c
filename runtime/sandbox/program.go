package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
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

// Compile waits until the program is compiled. A program is compiled once, when first called at the latest; an error
// of the module stays. When ctx is done, only the waiting ends. The error is an *Error.
func (p *Program) Compile(ctx context.Context) error {
	if !p.module.enter() {
		return closing(ErrClosed)
	}
	defer p.module.leave()
	_, err := p.module.compile(ctx)
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

	mu    sync.Mutex
	users int    // holds and running calls
	build *build // nil: not compiled
}

// A build is one compilation. Its results are there when done is closed.
type build struct {
	done chan struct{}
	code wazero.CompiledModule
	err  error
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
	if over != nil && over.code != nil {
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

// compile returns the code, and compiles it where nobody has begun to. The caller has entered the module, and uses the
// code until it leaves. The error is an *Error, or the cause of ctx.
func (m *module) compile(ctx context.Context) (wazero.CompiledModule, error) {
	m.mu.Lock()
	b := m.build
	begins := b == nil
	if begins {
		b = &build{done: make(chan struct{})}
		m.build = b
		m.users++
	}
	m.mu.Unlock()
	if begins {
		m.engine.more()
		go m.run(b)
	}
	select {
	case <-b.done:
		return b.code, b.err
	default:
	}
	select {
	case <-b.done:
		return b.code, b.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run compiles on a goroutine of its own, so that nobody who stops waiting stops it for others. Only what the module
// itself is to blame for is remembered as an error.
func (m *module) run(b *build) {
	code, err := m.engine.compile(m.source)
	var passing *fs.PathError
	if again := errors.As(err, &passing) || m.engine.stop.Err() != nil; err != nil && again {
		m.mu.Lock()
		if m.build == b {
			m.build = nil
		}
		m.mu.Unlock()
	}
	b.code = code
	if err != nil {
		b.err = &Error{Outcome: Internal, Message: "The tool could not be compiled.", Err: err}
	}
	close(b.done)
	m.leave()
}

// compile compiles one module at a time: so wazero's cache can tell whose code it keeps, and compilation
// leaves the other processors to the calls.
func (e *Engine) compile(source []byte) (code wazero.CompiledModule, err error) {
	select {
	case e.compiler <- struct{}{}:
	case <-e.stop.Done():
		return nil, context.Cause(e.stop)
	}
	defer func() { <-e.compiler }()
	if e.cache == nil {
		return e.compileNow(source)
	}
	entry := e.cache.entry(source)
	staged, err := e.cache.stage(entry)
	if err != nil {
		e.log.Warn("compiled code is not used", "error", err)
	}
	code, err = e.compileNow(source)
	if problem := e.cache.collect(entry, staged); problem != nil {
		e.log.Warn("compiled code is not kept", "error", problem)
	}
	return code, err
}

// compileNow has wazero compile, on this goroutine: on one of wazero's a panic could not be recovered.
func (e *Engine) compileNow(source []byte) (code wazero.CompiledModule, err error) {
	defer func() {
		if r := recover(); r != nil {
			code, err = nil, fmt.Errorf("the compiler panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return e.runtime.CompileModule(e.stop, source)
}
