package foundry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/compile"
	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/schedule"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

const (
	// After a temporary failure, compiling is tried again at once, then after firstPause, and then each time after twice as long, up to lastPause: a
	// module that takes all memory should not do so at each call.
	firstPause = time.Second
	lastPause  = 5 * time.Minute
)

// A build makes the code of a module, or makes sure that the cache has it. Its results can be read once done is closed.
type build struct {
	code   *Code
	cost   cost // predicted
	job    atomic.Pointer[schedule.Job]
	needed atomic.Bool // a call waits for the code
	done   chan struct{}
	native *Native // nil if err is set
	err    error
	again  time.Time // when to try again after a temporary failure; zero means never
}

// add queues a build. stored says that the cache has the code. The code's lock must not be held.
func (f *Foundry) add(b *build, stored bool) {
	j := &schedule.Job{Order: b.code.order, Load: stored, Run: func() { f.run(b) }, Cancel: func() { b.finish(nil, ErrClosed) }}
	if size := b.code.source.size; stored {
		j.Time, j.Bytes = time.Duration(size)*loadPace, int64(size)*2*codeFactor
	} else {
		j.Time, j.Bytes = b.cost.time, b.cost.bytes
	}
	if b.job.Store(j); b.needed.Load() {
		f.schedule.Hurry(j)
	}
	f.schedule.Add(j)
}

// hurry puts a build before those that no call waits for, and has it load the code.
func (f *Foundry) hurry(b *build) {
	b.needed.Store(true)
	if j := b.job.Load(); j != nil { // otherwise add is running, and will see that the code is needed
		f.schedule.Hurry(j)
	}
}

// A cost is the predicted cost of compiling a module.
type cost struct {
	time  time.Duration
	bytes int64
}

// costOf returns the predicted cost of compiling a module with a weight and a size.
func costOf(w instrument.Weight, size int) cost {
	return cost{w.Time(), w.Bytes + int64(size)*codeFactor}
}

// Estimates for each byte of a module: of loading it, and of compiling an ordinary one.
const (
	loadPace     = 20 * time.Nanosecond
	compilePace  = 300 * time.Nanosecond
	compileBytes = 60
)

// run runs a build on a goroutine of its own, so that a caller that gives up does not stop it for others.
func (f *Foundry) run(b *build) {
	if !b.wanted() {
		b.finish(nil, errUnwanted)
		return
	}
	n, err := f.make(b)
	if n == nil && err == nil {
		f.add(b, false)
		return
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		f.failed.Add(1)
	}
	if n != nil {
		f.account.Add(account.Code, n.size)
		if !f.account.Take(account.Mappings, n.mappings(), true) { // the mappings are in use already
			f.reclaim(nil, account.Mappings, n.mappings())
			f.account.Add(account.Mappings, n.mappings())
		}
	}
	if left := b.finish(n, err); left != nil {
		f.drop(b.code, left)
	}
	if !b.job.Load().Load { // if the code was only loaded, compressing its source can wait: a program that runs for a moment never needs it
		b.code.source.Pack()
	}
	f.shed()
}

// make compiles or loads the code of a build. It returns neither code nor an error if it should have loaded code that does not exist.
func (f *Foundry) make(b *build) (n *Native, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = nil, compile.Panicked(p)
		}
	}()
	of, load := b.code, b.job.Load().Load
	began := time.Now()
	if load && !f.furnace.failing() {
		if n, err = f.furnace.load(of.sum); err != nil {
			f.furnace.notUsed.Add(err)
		}
		if n != nil {
			f.loaded.Add(time.Since(began))
			return n, nil
		}
	}
	source, err := of.source.Plain()
	if err != nil {
		return nil, fmt.Errorf("unpack the module: %w", err)
	}
	parsed, err := wasmbin.Parse(source)
	if err != nil {
		return nil, err
	}
	if load { // the cache had the code when the module was loaded, so the module has not been weighed
		weight, err := instrument.Weigh(parsed)
		if err != nil {
			return nil, err
		}
		b.cost = costOf(weight, of.source.size)
		of.mu.Lock()
		of.cost = b.cost
		of.mu.Unlock()
		return nil, nil
	}
	// Idle memory is freed for it. The build does not wait for running calls: they may be waiting for it.
	if !f.account.Take(account.Memory, b.cost.bytes, true) {
		f.reclaim(nil, account.Memory, b.cost.bytes)
		f.account.Add(account.Memory, b.cost.bytes)
	}
	defer f.account.Give(account.Memory, b.cost.bytes)
	n, err = f.furnace.compile(of.sum, parsed, b.needed.Load)
	f.compiled.Add(time.Since(began))
	return n, err
}

