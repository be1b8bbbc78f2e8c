package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
)

// maxLogged is how many bytes of a cause a line of the log has.
const maxLogged = 4096

// A reply is the carrier of a request that came over standard input.
type reply struct {
	stdio   *stdio
	request *request
	begun   time.Time
	slot    bool // it holds one
	name    string
}

var _ carrier = (*reply)(nil)

// id returns a name that nothing else has. Most requests never need it.
func (p *reply) id() string {
	if p.name == "" {
		p.name = rand.Text()
	}
	return p.name
}

// notify writes a notification.
func (p *reply) notify(text []byte) { p.stdio.write(text) }

// answer writes the answer.
func (p *reply) answer(a answer) {
	if a.text != nil {
		p.stdio.write(a.whole())
	}
	if a.end != nil {
		a.end()
	}
	p.log(a)
	if p.slot {
		<-p.stdio.slots
	}
}

// log writes the log's line of the request, as that of HTTP.
func (p *reply) log(a answer) {
	level, attrs := slog.LevelInfo, make([]slog.Attr, 0, 6)
	attrs = append(attrs, slog.String("operation", text.Clip(string(p.request.Method), rpc.MaxEcho)), slog.Duration("duration", time.Since(p.begun)))
	if a.tool != "" {
		attrs = append(attrs, slog.String("tool", a.tool))
		if route, ok := p.request.call.Generation.Lookup(a.tool); ok && route.Tool.Digest != "" {
			attrs = append(attrs, slog.String("digest", route.Tool.ShortDigest()))
		}
	}
	switch e := a.failed; {
	case e != nil:
		level = wasmtools.LevelOf(e)
		attrs = append(attrs, slog.String("code", string(e.Code)))
		if e.Err != nil {
			attrs = append(attrs, slog.String("error", text.Clip(fmt.Sprint(e.Err), maxLogged)))
		}
		if e.Code == wasmtools.CodeInternal {
			attrs = append(attrs, slog.String("request_id", p.id()))
		}
	case a.fault != nil:
		attrs = append(attrs, slog.Int64("code", a.fault.Code), slog.String("error", a.fault.Message))
	}
	p.stdio.log.LogAttrs(context.Background(), level, "request", attrs...)
}
