// Package sandbox runs WebAssembly guests that nobody trusts.
//
// An [Engine] loads modules and makes [Program]s of them. A [Tool] is one function of a program with its limits;
// each [Tool.Call] runs in an instance that is as new: nothing of another call is in it. Whatever a guest does, a call ends in
// time, within its memory, and with a result or an [Error] that says what happened.
//
// A program is initialised once. Its memory and its globals are then its snapshot. Instances are made of it, and reset to it after
// each call; one that broke is closed instead. The code is rewritten so that it is metered: a guest stops within a fraction of a
// millisecond of its deadline, without a timer or a goroutine for each call.
//
// Guests follow ABI 1 or are plain WASI programs; docs/abi.md describes both. The functions that they import are not part of this
// package: see package hostabi.
package sandbox

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/turns"
	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/runtime/internal/foundry"
	"github.com/toolsrv/toolsrv/runtime/linmem"
	"github.com/toolsrv/toolsrv/runtime/sandbox/internal/paranoid"
	"github.com/toolsrv/toolsrv/runtime/schedule"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// A Config is what New needs. The zero Config is valid.
type Config struct {
	// CacheDir is the directory for compiled code, made where it is missing; "" keeps none on disk. Whoever can write there can
	// run code in this process, so a directory that others can change is not used. Neither is one that can't be made. Logger is
	// told of both. Several processes may share a directory.
	CacheDir string
	// CacheSize bounds the files in CacheDir, in bytes; 2 GiB where 0 or less. The least recently used ones are removed.
	CacheSize int64
	// Logger takes the log lines of guests and of the engine; nil discards them.
	Logger *slog.Logger
	// Memory bounds what all programs take together, in bytes: what running calls may touch, what idle instances and snapshots
	// keep, and what compiling takes; half of what the process has where 0 or less.
	Memory int64
	// Mappings bounds the mappings of the process's address space that instances and compiled code take; three quarters of
	// what the system allows where 0 or less.
	Mappings int64
	// Addresses bounds the address space that the memories of instances reserve, in bytes, each as much as it may grow to; what the
	// process may have (ulimit -v) less 3 GiB where 0 or less.
	Addresses int64
	// Descriptors bounds the files that guests have open; an eighth of what the process may open, 16,384 at most, where 0 or less.
	Descriptors int64
	// IdleTime is how long an unused instance is kept; a minute where 0 or less.
	IdleTime time.Duration
	// CodeMemory bounds the compiled code in memory, in bytes, where it can be loaded again from CacheDir; an eighth of what the
	// process has, 1 GiB at most, where 0 or less. Only code that no call uses is dropped.
	CodeMemory int64
	// Imports are the sets of functions that programs can be allowed to import. Without any, programs can import nothing.
	Imports []*hostabi.Set
	// CompileWorkers is how many processors compile one module; 1 where 0 or less. With more, a fault of the compiler ends the
	// process instead of being an error, so more are for modules that the user of the process has made.
	CompileWorkers int
	// CompileHelper is a command that calls compile.Serve with its last argument and its standard input and output. Where it is set,
	// processes that it starts compile, within limits of memory and processor time that the system holds. Otherwise, and where there
	// can be none, this process compiles what is predicted to take no more than it may.
	CompileHelper []string
	// UnusedTime is how long unused code is kept in memory, where it can be loaded again from CacheDir; 15 minutes where 0 or
	// less.
	UnusedTime time.Duration
	// Paranoid compares every instance with its snapshot after every reset, which takes longer than the call. A difference ends
	// the call as Internal. The build tag paranoid turns this on, too.
	Paranoid bool
}

