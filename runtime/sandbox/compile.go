package sandbox

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// What a compilation may take. wazero can't be interrupted while it compiles, and a module that was made for it
// keeps it busy for some 25 seconds within all bounds on modules.
const (
	// bigModule is from where on modules are compiled one at a time: each takes some hundred megabytes meanwhile.
	bigModule = 512 << 10
	// slowBuild is how long a compilation counts as one of those that run. A longer one goes on, while another
	// begins in its place.
	slowBuild = time.Second
	// maxSlow is for how many slow compilations others begin. It bounds memory and threads.
	maxSlow = 2
	// closeGrace is how long Close waits for compilations. Later ones end by themselves and free what they used.
	closeGrace = 2 * time.Second
)

// defaultCodeMemory is room for thousands of small tools, or some twenty in Go.
const defaultCodeMemory = 512 << 20

// A compiler compiles modules in the background: those first that a call waits for, then in the order of loading. It
// is safe for concurrent use. Engine tells the order of locks.
type compiler struct {
	runtime wazero.Runtime
	cache   *codeCache // nil: none
	log     *slog.Logger
	most    int // compilations at a time, slow ones not counted
	workers int // of each
	slow    time.Duration
	grace   time.Duration
	room    int64        // bytes that code may take
	held    atomic.Int64 // bytes that it takes

	mu      sync.Mutex
	queue   []*build
	fast    int // running, not slow yet
	big     int // of these, of big modules
	running int
	closed  bool
	idle    chan struct{} // closed when closed and nothing runs
}

// A build is one compilation of a module. Its results are there when done is closed.
type build struct {
	module *module
	source source
	done   chan struct{}
	code   wazero.CompiledModule
	size   int64 // of the code and what wazero keeps beside it, in bytes
	err    error

	// compiler.mu guards these.
	urgent bool // a call waits for it
	fast   bool // it runs and counts as fast
	big    bool
}

// A source is a rewritten module, compressed once it was compiled: it waits then for its code to be dropped and to be made
// again, which is rare, and takes a third of the room.
type source struct {
	bytes  []byte
	size   int // not compressed
	packed bool
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
	if s.packed {
		return s
	}
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	if _, err := w.Write(s.bytes); err != nil || w.Close() != nil || b.Len() >= s.size {
		return s
	}
	return source{bytes.Clone(b.Bytes()), s.size, true}
}

// packers are kept because each takes a megabyte.
var packers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // there is such a level
	}
	return w
}}

// before tells which build comes first.
func (b *build) before(other *build) bool {
	if b.urgent != other.urgent {
		return b.urgent
	}
	return b.module.order < other.module.order
}

func newCompiler(r wazero.Runtime, cache *codeCache, c Config, log *slog.Logger) *compiler {
	room := c.CodeMemory
	if room <= 0 {
		room = defaultCodeMemory
	}
	return &compiler{
		runtime: r,
		cache:   cache,
		log:     log,
		most:    max(2, runtime.GOMAXPROCS(0)), // two at least, so that a slow one holds up nobody
		workers: c.CompileWorkers,
		slow:    slowBuild,
		grace:   closeGrace,
		room:    room,
		idle:    make(chan struct{}),
	}
}

// add queues a build. Its module must not be locked.
func (c *compiler) add(b *build) {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		b.big = b.source.size >= bigModule
		c.queue = append(c.queue, b)
		c.begin()
	}
	c.mu.Unlock()
	if closed {
		b.finish(nil, errClosing) // no code, none is left
	}
}

// hurry has a build begin before those that no call waits for.
func (c *compiler) hurry(b *build) {
	c.mu.Lock()
	b.urgent = true
	c.mu.Unlock()
}

// begin starts builds as long as there is room. c.mu is held.
func (c *compiler) begin() {
	for c.fast < c.most && !c.closed {
		b := c.next()
		if b == nil {
			return
		}
		c.running++
		c.count(b, true)
		go c.run(b)
	}
}

// next takes the build whose turn it is from the queue; nil: none may begin. c.mu is held.
func (c *compiler) next() *build {
	first := -1
	for i, b := range c.queue {
		if (!b.big || c.big == 0) && (first < 0 || b.before(c.queue[first])) {
			first = i
		}
	}
	if first < 0 {
		return nil
	}
	b := c.queue[first]
	last := len(c.queue) - 1
	c.queue[first], c.queue[last] = c.queue[last], nil
	c.queue = c.queue[:last]
	return b
}

// count has a build count as fast, or no more. c.mu is held.
func (c *compiler) count(b *build, fast bool) {
	if b.fast == fast {
		return
	}
	b.fast = fast
	n := 1
	if !fast {
		n = -1
	}
	c.fast += n
	if b.big {
		c.big += n
	}
}

// run runs a build on a goroutine of its own, so that nobody who stops waiting stops it for others.
func (c *compiler) run(b *build) {
	if b.wanted() {
		timer := time.AfterFunc(c.slow, func() { c.slowed(b) })
		code, size, err := c.compile(b.source)
		timer.Stop()
		b.size = size
		held := c.held.Add(size)
		if left := b.finish(code, err); left != nil {
			c.drop(b, left)
		}
		b.pack() // when nobody waits any more
		if held > c.room && c.cache != nil {
			b.module.engine.shed()
		}
	} else {
		b.finish(nil, errUnwanted)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(b, false)
	c.running--
	if c.closed && c.running == 0 {
		close(c.idle)
	}
	c.begin()
}

// slowed lets another build begin while b, which takes long, goes on.
func (c *compiler) slowed(b *build) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.fast && c.running-c.fast < maxSlow {
		c.count(b, false)
		c.begin()
	}
}

