package apart

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Pool runs pieces of work in processes, each of which does one piece at a time. A process is started when it is needed, and used again for the
// next piece. A process that is idle for a while is ended. One that has grown, or has done many pieces, is replaced. A Pool is safe for concurrent
// use.
type Pool struct {
	config Config

	mu     sync.Mutex
	idle   []*process
	all    map[*process]struct{}
	coming chan struct{} // closed when the process that Ready starts has started; nil if Ready starts none, or a goroutine waits for it already
	closed bool
	gone   sync.WaitGroup // processes
}

const (
	// grownBytes is how much memory a process may still have after its work if it is to be used again, and mostServed how many pieces of work it
	// does.
	grownBytes = 48 << 20
	mostServed = 1000
)

// ErrClosed is returned by a closed pool.
var ErrClosed = errors.New("the processes have ended")

// A Config has the settings of a pool.
type Config struct {
	// Name is what errors call a process.
	Name string
	// Command is the command line of a process, to which one argument is added. The process must call [Serve] with that argument, and with its
	// standard input and output.
	Command []string
	// Each is how many bytes of memory one process may have.
	Each int64
	// Kept and Idle bound the idle processes: one is kept only if there are at most Kept processes, and for at most the time Idle.
	Kept int
	Idle time.Duration
	// Measured says that a process may only run if the system tells how much it uses. If false, a process that can't be measured is used for one
	// piece of work only.
	Measured bool
}

// A Limit is what a piece of work may take.
type Limit struct {
	CPU   time.Duration // the time on a processor
	Bytes int64         // how much memory it may have
	Time  time.Duration // the time from start to end: on a busy machine a process waits for the processor, and one that hangs uses none
}

// Work is one piece of work.
type Work struct {
	// Scratch is the directory in which the process gets an empty working directory of its own. If it is "", the process works in this process's
	// directory.
	Scratch string
	// Fresh asks for a new process.
	Fresh bool
	// Request is what the process is asked to do, and Payload the bytes that follow the request. Reply points to where the answer is stored, which
	// may have at most Most bytes.
	Request any
	Payload []byte
	Reply   any
	Most    int64
	Limit   Limit
	// Check checks the reply before the process gets more work. dir is the process's directory. good reports whether the process can be used again;
	// an error means that the reply makes no sense. If nil, nothing is checked.
	Check func(dir string) (good bool, err error)
}

// NewPool returns a pool. No process is started yet. The caller closes the pool.
func NewPool(c Config) *Pool { return &Pool{config: c, all: map[*process]struct{}{}} }

// Do runs a piece of work in a process, and reports whether that process was a new one. The error is a *LostError, a *StartError, ErrClosed, or ctx's
// cause; otherwise there is a reply.
func (p *Pool) Do(ctx context.Context, w *Work) (fresh bool, err error) {
	c, err := p.take(ctx, w.Scratch, w.Fresh)
	if err == nil {
		var good bool
		good, err = c.do(ctx, w)
		fresh = c.served == 1
		if err == nil {
			p.put(c, good) // another goroutine may use the process from here on
			return fresh, nil
		}
	} else {
		fresh = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return fresh, ErrClosed
	case ctx.Err() != nil:
		return fresh, context.Cause(ctx)
	}
	return fresh, err
}

// Ready starts a process if there is none, and does not wait for it. It is called when work is likely to come soon, since a process takes longer to
// start than to do a small piece of work. scratch returns the directory that the work will have; if it fails, no process is started.
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
		if dir, err := scratch(); err == nil { // the work will report an error
			if c, err := p.take(context.Background(), dir, true); err == nil {
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

// awaited waits for the process that Ready starts, if no other goroutine does, and takes it.
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
func (p *Pool) take(ctx context.Context, scratch string, fresh bool) (*process, error) {
	if !fresh {
		if c := p.unused(scratch); c != nil {
			return c, nil
		}
		if c := p.awaited(scratch); c != nil {
			return c, nil
		}
	}
	c, err := start(&p.config, scratch)
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
	defer context.AfterFunc(ctx, c.end)()
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

// put keeps a process for more work if it can be used again, and ends it otherwise.
func (p *Pool) put(c *process, good bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !good || p.closed || len(p.all) > p.config.Kept || c.spent() {
		c.end()
		return
	}
	c.timer = time.AfterFunc(p.config.Idle, func() { p.retire(c) })
	p.idle = append(p.idle, c)
}

// spent reports whether a process must not be used again.
func (p *process) spent() bool {
	return p.used == nil || p.last.Memory > grownBytes || p.served >= mostServed || p.over()
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

// Close ends all processes, and waits until they are gone. Work that they were doing fails with ErrClosed. Close can be called twice.
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