// An Engine loads programs. It is safe for concurrent use.
//
// Locks are taken in this order: Engine.shedding, Engine.mu, module.mu, code.mu. gate.mu is never held together with another.
type Engine struct {
	log      *slog.Logger
	offered  *offer
	foundry  *foundry.Foundry
	schedule *schedule.Scheduler // of the foundry
	grace    time.Duration       // how long Close waits for compilations
	// anonymous is how guests are instantiated: without a name, so that no other can import from them, and without running
	// anything. Nobody reads its source of randomness; without one, wazero seeds a generator for each instance, in 10 µs and 5 KB.
	anonymous wazero.ModuleConfig
	paranoid  bool
	images    linmem.Store // where snapshots are kept
	stop      context.Context
	halt      context.CancelCauseFunc // ends stop, and with it all calls

	idleTime      time.Duration
	unusedTime    time.Duration
	idleInstances int // most of one program
	account       *account.Account
	seats         *turns.Places[*module] // for guests that compute for long
	reclaiming    chan struct{}          // holds one token, for whoever frees what is idle
	closing       chan struct{}          // closed when Close begins
	janitor       chan struct{}          // closed when the janitor has gone

	mu      sync.Mutex
	modules map[sum]*module // loaded ones, by what they are made of
	codes   map[sum]*code   // of loaded ones
	// interpreters are some of codes that have modules with bundles.
	interpreters []*code
	live         map[*module]struct{} // attached ones
	closed       chan struct{}        // closed when everything is freed; nil: Close has not begun

	shedding sync.Mutex // held while code is dropped for want of room
	cooled   time.Time  // when calls last began to count half; guarded by shedding
}

const (
	// compileMemory bounds the memory that compilations which run side by side are predicted to take, in bytes; half of the memory
	// of all tools does, too.
	compileMemory = 1 << 30
	// closeGrace is how long Close waits for compilations. Longer ones free what they used when they end.
	closeGrace = 2 * time.Second
)

// ErrClosed is the error of Load on an engine that is closed.
var ErrClosed = errors.New("the sandbox engine is closed")

// New returns an engine, which Close frees. ctx is used by New only.
func New(ctx context.Context, c Config) (*Engine, error) {
	e := &Engine{
		log:           c.Logger,
		anonymous:     wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader),
		paranoid:      c.Paranoid || paranoid.On,
		idleTime:      c.IdleTime,
		unusedTime:    c.UnusedTime,
		idleInstances: 4 * goruntime.GOMAXPROCS(0),
		account:       newAccount(c),
		seats:         turns.New[*module](seatsPerProcessor * goruntime.GOMAXPROCS(0)),
		reclaiming:    make(chan struct{}, 1),
		closing:       make(chan struct{}),
		janitor:       make(chan struct{}),
		grace:         closeGrace,
		modules:       map[sum]*module{},
		codes:         map[sum]*code{},
		live:          map[*module]struct{}{},
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.idleTime <= 0 {
		e.idleTime = time.Minute
	}
	if e.unusedTime <= 0 {
		e.unusedTime = 15 * time.Minute
	}
	e.schedule = schedule.New(goruntime.GOMAXPROCS(0), min(compileMemory, e.account.Most(account.Memory, true)/2))
	e.stop, e.halt = context.WithCancelCause(context.WithoutCancel(ctx))
	err := checkAddresses(account.MachineAddresses())
	if err == nil {
		e.offered, err = newOffer(c.Imports)
	}
	if err == nil {
		e.foundry, err = foundry.New(ctx, foundry.Config{
			CacheDir: c.CacheDir, CacheSize: c.CacheSize, CompileWorkers: c.CompileWorkers, CompileHelper: c.CompileHelper, Logger: e.log,
			Account: e.account, Schedule: e.schedule, Furnish: e.offered.furnish, Reclaim: e.reclaim, Shed: e.shed, Stop: e.stop, Closing: e.closing,
		})
	}
	if err != nil {
		e.halt(errClosing)
		return nil, err
	}
	go e.tidy()
	return e, nil
}

// Load parses a module, and then does what LoadModule does.
func (e *Engine) Load(bytes []byte, imports ...string) (*Program, error) {
	parsed, err := wasmbin.Parse(bytes)
	if err != nil {
		return nil, err
	}
	return e.LoadModule(parsed, imports...)
}

