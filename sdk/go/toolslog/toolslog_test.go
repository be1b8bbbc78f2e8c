package toolslog_test

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolslog"
)

func TestLines(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		log  func(*slog.Logger)
		want string
	}{
		{"plain", func(l *slog.Logger) { l.Info("done") }, "INFO done"},
		{"debug", func(l *slog.Logger) { l.Debug("x") }, "DEBUG x"},
		{"warn", func(l *slog.Logger) { l.Warn("x") }, "WARN x"},
		{"error", func(l *slog.Logger) { l.Error("x") }, "ERROR x"},
		{"level between", func(l *slog.Logger) { l.Log(t.Context(), slog.LevelInfo+1, "x") }, "INFO x"},
		{"attributes", func(l *slog.Logger) { l.Info("x", "n", 3, "d", time.Second, "err", errors.New("no way")) }, `INFO x n=3 d=1s err="no way"`},
		{"quoted", func(l *slog.Logger) { l.Info("x", "empty", "", "eq", "a=b", "line", "a\nb") }, `INFO x empty="" eq="a=b" line="a\nb"`},
		{"with", func(l *slog.Logger) { l.With("a", 1).With("b", 2).Info("x", "c", 3) }, "INFO x a=1 b=2 c=3"},
		{"group", func(l *slog.Logger) { l.With("a", 1).WithGroup("g").With("b", 2).Info("x", "c", 3) }, "INFO x a=1 g.b=2 g.c=3"},
		{"empty group", func(l *slog.Logger) { l.WithGroup("").Info("x", "c", 3) }, "INFO x c=3"},
		{"group value", func(l *slog.Logger) { l.Info("x", slog.Group("g", "a", 1, slog.Group("", "b", 2))) }, "INFO x g.a=1 g.b=2"},
		{"empty attribute", func(l *slog.Logger) { l.Info("x", slog.Attr{}) }, "INFO x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			c := toolsrv.NewCall(func(level toolsrv.Level, message string) { got = append(got, level.String()+" "+message) })
			test.log(toolslog.New(c))
			if want := []string{test.want}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
