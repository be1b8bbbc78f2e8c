package oci

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestStall has an answer begin, and not go on. A client waits for none that does not come.
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
	client := &http.Client{Transport: &guard{base: base, plain: true, stall: 20 * time.Millisecond}}
	answer, err := client.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if content, err := io.ReadAll(answer.Body); !errors.Is(err, errStalled) || string(content) != "begun" {
		t.Errorf("got %q, %v", content, err)
	}
}

// trickle sends some bytes every few seconds.
type trickle struct {
	bytes int
	every time.Duration
	left  int
}

func (d *trickle) Read(p []byte) (int, error) {
	if d.left <= 0 {
		return 0, io.EOF
	}
	time.Sleep(d.every)
	n := min(d.bytes, d.left, len(p))
	d.left -= n
	return n, nil
}

func (d *trickle) Close() error { return nil }

// TestTrickle has answers come slowly. One ends that keeps others waiting; a reader that takes its time ends none.
func TestTrickle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trickle
		reader time.Duration // between two reads
		within time.Duration
		want   error
	}{
		"a byte now and then":      {trickle{1, 5 * time.Second, 2 << 20}, 0, 16 * time.Second, errTrickle},
		"less than the least":      {trickle{7 << 10, time.Second, 2 << 20}, 0, 12 * time.Second, errTrickle},
		"more than the least":      {trickle{9 << 10, time.Second, 2 << 20}, 0, 4 * time.Minute, nil},
		"a short answer, late":     {trickle{100, 25 * time.Second, 100}, 0, 26 * time.Second, nil},
		"a reader that takes long": {trickle{32 << 10, time.Millisecond, 2 << 20}, 20 * time.Second, time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				b := &body{ReadCloser: &c.trickle, ctx: ctx, cancel: cancel, stall: stallTimeout}
				b.timer = time.AfterFunc(stallTimeout, func() { cancel(errStalled) })
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