// LoadModule checks a module without compiling it: that it imports only functions of the engine's sets, and those only from the
// import modules named in imports; that its exports are those of a tool; and that it has one memory of its own. Errors say what is
// wrong and what to do. Modules that differ only in custom sections, such as the manifest, share code and instances; each may
// import only what its own load allows. Modules that differ in their bundles, too, share their engine's code. The module is copied;
// closing the Program frees the copy. What all copies take, compressed if there is need, is a quarter of Config.Memory at most: a module for which
// there is no room is a *RoomError.
func (e *Engine) LoadModule(parsed *wasmbin.Module, imports ...string) (*Program, error) {
	return e.LoadAs(parsed, Loading{Imports: imports})
}

// A Loading says how a module is loaded.
type Loading struct {
	// Imports are the import modules that the module may import from.
	Imports []string
	// Bundle is for a module that is an interpreter without one, and is what it runs: nothing is put together, and there is no file whose
	// SHA-256 the digest would have to be, so it is made of what the two are. It must not be changed any more. Nil: the module is whole.
	Bundle []byte
	// Replaces is whether the module takes the place of another one, which is closed then: an eighth of what modules may take is for such.
	Replaces bool
}

// LoadAs does what LoadModule does.
func (e *Engine) LoadAs(parsed *wasmbin.Module, l Loading) (_ *Program, err error) {
	if size := (wasmbin.Made{Module: parsed, Bundle: l.Bundle}).Size(); size > MaxModule {
		return nil, fmt.Errorf("the module has %d bytes, the limit is %s: strip it", size, text.Size(MaxModule))
	}
	if err := e.offered.check(parsed, l.Imports); err != nil {
		return nil, err
	}
	m := &module{engine: e}
	found, bundled := wasmbin.Bundle{Content: l.Bundle}, l.Bundle != nil
	if bundled {
		var ok bool
		if found.Address, ok = parsed.Constant(exportBundle); !ok {
			return nil, fmt.Errorf("the module is not an interpreter: it does not export the address %s", exportBundle)
		}
	} else {
		found, bundled = parsed.Bundle(exportBundle)
	}
	var ofCode sum
	switch {
	case l.Bundle != nil:
		ofCode = parsed.Sum()
		m.sum = sumOfBundle(ofCode, found)
	case bundled:
		ofCode = e.sumOfEngine(found)
		m.sum = sumOfBundle(ofCode, found)
	default:
		ofCode = parsed.Sum()
		m.sum = ofCode
	}
	whole := m.sum
	if l.Bundle == nil {
		whole = sha256.Sum256(parsed.Bytes())
	}
	m.plain, m.digest = m.sum, hex.EncodeToString(whole[:])
	if p, err := e.loaded(m.sum, m.digest, nil); p != nil || err != nil {
		return p, err
	}
	if m.shape, err = check(parsed); err != nil {
		return nil, err
	}
	e.mu.Lock()
	m.code = e.codes[ofCode]
	e.mu.Unlock()
	if m.code == nil {
		engine := parsed.Bare
		if bundled && l.Bundle == nil {
			engine = found.Engine
		}
		if m.code, err = e.newCode(ofCode, m.digest, engine(), l.Replaces); err != nil {
			return nil, err
		}
		defer m.code.Source().Release()
	}
	if !bundled {
		return e.loaded(m.sum, m.digest, m)
	}
	content := l.Bundle
	if content == nil {
		content = slices.Clone(found.Content)
	}
	kept, err := e.newSource(content, l.Replaces)
	if err != nil {
		return nil, err
	}
	defer kept.Release()
	m.bundle = &bundle{found.Address, kept}
	p, err := e.loaded(m.sum, m.digest, m)
	if err == nil {
		e.interpreter(p.module.code)
	}
	return p, err
}

// Expect has the process start that compiles modules, if there is to be one: a module may come soon, and is compiled the sooner then. It
// costs little where one has started. It is safe for concurrent use.
func (e *Engine) Expect() { e.foundry.Ready() }

