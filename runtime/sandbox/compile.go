package sandbox

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/toolsrv/toolsrv/runtime/account"
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
	module *module
	source source
	job    atomic.Pointer[schedule.Job]
	needed atomic.Bool // a call waits for the code
	done   chan struct{}
	native *native // nil: err says why
	err    error
}

// A source is a module's bytes. They are compressed, to a third, once the module was compiled: they are needed again only if the
// code gets lost from the cache.
type source struct {
	bytes  []byte
	size   int // not compressed
	packed bool
	hard   bool // compressing does not make it smaller
}

// plain returns the source as it is compiled.
func (s source) plain() ([]byte, error) {
	if !s.packed {
		return s.bytes, nil
	}
	plain := make([]byte, s.size)
	_, err := io.ReadFull(flate.NewReader(bytes.NewReader(s.bytes)), plain)
	return plain, err
}

// pack returns the source compressed, or as it is where that is no larger.
func (s source) pack() source {
	if s.packed || s.hard {
		return s
	}
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	if _, err := w.Write(s.bytes); err != nil || w.Close() != nil || b.Len() >= s.size {
		s.hard = true
		return s
	}
	return source{bytes: bytes.Clone(b.Bytes()), size: s.size, packed: true}
}

// packers are kept because each takes a megabyte.
var packers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return w
}}

func newCompiler(f *foundry, a *account.Account, log *slog.Logger) *compiler {
	return &compiler{
		foundry:  f,
		schedule: schedule.New(runtime.GOMAXPROCS(0), min(compileMemory, a.Most(account.Memory, true)/2)),
		log:      log,
		grace:    closeGrace,
		account:  a,
	}
}

// add queues a build; stored says that the cache has the code. The build's module must not be locked.
func (c *compiler) add(b *build, stored bool) {
	j := &schedule.Job{Order: b.module.order, Load: stored, Run: func() { c.run(b) }, Cancel: func() { b.finish(nil, errClosing) }}
	if stored {
		j.Time, j.Bytes = time.Duration(b.source.size)*loadPace, int64(b.source.size)*2*codeFactor
	} else {
		j.Time, j.Bytes = b.module.cost.time, b.module.cost.bytes
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

// costOf returns what compiling a rewritten module is predicted to take. size is that of the original.
func costOf(r *instrument.Rewritten, size int) cost {
	return cost{r.Weight.Time(), r.Weight.Bytes + int64(size)*codeFactor}
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
			b.module.engine.reclaim(nil, account.Mappings, n.mappings())
			c.account.Add(account.Mappings, n.mappings())
		}
	}
	if left := b.finish(n, err); left != nil {
		c.drop(b.module, left)
	}
	b.pack() // now that nobody waits any more
	b.module.engine.shed()
}

// make compiles or loads the code of a build. It returns neither code nor error where it was to load code that is not there.
func (c *compiler) make(b *build) (n *native, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = nil, panicked(p)
		}
	}()
	m, load := b.module, b.job.Load().Load
	if load && !c.foundry.failing() {
		if n, err = c.foundry.load(m.sum); err != nil {
			c.foundry.warn(notUsed, err)
		}
		if n != nil {
			return n, nil
		}
	}
	source, err := b.source.plain()
	if err != nil {
		return nil, fmt.Errorf("unpack the module: %w", err)
	}
	parsed, err := wasmbin.Parse(source)
	if err != nil {
		return nil, err
	}
	if load { // the cache had code when the module was loaded, so the module was not weighed
		r, err := instrument.Rewrite(parsed)
		if err != nil {
			return nil, err
		}
		m.cost = costOf(r, b.source.size)
		return nil, nil
	}
	// What is idle makes room for it. Running calls are not waited for: they may be waiting for this build.
	if !c.account.Take(account.Memory, m.cost.bytes, true) {
		m.engine.reclaim(nil, account.Memory, m.cost.bytes)
		c.account.Add(account.Memory, m.cost.bytes)
	}
	defer c.account.Give(account.Memory, m.cost.bytes)
	return c.foundry.compile(m.sum, parsed, b.needed.Load)
}

// close begins no more builds, and waits for those that run, for the time of grace at most. It reports whether none is left;
// otherwise the schedule's Idle tells when the last one is done.
func (c *compiler) close() bool {
	c.schedule.Close()
	grace := time.NewTimer(c.grace)
	defer grace.Stop()
	select {
	case <-c.schedule.Idle():
		return true
	case <-grace.C:
		return false
	}
}

// drop frees code that nobody uses.
func (c *compiler) drop(m *module, n *native) {
	c.account.Give(account.Code, n.size)
	c.account.Give(account.Mappings, n.mappings())
	if n.code == nil {
		return
	}
	if err := n.code.Close(context.Background()); err != nil {
		c.log.Warn("free compiled code", "digest", m.digest, "error", err)
	}
}

// shed drops code where there is more than there is room for, until a sixteenth of the room is free. Code that was called least goes
// first, in random order among equals. If it went by the time of the last call, many modules that are called in turn would each
// drop the one that is called next.
func (e *Engine) shed() {
	room := e.account.Most(account.Code, true)
	if e.account.Held(account.Code) <= room || !e.compiler.shedding.TryLock() {
		return
	}
	defer e.compiler.shedding.Unlock()
	type candidate struct {
		module *module
		heat   uint32
	}
	var all []candidate
	now := time.Now()
	cool := now.Sub(e.compiler.cooled) > cooling
	if cool {
		e.compiler.cooled = now
	}
	for _, m := range e.attached() {
		m.mu.Lock()
		if m.disused() {
			all = append(all, candidate{m, m.heat})
		}
		if cool {
			m.heat /= 2
		}
		m.mu.Unlock()
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.heat, b.heat) })
	for _, c := range all {
		if e.account.Held(account.Code) <= room-room/16 {
			return
		}
		var r released
		c.module.mu.Lock()
		if c.module.disused() {
			r = c.module.strip()
		}
		c.module.mu.Unlock()
		c.module.free(r)
	}
}

