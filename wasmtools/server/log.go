package server

import (
	"context"
	"log/slog"

	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// A tracer adds to what is logged on behalf of a request the id that its answer has.
type tracer struct{ slog.Handler }

// Handle adds the id, if there is one.
func (t tracer) Handle(ctx context.Context, line slog.Record) error {
	if id := web.RequestID(ctx); id != "" {
		line.AddAttrs(slog.String("request_id", id))
	}
	return t.Handler.Handle(ctx, line)
}

// WithAttrs and WithGroup keep the tracer in front.
func (t tracer) WithAttrs(attrs []slog.Attr) slog.Handler { return tracer{t.Handler.WithAttrs(attrs)} }

// WithGroup does as WithAttrs.
func (t tracer) WithGroup(name string) slog.Handler { return tracer{t.Handler.WithGroup(name)} }