// close begins no more builds and waits for those that run, for closeGrace at most. It reports whether none is left;
// idle tells when that is so.
func (c *compiler) close() bool {
	c.mu.Lock()
	c.closed = true
	queue := c.queue
	c.queue = nil
	if c.running == 0 {
		close(c.idle)
	}
	c.mu.Unlock()
	for _, b := range queue {
		b.finish(nil, errClosing)
	}
	grace := time.NewTimer(c.grace)
	defer grace.Stop()
	select {
	case <-c.idle:
		return true
	case <-grace.C:
		return false
	}
}

// drop frees the code of a build that nobody uses.
func (c *compiler) drop(b *build, code wazero.CompiledModule) {
	c.held.Add(-b.size)
	if err := code.Close(context.Background()); err != nil {
		c.log.Warn("free compiled code", "digest", b.module.digest, "error", err)
	}
}

// compile has wazero compile a module, or load its code from the cache. size is 0 where it is not known, or err is set.
func (c *compiler) compile(from source) (module wazero.CompiledModule, size int64, err error) {
	source, err := from.plain()
	if err != nil {
		return nil, 0, fmt.Errorf("unpack the module: %w", err)
	}
	if c.cache == nil {
		module, err = compileIn(c.runtime, source, c.workers)
		return module, 0, err
	}
	entry := c.cache.entry(source)
	code, err := c.cache.open(entry)
	if err != nil {
		c.log.Warn("compiled code is not used", "error", err)
	}
	if code == nil {
		if code, err = c.cache.make(source, c.workers); err != nil {
			return nil, 0, err
		}
		if err := c.cache.keep(entry, code); err != nil {
			c.log.Warn("compiled code is not kept", "error", err)
		}
	}
	staged, err := c.cache.stage(code)
	if err != nil {
		return nil, 0, err
	}
	module, err = compileIn(c.runtime, source, c.workers)
	if gone := remove(staged); gone != nil {
		c.log.Warn("compiled code is left over", "error", gone)
	}
	if err != nil {
		return nil, 0, err
	}
	return module, int64(len(code.code) + len(source)), nil
}

// shed drops the code that was not used for longest, until a quarter of the room is free again. It comes back from the cache.
func (e *Engine) shed() {
	type candidate struct {
		module *module
		called time.Time
	}
	var all []candidate
	for _, m := range e.attached() {
		m.mu.Lock()
		if m.disused() {
			all = append(all, candidate{m, m.called})
		}
		m.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b candidate) int { return a.called.Compare(b.called) })
	for _, c := range all {
		if e.compiler.held.Load() <= e.compiler.room/4*3 {
			return
		}
		var r remains
		c.module.mu.Lock()
		if c.module.disused() && c.module.called.Equal(c.called) {
			r = c.module.strip()
		}
		c.module.mu.Unlock()
		c.module.free(r)
	}
}

// disused reports whether the module has code and no call that uses it. m.mu is held.
func (m *module) disused() bool {
	return m.calls == 0 && m.build != nil && m.build.over() && m.build.code != nil
}

// compileIn has wazero compile, on this goroutine, or on so many of wazero's, on which a panic can't be recovered. That
// is also why several modules may not share the work of one that is the same.
func compileIn(r wazero.Runtime, source []byte, workers int) (module wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p != nil {
			module, err = nil, fmt.Errorf("the compiler panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return r.CompileModule(experimental.WithCompilationWorkers(context.Background(), workers), source)
}

// errUnwanted ends a build whose module has no user any more, and so no one who sees this error.
var errUnwanted = errors.New("the module was closed before it was compiled")

// compile returns the module's code for a call. The caller has entered the module, and uses the code until it
// leaves. The error is an *Error, or the cause of ctx.
func (m *module) compile(ctx context.Context) (wazero.CompiledModule, error) {
	b := m.begin(true)
	select {
	case <-b.done:
		return b.code, b.err
	default:
	}
	select {
	case <-b.done:
		return b.code, b.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// prepare is compile without a call: those with one come before it, and it does not hold up Close.
func (m *module) prepare(ctx context.Context) error {
	b := m.begin(false)
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.engine.closing:
		return closing(ErrClosed)
	}
}

// begin returns the module's build, queued at least.
func (m *module) begin(urgent bool) *build {
	m.mu.Lock()
	b := m.build
	first := b == nil
	if first {
		b = &build{module: m, source: m.source, done: make(chan struct{}), urgent: urgent}
		m.build = b
	}
	m.mu.Unlock()
	switch {
	case first:
		m.engine.compiler.add(b)
	case urgent && !b.over():
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

// finish publishes what came of the build. Only what the module itself is to blame for is remembered as an error. It
// returns code that the module does not want any more, which the caller closes.
func (b *build) finish(code wazero.CompiledModule, err error) (left wazero.CompiledModule) {
	var passing *fs.PathError
	forget := errors.As(err, &passing) || errors.Is(err, errClosing)
	b.module.mu.Lock()
	defer b.module.mu.Unlock()
	switch {
	case b.module.build != b:
		code, left, err = nil, code, errUnwanted
	case forget:
		b.module.build = nil
	}
	if err != nil {
		b.err = &Error{Outcome: Internal, Message: "The tool could not be compiled.", Err: err}
		if errors.Is(err, errClosing) {
			b.err = closing(err)
		}
	}
	b.code = code
	close(b.done)
	return left
}

// pack packs the source that the build was made of.
func (b *build) pack() {
	packed := b.source.pack()
	b.source = source{}
	b.module.mu.Lock()
	b.module.source = packed
	b.module.mu.Unlock()
}