// disused reports whether the module has code that no call uses and that the cache has, too. m.mu is held.
func (m *module) disused() bool {
	return m.calls == 0 && m.build != nil && m.build.over() && m.build.native != nil && m.build.native.stored
}

// errUnwanted ends a build whose module has no users any more. So nobody sees it.
var errUnwanted = errors.New("the module was closed before it was compiled")

// compile returns the module's code for a call. The caller has entered the module, and may use the code until it leaves. The error is
// an *Error, or the cause of ctx.
func (m *module) compile(ctx context.Context) (wazero.CompiledModule, error) {
	for {
		b := m.begin(true)
		if !b.over() {
			select {
			case <-b.done:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		if b.err != nil {
			return nil, b.err
		}
		if b.native.code != nil {
			return b.native.code, nil
		}
		// The build was for the cache only, and was done before it learned that a call waits.
	}
}

// prepare waits until the module's code is in the cache, or in memory where there is no cache. Builds for calls come before it, and it
// does not hold up Close. A problem that passes, such as a lack of memory, is not an error: the next call compiles again.
func (m *module) prepare(ctx context.Context) error {
	m.mu.Lock()
	there := m.stored && m.build == nil
	m.mu.Unlock()
	if there {
		return nil
	}
	b := m.begin(false)
	select {
	case <-b.done:
		if passing(b.err) {
			return nil
		}
		return b.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.engine.closing:
		return closing(ErrClosed)
	}
}

// begin returns the module's build, and queues one where there is none.
func (m *module) begin(needed bool) *build {
	m.mu.Lock()
	b, stored := m.build, m.stored
	first := b == nil
	if first {
		b = &build{module: m, source: m.source, done: make(chan struct{})}
		b.needed.Store(needed)
		m.build = b
	}
	m.mu.Unlock()
	switch {
	case first:
		m.engine.compiler.add(b, stored)
	case needed && !b.over():
		m.engine.compiler.hurry(b)
	}
	return b
}

// over reports whether the build's results are there.
func (b *build) over() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// wanted reports whether the build is still the module's. A module without users forgets its build.
func (b *build) wanted() bool {
	b.module.mu.Lock()
	defer b.module.mu.Unlock()
	return b.module.build == b
}

// passing reports whether an error of a build is not the module's fault.
func passing(err error) bool { return errors.Is(err, errNoMemory) || errors.Is(err, errDisk) }

// finish publishes the results of the build. Only an error that is the module's fault is remembered. finish returns code that the
// module does not want any more, for the caller to drop.
func (b *build) finish(n *native, err error) (left *native) {
	m := b.module
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.build != b:
		n, left, err = nil, n, errUnwanted
	case err != nil:
		if passing(err) || errors.Is(err, errClosing) {
			m.build = nil
		}
	case n.code == nil:
		m.build, m.stored = nil, true
	default:
		m.rewritten, m.runtime, m.stored = n.rewritten, n.runtime, n.stored
	}
	switch {
	case errors.Is(err, errClosing):
		b.err = closing(err)
	case errors.Is(err, errNoMemory):
		b.err = &Error{Outcome: Overloaded, Message: "The service has no memory for the tool's code now.", Err: err}
	case err != nil:
		b.err = &Error{Outcome: Internal, Message: "The tool could not be compiled.", Err: err}
	}
	b.native = n
	close(b.done)
	return left
}

// pack packs the source that the build was made of.
func (b *build) pack() {
	packed := b.source.pack()
	b.module.mu.Lock()
	defer b.module.mu.Unlock()
	b.source, b.module.source = source{}, packed
}

// packAll packs the modules whose code was in the cache when they were loaded. A small one takes a tenth of a millisecond, for which
// the start of a server has no time.
func (e *Engine) packAll() {
	e.mu.Lock()
	all := slices.Collect(maps.Values(e.modules))
	e.mu.Unlock()
	for _, m := range all {
		if e.stop.Err() != nil {
			return
		}
		m.mu.Lock()
		s, due := m.source, m.stored && m.build == nil
		m.mu.Unlock()
		if !due || s.packed || s.hard {
			continue
		}
		s = s.pack()
		m.mu.Lock()
		m.source = s
		m.mu.Unlock()
	}
}

// errNoMemory is the error of a build that the system refused memory. It is not the module's fault.
var errNoMemory = errors.New("the system has no memory for code")

// compileIn has wazero compile a module on this goroutine or, with several workers, on goroutines of wazero's, where nobody can
// recover from a panic.
func compileIn(r wazero.Runtime, source []byte, workers int) (module wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p != nil {
			module, err = nil, panicked(p)
		}
	}()
	return r.CompileModule(experimental.WithCompilationWorkers(context.Background(), workers), source)
}

// panicked makes an error of a panic of the compiler.
func panicked(p any) error {
	var number syscall.Errno // why wazero could not make a mapping
	if err, ok := p.(error); ok && errors.As(err, &number) {
		return fmt.Errorf("%w: %w", errNoMemory, err)
	}
	return fmt.Errorf("the compiler panicked: %v\n%s", p, debug.Stack())
}
