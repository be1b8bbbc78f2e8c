// Package sandbox runs untrusted WebAssembly guests.
//
// An [Engine] loads modules and makes [Program]s of them. A [Tool] is one function of a program with its limits. Each [Tool.Call] runs in an instance
// in its initial state: nothing of another call is in it. Whatever a guest does, a call ends in time, within its memory, and with a result or an
// [Error] that says what happened.
//
// A program is initialised once. Its memory and its globals are then its snapshot. Instances are made from the snapshot, and reset to it after each
// call; an instance that broke is closed instead. The code is rewritten so that it is metered: a guest stops within a fraction of a millisecond of
// its deadline, without a timer or a goroutine for each call.
//
// Guests follow ABI 1 or are plain WASI programs; docs/abi.md describes both. The functions that they import are not part of this package: see
// package hostcall.
package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/toolsrv/toolsrv/internal/durations"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/internal/foundry"
	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox/internal/paranoid"
	"github.com/toolsrv/toolsrv/internal/runtime/schedule"
	"github.com/toolsrv/toolsrv/internal/turns"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A Config is what New needs. The zero Config is valid.
type Config struct {
	// CacheDir is the directory for compiled code, which is made if it is missing; "" keeps no code on disk. Anybody who can write there can run
	// code in this process, so a directory that others can change is not used. Nor is one that can't be made. Both are logged. Several processes may
	// share a directory.
	CacheDir string
	// CacheSize bounds the files in CacheDir, in bytes; 0 or less means 2 GiB. The least recently used ones are removed.
	CacheSize int64
	// Logger receives the log lines of guests and of the engine; nil discards them.
	Logger *slog.Logger
	// Memory bounds what all programs use together, in bytes: running calls, idle instances, snapshots and compiling. 0 or less means half of the
	// process's memory.
	Memory int64
	// Mappings bounds the mappings of the process's address space that instances and compiled code use; 0 or less means three quarters of what
	// the system allows.
	Mappings int64
	// Addresses bounds the address space that the memories of instances reserve, in bytes; each reserves as much as it may grow to. 0 or less means the
	// limit of the process (ulimit -v) less 3 GiB.
	Addresses int64
	// Descriptors bounds the files that guests have open; 0 or less means an eighth of what the process may open, at most 16,384.
	Descriptors int64
	// DescribeFuel is how much fuel [Program.Describe] has; 0 or less means 10 billion, some 5 s of processor time.
	DescribeFuel int64
	// IdleTime is how long an unused instance is kept; 0 or less means a minute.
	IdleTime time.Duration
	// CodeMemory bounds the compiled code in memory, in bytes, if it can be loaded again from CacheDir; 0 or less means an eighth of the process's
	// memory, at most 1 GiB. Only code that no call uses is dropped.
	CodeMemory int64
	// Imports are the sets of functions that programs can be allowed to import. Without any, programs can import nothing.
	Imports []*hostcall.Set
	// CompileWorkers is how many processors compile one module; 0 or less means 1. With more, a bug in the compiler ends the process instead of
	// returning an error. So set more only for modules that the user of the process has made.
	CompileWorkers int
	// CompileHelper is a command that calls compile.Serve with its last argument and its standard input and output. If it is set, modules are compiled
	// in processes that run this command, within limits of memory and processor time that the system enforces. If it is not set, or there can be no such
	// process, this process compiles those modules that are predicted to stay within the limits.
	CompileHelper []string
	// UnusedTime is how long unused code is kept in memory, if it can be loaded again from CacheDir; 0 or less means 15 minutes.
	UnusedTime time.Duration
	// Paranoid compares every instance with its snapshot after every reset, which takes longer than the call. If they differ, the call ends as Internal.
	// The build tag paranoid turns this on, too.
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
	// anonymous says how guests are instantiated: without a name, so that no other guest can import from them, and without running anything. It has a
	// source of randomness, which nobody reads: without it, wazero would seed a generator for each instance, which takes 10 µs and 5 KB.
	anonymous wazero.ModuleConfig
	paranoid  bool
	images    linmem.Store // where snapshots are kept
	stop      context.Context
	halt      context.CancelCauseFunc // ends stop, and with it all calls

	describes     limits.Limits // of Describe
	idleTime      time.Duration
	unusedTime    time.Duration
	idleInstances int // how many idle instances one program may have
	account       *account.Account
	seats         *turns.Places[string, *module] // shared by parties, for guests that compute for long
	reclaiming    chan struct{}                  // holds one token, for the goroutine that frees idle memory
	closing       chan struct{}                  // closed when Close begins
	janitor       chan struct{}                  // closed when the janitor has ended

	mu      sync.Mutex
	modules map[sum]*module // loaded modules, by their sums
	codes   map[sum]*code   // of loaded ones
	// interpreters are the codes that have modules with bundles, or the latest of them.
	interpreters []*code
	live         map[*module]struct{} // attached ones
	closed       chan struct{}        // closed when Close ends; nil: Close has not begun
	freed        chan struct{}        // closed when everything is freed: later than Close if a compilation goes on

	shedding sync.Mutex // held while code is dropped for lack of room
	cooled   time.Time  // when the numbers of calls were last halved; guarded by shedding

	unused, crowded atomic.Uint64 // how often code was dropped because it was not called for a long time, and how often for lack of room
}

const (
	// compileMemory bounds the memory in bytes that concurrent compilations are predicted to use. Half of the memory of all tools bounds it, too.
	compileMemory = 1 << 30
	// closeGrace is how long Close waits for compilations. One that takes longer frees its memory when it ends.
	closeGrace = 2 * time.Second
)

