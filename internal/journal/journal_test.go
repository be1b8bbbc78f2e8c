package journal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/journal"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A reader reads what a journal writes.
type reader struct {
	mu     sync.Mutex
	writes []string
	stuck  chan struct{} // a write waits until it is closed; if nil, writes don't wait
}

func (r *reader) Write(b []byte) (int, error) {
	if r.stuck != nil {
		<-r.stuck
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, string(b))
	return len(b), nil
}

// taken returns what was written since the last call.
func (r *reader) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	writes := r.writes
	r.writes = nil
	return writes
}

func encodeJSON(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) }
func encodeText(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) }

// numbers returns the number in the member "n" of each line.
func numbers(t *testing.T, text string) (found []int) {
	t.Helper()
	for line := range strings.Lines(text) {
		var v struct{ N *int }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if v.N != nil {
			found = append(found, *v.N)
		}
	}
	return found
}

func wantNumbers(t *testing.T, text string, from, to int) {
	t.Helper()
	got := numbers(t, text)
	if len(got) != to-from {
		t.Fatalf("got %d lines, want %d", len(got), to-from)
	}
	for i, n := range got {
		if n != from+i {
			t.Fatalf("line %d has number %d, want %d", i, n, from+i)
		}
	}
}

// TestTogether checks that lines are written together, in order, after a while, and that a warning is written at once, with all lines before it.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reader
		j, h := journal.New(&r, encodeJSON)
		defer j.Close()
		log := slog.New(h)
		for n := range 100 {
			log.Info("line", "n", n)
		}
		time.Sleep(99 * time.Millisecond)
		if got := r.taken(); len(got) > 0 {
			t.Errorf("got %d writes at once, want none yet", len(got))
		}
		time.Sleep(2 * time.Millisecond)
		if got := r.taken(); len(got) != 1 {
			t.Errorf("got %d writes after 100 ms, want one", len(got))
		} else {
			wantNumbers(t, got[0], 0, 100)
		}
		time.Sleep(time.Second)
		log.With("a", 1).WithGroup("g").Info("before")
		log.Warn("a warning")
		synctest.Wait()
		if got := strings.Join(r.taken(), ""); !strings.Contains(got, "before") || !strings.HasSuffix(got, `"msg":"a warning"}`+"\n") {
			t.Errorf("got %q right after a warning, want both lines", got)
		}
		log.With("a", 1).Warn("another warning")
		time.Sleep(10 * time.Millisecond)
		if got := r.taken(); len(got) != 1 {
			t.Errorf("got %d writes soon after the next warning, want one", len(got))
		}
	})
}

// TestStuckReader checks that nobody waits for a reader that reads nothing, and that the lines dropped meanwhile are counted.
// Proves: Answers and logs show what is meant to be seen
func TestStuckReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reader{stuck: make(chan struct{})}
		j, h := journal.New(&r, encodeJSON)
		log := slog.New(h)
		log.Info("line", "n", 0)
		time.Sleep(time.Second) // the write has begun
		const logged = 200_000
		begun := time.Now()
		for n := range logged {
			log.Info("line", "n", n+1)
		}
		if time.Since(begun) > 0 {
			t.Errorf("logging waited %v for the reader", time.Since(begun))
		}
		close(r.stuck)
		time.Sleep(time.Second)
		all := strings.Join(r.taken(), "")
		kept := len(numbers(t, all))
		wantNumbers(t, all, 0, kept)
		if len(all) > 9<<20 || kept < 1000 {
			t.Errorf("%d lines with %d bytes were kept, want some, and no more than twice 4 MiB", kept, len(all))
		}
		if want := fmt.Sprintf(`their reader is too slow","lines":%d}`+"\n", 1+logged-kept); !strings.HasSuffix(all, want) {
			t.Errorf("the last line is %q, want it to end with %q", all[strings.LastIndex(all[:len(all)-1], "\n")+1:], want)
		}
		log.Info("line", "n", 7)
		j.Close()
		wantNumbers(t, strings.Join(r.taken(), ""), 7, 8)
	})
}

// TestClose checks that nothing is lost at the end, and that Close gives up on a stuck reader.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reader
		j, h := journal.New(&r, encodeJSON)
		log := slog.New(h)
		for n := range 10 {
			log.Info("line", "n", n)
		}
		j.Flush()
		wantNumbers(t, strings.Join(r.taken(), ""), 0, 10)
		log.Info("line", "n", 10)
		j.Close()
		wantNumbers(t, strings.Join(r.taken(), ""), 10, 11)
		j.Close()
		log.Error("too late")
		j.Flush()
		if got := r.taken(); len(got) > 0 {
			t.Errorf("got %q after the end", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := reader{stuck: make(chan struct{})}
		j, h := journal.New(&r, encodeJSON)
		slog.New(h).Info("line")
		begun := time.Now()
		j.Close()
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("Close waited %v for a reader that is stuck, want 2s", took)
		}
		close(r.stuck)
	})
}

