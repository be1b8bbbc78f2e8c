package recent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/recent"
)

func all(*recent.Line) bool { return true }

// said returns what lines say.
func said(lines []recent.Line) string {
	var list []string
	for _, l := range lines {
		list = append(list, fmt.Sprintf("%d:%s", l.Number, l.Message))
	}
	return strings.Join(list, " ")
}

// TestLog keeps what the log has, and lists forwards and backwards.
func TestLog(t *testing.T) {
	t.Parallel()
	var next bytes.Buffer
	l := recent.New()
	log := slog.New(l.Handler(slog.NewJSONHandler(&next, &slog.HandlerOptions{Level: slog.LevelInfo})))
	log.Info("tool added", "path", "/a/b", "n", 7)
	log.Debug("nothing")
	log.Info("request", "path", "/a/b", "status", 200)
	log.Warn("I am a tool", "tool", "/a/b", "source", "stdout")
	log.With("source", "log").Info("I am one, too")
	log.WithGroup("g").With("u", uint64(math.MaxUint64)).Error("odd", "x", "y\n\x1b[2J", slog.Group("h", "yes", true, "no", false), "e", errors.New("bad"), "list", []string{"a"},
		"f", math.NaN(), "half", 0.5, "d", time.Second, "t", time.Unix(0, 0), "ch", make(chan int), "nil", nil)
	if got := strings.Count(next.String(), "\n"); got != 5 {
		t.Errorf("the log got %d lines:\n%s", got, &next)
	}
	lines, last, missed := l.Lines.After(0, 100, false, all)
	if got := said(lines); got != "1:tool added 2:request 3:I am a tool 4:I am one, too 5:odd" || last != 5 || missed != 0 {
		t.Errorf("got %s, %d, %d", got, last, missed)
	}
	if first := lines[0]; first.Level != slog.LevelInfo || time.Since(first.Time) > time.Minute || fmt.Sprint(first.Attributes) != "map[n:7 path:/a/b]" {
		t.Errorf("got %+v", first)
	}
	odd, err := json.Marshal(lines[4].Attributes)
	if want := `{"g.ch":"0x`; err != nil || !strings.HasPrefix(string(odd), want) {
		t.Errorf("got %s, %v", odd, err)
	}
	if want := `"g.d":"1s","g.e":"bad","g.f":"NaN","g.h.no":false,"g.h.yes":true,"g.half":0.5,"g.list":["a"],"g.nil":null,"g.t":"1970-01-01T00:00:00Z","g.u":18446744073709551615,"g.x":"y\n\u001b[2J"}`; !strings.HasSuffix(string(odd), want) {
		t.Errorf("got %s, want it to end in %s", odd, want)
	}
	warnings := func(line *recent.Line) bool { return line.Level >= slog.LevelWarn }
	for _, c := range []struct {
		after   uint64
		most    int
		forward bool
		match   func(*recent.Line) bool
		want    string
		last    uint64
	}{
		{0, 2, false, all, "4:I am one, too 5:odd", 5},
		{0, 1, false, warnings, "5:odd", 5},
		{2, 2, true, all, "3:I am a tool 4:I am one, too", 4},
		{1, 1, true, warnings, "3:I am a tool", 3},
		{3, 9, true, warnings, "5:odd", 5},
		{5, 9, true, all, "", 5},
		{99, 2, true, all, "1:tool added 2:request", 2}, // the number is of another process
	} {
		lines, last, _ := l.Lines.After(c.after, c.most, c.forward, c.match)
		if said(lines) != c.want || last != c.last {
			t.Errorf("after %d, %d, forward %t: got %s, %d, want %s, %d", c.after, c.most, c.forward, said(lines), last, c.want, c.last)
		}
	}
}

// TestBound keeps no more than the bound, says how much was missed, and leaves out what is too large for itself.
func TestBound(t *testing.T) {
	t.Parallel()
	l := recent.New()
	log := slog.New(l.Handler(slog.NewJSONHandler(io.Discard, nil)))
	log.Info(strings.Repeat("x", 1<<20))
	log.Info("small")
	if lines, _, _ := l.Lines.After(0, 10, false, all); said(lines) != "2:small" {
		t.Errorf("got %d lines", len(lines))
	}
	long := strings.Repeat("y", 10<<10)
	for range 1000 {
		log.Info(long)
	}
	lines, last, missed := l.Lines.After(2, 10_000, true, all)
	if n := len(lines); n < 90 || n > 103 || last != 1002 || missed != 1000-uint64(n) {
		t.Errorf("got %d lines, the last is %d, %d missed", n, last, missed)
	}
}

// TestWait wakes who waits with the next line, and with the end of the context.
func TestWait(t *testing.T) {
	t.Parallel()
	l := recent.New()
	log := slog.New(l.Handler(slog.NewJSONHandler(io.Discard, nil)))
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() { l.Lines.Wait(context.Background(), 0) })
	}
	log.Info("a")
	waiting.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.Lines.Wait(ctx, 1)
}

// BenchmarkHandler is what a line costs beside writing it.
func BenchmarkHandler(b *testing.B) {
	for name, h := range map[string]slog.Handler{
		"alone": slog.NewJSONHandler(io.Discard, nil),
		"kept":  recent.New().Handler(slog.NewJSONHandler(io.Discard, nil)),
	} {
		b.Run(name, func(b *testing.B) {
			log := slog.New(h)
			b.ReportAllocs()
			for b.Loop() {
				log.LogAttrs(context.Background(), slog.LevelInfo, "request", slog.String("method", "POST"), slog.String("path", "/math/add"), slog.Int("status", 200),
					slog.Duration("duration", 12345), slog.String("request_id", "0123456789abcdef0123456789abcdef"), slog.String("client", "192.0.2.1"))
			}
		})
	}
}
