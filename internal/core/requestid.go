package core

import (
	"context"
	"log/slog"

	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/internal/web"
)

// requestIDs adds the request id to each line that is logged on behalf of a request, and the trace's ids if the request is recorded.
type requestIDs struct{ slog.Handler }

// Handle adds the id, if there is one.
func (h requestIDs) Handle(ctx context.Context, line slog.Record) error {
	if id := web.RequestID(ctx); id != "" {
		line.AddAttrs(slog.String("request_id", id))
	}
	if s := trace.SpanOf(ctx); s != nil {
		id, span := s.IDs()
		line.AddAttrs(slog.String("trace_id", id), slog.String("span_id", span))
	}
	return h.Handler.Handle(ctx, line)
}

// WithAttrs keeps the ids.
func (h requestIDs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestIDs{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the ids.
func (h requestIDs) WithGroup(name string) slog.Handler { return requestIDs{h.Handler.WithGroup(name)} }
