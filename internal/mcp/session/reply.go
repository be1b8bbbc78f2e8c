package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp/internal/protocol"
	"github.com/toolsrv/toolsrv/internal/mcp/internal/rpc"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// maxLogged is how many bytes of a cause a line of the log has.
const maxLogged = 4096

// A reply is a request that came over standard input, and its answer.
type reply struct {
	stdio   *stdio
	request protocol.Request
	ctx     context.Context
	begun   time.Time
	slot    bool // it holds one
	name    string
	tool    string
}

var _ protocol.Listener = (*reply)(nil)

// ID returns a name that nothing else has. Most requests never need it.
func (p *reply) ID() string {
	if p.name == "" {
		p.name = rand.Text()
	}
	return p.name
}

// SetOperation does nothing: the log has the client's word, even where it is not a method.
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
	// This is a goroutine's own: what is not recovered from here ends the process.
	defer func() {
		if v := recover(); v != nil {
			a = p.request.Panicked(p.ctx, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	return p.stdio.protocol.Answer(p.ctx, &p.request)
}

// finish writes the answer.
func (p *reply) finish(a protocol.Answer) {
	defer p.stdio.conversation.Leave(&p.request)
	if a.Text != nil {
		p.stdio.write(a.Whole())
	}
	p.request.End()
	p.log(a)
	if p.slot {
		<-p.stdio.slots
	}
}

// log writes the request's line in the log, as HTTP's is.
func (p *reply) log(a protocol.Answer) {
	level, attrs := slog.LevelInfo, make([]slog.Attr, 0, 6)
	attrs = append(attrs, slog.String("operation", text.Clip(string(p.request.Method), rpc.MaxEcho)), slog.Duration("duration", time.Since(p.begun)))
	if p.tool != "" {
		attrs = append(attrs, slog.String("tool", p.tool))
		if route, ok := p.request.Call.Generation.Lookup(p.tool); ok && route.Tool.Digest != "" {
			attrs = append(attrs, slog.String("digest", route.Tool.ShortDigest()))
		}
	}
	switch e := a.Failed; {
	case a.Wrong != nil:
		attrs = append(attrs, slog.Int64("code", a.Wrong.Code), slog.String("error", a.Wrong.Message))
	case e != nil:
		level = wasmtools.LevelOf(e)
		attrs = append(attrs, slog.String("code", string(e.Code)))
		if e.Err != nil {
			attrs = append(attrs, slog.String("error", text.Clip(fmt.Sprint(e.Err), maxLogged)))
		}
		if e.Code == wasmtools.CodeInternal {
			attrs = append(attrs, slog.String("request_id", p.ID()))
		}
	}
	p.stdio.log.LogAttrs(context.Background(), level, "request", attrs...)
}
