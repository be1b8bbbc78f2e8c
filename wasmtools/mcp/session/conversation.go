package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
)

// A conversation is what one client and the server say to each other. It is go-sdk's connection: go-sdk reads the client's
// requests from it, which have ids of ours, so that a client can neither confuse it with the same id twice nor have an id of
// its own mangled. Notifications it doesn't get: the only one that asks for something, the end of a request, is cancel.
type conversation struct {
	protocol *protocol
	incoming chan *jsonrpc.Request
	closed   chan struct{} // closed by close
	done     chan struct{} // closed when everything is answered after that
	once     sync.Once
	passing  sync.WaitGroup // requests that go-sdk does not see
	served   *sdk.ServerSession

	mu      sync.Mutex
	ended   bool // close has been called
	last    float64
	open    map[jsonrpc.ID]*request // not answered yet
	version string                  // what initialize has agreed on; empty before
}

var _ sdk.Connection = (*conversation)(nil)

// begin begins a conversation. Close it in the end.
func (p *protocol) begin() *conversation {
	c := &conversation{
		protocol: p,
		incoming: make(chan *jsonrpc.Request),
		closed:   make(chan struct{}),
		done:     make(chan struct{}),
		open:     map[jsonrpc.ID]*request{},
	}
	// Only the connection below could fail.
	c.served, _ = p.server.Connect(context.Background(), transport{c}, nil)
	return c
}

// A transport hands a conversation to go-sdk.
type transport struct{ c *conversation }

func (t transport) Connect(context.Context) (sdk.Connection, error) { return t.c, nil }

// submit has a request answered. It never fails; the answer may say that something did.
func (c *conversation) submit(r *request) {
	if _, ok := rpc.String(r.Version); string(r.Method) == methodInitialize && !ok {
		r.refuse(rpc.InvalidParams("The params have no protocolVersion"))
		return
	}
	passes := c.passes(r)
	if !passes {
		r.place = &place{}
		r.place.request.Store(r)
	}
	c.mu.Lock()
	c.last++
	id, _ := jsonrpc.MakeID(c.last)
	open := !c.ended
	if open {
		c.open[id] = r
	}
	if open && passes {
		c.passing.Go(func() {
			c.protocol.answer(string(r.Method), r)
			c.take(id)
		})
	}
	c.mu.Unlock()
	switch {
	case open && passes:
		return
	case open:
		m := &jsonrpc.Request{ID: id, Method: string(r.Method), Params: paramsFor(&r.Message), Extra: &sdk.RequestExtra{
			TokenInfo: &auth.TokenInfo{Extra: map[string]any{extraRequest: r.place}},
		}}
		select {
		case c.incoming <- m:
			return
		case <-c.closed:
		}
	}
	c.take(id)
	r.end()
}

// extraRequest is where a request of go-sdk has ours.
const extraRequest = "request"

// A place has a request until it is answered. go-sdk holds on to the last message of an idle session.
type place struct{ request atomic.Pointer[request] }

// requestOf returns our request that one of go-sdk's is.
func requestOf(req sdk.Request) *request {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		if place, ok := extra.TokenInfo.Extra[extraRequest].(*place); ok {
			return place.request.Load()
		}
	}
	return nil
}

// paramsFor returns what go-sdk needs to see of a request's params. It gets nothing that it would keep or repeat: what a
// client says of itself can be a megabyte.
func paramsFor(m *rpc.Message) json.RawMessage {
	type implementation struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	var params struct {
		Meta            map[string]any  `json:"_meta,omitempty"`
		ProtocolVersion string          `json:"protocolVersion,omitempty"`
		Capabilities    *struct{}       `json:"capabilities,omitempty"`
		ClientInfo      *implementation `json:"clientInfo,omitempty"`
	}
	if m.MetaVersion != nil {
		params.Meta = map[string]any{rpc.MetaVersion: text.Clip(string(m.MetaVersion), rpc.MaxEcho)}
		if m.Capabilities != nil {
			params.Meta[rpc.MetaCapabilities] = struct{}{}
		}
	}
	if string(m.Method) == methodInitialize {
		version, _ := rpc.String(m.Version)
		params.ProtocolVersion, params.Capabilities = text.Clip(version, rpc.MaxEcho), &struct{}{}
		params.ClientInfo = &implementation{Name: "client"}
	}
	out, _ := json.Marshal(params) // strings only
	return out
}

// take returns the request with an id of ours, which go-sdk is done with, or nil.
func (c *conversation) take(id jsonrpc.ID) *request {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.open[id]
	delete(c.open, id)
	return r
}

// cancel ends the requests that have the client's id. Nobody waits for an answer to them.
func (c *conversation) cancel(id []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.open {
		if string(r.ID) == string(id) && string(r.Method) != methodInitialize {
			r.silence()
		}
	}
}

// close ends the conversation: requests that are not answered are cancelled. It does not wait for that.
func (c *conversation) close() {
	c.once.Do(func() {
		c.mu.Lock()
		c.ended = true
		for _, r := range c.open {
			r.cancel(errEnded)
		}
		c.mu.Unlock()
		close(c.closed)
		go c.finish()
	})
}

// finish answers what go-sdk does not answer any more.
func (c *conversation) finish() {
	_ = c.served.Wait() // an error is that of Read: the end
	c.passing.Wait()
	c.mu.Lock()
	left := c.open
	c.open = nil
	c.mu.Unlock()
	for _, r := range left {
		r.end()
	}
	close(c.done)
}

// Read gives go-sdk the next request.
func (c *conversation) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.incoming:
		return m, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write takes an answer of go-sdk. What the methods here have answered themselves is only taken out of the table.
func (c *conversation) Write(_ context.Context, m jsonrpc.Message) error {
	response, ok := m.(*jsonrpc.Response)
	if !ok {
		return nil // it has nothing to tell: it knows of no tools
	}
	r := c.take(response.ID)
	switch {
	case r == nil:
	case response.Error != nil:
		r.refuse(faultOf(r, response.Error))
	default:
		r.succeed(response.Result)
	}
	return nil
}

// faultOf returns why go-sdk refuses a request, in the words of the other transports.
func faultOf(r *request, err error) *rpc.Fault {
	f := &rpc.Fault{Message: text.Clip(err.Error(), 300)}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		f.Code, f.Data = e.Code, e.Data
	}
	begins := string(r.Method) == methodInitialize
	switch {
	case f.Code == rpc.CodeMethodNotFound:
		f.Message = rpc.NoMethod().Message
	case f.Code == rpc.CodeUnsupportedVersion:
		f.Message = "Unsupported protocol version"
	case f.Code == rpc.CodeInvalidParams && r.isModern() && r.Capabilities == nil:
		f.Message = "The request has no _meta with " + rpc.MetaCapabilities
	case f.Code == 0 && begins:
		f.Code, f.Message = rpc.CodeInvalidRequest, "The session has begun already"
	case f.Code == 0:
		f.Code, f.Message = rpc.CodeInvalidRequest, "The session has not begun: send initialize first, or say in _meta which version this is"
	}
	return f
}

// Close is called by go-sdk at the end.
func (c *conversation) Close() error { return nil }

// SessionID is for go-sdk's log.
func (c *conversation) SessionID() string { return "" }

// agree notes the version that initialize has agreed on.
func (c *conversation) agree(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

// agreed returns the version that initialize has agreed on, or nothing.
func (c *conversation) agreed() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}
