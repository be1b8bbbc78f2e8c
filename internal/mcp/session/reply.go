package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A reply is a request that came over standard input, and its answer.
type reply struct {
	stdio   *stdio
	request protocol.Request
	ctx     context.Context
	begun   time.Time
	slot    bool // the request holds a slot
	tool    string
	trace   *trace.Request // nil if nobody records requests
}

var _ protocol.Listener = (*reply)(nil)

// newReply returns the reply to a message that has just arrived.
func (s *stdio) newReply() *reply {
	p := &reply{stdio: s, begun: time.Now()}
	p.request.Transport, p.request.Conversation, p.request.Namespace = p, s.conversation, s.namespace
	p.request.Call = &wasmtools.Call{Principal: s.principal, Door: "stdio", RequestID: rand.Text()}
	if s.traced {
		p.trace = &trace.Request{}
	}
	return p
}

// Trace returns the request's part of a trace, or nil.
func (p *reply) Trace() *trace.Request { return p.trace }

// ID returns the request's id.
func (p *reply) ID() string { return p.request.Call.RequestID }

// SetOperation does nothing: observers get the method as the client wrote it, even if it does not exist.
func (p *reply) SetOperation(string) {}

// SetTool notes the path of the tool that is called.
func (p *reply) SetTool(path string) { p.tool = path }

// Notify writes a notification. A write that fails ends the session.
func (p *reply) Notify(message []byte) error {
	p.stdio.write(message)
	return nil
}

// answer waits for the answer.
func (p *reply) answer() (a protocol.Answer) {
	// This function runs in a goroutine of its own, so a panic that is not recovered here would end the process.
	defer func() {
		if v := recover(); v != nil {
			a = p.request.Panicked(p.ctx, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	ctx := p.ctx
	if p.trace != nil {
		ctx = context.WithValue(ctx, trace.RequestKey{}, p.trace)
	}
	return p.stdio.protocol.Answer(ctx, &p.request)
}

// finish writes the answer.
func (p *reply) finish(a protocol.Answer) {
	defer p.stdio.conversation.Leave(&p.request)
	if a.Text != nil {
		p.stdio.write(a.Whole())
	}
	p.request.End()
	p.tell(a)
	if p.slot {
		<-p.stdio.slots
	} else {
		p.stdio.listens.Add(-1)
	}
}

// tell reports the request to the observers, as package web does over HTTP.
func (p *reply) tell(a protocol.Answer) {
	if p.stdio.mux == nil {
		return
	}
	p.stdio.mux.Tell(web.Message{
		Began: p.begun, Operation: text.Clip(string(p.request.Method), rpc.MaxEcho), Tool: p.tool, Call: p.request.Call, Trace: p.trace, Error: a.Failed,
	})
}
