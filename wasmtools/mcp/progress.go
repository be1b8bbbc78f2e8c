package mcp

import (
	"context"
	"log/slog"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/mcp/internal/rpc"
)

// A progress hears what a call says before its result, and sends the client its reports of progress. What a tool logs is for its
// author and the operator, not for the client. The tool waits while the client takes a report, for as long as a stream may write.
type progress struct {
	x      *exchange
	cancel context.CancelCauseFunc
	event  []byte
	failed error // of the write that failed; the call is cancelled then
}

var _ wasmtools.Listener = (*progress)(nil)

// Log does nothing.
func (p *progress) Log(slog.Level, string, string) {}

// Progress sends a report. The first one begins the stream.
func (p *progress) Progress(done, total float64, message string) {
	if p.failed != nil {
		return
	}
	if !p.x.streaming {
		p.x.door.headers.begin(p.x.Exchange)
		p.x.streaming = true
	}
	p.event = rpc.AppendProgress(append(p.event[:0], eventHead...), p.x.message.Token, done, total, message)
	if p.failed = sendEvent(p.x.Exchange, p.event); p.failed != nil {
		p.cancel(p.failed)
	}
}
