package session

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// defaultMaxMessage is StdioOptions.MaxMessage if that is zero.
	defaultMaxMessage = 64 << 20
	// maxRunning is how many requests may run at the same time. The next one is read when one of them ends.
	maxRunning = 1024
	// maxSubscriptions is how many subscriptions a client may have at the same time.
	maxSubscriptions = 64
	// defaultPatience is StdioOptions.Patience if that is zero.
	defaultPatience = 10 * time.Second
	// defaultGrace is StdioOptions.Grace if that is zero. A client that does not want to wait so long sends a signal, which ends ctx.
	defaultGrace = 5 * time.Second
	// farewell is how long writing the last answers may take at the end.
	farewell = time.Second
)

// StdioOptions are the settings of Stdio. The zero value is usable.
type StdioOptions struct {
	// Principal is the caller. If nil, it is wasmtools.Self(), which may call every tool.
	Principal *wasmtools.Principal
	// Namespace restricts the tools that the client sees. If empty, it sees all tools.
	Namespace string
	// MaxMessage is the largest size of a message in bytes. Zero means 64 MiB.
	MaxMessage int
	// Patience is how long the client may read nothing while 1,024 answers wait. After that, Stdio treats the client as gone: nothing more is read
	// from it then, so the client could not even say that it is alive. Zero means 10 seconds.
	Patience time.Duration
	// Grace is how long requests may continue after the input has ended. If a shell pipes the requests in, the input ends at once. The grace time
	// starts when Ready is closed. Zero means 5 seconds.
	Grace time.Duration
	// Ready is closed once the set has every tool. Until then, calls of missing tools wait. If nil, the set has every tool already.
	Ready <-chan struct{}
	// Logger gets a line for each request, even for one that can't be read. The log comes before the other observers. If nil, nothing is logged.
	Logger *slog.Logger
	// Observers are told of each request, in the order of the list.
	Observers []web.Observer
	// Tracer is told before all other observers, including the log. If nil, nobody records requests.
	Tracer web.Observer
}

// Stdio serves one client that writes its messages to in and reads the answers from out, one per line, in any version of the protocol. It returns
// when in or ctx ends, which is not an error, or with the error of reading or writing.
//
// After in has ended, requests may continue for a time. After that, or when ctx ends, they are cancelled. Stdio does not wait for a read or a write
// that hangs. After it has returned, it writes nothing to out except the rest of such a write.
func Stdio(ctx context.Context, set *toolset.Set, in io.Reader, out io.Writer, o StdioOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &stdio{
		ctx:          ctx,
		cancel:       cancel,
		set:          set,
		protocol:     protocol.New(set, protocol.Options{Ready: o.Ready}),
		conversation: protocol.NewConversation(),
		out:          out,
		namespace:    o.Namespace,
		traced:       o.Tracer != nil,
		principal:    cmp.Or(o.Principal, wasmtools.Self()),
		most:         cmp.Or(max(o.MaxMessage, 0), defaultMaxMessage),
		patience:     cmp.Or(max(o.Patience, 0), defaultPatience),
		grace:        cmp.Or(max(o.Grace, 0), defaultGrace),
		slots:        make(chan struct{}, maxRunning),
		broken:       make(chan struct{}),
		answered:     make(chan struct{}),
		begun:        make(chan struct{}),
		changed:      make(chan struct{}, 1),
		listening:    map[*reply]subscription{},
	}
	if o.Logger != nil || len(o.Observers) > 0 || s.traced {
		s.mux = web.NewMux(web.Options{Logger: o.Logger, Observers: o.Observers, Tracer: o.Tracer})
		defer s.mux.Close()
	}
	close(s.begun)
	defer set.Subscribe(s.tell)()
	notified := make(chan struct{})
	go func() { defer close(notified); s.notify() }()

	ended := make(chan error, 1)
	go func() { ended <- s.read(in) }()
	var err error
	select {
	case err = <-ended:
		s.drain(o.Ready)
	case <-ctx.Done():
	}
	cancel()
	s.conversation.Close()
	go func() { defer close(s.answered); s.conversation.Wait() }()
	over, stop := context.WithTimeout(context.Background(), farewell)
	defer stop()
	for _, done := range []<-chan struct{}{s.answered, notified} {
		select {
		case <-done:
		case <-over.Done(): // a write hangs, or a Go function does not look at its context
		}
	}
	s.finished.Store(true)
	select {
	case <-s.broken:
		return fmt.Errorf("write a message: %w", s.failure)
	default:
	}
	if err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	return nil
}

