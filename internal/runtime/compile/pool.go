package compile

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
)

// A Pool has modules compiled in processes of its own, each of which compiles one at a time. Processes are started when they are needed,
// and go on to the next module; an unused one ends after a while, and one that has grown is replaced. A Pool is safe for concurrent use.
type Pool struct {
	command  []string
	each     int64 // bytes that one process may have
	log      *slog.Logger
	patience time.Duration
	closing  chan struct{}
	large    *apart.Room //  of modules that may take more than SmallBytes
	small    *apart.Room //  of others, so that these do not wait for those
	smallest int64       // how many processes there may be for small modules, idle ones included

	mu     sync.Mutex
	idle   []*process
	busy   int64 // small modules that are being compiled
	all    map[*process]struct{}
	coming chan struct{} // closed when the process that Ready starts has started; nil: none, or somebody waits for it
	closed bool
	gone   sync.WaitGroup // processes
}

const (
	// SmallBytes is what every module may take. Modules that may take no more have room of their own.
	SmallBytes = 32 << 20
	// idleTime is how long an unused process is kept.
	idleTime = 30 * time.Second
	// grownBytes is how much memory a process may have after a module to be used for the next.
	grownBytes = 48 << 20
)

var (
	// ErrClosed is the error of a pool that is closed.
	ErrClosed = errors.New("the processes that compile have ended")
	// ErrUnavailable is the error where no such processes can be had.
	ErrUnavailable = errors.New("modules can't be compiled in processes of their own")
	// ErrLost is the error where a process ended, or did not go on, and perhaps not because of the module: the system may have taken its
	// memory, or given it no processor.
	ErrLost = errors.New("the process that compiled the module was stopped by the system")
)

// A Config is what NewPool needs.
type Config struct {
	// Command starts a process, with one more argument. The process calls [Serve] with that argument, and with its standard input and
	// output.
	Command []string
	// Each is how many bytes of memory one module may take. Large is how many bytes all modules above SmallBytes may take together, and at
	// least Each. Small is how many bytes the others may take together, and at least the memory of one.
	Each, Large, Small int64
	// Logger is told of processes that end before they are done; nil: nobody is.
	Logger *slog.Logger
}

// A Limit is what compiling one module may take.
type Limit struct {
	CPU   time.Duration // time on a processor
	Bytes int64         // of memory; at least SmallBytes; 0 or too much means what one module may take
}

// A TooMuch is the error of a module that broke a bound.
type TooMuch struct {
	// Limit is what it was allowed.
	Limit
	// Memory reports whether it broke the bound of memory, rather than of processor time.
	Memory bool
}

// Error says which limit was exceeded, and what to do.
func (t *TooMuch) Error() string {
	const advice = "split its largest functions, or optimise it with the compiler or wasm-opt"
	switch {
	case t.Memory && t.Bytes < apart.Ample:
		return fmt.Sprintf("compiling the module takes more than %d MiB of memory, which is all that this machine or its container has for it: give it more, use a cache directory in which a larger machine has compiled the module, or %s",
			t.Bytes>>20, advice)
	case t.Memory:
		return fmt.Sprintf("compiling the module takes more than %d MiB of memory: %s", t.Bytes>>20, advice)
	}
	return fmt.Sprintf("compiling the module takes more than %v of processor time: %s", t.CPU.Round(time.Second/10), advice)
}

