package server_test

import (
	"bufio"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/web"
)

// ticks is a door that sends an event for each tick until its stream ends.
type ticks chan struct{}

func (e ticks) Serve(x *web.Exchange) {
	ctx := x.Stream()
	for {
		x.Flush()
		select {
		case <-ctx.Done():
			return
		case <-e:
			_, _ = io.WriteString(x, "event\n")
		}
	}
}

// TestStreams checks that a stream outlives the write timeout, and ends as soon as the server drains.
// Proves: Clients keep nobody out
func TestStreams(t *testing.T) {
	t.Parallel()
	r := build(t, settings(t))
	const short = 100 * time.Millisecond
	r.SetWriteTimeout(short)
	door := make(ticks)
	r.Mount("/ticks.api", door)
	run(t, r)
	answer, err := http.Get(r.url + "/ticks.api")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	reader := bufio.NewReader(answer.Body)
	for range 3 {
		time.Sleep(2 * short) // the timeouts of a connection pass only in real time
		door <- struct{}{}
		if line, err := reader.ReadString('\n'); line != "event\n" {
			t.Fatalf("got %q (%v)", line, err)
		}
	}
	began := time.Now()
	r.stop()
	if rest, err := io.ReadAll(reader); len(rest) > 0 || err != nil {
		t.Errorf("after the stream: got %q (%v), want a clean end", rest, err)
	}
	if err := r.result(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the drain took %v with a stream open", took)
	}
}