// A stdio is the session of one client over two pipes.
type stdio struct {
	protocol     *protocol.Server
	conversation *protocol.Conversation
	answered     chan struct{} // closed when the input has ended and all is answered
	begun        chan struct{} // closed when initialize, if there was one, is answered; only the reader uses it
	greeted      atomic.Bool   // the client has the answer to initialize
	ctx          context.Context
	cancel       context.CancelFunc
	set          *toolset.Set
	namespace    string
	principal    *wasmtools.Principal
	most         int
	patience     time.Duration
	grace        time.Duration
	mux          *web.Mux      // tells observers; if nil, there are none
	traced       bool          // requests have a trace.Request
	slots        chan struct{} // one for each request that runs
	listens      atomic.Int64  // how many subscriptions run without a slot

	writing  sync.Mutex
	out      io.Writer
	written  atomic.Int64  // how many messages were written
	failure  error         // the error of the write that failed, once broken is closed
	broken   chan struct{} // closed when a write has failed
	finished atomic.Bool   // nothing more must be written

	changed   chan struct{} // has room for one value
	mu        sync.Mutex
	listening map[*reply]subscription
}

// drain waits until nothing runs, for at most the grace time.
func (s *stdio) drain(ready <-chan struct{}) {
	var over <-chan time.Time
	if ready == nil {
		over = time.After(s.grace)
	}
	for taken := 0; taken < maxRunning; {
		select {
		case s.slots <- struct{}{}:
			taken++
		case <-ready:
			ready, over = nil, time.After(s.grace)
		case <-over:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// read reads messages until the input ends.
func (s *stdio) read(in io.Reader) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(r, s.most)
		switch {
		case err == errTooLong:
			s.refuse(s.newReply(), rpc.Invalid("The message is larger than "+text.Size(int64(s.most))))
			continue
		case len(bytes.TrimSpace(line)) > 0:
			if failed := s.take(bytes.TrimRight(line, "\r\n")); failed == io.EOF {
				return nil
			} else if failed != nil {
				return failed
			}
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

var errTooLong = errors.New("the line is too long")

// readLine returns the next line. The last one may lack its line break. most is the largest size of a line in bytes. A larger line is skipped.
func readLine(r *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case len(line)+len(part) > most+1: // including the line break
			for err == bufio.ErrBufferFull {
				_, err = r.ReadSlice('\n')
			}
			if err != nil && err != io.EOF {
				return nil, err
			}
			return nil, errTooLong
		case err == nil && line == nil:
			return bytes.Clone(part), nil
		}
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// take starts the request in a message. After an error, no more messages are taken; the normal end is io.EOF.
func (s *stdio) take(line []byte) error {
	p := s.newReply()
	r := &p.request
	switch wrong := r.Parse(line); {
	case r.ID == nil && r.Method != nil: // a notification has no answer, whatever is wrong with it
		if wrong == nil {
			s.conversation.Note(&r.Message)
		}
		return nil
	case wrong != nil:
		s.refuse(p, wrong)
		return nil
	case r.Method == nil: // a response to a request that was never sent
		return nil
	}
	p.slot = string(r.Method) != protocol.Listen // a subscription lasts for hours, so it takes no slot
	if !p.slot && s.listens.Add(1) > maxSubscriptions {
		// This subscription will be refused. It takes a slot, so that a client that sends many of them without reading the refusals can't fill the
		// memory.
		s.listens.Add(-1)
		p.slot = true
	}
	if p.slot {
		if err := s.claim(); err != nil {
			return err
		}
	}
	ctx, ok := s.conversation.Enter(s.ctx, r)
	if !ok {
		return io.EOF
	}
	p.ctx = ctx
	if protocol.Begins(&r.Message) { // later messages need the session
		begun := make(chan struct{})
		s.begun = begun
		a := p.answer()
		go func() {
			defer close(begun)
			p.finish(a)
			s.greeted.Store(s.conversation.Version() != "")
		}()
		return nil
	}
	after := s.begun
	go func() {
		select {
		case <-after:
		case <-ctx.Done():
		}
		p.finish(p.answer())
	}()
	return nil
}

var errNotReading = errors.New("the client does not read its answers")

// claim takes a slot, and waits until one is free. It gives up if a write hangs for the time of patience.
func (s *stdio) claim() error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	look := time.NewTicker(s.patience)
	defer look.Stop()
	for written := s.written.Load(); ; {
		select {
		case s.slots <- struct{}{}:
			return nil
		case <-s.ctx.Done():
			return io.EOF
		case <-look.C:
		}
		now := s.written.Load()
		if now == written && !s.writing.TryLock() { // long calls alone are no reason to give up
			return errNotReading
		} else if now == written {
			s.writing.Unlock()
		}
		written = now
	}
}

// refuse answers a message that can't be read.
func (s *stdio) refuse(p *reply, f *rpc.Fault) {
	a := p.request.Refuse(f)
	s.write(a.Whole())
	p.tell(a)
}

// write writes a message.
func (s *stdio) write(message []byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.finished.Load() || s.failure != nil {
		return
	}
	if _, err := s.out.Write(append(message, '\n')); err != nil {
		s.failure = err
		close(s.broken)
		s.cancel()
	}
	s.written.Add(1)
}