// NewPool returns a pool. No process is started yet. The caller closes the pool.
func NewPool(c Config) (*Pool, error) {
	if !supported {
		return nil, fmt.Errorf("%w: this system can't bound what a process takes", ErrUnavailable)
	}
	if len(c.Command) == 0 {
		return nil, errors.New("no command starts the processes that compile")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	each, small := max(c.Each, SmallBytes), max(c.Small, SmallBytes)
	return &Pool{
		command:  c.Command,
		each:     each,
		log:      c.Logger,
		patience: patienceBase,
		closing:  make(chan struct{}),
		large:    apart.NewRoom(max(c.Large, each)),
		small:    apart.NewRoom(small),
		smallest: small / SmallBytes,
		all:      map[*process]struct{}{},
	}, nil
}

// Most is how many bytes of memory one module may take.
func (p *Pool) Most() int64 { return p.each }

// Compile compiles a module. Its code passes through a directory that is made below scratch, which nobody else may change; "" has the
// module only tried, and returns no code. It waits until there is room for what the module may take.
//
// The error is a *TooMuch if the module broke a bound, and would again; ErrDisk, ErrNoMemory, ErrLost, ErrClosed or ErrUnavailable if it
// is probably not the module's fault; otherwise it says what is wrong with the module.
func (p *Pool) Compile(scratch string, module []byte, most Limit) (File, error) {
	if most.Bytes <= 0 {
		most.Bytes = p.each
	}
	most.Bytes = max(SmallBytes, min(most.Bytes, p.each))
	leave, entered := p.enter(most.Bytes)
	if !entered {
		return File{}, ErrClosed
	}
	defer leave()
	f, fresh, err := p.once(scratch, module, most, false)
	lost := (*lostError)(nil)
	switch {
	case errors.Is(err, ErrDisk) && !fresh: // its directory may have been removed
	case errors.As(err, &lost) && lost.again(fresh):
		p.log.Info("a process that compiles ended before it was done: trying again", "error", err)
	default:
		return f, judge(err)
	}
	f, _, err = p.once(scratch, module, most, true)
	return f, judge(err)
}

// judge says whose fault an error is.
func judge(err error) error {
	lost := (*lostError)(nil)
	switch {
	case !errors.As(err, &lost):
		return err
	case lost.tooMuch != nil:
		return lost.tooMuch
	case lost.system:
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return fmt.Errorf("the process that compiles the module ended twice before it was done: %w", err)
}

// enter waits for room. It reports false if the pool is closed first.
func (p *Pool) enter(bytes int64) (leave func(), entered bool) {
	if bytes > SmallBytes {
		return func() { p.large.Give(bytes) }, p.large.Take(bytes, p.closing)
	}
	if !p.small.Take(bytes, p.closing) {
		return nil, false
	}
	p.count(1)
	return func() {
		p.count(-1)
		p.small.Give(bytes)
	}, true
}

// count counts small modules that are being compiled.
func (p *Pool) count(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy += n
}

// once compiles a module, in a new process if that is wanted, and says whether it was one.
func (p *Pool) once(scratch string, module []byte, most Limit, wanted bool) (f File, fresh bool, err error) {
	c, err := p.take(scratch, wanted)
	if err != nil {
		return File{}, true, err
	}
	f, err = c.compile(module, most, p.patience)
	fresh = c.served == 1
	if lost := (*lostError)(nil); errors.As(err, &lost) {
		p.mu.Lock()
		closed := p.closed
		p.mu.Unlock()
		if closed {
			err = ErrClosed
		}
		return File{}, fresh, err
	}
	p.put(c, !errors.Is(err, ErrDisk) && !errors.Is(err, ErrNoMemory))
	return f, fresh, err
}

// Ready starts a process if there is none, and does not wait for it: a module may be about to be compiled, and a process takes longer to
// start than a small module to be compiled. scratch returns the directory that it will be compiled with; after an error none is started.
func (p *Pool) Ready(scratch func() (string, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.all) > 0 || p.coming != nil {
		return
	}
	coming := make(chan struct{})
	p.coming = coming
	p.gone.Go(func() {
		defer close(coming)
		if dir, err := scratch(); err == nil { // otherwise the compile reports it
			if c, err := p.take(dir, true); err == nil {
				p.put(c, true)
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.coming == coming {
			p.coming = nil
		}
	})
}

// awaited waits for the process that Ready starts, if nobody else does, and takes it.
func (p *Pool) awaited(scratch string) *process {
	p.mu.Lock()
	coming := p.coming
	p.coming = nil
	p.mu.Unlock()
	if coming == nil {
		return nil
	}
	<-coming
	return p.unused(scratch)
}

// take returns an idle process, or a new one.
func (p *Pool) take(scratch string, fresh bool) (*process, error) {
	if !fresh {
		if c := p.unused(scratch); c != nil {
			return c, nil
		}
		if c := p.awaited(scratch); c != nil {
			return c, nil
		}
	}
	c, err := start(p.command, scratch, p.each)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.closed {
		c.end()
	} else {
		p.all[c] = struct{}{}
		p.gone.Go(func() {
			<-c.ended
			p.mu.Lock()
			delete(p.all, c)
			p.mu.Unlock()
		})
	}
	closed := p.closed
	p.mu.Unlock()
	if closed {
		<-c.ended
		return nil, ErrClosed
	}
	return c, c.greet()
}

// unused takes an idle process, or returns nil if there is none.
func (p *Pool) unused(scratch string) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.timer.Stop() && c.scratch == scratch && !c.over() {
			return c
		}
		c.end()
	}
	return nil
}

// put keeps a process for the next module if it is good for one.
func (p *Pool) put(c *process, good bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !good || p.closed || c.memory > grownBytes || int64(len(p.idle))+p.busy > p.smallest || c.over() {
		c.end()
		return
	}
	c.timer = time.AfterFunc(idleTime, func() { p.retire(c) })
	p.idle = append(p.idle, c)
}

// retire ends a process if it is still idle.
func (p *Pool) retire(c *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.idle {
		if other == c {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			c.end()
			return
		}
	}
}

// Close ends all processes, and waits until they are gone; what they compile ends as ErrClosed. Closing twice is fine.
func (p *Pool) Close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
	}
	for c := range p.all {
		c.end()
	}
	for _, c := range p.idle {
		c.timer.Stop()
	}
	p.idle = nil
	p.mu.Unlock()
	p.gone.Wait()
}
