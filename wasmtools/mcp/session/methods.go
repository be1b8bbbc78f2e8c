package session

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/toolset"
)

// The methods that the server has. What else go-sdk knows of is not declared, and refused.
const (
	methodInitialize = "initialize"
	methodPing       = "ping"
	methodDiscover   = "server/discover"
	methodList       = "tools/list"
	methodCall       = "tools/call"
	methodListen     = "subscriptions/listen"
	noteCancelled    = "notifications/cancelled"
)

// receive is what go-sdk calls for each request that it lets pass.
func (p *protocol) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (_ sdk.Result, err error) {
		r := requestOf(req)
		if r == nil {
			return nil, rpc.Invalid("The request came from nowhere")
		}
		switch method {
		case methodInitialize, methodPing, methodDiscover:
			result, err := next(ctx, method, req)
			if initialized, ok := result.(*sdk.InitializeResult); ok && err == nil {
				r.conversation.agree(initialized.ProtocolVersion)
			}
			return result, err
		}
		p.answer(method, r)
		return answered{}, nil
	}
}

// answer answers a request that go-sdk has let pass.
func (p *protocol) answer(method string, r *request) {
	// This is a goroutine's own: what is not recovered from here ends the process.
	defer func() {
		if v := recover(); v != nil {
			r.fail(&wasmtools.Error{Code: wasmtools.CodeInternal, Err: fmt.Errorf("panic: %v\n%s", v, debug.Stack())})
		}
	}()
	switch {
	case method == methodList:
		p.list(r)
	case method == methodCall:
		p.run(r)
	case method == methodListen && p.listen != nil && r.isModern():
		p.listen(r)
	default:
		r.refuse(rpc.NoMethod())
	}
}

// passes reports whether a request needs nothing of go-sdk: in a session that has begun there is nothing about a call or a list
// that it could refuse. Asking it takes more than all the rest of a small call.
func (c *conversation) passes(r *request) bool {
	method := string(r.Method)
	return (method == methodCall || method == methodList) && !r.isModern() && c.agreed() != ""
}

// answered is the result that go-sdk is told of a request that has its answer.
type answered struct{ *sdk.ResultBase }

func (answered) GetMeta() map[string]any { return nil }
func (answered) SetMeta(map[string]any)  {}

// view returns what the client sees under the generation that its request goes by.
func (p *protocol) view(r *request) *toolset.View {
	return p.set.ViewOf(r.call.Generation, r.namespace, r.call.Principal)
}

// list answers with a page of the tools.
func (p *protocol) list(r *request) {
	cursor, wrong := r.PageCursor()
	if wrong != nil {
		r.refuse(wrong)
		return
	}
	page, err := p.view(r).List(cursor, r.era())
	if err != nil {
		r.refuseFor(err)
		return
	}
	// A page can be large, and a client may read it slowly.
	a := answer{text: append(rpc.AppendHead(nil, r.ID), `"result":{`...), page: page.Tools}
	if r.isModern() {
		a.text = append(a.text, `"resultType":"complete",`...)
	}
	a.text = append(a.text, `"tools":`...)
	if page.Next != "" {
		next, _ := json.Marshal(page.Next) // a string
		a.tail = append(append(a.tail, `,"nextCursor":`...), next...)
	}
	if r.isModern() {
		a.tail = append(a.tail, `,"ttlMs":`+strconv.Itoa(rpc.FreshList)+`,"cacheScope":"`+r.scope()+`","_meta":{`+p.identity+`}`...)
	}
	a.tail = append(a.tail, "}}"...)
	r.finish(a)
}

// run calls a tool.
func (p *protocol) run(r *request) {
	if r.Name == nil {
		r.refuse(rpc.InvalidParams("The params have no name"))
		return
	}
	switch {
	case r.Arguments == nil, string(r.Arguments) == "null":
		r.Arguments = []byte("{}")
	case r.Arguments[0] != '{':
		r.refuse(rpc.InvalidParams("The arguments must be an object"))
		return
	}
	r.call.Arguments = r.Arguments
	if r.Token != nil {
		r.call.Listener = &progress{r}
	}
	i, err := p.view(r).Begin(string(r.Name), r.call)
	if err != nil && p.ready != nil {
		select {
		case <-p.ready:
		case <-r.ctx.Done():
		}
		i, err = p.view(r).Begin(string(r.Name), r.call)
	}
	if err != nil {
		p.missing(r, err)
		return
	}
	if r.counted != nil {
		r.counted()
	}
	ended := false
	defer func() { // a panic of a Go function
		if !ended {
			i.End()
		}
	}()
	result, err := i.Run(r.ctx)
	if err != nil {
		ended = true
		i.End()
		e := wasmtools.AsError(r.ctx, err)
		a := answer{tool: i.Tool(), failed: e, fault: r.internal(e)}
		a.text = rpc.AppendFault(nil, r.ID, a.fault)
		r.finish(a)
		return
	}
	text := append(rpc.AppendHead(make([]byte, 0, 512), r.ID), `"result":{`...)
	meta := ""
	if r.isModern() {
		text, meta = append(text, `"resultType":"complete",`...), p.identity
	}
	text = append(result.Append(text, r.era(), meta), "}}"...)
	ended = true
	// The memory of both counts until the client has the answer.
	if !i.Refused() {
		i.Hold(int64(len(text)))
	}
	r.finish(answer{text: text, tool: i.Tool(), failed: result.Failed(), end: i.End})
}

// missing answers a call of a tool that there is not. It may come in a moment.
func (p *protocol) missing(r *request, err error) {
	if p.settled == nil || p.settled() {
		r.refuseFor(err)
		return
	}
	r.fail(&wasmtools.Error{Code: wasmtools.CodeNotReady})
}

// A progress hears what a call says before its result, and tells the client of its progress. What a tool logs is for its
// author and the operator.
type progress struct{ r *request }

var _ wasmtools.Listener = (*progress)(nil)

// Log does nothing.
func (p *progress) Log(slog.Level, string, string) {}

// Progress notifies the client.
func (p *progress) Progress(done, total float64, message string) {
	if !p.r.silent.Load() {
		p.r.carrier.notify(rpc.AppendProgress(nil, p.r.Token, done, total, message))
	}
}
