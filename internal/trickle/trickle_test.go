package trickle_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/trickle"
)

// TestStall has an answer begin, and then send nothing more. The client does not wait for the rest.
func TestStall(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		<-q.Context().Done()
	}))
	t.Cleanup(s.Close)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	ctx, cancel := context.WithCancelCause(t.Context())
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := base.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	body := trickle.New(ctx, cancel, answer.Body, 20*time.Millisecond)
	defer body.Close()
	if content, err := io.ReadAll(body); !errors.Is(err, trickle.ErrStalled) || string(content) != "begun" {
		t.Errorf("got %q, %v", content, err)
	}
}

// A slow source sends some bytes every few seconds.
type slow struct {
	bytes int
	every time.Duration
	left  int
}

func (d *slow) Read(p []byte) (int, error) {
	if d.left <= 0 {
		return 0, io.EOF
	}
	time.Sleep(d.every)
	n := min(d.bytes, d.left, len(p))
	d.left -= n
	return n, nil
}

func (d *slow) Close() error { return nil }

// TestTrickle has answers arrive slowly. Those that keep their client waiting are ended; a client that reads slowly ends none.
func TestTrickle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slow
		reader time.Duration // between two reads
		within time.Duration
		want   error
	}{
		"a byte now and then":       {slow{1, 5 * time.Second, 2 << 20}, 0, 16 * time.Second, trickle.ErrSlow},
		"less than the lowest rate": {slow{7 << 10, time.Second, 2 << 20}, 0, 12 * time.Second, trickle.ErrSlow},
		"more than the lowest rate": {slow{9 << 10, time.Second, 2 << 20}, 0, 4 * time.Minute, nil},
		"a short answer, late":      {slow{100, 25 * time.Second, 100}, 0, 26 * time.Second, nil},
		"a reader that takes long":  {slow{32 << 10, time.Millisecond, 2 << 20}, 20 * time.Second, time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				b := trickle.New(ctx, cancel, &c.slow, trickle.Stall)
				defer b.Close()
				began, buffer := time.Now(), make([]byte, 32<<10)
				var err error
				for err == nil {
					_, err = b.Read(buffer)
					time.Sleep(c.reader)
				}
				if errors.Is(err, io.EOF) {
					err = nil
				}
				if took := time.Since(began); err != c.want || took > c.within {
					t.Errorf("got %v after %v, want %v within %v", err, took, c.want, c.within)
				}
			})
		})
	}
}
