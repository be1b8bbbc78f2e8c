// Package sandbox runs WebAssembly guests that nobody trusts.
//
// An [Engine] loads modules and makes [Program]s of them. A [Tool] is one function of a program with its limits;
// each [Tool.Call] runs in an instance that is new and that nothing outlives. Whatever a guest does, a call ends in
// time, in bounded memory, and with a result or an [Error] that tells what happened.
//
// Guests speak ABI 1 (import module toolsrv_v1) or are plain WASI programs; docs/abi.md describes both.
package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// A Config is what New needs. The zero Config is valid.
type Config struct {
	// CacheDir is the directory for compiled code, made where it is missing; "" keeps none on disk. Who can write
	// there can run code in this process. Several processes may share it.
	CacheDir string
	// CacheSize bounds the files in CacheDir in bytes: the least recently used ones go; 2 GiB where 0 or less.
	CacheSize int64
	// Logger takes the log lines of guests and of the engine; nil discards them.
	Logger *slog.Logger
}

// An Engine loads programs. It is safe for concurrent use.
//
// Locks are taken in this order: Engine.mu, module.mu. gate.mu is never held together with another.
type Engine struct {
	runtime  wazero.Runtime
	cache    *codeCache // nil: none
	log      *slog.Logger
	offered  offer
	compiler *compiler
	stop     context.Context
	halt     context.CancelCauseFunc // ends stop, and with it all that runs

	mu      sync.Mutex
	modules map[string]*module // by digest
	loads   uint64             // modules loaded so far
	running int                // calls, and who waits for a compilation
	closed  bool
	closing chan struct{} // closed with the engine
	idle    chan struct{} // closed when the engine is closed and nothing runs
}

// ErrClosed is the error of Load on an engine that is closed.
var ErrClosed = errors.New("the sandbox engine is closed")

// New returns an engine; Close frees it. ctx is for the start only.
func New(ctx context.Context, c Config) (*Engine, error) {
	e := &Engine{
		log:     c.Logger,
		offered: offer{},
		modules: map[string]*module{},
		closing: make(chan struct{}),
		idle:    make(chan struct{}),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.stop, e.halt = context.WithCancelCause(context.WithoutCancel(ctx))
	// Debug information is foreign bytes that nothing here needs.
	config := wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithDebugInfoEnabled(false)
	if c.CacheDir != "" {
		var err error
		if e.cache, err = openCache(c.CacheDir, c.CacheSize, config); err != nil {
			return nil, err
		}
		config = config.WithCompilationCache(e.cache.wazero)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	e.compiler = newCompiler(e.runtime, e.cache, e.log)
	if err := e.offer(ctx, append(abiFuncs(), wasi{time.Now()}.funcs()...)); err != nil {
		return nil, errors.Join(err, e.free(ctx))
	}
	return e, nil
}

// offer makes funcs the functions that guests may import.
func (e *Engine) offer(ctx context.Context, funcs []hostFunc) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for i := range funcs {
		f := &funcs[i]
		e.offered[[2]string{f.module, f.name}] = f
		b, ok := builders[f.module]
		if !ok {
			b = e.runtime.NewHostModuleBuilder(f.module)
			builders[f.module] = b
		}
		t := f.funcType()
		b.NewFunctionBuilder().WithGoModuleFunction(f, valueTypes(t.Params), valueTypes(t.Results)).WithName(f.name).Export(f.name)
	}
	for name, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("offer %s: %w", name, err)
		}
	}
	return nil
}

func valueTypes(types []wasmbin.ValueType) []api.ValueType {
	list := make([]api.ValueType, len(types))
	for i, t := range types {
		list[i] = api.ValueType(t)
	}
	return list
}

// Load checks a module without compiling it: that it is well-formed, that all its imports are offered, that its
// exports are those of a tool, and that it has one memory of its own. Errors say what is wrong and what to do. The
// same bytes loaded twice share their compiled code. The module is copied; Close of each Program frees it.
func (e *Engine) Load(bytes []byte) (*Program, error) {
	if len(bytes) > MaxModule {
		return nil, fmt.Errorf("the module has %d bytes, the limit is %s: strip it", len(bytes), size(MaxModule))
	}
	sum := sha256.Sum256(bytes)
	digest := hex.EncodeToString(sum[:])
	if p, err := e.loaded(digest, nil); p != nil || err != nil {
		return p, err
	}
	parsed, err := wasmbin.Parse(bytes)
	if err != nil {
		return nil, err
	}
	m := &module{engine: e, digest: digest}
	if m.shape, err = check(parsed, e.offered); err != nil {
		return nil, err
	}
	if m.source, err = harden(bytes); err != nil {
		return nil, err
	}
	return e.loaded(digest, m)
}

// loaded returns a new handle of the module with that digest. Where there is none, it is fresh; a nil fresh gives nil.
func (e *Engine) loaded(digest string, fresh *module) (*Program, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	m, ok := e.modules[digest]
	if !ok {
		if fresh == nil {
			return nil, nil
		}
		m = fresh
		m.order = e.loads
		e.loads++
		e.modules[digest] = m
	}
	m.acquire()
	return &Program{module: m}, nil
}

// forget drops a module that has no users, so that it can be loaded anew.
func (e *Engine) forget(m *module) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.modules[m.digest] == m && m.unused() {
		delete(e.modules, m.digest)
	}
}

// begin counts a call, or who waits for a compilation, until end. It reports false when the engine is closed.
func (e *Engine) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.running++
	return true
}

func (e *Engine) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running--
	if e.closed && e.running == 0 {
		close(e.idle)
	}
}

// Close refuses new calls, waits for those that run, and frees everything. When ctx is done first, those that still
// run are ended as Cancelled, and ctx's error is returned. A compilation, which nothing can end, is waited for no longer
// than 2 s; it then ends in the background and frees what is left. Closing twice is fine: the second waits like the first.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	if first {
		close(e.closing)
		if e.running == 0 {
			close(e.idle)
		}
	}
	e.mu.Unlock()
	var err error
	select {
	case <-e.idle:
	case <-ctx.Done():
		err = ctx.Err()
		e.halt(errClosing)
		<-e.idle
	}
	if !first {
		return err
	}
	e.halt(errClosing)
	if !e.compiler.close() {
		ctx := context.WithoutCancel(ctx)
		go func() {
			<-e.compiler.idle
			if err := e.free(ctx); err != nil {
				e.log.Warn("free the sandbox engine", "error", err)
			}
		}()
		return err
	}
	return errors.Join(err, e.free(ctx))
}

// free frees what New has made.
func (e *Engine) free(ctx context.Context) error {
	errs := []error{e.runtime.Close(ctx)}
	if e.cache != nil {
		errs = append(errs, e.cache.close(ctx))
	}
	return errors.Join(errs...)
}
