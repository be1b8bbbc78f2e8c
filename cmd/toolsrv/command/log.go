package command

import (
	"context"
	"io"
	"log/slog"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// newLogger returns a logger that writes each line at once.
func newLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(encoder(w, level)(escaped{w}))
}

// newAuthorLogger is newLogger with advice: if a guest prints an error with a known remedy, the logger adds a line with the remedy.
func newAuthorLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(advisor{newLogger(w, level).Handler()})
}

// An advisor is a handler that adds advice after lines with a known remedy.
type advisor struct{ slog.Handler }

// Enabled also returns true for the level of guests' output if only warnings are shown, because the advice is a warning.
func (a advisor) Enabled(ctx context.Context, level slog.Level) bool {
	return a.Handler.Enabled(ctx, level) || level >= slog.LevelInfo && a.Handler.Enabled(ctx, slog.LevelWarn)
}

func (a advisor) Handle(ctx context.Context, r slog.Record) error {
	if a.Handler.Enabled(ctx, r.Level) {
		if err := a.Handler.Handle(ctx, r); err != nil {
			return err
		}
	}
	says := toolfile.Advice(r.Message)
	if says == "" {
		return nil
	}
	return a.Handler.Handle(ctx, slog.NewRecord(r.Time, slog.LevelWarn, "what to do about that: "+says, 0))
}

func (a advisor) WithAttrs(attrs []slog.Attr) slog.Handler {
	return advisor{a.Handler.WithAttrs(attrs)}
}

func (a advisor) WithGroup(name string) slog.Handler { return advisor{a.Handler.WithGroup(name)} }

// encoder returns a function that makes the handler of a log written to w: text lines for a terminal, and JSON lines otherwise.
func encoder(w io.Writer, level slog.Leveler) func(io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	person := isTerminal(w)
	return func(w io.Writer) slog.Handler {
		if person {
			return slog.NewTextHandler(w, options)
		}
		return slog.NewJSONHandler(w, options)
	}
}

// escaped writes log lines and escapes the foreign text in them.
type escaped struct{ io.Writer }

func (e escaped) Write(line []byte) (int, error) {
	if _, err := e.Writer.Write(text.EscapeBytes(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
