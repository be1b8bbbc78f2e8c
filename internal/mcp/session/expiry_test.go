package session_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A session is put aside half an hour after its last request, but not while its stream is open or a call runs. It continues when it is used again.
func TestSessionsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newApp(t)
		door := mcp.NewDoor(a.set, mcp.Options{})
		mux := web.NewMux(web.Options{})
		mux.Mount(mcp.Path, door)
		do := func(ctx context.Context, method, id, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, method, mcp.Path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "text/event-stream")
			if id != "" {
				r.Header.Set("Mcp-Session-Id", id)
			}
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			return w
		}
		open := func() string { return do(t.Context(), http.MethodPost, "", begin).Header().Get("Mcp-Session-Id") }
		ping := func(id string) int {
			return do(t.Context(), http.MethodPost, id, request("1", "ping", legacy)).Code
		}
		ctx, cancel := context.WithCancel(t.Context())
		idle, used, streaming, calling := open(), open(), open(), open()
		var heard *httptest.ResponseRecorder
		streamed, called := make(chan struct{}), make(chan struct{})
		go func() { heard = do(ctx, http.MethodGet, streaming, ""); close(streamed) }()
		go func() {
			do(ctx, http.MethodPost, calling, request("1", "tools/call", legacy, `"name":"wait"`))
			close(called)
		}()
		for range 4 {
			time.Sleep(10 * time.Minute)
			if ping(used) != http.StatusOK {
				t.Error("a session that is used has ended")
			}
		}
		if held, _ := door.State(); held != 3 {
			t.Errorf("%d sessions are held, want all but the one that was idle for 40 minutes", held)
		}
		if got := ping(idle); got != http.StatusOK {
			t.Errorf("a session that was idle for 40 minutes: status %d", got)
		}
		cancel()
		<-streamed
		<-called
		if ping(streaming) != http.StatusOK || ping(calling) != http.StatusOK {
			t.Error("a session with a stream, or with a call, has ended")
		}
		// The stream sends a comment every 25 seconds.
		if got := strings.Count(heard.Body.String(), ":\n\n"); got < 90 || got > 100 {
			t.Errorf("%d comments in 40 minutes", got)
		}
		time.Sleep(time.Hour)
		if held, _ := door.State(); held != 0 {
			t.Errorf("%d sessions are held though nobody uses them", held)
		}
		if err := door.Close(); err != nil {
			t.Error(err)
		}
		_ = mux.Close()
		_ = a.set.Close()
	})
}

// A scoped is a dependency whose caller may call the tools of a scope that can change.
type scoped struct{ scope atomic.Value }

func (*scoped) Check(*http.Request) error { return nil }

func (s *scoped) Principal(*http.Request, *wasmtools.Principal) (*wasmtools.Principal, error) {
	return wasmtools.NewPrincipal("ann", "test", s.scope.Load().(string))
}

// A stream reports the tools that its caller may call now, not those at the time of the session's last request.
// Proves: A caller reaches its own tools only
func TestStreamOfOtherScopes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newApp(t)
		door := mcp.NewDoor(a.set, mcp.Options{})
		var who scoped
		who.scope.Store("*")
		mux := web.NewMux(web.Options{Dependencies: []web.Dependency{&who}})
		mux.Mount(mcp.Path, door)
		request := func(ctx context.Context, method, id, body string, w http.ResponseWriter) {
			r := httptest.NewRequestWithContext(ctx, method, mcp.Path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "text/event-stream")
			if id != "" {
				r.Header.Set("Mcp-Session-Id", id)
			}
			mux.ServeHTTP(w, r)
		}
		first, stream := httptest.NewRecorder(), httptest.NewRecorder()
		request(t.Context(), http.MethodPost, "", begin, first)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			request(ctx, http.MethodGet, first.Header().Get("Mcp-Session-Id"), "", stream)
		}()
		told := func(what string, want int) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := strings.Count(stream.Body.String(), "list_changed"); got != want {
				t.Errorf("after %s: told %d times of a change, want %d", what, got, want)
			}
		}
		told("nothing", 0)
		who.scope.Store("math")
		told("the scopes have changed", 1)
		a.put(t, "new")
		told("a tool that may not be called", 1)
		a.put(t, "math/new")
		told("a tool that may be called", 2)
		cancel()
		<-ended
		if err := door.Close(); err != nil {
			t.Error(err)
		}
		_ = mux.Close()
		_ = a.set.Close()
	})
}
