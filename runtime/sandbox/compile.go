package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/compile"
	"github.com/toolsrv/toolsrv/runtime/instrument"
	"github.com/toolsrv/toolsrv/runtime/schedule"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

const (
	// compileMemory bounds the memory that compilations which run side by side are predicted to take, in bytes; half of the memory
	// of all tools does, too.
	compileMemory = 1 << 30
	// closeGrace is how long Close waits for compilations. Longer ones free what they used when they end.
	closeGrace = 2 * time.Second
	// What fails for a reason that passes is tried again at once, then after firstPause, and then each time after twice as long, up to
	// lastPause: a module that takes all that there is should not do that at each call.
	firstPause = time.Second
	lastPause  = 5 * time.Minute
	// cooling is the time after which a call counts half.
	cooling = time.Minute
)

// A compiler compiles modules in the background, in the order of runtime/schedule. It is safe for concurrent use. For the order of
// locks, see Engine.
type compiler struct {
	foundry  *foundry
	schedule *schedule.Scheduler
	log      *slog.Logger
	grace    time.Duration
	account  *account.Account
	shedding sync.Mutex // held while code is dropped for want of room
	cooled   time.Time  // when calls last began to count half; guarded by shedding
}

// A build makes the code of a module, or sees to it that the cache has the code. Its results are there when done is closed.
type build struct {
	code   *code
	cost   cost // predicted
	job    atomic.Pointer[schedule.Job]
	needed atomic.Bool // a call waits for the code
	done   chan struct{}
	native *native // nil: err says why
	err    error
	again  time.Time // when what failed for a reason that passes is tried again; zero: it is not
}

func newCompiler(f *foundry, a *account.Account, log *slog.Logger) *compiler {
	return &compiler{
		foundry:  f,
		schedule: schedule.New(runtime.GOMAXPROCS(0), min(compileMemory, a.Most(account.Memory, true)/2)),
		log:      log,
		grace:    closeGrace,
		account:  a,
	}
}

// add queues a build; stored says that the cache has the code. The build's code must not be locked.
func (c *compiler) add(b *build, stored bool) {
	j := &schedule.Job{Order: b.code.order, Load: stored, Run: func() { c.run(b) }, Cancel: func() { b.finish(nil, errClosing) }}
	if size := b.code.source.size; stored {
		j.Time, j.Bytes = time.Duration(size)*loadPace, int64(size)*2*codeFactor
	} else {
		j.Time, j.Bytes = b.cost.time, b.cost.bytes
	}
	if b.job.Store(j); b.needed.Load() {
		c.schedule.Hurry(j)
	}
	c.schedule.Add(j)
}

// hurry puts a build before those that no call waits for, and has it load the code.
func (c *compiler) hurry(b *build) {
	b.needed.Store(true)
	if j := b.job.Load(); j != nil { // otherwise add is under way, and sees that the code is needed
		c.schedule.Hurry(j)
	}
}

// A cost is what compiling a module is predicted to take.
type cost struct {
	time  time.Duration
	bytes int64
}

// costOf returns what compiling a module of a weight and a size is predicted to take.
func costOf(w instrument.Weight, size int) cost {
	return cost{w.Time(), w.Bytes + int64(size)*codeFactor}
}

// What loading a module takes for each of its bytes, and what compiling an ordinary one does.
const (
	loadPace     = 20 * time.Nanosecond
	compilePace  = 300 * time.Nanosecond
	compileBytes = 60
)

// run runs a build, on a goroutine of its own, so that whoever stops waiting does not stop it for others.
func (c *compiler) run(b *build) {
	if !b.wanted() {
		b.finish(nil, errUnwanted)
		return
	}
	n, err := c.make(b)
	if n == nil && err == nil {
		c.add(b, false)
		return
	}
	if n != nil {
		c.account.Add(account.Code, n.size)
		if !c.account.Take(account.Mappings, n.mappings(), true) { // they are in use already
			b.code.engine.reclaim(nil, account.Mappings, n.mappings())
			c.account.Add(account.Mappings, n.mappings())
		}
	}
	if left := b.finish(n, err); left != nil {
		c.drop(b.code, left)
	}
	if !b.job.Load().Load { // where it was only loaded, that can wait: a program that runs for a moment does without
		b.code.source.pack()
	}
	b.code.engine.shed()
}

// make compiles or loads the code of a build. It returns neither code nor error where it was to load code that is not there.
func (c *compiler) make(b *build) (n *native, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = nil, compile.Panicked(p)
		}
	}()
	of, load := b.code, b.job.Load().Load
	if load && !c.foundry.failing() {
		if n, err = c.foundry.load(of.sum); err != nil {
			c.foundry.warn(notUsed, err)
		}
		if n != nil {
			return n, nil
		}
	}
	source, err := of.source.plain()
	if err != nil {
		return nil, fmt.Errorf("unpack the module: %w", err)
	}
	parsed, err := wasmbin.Parse(source)
	if err != nil {
		return nil, err
	}
	if load { // the cache had code when the module was loaded, so the module was not weighed
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
	// What is idle makes room for it. Running calls are not waited for: they may be waiting for this build.
	if !c.account.Take(account.Memory, b.cost.bytes, true) {
		of.engine.reclaim(nil, account.Memory, b.cost.bytes)
		c.account.Add(account.Memory, b.cost.bytes)
	}
	defer c.account.Give(account.Memory, b.cost.bytes)
	return c.foundry.compile(of.sum, parsed, b.needed.Load)
}

