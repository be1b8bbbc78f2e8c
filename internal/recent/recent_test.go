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
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/recent"
)

func all(*recent.Line) bool { return true }

// said returns the messages and attributes of lines.
func said(lines []recent.Line) string {
	var list []string
	for _, l := range lines {
		list = append(list, fmt.Sprintf("%d:%s", l.Number, l.Message))
	}
	return strings.Join(list, " ")
}

// TestLog logs lines, and lists them forwards and backwards.
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
		{99, 2, true, all, "1:tool added 2:request", 2}, // the number is from another process
	} {
		lines, last, _ := l.Lines.After(c.after, c.most, c.forward, c.match)
		if said(lines) != c.want || last != c.last {
			t.Errorf("after %d, %d, forward %t: got %s, %d, want %s, %d", c.after, c.most, c.forward, said(lines), last, c.want, c.last)
		}
	}
}

// TestText checks that a line has the same attributes while it is matched as after it was read.
func TestText(t *testing.T) {
	t.Parallel()
	l := recent.New()
	log := slog.New(l.Handler(slog.NewJSONHandler(io.Discard, nil)))
	log.Info("a", "n", math.MinInt64, "u", uint64(math.MaxUint64), "f", 0.5, "yes", true, "no", false, "t", time.Unix(0, 0), "d", time.Hour, "list", []string{"path"}, "", "empty",
		"path", "/a/b", slog.Group("g", "path", "/c/d"), "twice", "first", "twice", strings.Repeat("x", 300), "last", "")
	log.Info("b")
	for _, c := range []struct{ message, key, want string }{
		{"a", "path", "/a/b"}, {"a", "g.path", "/c/d"}, {"a", "", "empty"}, {"a", "twice", strings.Repeat("x", 300)}, {"a", "last", ""},
		{"a", "n", ""}, {"a", "u", ""}, {"a", "f", ""}, {"a", "yes", ""}, {"a", "t", ""}, {"a", "d", ""}, {"a", "list", ""}, {"a", "pat", ""}, {"a", "paths", ""}, {"b", "path", ""},
	} {
		got := map[string]string{}
		lines, _, _ := l.Lines.After(0, 10, true, func(line *recent.Line) bool {
			got[map[uint64]string{1: "a", 2: "b"}[line.Number]] = line.Text(c.key)
			return true
		})
		if got[c.message] != c.want || len(lines) != 2 {
			t.Errorf("%s %q: got %q, want %q", c.message, c.key, got[c.message], c.want)
		}
		if is, isText := lines[0].Attributes[c.key].(string); c.message == "a" && c.key != "t" && c.key != "d" && isText && is != c.want {
			t.Errorf("%q: it was matched as %q, and read as %q", c.key, c.want, is)
		}
	}
}

// TestAfterIsCheap checks that waiting for a line that never comes looks at each line only once, and copies none.
func TestAfterIsCheap(t *testing.T) { // not in parallel: it counts what is allocated
	l := recent.New()
	log := slog.New(l.Handler(slog.NewJSONHandler(io.Discard, nil)))
	for range 10_000 {
		log.Info("request", "path", "/math/add")
	}
	const times = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for n := range uint64(times) {
		looked := 0
		_, last, missed := l.Lines.After(9999-n%2, 10, true, func(*recent.Line) bool { looked++; return false })
		if last != 10_000 || missed != 0 || looked != int(1+n%2) {
			t.Fatalf("got %d, %d, and %d lines looked at", last, missed, looked)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 1000 {
		t.Errorf("looking at a line or two takes %d bytes", each)
	}
}

// TestBound checks that no more than the bound is kept, that missed lines are counted, and that a line that is too large is left out.
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

// TestWait checks that the next line wakes those who wait, and so does the end of the context.
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

// BenchmarkHandler measures what a line costs in addition to writing it.
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