// newCode returns the code of a module without its bundle and without custom sections. The caller holds its source.
func (e *Engine) newCode(of sum, digest string, bare []byte, replaces bool) (*code, error) {
	source, err := e.newSource(bare, replaces)
	if err != nil {
		return nil, err
	}
	c, err := e.foundry.NewCode(of, digest, bare, source)
	if err != nil {
		source.Release()
		return nil, err
	}
	return &code{Code: c, sum: of, modules: map[*module]struct{}{}}, nil
}

// loaded returns a new hold on the module of that sum, for a file of that digest. Where there is no such module, fresh becomes
// it; without fresh, loaded returns nil.
func (e *Engine) loaded(of sum, digest string, fresh *module) (*Program, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed != nil {
		return nil, ErrClosed
	}
	m, ok := e.modules[of]
	if !ok {
		if fresh == nil {
			return nil, nil
		}
		m = fresh
		m.called = time.Now()
		e.modules[of] = m
		if known, ok := e.codes[m.code.sum]; ok {
			m.code = known
		} else {
			e.codes[m.code.sum] = m.code
		}
		m.enlist()
	}
	m.hold()
	return &Program{module: m, digest: digest}, nil
}

// attach counts a call of a module that is not attached: it was not called yet, or nobody held it any more. It reports false when
// the engine is closed.
func (e *Engine) attach(m *module) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed != nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.live[m] = struct{}{}
	m.enlist()
	m.attached = true
	m.count(1)
	return true
}

// forget frees a module that has no users, and its code if no other module uses it.
func (e *Engine) forget(m *module) {
	e.mu.Lock()
	m.mu.Lock()
	var ofModule, ofCode released
	if c := m.code; m.users == 0 {
		ofModule = m.strip()
		m.attached = false
		delete(e.live, m)
		if e.modules[m.sum] == m {
			delete(e.modules, m.sum)
		}
		if m.delist(); len(c.modules) == 0 {
			ofCode = c.strip()
			if e.codes[c.sum] == c {
				delete(e.codes, c.sum)
				e.interpreters = slices.DeleteFunc(e.interpreters, func(i *code) bool { return i == c })
			}
		}
	}
	m.mu.Unlock()
	e.mu.Unlock()
	ofModule.free(e)
	ofCode.free(e)
}

// Close refuses new calls, waits for those that run, and frees everything. When ctx is done first, the calls that still run end
// as Cancelled, and Close returns ctx's error. Close waits 2 s for a compilation, and then ends it if a
// process of its own compiles. Nothing can end one in this process: it goes on in the background, and frees the rest when it is done. A second Close waits like the first.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	first := e.closed == nil
	if first {
		e.closed = make(chan struct{})
		close(e.closing)
	}
	closed := e.closed
	var busy []<-chan struct{}
	if first {
		for m := range e.live {
			if drained := m.detach(); drained != nil {
				busy = append(busy, drained)
			}
		}
	}
	e.mu.Unlock()
	if first {
		return e.shut(ctx, closed, busy)
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
	}
	e.halt(errClosing)
	<-closed
	return ctx.Err()
}

// shut is the first Close. busy are closed when the calls of a module have ended.
func (e *Engine) shut(ctx context.Context, closed chan struct{}, busy []<-chan struct{}) error {
	defer close(closed)
	var err error
	for _, drained := range busy {
		select {
		case <-drained:
			continue
		case <-ctx.Done():
		}
		err = ctx.Err()
		e.halt(errClosing)
		<-drained
	}
	e.halt(errClosing) // stops the janitor
	<-e.janitor
	for _, m := range e.attached() {
		m.mu.Lock()
		r := m.strip()
		m.mu.Unlock()
		r.free(e)
	}
	for _, m := range e.attached() { // now that no instance is left
		m.code.strip().free(e)
	}
	ctx = context.WithoutCancel(ctx)
	if !e.foundry.Close(e.grace) {
		go func() {
			<-e.schedule.Idle()
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
	e.halt(errClosing)
	return e.foundry.Free(ctx)
}
