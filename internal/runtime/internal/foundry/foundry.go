// Package foundry makes machine code of modules, and keeps it: a [Code] is rewritten so that it is metered, compiled in the background
// or loaded from the cache on disk, and dropped from memory if there is no room for it.
//
// It runs nothing. Package sandbox instantiates the code, and decides which code is used least.
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

// A Config is what New needs.
type Config struct {
	// CacheDir, CacheSize, CompileWorkers and CompileHelper are as in sandbox.Config.
	CacheDir       string
	CacheSize      int64
	CompileWorkers int
	CompileHelper  []string
	Logger         *slog.Logger
	// Account counts what compiling and code take.
	Account *account.Account
	// Schedule has the order in which modules are compiled. Close closes it.
	Schedule *schedule.Scheduler
	// Furnish offers the host's functions in a runtime.
	Furnish func(context.Context, wazero.Runtime) error
	// Reclaim frees idle resources until n of a kind fit, or done is closed.
	Reclaim func(done <-chan struct{}, k account.Kind, n int64)
	// Shed drops the code that is used least, if there is not enough room. It is called when some was added.
	Shed func()
	// Stop is done when nobody waits for code any more.
	Stop context.Context
	// Closing is closed when only calls under way are waited for.
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

// Made is what was made since the foundry began.
type Made struct {
	// Compiled is what modules took to compile, and Loaded what it took to find code in the cache and to load it.
	Compiled, Loaded durations.Sum
	// Failed is how often a module could not be compiled.
	Failed uint64
}

// Made tells what was made so far.
func (f *Foundry) Made() Made { return Made{f.compiled.Sum(), f.loaded.Sum(), f.failed.Load()} }

// CacheSize returns how many bytes of compiled code are kept on disk, and how many may be, or reports false if that is not known, or none is.
func (f *Foundry) CacheSize() (bytes, limit int64, ok bool) {
	if f.furnace.cache == nil {
		return 0, 0, false
	}
	bytes, limit, err := f.furnace.cache.Size()
	return bytes, limit, err == nil
}

// ErrClosed is the error of code that is not made because the engine closes.
var ErrClosed = errors.New("the engine is closing")

// New returns a foundry, which Free frees. Where the cache can't be used, it logs that, and does without.
func New(ctx context.Context, c Config) (_ *Foundry, err error) {
	// Metering ends what runs too long, so wazero need not. Debug information is foreign bytes that nothing here needs.
	config := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
	if err := checkCode(ctx, config); err != nil {
		return nil, err
	}
	f := &Foundry{schedule: c.Schedule, account: c.Account, log: c.Logger, reclaim: c.Reclaim, shed: c.Shed, stop: c.Stop, closing: c.Closing}
	f.furnace, err = newFurnace(ctx, c, f.claimFor, config)
	return f, err
}

// Ready starts the process that compiles modules, if one is used, so that the next module is compiled sooner.
func (f *Foundry) Ready() { f.furnace.ready() }

// A sum identifies a module.
type sum = [sha256.Size]byte

// NewCode returns the code of a module without its bundle and without custom sections. It refuses code that is predicted to take too
// much to compile, or once did. digest names the module in the log. bare is its bytes, and source keeps
// them: the caller holds it while the code is used.
func (f *Foundry) NewCode(of sum, digest string, bare []byte, source *Source) (*Code, error) {
	c := &Code{foundry: f, sum: of, digest: digest, source: source, order: f.orders.Add(1)}
	c.cost = cost{time.Duration(len(bare)) * compilePace, int64(len(bare)) * compileBytes}
	// What is in the cache was accepted by this rewriter when it was compiled.
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
		f.furnace.bar(of, bar{Refused: err.Error()}) // which took up to seconds to find out
		return nil, err
	}
	c.cost = costOf(weight, len(bare))
	return c, nil
}

// Described returns what Describe kept of a module, in this process or in an earlier one with the same cache, or nil if that is not known.
func (f *Foundry) Described(of sum) []byte {
	cache := f.furnace.cache
	if cache == nil {
		return nil
	}
	parts, err := cache.Get(f.furnace.key(of, aboutDescription))
	if err != nil || len(parts) != 1 { // a damaged one is removed, and found out anew
		return nil
	}
	return parts[0]
}

// Describe keeps what a module says of itself with the cache, so that it need not run for it at each start of a server.
func (f *Foundry) Describe(of sum, text []byte) {
	cache := f.furnace.cache
	if cache == nil || f.furnace.failing() {
		return
	}
	if err := cache.Put(f.furnace.key(of, aboutDescription), text); err != nil {
		f.furnace.notKept.Add(err)
	}
}

// Close begins no more builds, and waits for those that run, for the time of grace at most: then the processes that compile are ended.
// It reports whether no build is left; one in this process can't be ended, and the schedule's Idle tells when the last one is done.
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
	f.furnace.pool.Close() // which ends what it compiles
	patience.Reset(grace)
	select {
	case <-f.schedule.Idle():
		return true
	case <-patience.C:
		return false
	}
}

// Free frees everything. No build is left, and nothing runs any more.
func (f *Foundry) Free(ctx context.Context) error { return f.furnace.close(ctx) }
