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
	// compileMemory is what dear compilations that run side by side are predicted to take at most, in bytes, where half of
	// the memory for all tools is not less.
	compileMemory = 1 << 30
	// closeGrace is how long Close waits for compilations. Later ones end by themselves and free what they used.
	closeGrace = 2 * time.Second
	// cooling is after what time calls count half.
	cooling = time.Minute
)

// A compiler has modules compiled in the background, as runtime/schedule tells. It is safe for concurrent use. Engine
// tells the order of locks.
type compiler struct {
	foundry  *foundry
	schedule *schedule.Scheduler
	log      *slog.Logger
	grace    time.Duration
	account  *account.Account
	shedding sync.Mutex // held while code is dropped for want of room
	cooled   time.Time  // when calls last began to count half; guarded by shedding
}

// A build makes the code of a module, or has it made sure that the cache has it. Its results are there when done is closed.
type build struct {
	module *module
	source source
	job    atomic.Pointer[schedule.Job]
	needed atomic.Bool // a call waits for the code
	done   chan struct{}
	native *native // nil: err tells why
	err    error
}

// A source is a module, compressed once it was compiled: it waits then for its code to be lost from the cache, which is
// rare, and takes a third of the room.
type source struct {
	bytes  []byte
	size   int // not compressed
	packed bool
	hard   bool // it gets no smaller
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
		panic(err) // there is such a level
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

// add queues a build, of code that is in the cache where stored is set. Its module must not be locked.
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

// hurry has a build begin before those that no call waits for, and load the code.
func (c *compiler) hurry(b *build) {
	b.needed.Store(true)
	if j := b.job.Load(); j != nil { // otherwise add, which is under way, sees that it is needed
		c.schedule.Hurry(j)
	}
}

// A cost is what compiling a module is predicted to take.
type cost struct {
	time  time.Duration
	bytes int64
}

// costOf returns what compiling a module of that size is predicted to take, once it was rewritten and so weighed.
func costOf(r *instrument.Rewritten, size int) cost {
	return cost{r.Weight.Time(), r.Weight.Bytes + int64(size)*codeFactor}
}

// What loading takes for each byte of a module, and what compiling an ordinary one does.
const (
	loadPace     = 20 * time.Nanosecond
	compilePace  = 300 * time.Nanosecond
	compileBytes = 60
)

// run runs a build on a goroutine of its own, so that nobody who stops waiting stops it for others.
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
		if !c.account.Take(account.Mappings, n.mappings(), true) { // it is there already
			b.module.engine.reclaim(nil, account.Mappings, n.mappings())
			c.account.Add(account.Mappings, n.mappings())
		}
	}
	if left := b.finish(n, err); left != nil {
		c.drop(b.module, left)
	}
	b.pack() // when nobody waits any more
	b.module.engine.shed()
}

// make makes or loads the code of a build. Without code and error it was to be loaded, and there is none.
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
	if load { // there was something when the module was loaded, so that nobody weighed it
		r, err := instrument.Rewrite(parsed)
		if err != nil {
			return nil, err
		}
		m.cost = costOf(r, b.source.size)
		return nil, nil
	}
	// What is idle makes room for it, but calls that run are not waited for: they may wait for this.
	if !c.account.Take(account.Memory, m.cost.bytes, true) {
		m.engine.reclaim(nil, account.Memory, m.cost.bytes)
		c.account.Add(account.Memory, m.cost.bytes)
	}
	defer c.account.Give(account.Memory, m.cost.bytes)
	return c.foundry.compile(m.sum, parsed, b.needed.Load)
}

// close begins no more builds and waits for those that run, for grace at most. It reports whether none is left;
// the schedule's Idle tells when that is so.
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

// shed drops code where it takes more than its room, until a sixteenth of that is free. What was called least goes first,
// in random order among equals: were it by time, many modules that are called in turn would each drop the one that
// is called next.
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

// disused reports whether the module has code that no call uses, and that comes back from the cache. m.mu is held.
func (m *module) disused() bool {
	return m.calls == 0 && m.build != nil && m.build.over() && m.build.native != nil && m.build.native.stored
}

// errUnwanted ends a build whose module has no user any more, and so no one who sees this error.
var errUnwanted = errors.New("the module was closed before it was compiled")

// compile returns the module's code for a call. The caller has entered the module, and uses the code until it
// leaves. The error is an *Error, or the cause of ctx.
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
		// It was made for the cache only, and was done before it heard that a call waits.
	}
}

// prepare waits until the module's code is in the cache, or in memory where there is none. Calls come before it, and it
// does not hold up Close. What passes, such as a lack of memory, is no error: a call compiles again.
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

// begin returns the module's build, queued at least.
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

// wanted reports whether the module still waits for the build. It forgets it when its last user goes.
func (b *build) wanted() bool {
	b.module.mu.Lock()
	defer b.module.mu.Unlock()
	return b.module.build == b
}

// passing reports whether an error of a build says nothing about the module.
func passing(err error) bool { return errors.Is(err, errNoMemory) || errors.Is(err, errDisk) }

// finish publishes what came of the build. Only what the module itself is to blame for is remembered as an error. It
// returns code that the module does not want any more, which the caller drops.
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
		b.err = &Error{Outcome: Overloaded, Message: "The server has no memory for the tool's code now.", Err: err}
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

// packAll packs the modules that were found in the cache when they were loaded. That takes a tenth of a millisecond for each
// small one, which a start has no time for.
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

// errNoMemory is why the system gave no memory for code. It says nothing about the module.
var errNoMemory = errors.New("the system has no memory for code")

// compileIn has wazero compile, on this goroutine, or on so many of wazero's, on which a panic can't be recovered. That
// is also why several modules may not share the work of one that is the same.
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
	var number syscall.Errno // of the mapping that wazero could not make
	if err, ok := p.(error); ok && errors.As(err, &number) {
		return fmt.Errorf("%w: %w", errNoMemory, err)
	}
	return fmt.Errorf("the compiler panicked: %v\n%s", p, debug.Stack())
}
