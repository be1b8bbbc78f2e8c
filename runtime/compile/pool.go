package compile

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// A Pool has modules compiled in processes of its own, each of which compiles one at a time. Processes are started when they are needed,
// and go on to the next module; an unused one ends after a while, and one that has grown is replaced. A Pool is safe for concurrent use.
type Pool struct {
	command []string
	memory  int64
	log     *slog.Logger

	// alone is held to compile a module for which a process was killed, and not by the pool: perhaps because of another module that
	// was compiled beside it. All others hold it for reading.
	alone sync.RWMutex

	mu     sync.Mutex
	idle   []*process
	all    map[*process]struct{}
	closed bool
	gone   sync.WaitGroup // processes
}

const (
	// idleTime is how long an unused process is kept.
	idleTime = 30 * time.Second
	// grownBytes is how much memory of the system a process may have after a module to be used for the next, and grownPart which part of what
	// it may have: the server needs room to load what was compiled.
	grownBytes, grownPart = 96 << 20, 4
)

var (
	// ErrClosed is the error of a pool that is closed.
	ErrClosed = errors.New("the processes that compile have ended")
	// ErrUnavailable is the error where no such processes can be had.
	ErrUnavailable = errors.New("modules can't be compiled in processes of their own")
)

// ample is the memory with which it is the module's fault if it does not do, in bytes.
const ample = 1 << 30

// A Limit is what compiling one module may take.
type Limit struct {
	CPU time.Duration // processor time
}

// A TooMuch is the error of a module that broke a bound.
type TooMuch struct {
	// Bytes is the bound of memory that it broke, or 0 if it broke that of processor time.
	Bytes int64
	// CPU is the bound of processor time.
	CPU time.Duration
}

// Error says what was too much, and what to do.
func (t *TooMuch) Error() string {
	const advice = "split its largest functions, or optimise it with the compiler or wasm-opt"
	switch {
	case t.Bytes >= ample:
		return fmt.Sprintf("compiling the module takes more than %d MiB of memory: %s", t.Bytes>>20, advice)
	case t.Bytes > 0:
		return fmt.Sprintf("compiling the module takes more than %d MiB of memory, which is what the memory of this machine or its container leaves for that: give it more, bring a cache directory in which a larger machine has compiled the module, or %s",
			t.Bytes>>20, advice)
	}
	return fmt.Sprintf("compiling the module takes more than %v of processor time: %s", t.CPU.Round(time.Second/10), advice)
}

// NewPool returns a pool of processes that command starts, with one more argument: it is to call [Serve] with that, and its standard
// input and output. Each has that many bytes of memory. No process is started yet. nil logs
// nothing. The caller closes the pool.
func NewPool(command []string, memory int64, log *slog.Logger) (*Pool, error) {
	if !supported {
		return nil, fmt.Errorf("%w: this system can't bound what a process takes", ErrUnavailable)
	}
	if len(command) == 0 {
		return nil, errors.New("no command starts the processes that compile")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Pool{command: command, memory: memory, log: log, all: map[*process]struct{}{}}, nil
}

// Memory is how many bytes of memory each process may have.
func (p *Pool) Memory() int64 { return p.memory }

// Compile compiles a module. Its code passes through a directory that is made below scratch, which nobody else may change; "" has the
// module only tried, and returns no code. The error is a *TooMuch if the module broke a bound, and would again; ErrDisk, ErrNoMemory,
// ErrClosed or ErrUnavailable if it is not the module's fault; otherwise it is what is wrong with the module.
func (p *Pool) Compile(scratch string, module []byte, most Limit) (File, error) {
	p.alone.RLock()
	f, fresh, err := p.once(scratch, module, most, false)
	if errors.Is(err, ErrDisk) && !fresh { // its directory may have been removed
		f, _, err = p.once(scratch, module, most, true)
	}
	p.alone.RUnlock()
	if lost := (*lostError)(nil); !errors.As(err, &lost) {
		return f, err
	}
	// Perhaps it is another module's fault, or that of what was compiled before. So it has a process and all the room to itself.
	p.log.Info("a process that compiles ended before it was done: trying again alone", "error", err)
	p.alone.Lock()
	defer p.alone.Unlock()
	f, _, err = p.once(scratch, module, most, true)
	if lost := (*lostError)(nil); errors.As(err, &lost) {
		if lost.tooMuch != nil {
			return File{}, lost.tooMuch
		}
		if lost.killed {
			err = fmt.Errorf("%w: %w", ErrNoMemory, err)
		}
		err = fmt.Errorf("the process that compiles the module ended twice before it was done: %w", err)
	}
	return f, err
}

// once compiles a module, in a new process if that is wanted, and says whether it was one.
func (p *Pool) once(scratch string, module []byte, most Limit, wanted bool) (f File, fresh bool, err error) {
	c, err := p.take(scratch, wanted)
	if err != nil {
		return File{}, true, err
	}
	f, err = c.compile(module, most, p.memory)
	fresh = c.served == 1
	if lost := (*lostError)(nil); errors.As(err, &lost) {
		p.mu.Lock()
		closed := p.closed
		p.mu.Unlock()
		if closed {
			return File{}, fresh, ErrClosed
		}
		if lost.tooMuch != nil && (lost.tooMuch.Bytes == 0 || fresh) {
			return File{}, fresh, lost.tooMuch // it had all of the room and time to itself
		}
		return File{}, fresh, err
	}
	p.put(c, !errors.Is(err, ErrDisk) && !errors.Is(err, ErrNoMemory))
	return f, fresh, err
}

// take returns a process, a new one if no idle one is there.
func (p *Pool) take(scratch string, fresh bool) (*process, error) {
	if !fresh {
		if c := p.unused(scratch); c != nil {
			return c, nil
		}
	}
	c, err := start(p.command, scratch, p.memory)
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
	if !good || p.closed || c.memory > min(grownBytes, p.memory/grownPart) || c.over() {
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
	p.closed = true
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
