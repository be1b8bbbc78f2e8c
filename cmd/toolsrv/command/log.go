package command

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// newLogger returns a logger of text lines where w is a terminal, of JSON lines elsewhere.
func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