// drop frees code that no call uses.
func (f *Foundry) drop(of *Code, n *Native) {
	f.account.Give(account.Code, n.size)
	f.account.Give(account.Mappings, n.mappings())
	if n.Code == nil {
		return
	}
	if err := n.Code.Close(context.Background()); err != nil {
		f.log.Warn("free compiled code", "digest", of.digest, "error", err)
	}
}

// errUnwanted ends a build whose module has no users any more, so nobody sees this error.
var errUnwanted = errors.New("the module was closed before it was compiled")

// over reports whether the build is done.
func (b *build) over() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// stale reports whether the build failed for a temporary reason, and may be tried again now. The code's lock is held.
func (b *build) stale() bool { return !b.again.IsZero() && time.Now().After(b.again) }

// wanted reports whether the build is still the code's own. Code without users has dropped its build.
func (b *build) wanted() bool {
	b.code.mu.Lock()
	defer b.code.mu.Unlock()
	return b.code.build == b
}

// passing reports whether an error of a build is temporary, and so not the module's fault.
func passing(err error) bool {
	return Scarce(err) || errors.Is(err, compile.ErrDisk)
}

// Scarce reports whether code is missing for lack of memory, which is temporary.
func Scarce(err error) bool {
	return errors.Is(err, compile.ErrNoMemory) || errors.Is(err, compile.ErrLost)
}

// finish publishes the results of the build. An error is remembered only if it is the module's fault. If nobody wants the code any more, finish
// returns it for the caller to drop.
func (b *build) finish(n *Native, err error) (left *Native) {
	c := b.code
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.build != b:
		n, left, err = nil, n, errUnwanted
	case err != nil:
		switch {
		case errors.Is(err, ErrClosed):
			c.build = nil
		case passing(err):
			if c.failures++; c.failures == 1 {
				c.build = nil
			} else {
				b.again = time.Now().Add(min(firstPause<<min(c.failures-2, 10), lastPause))
			}
		}
	case n.Code == nil:
		c.build, c.stored, c.failures = nil, true, 0
	default:
		c.native, c.stored, c.failures = n, n.stored, 0
	}
	b.native, b.err = n, err
	close(b.done)
	return left
}

// checkCode checks that this process may run code that is compiled for it. If it may not, wazero would interpret the code instead
// (internal/runtime/RATIONALE.md says why that won't do).
func checkCode(ctx context.Context, config wazero.RuntimeConfig) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if refused, ok := p.(error); ok && errors.Is(refused, fs.ErrPermission) {
			err = fmt.Errorf("this process may not run code that it compiles: %w; to allow it, leave out MemoryDenyWriteExecute= in a systemd unit, or allow execmem in SELinux", refused)
			return
		}
		err = fmt.Errorf("this process can't run code that it compiles (%s/%s): %v", runtime.GOOS, runtime.GOARCH, p)
	}()
	return wazero.NewRuntimeWithConfig(ctx, config).Close(ctx)
}

// compileIn makes wazero compile a module on this goroutine or, with several workers, on goroutines of wazero's own, where nobody can
// recover from a panic.
func compileIn(r wazero.Runtime, source []byte, workers int) (module wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p != nil {
			module, err = nil, compile.Panicked(p)
		}
	}()
	return r.CompileModule(experimental.WithCompilationWorkers(context.Background(), workers), source)
}

// loadIn makes wazero load a module's code from wazero's cache, as compileIn does, but never compiles it: if the code is missing, the error is
// compile.ErrDisk. wazero looks into the cache before it asks how many workers should compile.
func loadIn(r wazero.Runtime, source []byte) (module wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p == errNotFound {
			module, err = nil, fmt.Errorf("%w: %w", compile.ErrDisk, errNotFound)
		} else if p != nil {
			module, err = nil, compile.Panicked(p)
		}
	}()
	return r.CompileModule(onlyLoads{context.Background()}, source)
}

var errNotFound = errors.New("compiled code was not found where it was put")

// onlyLoads is the context for loadIn.
type onlyLoads struct{ context.Context }

// Value panics if wazero asks how many workers should compile.
func (c onlyLoads) Value(key any) any {
	if key == workersKey {
		panic(errNotFound)
	}
	return c.Context.Value(key)
}

// workersKey is the context key by which wazero asks for the number of workers.
var workersKey = func() (key any) {
	experimental.GetCompilationWorkers(asked{context.Background(), &key})
	return key
}()

// asked records the key that is requested.
type asked struct {
	context.Context
	key *any
}

// Value records the key.
func (c asked) Value(key any) any {
	*c.key = key
	return nil
}
