package protocol

import (
	"context"
	"errors"
	"sync"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Conversation is the state of one client: its open requests, which it can cancel, and the version that initialize has agreed on. The
// zero value is not usable: see [NewConversation].
type Conversation struct {
	closed  chan struct{} // closed by Close
	running sync.WaitGroup

	mu      sync.Mutex
	ended   bool
	version string // empty before initialize
	open    map[*Request]struct{}
}

// NewConversation returns a conversation. The caller must Close it.
func NewConversation() *Conversation { return &Conversation{closed: make(chan struct{})} }

// Resume returns a conversation that has already agreed on a version, perhaps in another process. The caller must Close it.
func Resume(version string) *Conversation {
	c := NewConversation()
	c.version = version
	return c
}

// errEnded is the error for a request whose conversation has ended.
var errEnded = errors.New("the session has ended")

// Enter begins a request, which can be cancelled from then on. The caller must call Leave once the request has been answered. After Close, Enter
// returns false.
func (c *Conversation) Enter(ctx context.Context, r *Request) (context.Context, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return ctx, false
	}
	ctx, r.cancel = context.WithCancelCause(ctx)
	if c.open == nil {
		c.open = map[*Request]struct{}{}
	}
	c.open[r] = struct{}{}
	c.running.Add(1)
	return ctx, true
}

// Ended answers a request for which Enter returned false.
func (r *Request) Ended() Answer {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errEnded)
	return r.fail(ctx, &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: errEnded})
}

// Leave ends a request for which Enter returned true.
func (c *Conversation) Leave(r *Request) {
	c.mu.Lock()
	delete(c.open, r)
	if len(c.open) == 0 {
		c.open = nil // most conversations are idle for most of the time
	}
	c.mu.Unlock()
	r.cancel(nil)
	c.running.Done()
}

// Note handles a notification. Only the cancellation of a request has an effect. If no such request is open, Note returns its id.
func (c *Conversation) Note(m *rpc.Message) (elsewhere []byte) {
	if string(m.Method) != "notifications/cancelled" || c.Cancel(m.RequestID) {
		return nil
	}
	return m.RequestID
}

// Cancel ends the request with an id, and reports whether it was open.
func (c *Conversation) Cancel(id []byte) (open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.open {
		if string(r.ID) == string(id) && string(r.Method) != initialize {
			r.silent.Store(true)
			r.cancel(context.Canceled)
			open = true
		}
	}
	return open
}

// Close ends the conversation, with its requests. It does not wait for them, and can be called twice.
func (c *Conversation) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	for r := range c.open {
		r.cancel(errEnded)
	}
	close(c.closed)
}

// Wait waits for the requests of a closed conversation.
func (c *Conversation) Wait() { c.running.Wait() }

// Closed returns a channel that is closed when the conversation is.
func (c *Conversation) Closed() <-chan struct{} { return c.closed }

// Version returns the version that initialize has agreed on, or "" before that.
func (c *Conversation) Version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// agree notes the version that initialize has agreed on. It returns false if there already is one.
func (c *Conversation) agree(version string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version != "" {
		return false
	}
	c.version = version
	return true
}
