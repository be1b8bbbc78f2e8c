package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A toy is a minimal door: it has only what every door must have.
type toy struct {
	list  *web.Document
	ticks chan string // what /toy.api/events sends
	ended chan error  // why a stream ended
}

func newToy() *toy {
	return &toy{list: web.NewDocument([]byte(`["car","ball"]`), tag), ticks: make(chan string), ended: make(chan error, 1)}
}

func (t *toy) Serve(x *web.Exchange) {
	switch x.Request().URL.Path {
	case "/toy.api":
		if x.Allow(http.MethodGet, http.MethodHead) {
			x.SendDocument(t.list)
		}
	case "/toy.api/me":
		x.Send(http.StatusOK, []byte(`"`+web.RequestID(x.Context())+`"`))
	case "/toy.api/events":
		t.events(x)
	case "/toy.api/broken":
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeOverloaded, Err: errors.New("the password is hunter2")})
	case "/toy.api/panics":
		panic("the password is hunter2")
	default:
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeNotFound})
	}
}

// events sends each tick as an event until the stream ends.
func (t *toy) events(x *web.Exchange) {
	ctx := x.Stream()
	x.Header().Set("Content-Type", "text/event-stream")
	for {
		if err := x.FlushError(); err != nil {
			t.ended <- err
			return
		}
		select {
		case <-ctx.Done():
			t.ended <- context.Cause(ctx)
			return
		case tick := <-t.ticks:
			if _, err := fmt.Fprintf(x, "data: %s\n\n", tick); err != nil {
				t.ended <- err
				return
			}
		}
	}
}

// A doorFunc is a door in one function.
type doorFunc func(x *web.Exchange)

func (f doorFunc) Serve(x *web.Exchange) { f(x) }

// foreign makes a door of a handler that does not know this package.
func foreign(f http.HandlerFunc) web.Door {
	return doorFunc(func(x *web.Exchange) { f(x, x.Request()) })
}

// decoded returns the members of a line of JSON.
func decoded(line string) map[string]any {
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return map[string]any{"error": fmt.Sprintf("%v in %q", err, line)}
	}
	return m
}

// readAll returns the body, and the error that ended it.
func readAll(r *http.Response) (string, error) {
	defer r.Body.Close()
	var text strings.Builder
	_, err := io.Copy(&text, r.Body)
	return text.String(), err
}

// waitFor calls of until its result has n elements, and returns that, since the log line of a request may come after its answer.
func waitFor[T any](t *testing.T, n int, of func() []T) []T {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if got := of(); len(got) >= n {
			return got
		} else if time.Now().After(end) {
			t.Fatalf("got %d, want %d", len(got), n)
		}
	}
}