// close begins no more builds, and waits for those that run, for the time of grace at most: then the processes that compile are ended.
// It reports whether no build is left; one in this process can't be ended, and the schedule's Idle tells when the last one is done.
func (c *compiler) close() bool {
	c.schedule.Close()
	grace := time.NewTimer(c.grace)
	defer grace.Stop()
	select {
	case <-c.schedule.Idle():
		return true
	case <-grace.C:
	}
	if c.foundry.pool == nil {
		return false
	}
	c.foundry.pool.Close() // which ends what it compiles
	grace.Reset(c.grace)
	select {
	case <-c.schedule.Idle():
		return true
	case <-grace.C:
		return false
	}
}

// drop frees code that nobody uses.
func (c *compiler) drop(of *code, n *native) {
	c.account.Give(account.Code, n.size)
	c.account.Give(account.Mappings, n.mappings())
	if n.code == nil {
		return
	}
	if err := n.code.Close(context.Background()); err != nil {
		c.log.Warn("free compiled code", "digest", of.digest, "error", err)
	}
}

// errUnwanted ends a build whose module has no users any more. So nobody sees it.
var errUnwanted = errors.New("the module was closed before it was compiled")

// over reports whether the build's results are there.
func (b *build) over() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// stale reports whether the build failed for a reason that may have passed by now. The build's code is locked.
func (b *build) stale() bool { return !b.again.IsZero() && time.Now().After(b.again) }

// wanted reports whether the build is still the code's. Code without users forgets its build.
func (b *build) wanted() bool {
	b.code.mu.Lock()
	defer b.code.mu.Unlock()
	return b.code.build == b
}

// passing reports whether an error of a build is not the module's fault.
func passing(err error) bool {
	return errors.Is(err, compile.ErrNoMemory) || errors.Is(err, compile.ErrDisk) || errors.Is(err, compile.ErrLost)
}

// finish publishes the results of the build. Only an error that is the module's fault is remembered. finish returns code that nobody
// wants any more, for the caller to drop.
func (b *build) finish(n *native, err error) (left *native) {
	c := b.code
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.build != b:
		n, left, err = nil, n, errUnwanted
	case err != nil:
		switch {
		case errors.Is(err, errClosing):
			c.build = nil
		case passing(err):
			if c.failures++; c.failures == 1 {
				c.build = nil
			} else {
				b.again = time.Now().Add(min(firstPause<<min(c.failures-2, 10), lastPause))
			}
		}
	case n.code == nil:
		c.build, c.stored, c.failures = nil, true, 0
	default:
		c.rewritten, c.runtime, c.stored, c.failures = n.rewritten, n.runtime, n.stored, 0
	}
	switch {
	case errors.Is(err, errClosing):
		b.err = closing(err)
	case errors.Is(err, compile.ErrNoMemory), errors.Is(err, compile.ErrLost):
		b.err = &Error{Outcome: Overloaded, Message: "The service has no memory for the tool's code now. Try again later.", Err: err}
	case err != nil:
		b.err = &Error{Outcome: Internal, Message: "The tool could not be compiled.", Err: err}
	}
	b.native = n
	close(b.done)
	return left
}

// checkCode checks that this process may run code that is compiled for it. Where it may not, wazero would interpret
// (runtime/RATIONALE.md says why that is no way out).
func checkCode(ctx context.Context, config wazero.RuntimeConfig) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if refused, ok := p.(error); ok && errors.Is(refused, fs.ErrPermission) {
			err = fmt.Errorf("this process may not run code that it compiles: %w; allow it: leave out MemoryDenyWriteExecute= in a unit of systemd, allow execmem in SELinux", refused)
			return
		}
		err = fmt.Errorf("this process can't run code that it compiles (%s/%s): %v", runtime.GOOS, runtime.GOARCH, p)
	}()
	return wazero.NewRuntimeWithConfig(ctx, config).Close(ctx)
}

// compileIn has wazero compile a module on this goroutine or, with several workers, on goroutines of wazero's, where nobody can
// recover from a panic.
func compileIn(r wazero.Runtime, source []byte, workers int) (module wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p != nil {
			module, err = nil, compile.Panicked(p)
		}
	}()
	return r.CompileModule(experimental.WithCompilationWorkers(context.Background(), workers), source)
}

// loadIn has wazero load the code of a module that it finds in its cache, as compileIn does, and never compiles: code that is not found is
// compile.ErrDisk. wazero looks for it before it asks how many workers compile.
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

// onlyLoads is the context of loadIn.
type onlyLoads struct{ context.Context }

// Value panics where wazero asks how many workers compile.
func (c onlyLoads) Value(key any) any {
	if key == workersKey {
		panic(errNotFound)
	}
	return c.Context.Value(key)
}

// workersKey is by which wazero asks that.
var workersKey = func() (key any) {
	experimental.GetCompilationWorkers(asked{context.Background(), &key})
	return key
}()

// asked notes the key that it is asked for.
type asked struct {
	context.Context
	key *any
}

// Value notes the key.
func (c asked) Value(key any) any {
	*c.key = key
	return nil
}
