package sandbox

import (
	"context"
	"log/slog"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// lines are what a guest logs: no more of them than a call may write, each as long as a line may be.
type lines struct {
	log      *slog.Logger
	listener hostabi.Listener // nil: nobody listens
	tool     string
	left     int // lines that the call may still write
	ended    bool
}

// emit logs one line. It reports false where the call has written all its lines.
func (l *lines) emit(ctx context.Context, level slog.Level, source string, said []byte) bool {
	if l.left <= 0 {
		if !l.ended {
			l.ended = true
			l.log.LogAttrs(ctx, slog.LevelWarn, "further lines dropped", slog.String("tool", l.tool))
		}
		return false
	}
	l.left--
	said = said[:min(len(said), hostabi.MaxLine+1)]
	if l.listener != nil {
		l.listener.Log(level, source, text.Clip(strings.ToValidUTF8(string(said), "\uFFFD"), hostabi.MaxLine))
	}
	if l.log.Enabled(ctx, level) {
		l.log.LogAttrs(ctx, level, text.ClipEscaped(string(said), hostabi.MaxLine), slog.String("tool", l.tool), slog.String("source", source))
	}
	return true
}
