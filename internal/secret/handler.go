package secret

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/toolsrv/toolsrv/internal/redact"
)

// Handler returns a handler that removes all secrets of the store from messages and attributes, and passes the lines on to h. So no line shows a
// secret, whoever logs it. While the store has no secrets, lines are passed on unchanged.
func (s *Store) Handler(h slog.Handler) slog.Handler { return handler{h, s} }

type handler struct {
	slog.Handler
	store *Store
}

// Handle removes secrets from a line and passes it on.
func (h handler) Handle(ctx context.Context, line slog.Record) error {
	r := h.store.Everything()
	if r.Empty() {
		return h.Handler.Handle(ctx, line)
	}
	clean := slog.NewRecord(line.Time, line.Level, r.String(line.Message), line.PC)
	line.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(without(r, a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

// WithAttrs returns a handler with attributes, from which the present secrets of the store are removed.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if r := h.store.Everything(); !r.Empty() {
		clean := make([]slog.Attr, len(attrs))
		for i, a := range attrs {
			clean[i] = without(r, a)
		}
		attrs = clean
	}
	return handler{h.Handler.WithAttrs(attrs), h.store}
}

// WithGroup returns a handler with a group and the same store.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.store}
}

// without returns an attribute without secrets. If its value shows a secret, it becomes a text.
func without(r *redact.Redactor, a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(r.String(a.Value.String()))
	case slog.KindGroup:
		var group []slog.Attr
		for _, inner := range a.Value.Group() {
			group = append(group, without(r, inner))
		}
		a.Value = slog.GroupValue(group...)
	case slog.KindAny:
		shown := fmt.Sprintf("%+v", a.Value.Any())
		if b, ok := a.Value.Any().([]byte); ok {
			shown = string(b)
		}
		if clean := r.String(shown); clean != shown {
			a.Value = slog.StringValue(clean)
		}
	}
	return a
}