// TestPanic checks that lines logged before a panic are written.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reader
		j, h := journal.New(&r, encodeJSON)
		defer j.Close()
		func() {
			defer func() {
				if v := recover(); v != "broken" {
					t.Errorf("got %v, want the panic", v)
				}
				wantNumbers(t, strings.Join(r.taken(), ""), 0, 3)
			}()
			defer j.Flush()
			for n := range 3 {
				slog.New(h).Info("line", "n", n)
			}
			panic("broken")
		}()
	})
}

// TestEscaped checks that a log, in either form, has no control characters.
// Proves: Answers and logs show what is meant to be seen
func TestEscaped(t *testing.T) {
	t.Parallel()
	const foreign = "a\u0085b\u009b31m c\u202ed\u2066e \x1b[31m \x7f\xff"
	for name, encode := range map[string]func(io.Writer) slog.Handler{"json": encodeJSON, "text": encodeText} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r reader
			j, h := journal.New(&r, encode)
			slog.New(h).Info(foreign, "key", foreign, "plain", "\x7f")
			j.Close()
			text := strings.Join(r.taken(), "")
			for _, c := range text {
				if c != '\n' && (c < ' ' || c >= 0x7f) {
					t.Errorf("%U is in %q", c, text)
				}
			}
			for _, want := range []string{`\u0085`, `\u009b31m`, `\u202e`, `\u2066`} {
				if strings.Count(text, want) != 2 {
					t.Errorf("%q does not have %s twice", text, want)
				}
			}
		})
	}
}

// TestMany logs from several goroutines: no line is lost, none is torn, and each goroutine's lines stay in order.
func TestMany(t *testing.T) {
	t.Parallel()
	var r reader
	j, h := journal.New(&r, encodeJSON)
	log := slog.New(h)
	const each = 2000
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for n := range each {
				level := slog.LevelInfo
				if n%100 == 0 {
					level = slog.LevelWarn
				}
				log.Log(t.Context(), level, fmt.Sprint("g", g), "n", n)
			}
		})
	}
	wait.Wait()
	j.Close()
	next := map[string]int{}
	for line := range strings.Lines(strings.Join(r.taken(), "")) {
		var v struct {
			Msg string
			N   int
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if v.N != next[v.Msg] {
			t.Fatalf("%s has line %d after %d", v.Msg, v.N, next[v.Msg]-1)
		}
		next[v.Msg]++
	}
	for g := range 8 {
		if n := next[fmt.Sprint("g", g)]; n != each {
			t.Errorf("goroutine %d has %d lines, want %d", g, n, each)
		}
	}
}

// Not parallel: AllocsPerRun counts what the whole process allocates.
func TestAllocations(t *testing.T) {
	if testkit.Race(t) {
		t.Skip("the race detector allocates")
	}
	j, h := journal.New(io.Discard, encodeJSON)
	defer j.Close()
	log := slog.New(h)
	n := testing.AllocsPerRun(1000, func() {
		log.LogAttrs(t.Context(), slog.LevelInfo, "request", slog.String("method", "POST"), slog.String("path", "/math/add"),
			slog.Int("status", 200), slog.Duration("duration", 12345), slog.String("request_id", "0123456789abcdef"))
	})
	if n > 0 {
		t.Errorf("a line makes %v allocations, want none", n)
	}
}

// BenchmarkLine measures what logging a request's line costs its caller: with a line that is written at once, to a pipe that is read, and with a
// journal.
func BenchmarkLine(b *testing.B) {
	line := func(b *testing.B, h slog.Handler) {
		log := slog.New(h)
		b.ReportAllocs()
		for b.Loop() {
			log.LogAttrs(b.Context(), slog.LevelInfo, "request", slog.String("method", "POST"), slog.String("path", "/math/add"),
				slog.Int("status", 200), slog.Duration("duration", 12345), slog.String("request_id", "0123456789abcdef"))
		}
	}
	b.Run("at once", func(b *testing.B) { line(b, encodeJSON(pipe(b))) })
	b.Run("encoded only", func(b *testing.B) { line(b, encodeJSON(&bytes.Buffer{})) })
	b.Run("journal", func(b *testing.B) {
		j, h := journal.New(pipe(b), encodeJSON)
		defer j.Close()
		line(b, h)
	})
}
