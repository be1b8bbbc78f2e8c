// Package foundry makes machine code of modules, and keeps it. A [Code] is rewritten so that it is metered. It is compiled in the background or
// loaded from the cache on disk, and dropped from memory if there is no room for it.
//
// The package runs no code. Package sandbox instantiates it, and decides which code is used least.
package foundry

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/durations"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/schedule"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// A Config is the configuration of a Foundry.
type Config struct {
	// CacheDir, CacheSize, CompileWorkers and CompileHelper are as in sandbox.Config.
	CacheDir       string
	CacheSize      int64
	CompileWorkers int
	CompileHelper  []string
	Logger         *slog.Logger
	// Account counts the memory of compiling and of code.
	Account *account.Account
	// Schedule decides in which order modules are compiled. The foundry's Close closes it.
	Schedule *schedule.Scheduler
	// Furnish adds the host's functions to a runtime.
	Furnish func(context.Context, wazero.Runtime) error
	// Reclaim frees idle resources until n of a kind fit, or done is closed.
	Reclaim func(done <-chan struct{}, k account.Kind, n int64)
	// Shed drops the code that is used least if there is too little room. It is called after code was added.
	Shed func()
	// Stop is done once nobody waits for code any more.
	Stop context.Context
	// Closing is closed once only calls under way are waited for.
	Closing <-chan struct{}
}

// A Foundry compiles modules in the background, in the order of internal/runtime/schedule. It is safe for concurrent use.
type Foundry struct {
	furnace  *furnace
	schedule *schedule.Scheduler
	account  *account.Account
	log      *slog.Logger
	reclaim  func(done <-chan struct{}, k account.Kind, n int64)
	shed     func()
	stop     context.Context
	closing  <-chan struct{}
	orders   atomic.Uint64 // codes so far

	compiled, loaded durations.Histogram
	failed           atomic.Uint64
}

// Made counts what a foundry has made so far.
type Made struct {
	// Compiled has the times of compiling modules, and Loaded the times of finding code in the cache and loading it.
	Compiled, Loaded durations.Sum
	// Failed is how often compiling a module has failed.
	Failed uint64
}

// Made returns what was made so far.
func (f *Foundry) Made() Made { return Made{f.compiled.Sum(), f.loaded.Sum(), f.failed.Load()} }

// CacheSize returns how many bytes of compiled code are on disk, and the limit. It returns false if there is no cache, or its size is not known.
func (f *Foundry) CacheSize() (bytes, limit int64, ok bool) {
	if f.furnace.cache == nil {
		return 0, 0, false
	}
	bytes, limit, err := f.furnace.cache.Size()
	return bytes, limit, err == nil
}

// ErrClosed is returned for code that is not made because the engine is closing.
var ErrClosed = errors.New("the engine is closing")

// New returns a foundry, which Free frees. If the cache can't be used, New logs that, and the foundry works without it.
func New(ctx context.Context, c Config) (_ *Foundry, err error) {
	// Metering ends calls that run too long, so wazero need not. Debug information comes from strangers, and nothing here needs it.
	config := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
	if err := checkCode(ctx, config); err != nil {
		return nil, err
	}
	f := &Foundry{schedule: c.Schedule, account: c.Account, log: c.Logger, reclaim: c.Reclaim, shed: c.Shed, stop: c.Stop, closing: c.Closing}
	f.furnace, err = newFurnace(ctx, c, f.claimFor, config)
	return f, err
}

// Ready starts a process that compiles modules, if such processes are used, so that the next module is compiled sooner.
func (f *Foundry) Ready() { f.furnace.ready() }

// A sum identifies a module.
type sum = [sha256.Size]byte

// NewCode returns the code of a module without its bundle and without custom sections. It refuses code whose predicted cost is too high, or that
// once turned out to cost too much. digest names the module in the log. bare has its bytes, and source keeps them: the caller holds source while
// the code is used.
func (f *Foundry) NewCode(of sum, digest string, bare []byte, source *Source) (*Code, error) {
	c := &Code{foundry: f, sum: of, digest: digest, source: source, order: f.orders.Add(1)}
	c.cost = cost{time.Duration(len(bare)) * compilePace, int64(len(bare)) * compileBytes}
	// This rewriter has accepted what is in the cache.
	if c.stored = f.furnace.has(of); c.stored {
		return c, nil
	}
	if err := f.furnace.isBarred(of); err != nil {
		return nil, err
	}
	f.furnace.ready()
	parsed, err := wasmbin.Parse(bare)
	if err != nil {
		return nil, err
	}
	weight, err := instrument.Weigh(parsed)
	if err != nil {
		f.furnace.bar(of, bar{Refused: err.Error()}) // finding that out took up to seconds
		return nil, err
	}
	c.cost = costOf(weight, len(bare))
	return c, nil
}

// Described returns the text that Describe stored for a module, in this process or in an earlier one with the same cache, or nil.
func (f *Foundry) Described(of sum) []byte {
	cache := f.furnace.cache
	if cache == nil {
		return nil
	}
	parts, err := cache.Get(f.furnace.key(of, aboutDescription))
	if err != nil || len(parts) != 1 { // a damaged entry has been removed, and is made again
		return nil
	}
	return parts[0]
}

// Describe stores a module's description of itself in the cache, so that the module need not run for it at each start of a server.
func (f *Foundry) Describe(of sum, text []byte) {
	cache := f.furnace.cache
	if cache == nil || f.furnace.failing() {
		return
	}
	if err := cache.Put(f.furnace.key(of, aboutDescription), text); err != nil {
		f.furnace.notKept.Add(err)
	}
}

// Close begins no more builds, and waits for running ones, for no longer than grace. Then it ends the processes that compile. It reports whether no
// build is left. A build in this process can't be ended; the schedule's Idle says when the last one is done.
func (f *Foundry) Close(grace time.Duration) bool {
	f.schedule.Close()
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case <-f.schedule.Idle():
		return true
	case <-patience.C:
	}
	if f.furnace.pool == nil {
		return false
	}
	f.furnace.pool.Close() // this ends what they compile
	patience.Reset(grace)
	select {
	case <-f.schedule.Idle():
		return true
	case <-patience.C:
		return false
	}
}

// Free frees everything. It must be called once no build is left and nothing runs any more.
func (f *Foundry) Free(ctx context.Context) error { return f.furnace.close(ctx) }
