// Package sandbox runs WebAssembly guests that nobody trusts.
//
// An [Engine] loads modules and makes [Program]s of them. A [Tool] is one function of a program with its limits;
// each [Tool.Call] runs in an instance in its first state: nothing of another call is in it. Whatever a guest does, a call ends in
// time, within its memory, and with a result or an [Error] that says what happened.
//
// A program is initialised once. Its memory and its globals are then its snapshot. Instances are made of it, and reset to it after
// each call; one that broke is closed instead. The code is rewritten so that it is metered: a guest stops within a fraction of a
// millisecond of its deadline, without a timer or a goroutine for each call.
//
// Guests follow ABI 1 or are plain WASI programs; docs/abi.md describes both. The functions that they import are not part of this
// package: see package hostcall.
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
	// CacheDir is the directory for compiled code, made if it is missing; "" keeps none on disk. Anybody who can write there can
	// run code in this process, so a directory that others can change is not used. Neither is one that can't be made. Logger is
	// told of both. Several processes may share a directory.
	CacheDir string
	// CacheSize bounds the files in CacheDir, in bytes; 2 GiB where 0 or less. The least recently used ones are removed.
	CacheSize int64
	// Logger takes the log lines of guests and of the engine; nil discards them.
	Logger *slog.Logger
	// Memory bounds what all programs take together, in bytes: running calls, idle instances, snapshots and compiling. If it is
	// 0 or less, it is half of what the process has.
	Memory int64
	// Mappings bounds the mappings of the process's address space that instances and compiled code take; three quarters of
	// what the system allows where 0 or less.
	Mappings int64
	// Addresses bounds the address space that the memories of instances reserve, in bytes; each reserves as much as it may grow to.
	// If it is 0 or less, it is the limit of the process (ulimit -v) less 3 GiB.
	Addresses int64
	// Descriptors bounds the files that guests have open; an eighth of what the process may open, 16,384 at most, where 0 or less.
	Descriptors int64
	// DescribeFuel is how much fuel [Program.Describe] has; 10 billion where 0 or less, which is some 5 s of a processor.
	DescribeFuel int64
	// IdleTime is how long an unused instance is kept; a minute where 0 or less.
	IdleTime time.Duration
	// CodeMemory bounds the compiled code in memory, in bytes, where it can be loaded again from CacheDir; an eighth of what the
	// process has, 1 GiB at most, where 0 or less. Only code that no call uses is dropped.
	CodeMemory int64
	// Imports are the sets of functions that programs can be allowed to import. Without any, programs can import nothing.
	Imports []*hostcall.Set
	// CompileWorkers is how many processors compile one module; 1 where 0 or less. With more, a fault of the compiler ends the
	// process instead of being an error, so more are for modules that the user of the process has made.
	CompileWorkers int
	// CompileHelper is a command that calls compile.Serve with its last argument and its standard input and output. Where it is set,
	// processes that it starts compile, within limits of memory and processor time that the system holds. Without it, or where there
	// can be no such process, this process compiles the modules that are predicted to stay within the bounds.
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

	describes     limits.Limits // of Describe
	idleTime      time.Duration
	unusedTime    time.Duration
	idleInstances int // most of one program
	account       *account.Account
	seats         *turns.Places[string, *module] // of parties, for guests that compute for long
	reclaiming    chan struct{}                  // holds one token, for the goroutine that frees idle memory
	closing       chan struct{}                  // closed when Close begins
	janitor       chan struct{}                  // closed when the janitor has gone

	mu      sync.Mutex
	modules map[sum]*module // loaded ones, by what they are made of
	codes   map[sum]*code   // of loaded ones
	// interpreters are some of codes that have modules with bundles.
	interpreters []*code
	live         map[*module]struct{} // attached ones
	closed       chan struct{}        // closed when Close ends; if nil, it has not begun
	freed        chan struct{}        // closed when everything is freed: after Close, where a compilation goes on

	shedding sync.Mutex // held while code is dropped for lack of room
	cooled   time.Time  // when calls last began to count half; guarded by shedding

	unused, crowded atomic.Uint64 // how often code was dropped because nobody called it for long, or for lack of room
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

// Expect makes the process start that compiles modules, if there is to be one: a module may come soon, and is compiled the sooner then. It
// costs little where one has started. It is safe for concurrent use.
func (e *Engine) Expect() { e.foundry.Ready() }

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
	defer close(e.freed)
	e.halt(errClosing)
	return e.foundry.Free(ctx)
}

// A State is what an engine holds. Its parts are read one after the other while calls go on, so they may be of slightly
// different moments.
type State struct {
	// Modules is how many modules are loaded. Those that differ only in custom sections count as one.
	Modules int
	// Code is how many modules are in each state of their code.
	Code map[CodeState]int
	// Snapshots is how many modules have been initialised, and Idle how many instances wait for a call.
	Snapshots, Idle int
	// Calls is how many calls run or wait, also for a compilation.
	Calls int
	// Memory, Mappings and CodeMemory are what all modules together take of what the Config bounds: bytes, mappings of
	// the address space, and bytes of compiled code.
	Memory, Mappings, CodeMemory account.Use
	// Manifests is how many bytes [Program.Keep] has counted of all. They are part of Memory.
	Manifests account.Use
	// Sources is how many bytes the modules themselves take, which are kept as they were written, compressed or not, beside Memory.
	Sources account.Use
	// Files is how many files guests have open.
	Files account.Use
	// Compiling is what is compiled, or loaded from the cache, and what waits for that.
	Compiling schedule.State
	// Compiled is what modules have taken to compile since the engine began, and Loaded what code from the cache has. CompileFailures is how
	// often a module could not be compiled.
	Compiled, Loaded durations.Sum
	CompileFailures  uint64
	// Unused is how often code was dropped from memory since nobody had called it for long, and Crowded how often since there was no room.
	Unused, Crowded uint64
}

// A CodeState says where a module's compiled code is.
type CodeState string

// The states of a module's code.
const (
	CodeMissing = CodeState(foundry.Missing) // nothing: the next call compiles it
	CodeStored  = CodeState(foundry.Stored)  // on disk: the next call loads it
	CodePending = CodeState(foundry.Pending) // under way, or queued
	CodeLoaded  = CodeState(foundry.Loaded)  // in memory
	CodeRefused = CodeState(foundry.Refused) // it can't be compiled, and every call fails
)

// ManifestUse returns Manifests of State alone, in no time.
func (e *Engine) ManifestUse() account.Use { return e.account.Use(account.Manifests) }

// SourceUse returns Sources of State alone, in no time.
func (e *Engine) SourceUse() account.Use { return e.account.Use(account.Sources) }

// Compiling returns Compiling of State alone, in no time.
func (e *Engine) Compiling() schedule.State { return e.schedule.State() }

// CacheSize returns how many bytes of compiled code are kept on disk, and how many may be, or reports false if that is not known, or none is. It
// may look at all files of the cache, once in a minute.
func (e *Engine) CacheSize() (bytes, limit int64, ok bool) { return e.foundry.CacheSize() }

// State tells what the engine holds. It takes about a millisecond for 10,000 modules.
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
		if e.modules[m.sum] != m { // a call of a Tool whose Program is closed brought it back
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
