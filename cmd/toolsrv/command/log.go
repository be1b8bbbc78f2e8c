package command

import (
	"io"
	"log/slog"

	"github.com/toolsrv/toolsrv/internal/text"
)

// newLogger returns a logger that writes each line at once.
func newLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(encoder(w, level)(escaped{w}))
}

// encoder returns what makes the handler of a log that goes to w: text lines for a terminal, JSON lines for all else.
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

// escaped writes log lines, escaping the foreign text in them.
type escaped struct{ io.Writer }

func (e escaped) Write(line []byte) (int, error) {
	if _, err := e.Writer.Write(text.EscapeBytes(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
