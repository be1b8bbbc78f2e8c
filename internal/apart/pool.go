package apart

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Pool has processes do work, each one piece at a time. Processes are started when they are needed, and go on to the next piece; an
// unused one ends after a while, and one that has grown, or has done much, is replaced. A Pool is safe for concurrent use.
type Pool struct {
	config Config

	mu     sync.Mutex
	idle   []*process
	all    map[*process]struct{}
	coming chan struct{} // closed when the process that Ready starts has started; if nil, none, or somebody waits for it
	closed bool
	gone   sync.WaitGroup // processes
}

const (
	// grownBytes is how much memory a process may have after its work to do more, and mostServed how often it does.
	grownBytes = 48 << 20
	mostServed = 1000
)

// ErrClosed is the error of a pool that is closed.
var ErrClosed = errors.New("the processes have ended")

// A Config is what NewPool needs.
type Config struct {
	// Name is what errors call a process.
	Name string
	// Command starts a process, with one more argument. The process calls [Serve] with that argument, and with its standard input and
	// output.
	Command []string
	// Each is how many bytes of memory one process may have.
	Each int64
	// Kept is how many processes there may be for an unused one to be kept, and Idle how long it is.
	Kept int
	Idle time.Duration
	// Measured says that there must be no process of which the system does not tell what it uses. Where there is one, it works once.
	Measured bool
}

// A Limit is what a piece of work may take.
type Limit struct {
	CPU   time.Duration // on a processor
	Bytes int64         // of memory
	Time  time.Duration // in all: on a busy machine a process waits, and one that hangs uses no processor
}

// Work is one piece of it.
type Work struct {
	// Scratch is the directory in which the process has one of its own, empty, and works; "": it works where this process does.
	Scratch string
	// Fresh wants a new process.
	Fresh bool
	// Request is what the process is asked, Payload what follows it, and Reply a pointer to what it answers, in Most bytes.
	Request any
	Payload []byte
	Reply   any
	Most    int64
	Limit   Limit
	// Check looks at the reply before the process does more, with the process's directory. It says whether the process can do more; its
	// error is that the reply is nonsense. If nil, there is nothing to look at.
	Check func(dir string) (good bool, err error)
}

// NewPool returns a pool. No process is started yet. The caller closes the pool.
func NewPool(c Config) *Pool { return &Pool{config: c, all: map[*process]struct{}{}} }

// Do has a process do a piece of work, and says whether that was a new one. The error is a *LostError, a *StartError, ErrClosed, or ctx's
// cause; otherwise there is a reply.
func (p *Pool) Do(ctx context.Context, w *Work) (fresh bool, err error) {
	c, err := p.take(ctx, w.Scratch, w.Fresh)
	if err == nil {
		var good bool
		good, err = c.do(ctx, w)
		fresh = c.served == 1
		if err == nil {
			p.put(c, good) // from then on another one may have it
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

// Ready starts a process if there is none, and does not wait for it: there may soon be work, and a process takes longer to start than to do
// a small piece. scratch returns the directory that the work will have; after an error none is started.
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
		if dir, err := scratch(); err == nil { // otherwise the work reports it
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

// put keeps a process for more work if it is good for it.
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

// spent reports whether a process is not to be used again.
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

// Close ends all processes, and waits until they are gone; what they do ends as ErrClosed. Closing twice is fine.
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