// ErrClosed is returned by Load if the engine is closed.
var ErrClosed = errors.New("the sandbox engine is closed")

// New returns an engine, which Close frees. Only New itself uses ctx.
func New(ctx context.Context, c Config) (*Engine, error) {
	e := &Engine{
		log:           c.Logger,
		anonymous:     wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader),
		paranoid:      c.Paranoid || paranoid.On,
		describes:     describeLimits(c.DescribeFuel),
		idleTime:      c.IdleTime,
		unusedTime:    c.UnusedTime,
		idleInstances: 4 * goruntime.GOMAXPROCS(0),
		account:       newAccount(c),
		seats:         turns.New[string, *module](goruntime.GOMAXPROCS(0)),
		reclaiming:    make(chan struct{}, 1),
		closing:       make(chan struct{}),
		janitor:       make(chan struct{}),
		grace:         closeGrace,
		freed:         make(chan struct{}),
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

// Expect starts the process that compiles modules, if such processes are used. It is called when a module may come soon, so that the module is
// compiled sooner. It costs little if one has been started already. It is safe for concurrent use.
func (e *Engine) Expect() { e.foundry.Ready() }

// Close refuses new calls, waits for those that run, and frees everything. If ctx is done first, the calls that still run end as Cancelled, and Close
// returns ctx's error. Close waits 2 s for a compilation. Then it ends the compilation, if that runs in a process of its own. A compilation in this
// process can't be ended: it goes on in the background, and frees the rest when it is done. A second Close waits like the first.
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

// shut does the work of the first Close. busy are channels, each closed once a module's calls have ended.
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
	defer close(e.freed)
	e.halt(errClosing)
	return e.foundry.Free(ctx)
}

// A State says what an engine holds. Its parts are read one after another while calls go on, so they may be of slightly different moments.
type State struct {
	// Modules is how many modules are loaded. Those that differ only in custom sections count as one.
	Modules int
	// Code is how many modules are in each state of their code.
	Code map[CodeState]int
	// Snapshots is how many modules have been initialised, and Idle how many instances wait for a call.
	Snapshots, Idle int
	// Calls is how many calls run or wait. Some of them may wait for a compilation.
	Calls int
	// Memory, Mappings and CodeMemory are what all modules together use of the resources that Config bounds: bytes, mappings of the address space, and
	// bytes of compiled code.
	Memory, Mappings, CodeMemory account.Use
	// Manifests is how many bytes [Program.Keep] has counted for all programs. They are part of Memory.
	Manifests account.Use
	// Sources is how many bytes the modules themselves take. They are kept as they were written, compressed or not, and are not part of Memory.
	Sources account.Use
	// Files is how many files guests have open.
	Files account.Use
	// Compiling says how many modules are being compiled or loaded from the cache, and how many are queued for that.
	Compiling schedule.State
	// Compiled has the times of compiling modules since the engine began, and Loaded those of loading code from the cache. CompileFailures is how often
	// compiling a module has failed.
	Compiled, Loaded durations.Sum
	CompileFailures  uint64
	// Unused is how often code was dropped from memory because it had not been called for a long time. Crowded is how often code was dropped for
	// lack of room.
	Unused, Crowded uint64
}

// A CodeState says where a module's compiled code is.
type CodeState string

// The states of a module's code.
const (
	CodeMissing = CodeState(foundry.Missing) // not made: the next call compiles it
	CodeStored  = CodeState(foundry.Stored)  // on disk: the next call loads it
	CodePending = CodeState(foundry.Pending) // under way, or queued
	CodeLoaded  = CodeState(foundry.Loaded)  // in memory
	CodeRefused = CodeState(foundry.Refused) // it can't be compiled, and every call fails
)

// ManifestUse returns only Manifests of State, which takes no time.
func (e *Engine) ManifestUse() account.Use { return e.account.Use(account.Manifests) }

// SourceUse returns only Sources of State, which takes no time.
func (e *Engine) SourceUse() account.Use { return e.account.Use(account.Sources) }

// Compiling returns only Compiling of State, which takes no time.
func (e *Engine) Compiling() schedule.State { return e.schedule.State() }

// CacheSize returns how many bytes of compiled code are on disk, and the limit. It returns false if there is no cache, or its size is not known. At
// most once a minute, it examines all files of the cache.
func (e *Engine) CacheSize() (bytes, limit int64, ok bool) { return e.foundry.CacheSize() }

// State returns what the engine holds. It takes about a millisecond for 10,000 modules.
func (e *Engine) State() State {
	s := State{
		Code:       map[CodeState]int{},
		Memory:     e.account.Use(account.Memory),
		Mappings:   e.account.Use(account.Mappings),
		CodeMemory: e.account.Use(account.Code),
		Manifests:  e.account.Use(account.Manifests),
		Sources:    e.account.Use(account.Sources),
		Files:      e.account.Use(account.Descriptors),
		Compiling:  e.schedule.State(),
		Unused:     e.unused.Load(),
		Crowded:    e.crowded.Load(),
	}
	made := e.foundry.Made()
	s.Compiled, s.Loaded, s.CompileFailures = made.Compiled, made.Loaded, made.Failed
	e.mu.Lock()
	modules := slices.Collect(maps.Values(e.modules))
	for m := range e.live {
		if e.modules[m.sum] != m { // its Program is closed, but a call of a Tool has brought the module back
			modules = append(modules, m)
		}
	}
	e.mu.Unlock()
	s.Modules = len(modules)
	for _, m := range modules {
		p := m.state()
		s.Code[p.Code]++
		s.Idle += p.Idle
		s.Calls += p.Calls
		if p.Snapshot {
			s.Snapshots++
		}
	}
	return s
}
