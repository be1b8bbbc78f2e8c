package sandbox

import (
	"bytes"
	"context"
	"log/slog"

	"github.com/toolsrv/toolsrv/internal/text"
)

// maxLine is the longest log line of a guest in bytes, as the host's log writes it; the rest of a longer one is dropped.
const maxLine = 4 << 10

// lines turns what a guest logs into lines of the host's log, no more than a call may write.
type lines struct {
	log    *slog.Logger
	tool   string
	left   int // lines that the call may still write
	ended  bool
	stdout []byte // begun, but not ended; at most maxLine
	stderr []byte
	last   []byte // last line of stderr that is not blank
}

// emit logs one line.
func (l *lines) emit(ctx context.Context, level slog.Level, source string, said []byte) {
	if l.left <= 0 {
		if !l.ended {
			l.ended = true
			l.log.LogAttrs(ctx, slog.LevelWarn, "further lines dropped", slog.String("tool", l.tool))
		}
		return
	}
	l.left--
	if !l.log.Enabled(ctx, level) {
		return
	}
	line := text.ClipEscaped(string(said[:min(len(said), maxLine+1)]), maxLine)
	l.log.LogAttrs(ctx, level, line, slog.String("tool", l.tool), slog.String("source", source))
}

// stream takes a piece of stdout (fd 1) or stderr (fd 2).
func (l *lines) stream(ctx context.Context, fd uint32, piece []byte) {
	begun := &l.stdout
	if fd == 2 {
		begun = &l.stderr
	}
	for len(piece) > 0 {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			*begun = join(*begun, piece)
			return
		}
		l.line(ctx, fd, join(*begun, piece[:end]))
		*begun = (*begun)[:0]
		piece = piece[end+1:]
	}
}

// flush logs the lines that were begun and not ended.
func (l *lines) flush(ctx context.Context) {
	if len(l.stdout) > 0 {
		l.line(ctx, 1, l.stdout)
	}
	if len(l.stderr) > 0 {
		l.line(ctx, 2, l.stderr)
	}
	l.stdout, l.stderr = nil, nil
}

func (l *lines) line(ctx context.Context, fd uint32, text []byte) {
	text = bytes.TrimRight(text, "\r")
	if len(bytes.TrimSpace(text)) == 0 {
		return
	}
	if fd == 2 {
		l.last = append(l.last[:0], text...)
		l.emit(ctx, slog.LevelInfo, "stderr", text)
		return
	}
	l.emit(ctx, slog.LevelInfo, "stdout", text)
}

// join appends what a line still has room for: one byte above maxLine tells that there was more.
func join(begun, piece []byte) []byte {
	return append(begun, piece[:min(len(piece), maxLine+1-len(begun))]...)
}
