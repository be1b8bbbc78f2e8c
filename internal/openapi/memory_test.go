package openapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A stalled body delivers what it has, and then nothing until it is released.
type stalled struct {
	io.Reader
	waits, free chan struct{}
}

func newStalled(text string) *stalled {
	return &stalled{strings.NewReader(text), make(chan struct{}), make(chan struct{})}
}

func (s *stalled) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF {
		close(s.waits)
		<-s.free
	}
	return n, err
}

// Large bodies of many clients together stay within the memory, small ones and a single large one succeed, and all memory is given back.
// Proves: Limits hold, one by one and in sum
func TestBodyMemory(t *testing.T) {
	t.Parallel()
	panics := tool("panics", func(context.Context, *wasmtools.Call) ([]byte, error) { panic("odd") })
	app := appOf(t, tableOf(t, echo("echo"), echo("short"), panics), openapi.Options{Memory: 600 << 10})
	large := `{"a":"` + strings.Repeat("x", 300<<10) + `"}`
	for range 3 {
		body := newStalled(large)
		first := make(chan int)
		go func() { first <- serve(app, sent(body, "application/json")).StatusCode }()
		<-body.waits
		got := serve(app, post("/echo", large))
		if text := bodyOf(t, got); got.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, `"overloaded"`) || got.Header.Get("Retry-After") == "" {
			t.Errorf("a second large body: got %d %.100s, want 503 overloaded", got.StatusCode, text)
		}
		if got := serve(app, post("/short", `{}`)).StatusCode; got != http.StatusOK {
			t.Errorf("a small body beside a large one: got %d", got)
		}
		close(body.free)
		if got := <-first; got != http.StatusOK {
			t.Errorf("the first large body: got %d", got)
		}
		if got := serve(app, post("/panics", large)).StatusCode; got != http.StatusInternalServerError {
			t.Errorf("a panic: got %d", got)
		}
		huge := `{"a":"` + strings.Repeat("x", 900<<10) + `"}`
		if got := serve(app, post("/echo", huge)).StatusCode; got != http.StatusOK {
			t.Errorf("a body above all memory, alone: got %d", got)
		}
	}
}

// An unread result is counted, too.
// Proves: Limits hold, one by one and in sum
func TestResultMemory(t *testing.T) {
	t.Parallel()
	result := []byte(`"` + strings.Repeat("x", 500<<10) + `"`)
	app := appOf(t, tableOf(t, echo("echo"), tool("long", func(context.Context, *wasmtools.Call) ([]byte, error) { return result, nil })),
		openapi.Options{Memory: 400 << 10})
	w := slowWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		app.ServeHTTP(w, post("/long", `{}`))
	}()
	<-w.waits
	if got := serve(app, post("/long", `{}`)).StatusCode; got != http.StatusServiceUnavailable {
		t.Errorf("while a result fills the memory: got %d, want 503", got)
	}
	if got := serve(app, post("/echo", `{}`)).StatusCode; got != http.StatusOK {
		t.Errorf("a small call meanwhile: got %d, want 200", got)
	}
	close(w.free)
	<-done
	if got := serve(app, post("/long", `{}`)).StatusCode; got != http.StatusOK {
		t.Errorf("afterwards: got %d, want 200", got)
	}
}

// slowWriter belongs to a client that does not read until it is released.
type slowWriter struct {
	*httptest.ResponseRecorder
	waits, free chan struct{}
}

func (w slowWriter) Write(p []byte) (int, error) {
	close(w.waits)
	<-w.free
	return w.ResponseRecorder.Write(p)
}
