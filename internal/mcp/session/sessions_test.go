package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// If there are too many sessions, those that have been idle for longest are put aside, of the principal that has the most. They continue when they
// are used again.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	h := newApp(t).http(t, mcp.Options{Sessions: 8})
	ping := func(id, user string) bool {
		status, _ := h.post(request("1", "ping", legacy), "X-User", user, "Mcp-Session-Id", id)
		return status == 200
	}
	ann := h.begin("X-User", "ann")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ids []string
	for range 5 {
		ids = append(ids, h.begin("X-User", "eve"))
	}
	lines := h.listen(ctx, ids[0], "X-User", "eve")
	for range 30 {
		ids = append(ids, h.begin("X-User", "eve"))
	}
	held := func() {
		t.Helper()
		if open, most, by := h.sessions.Sessions(); open != 8 || most != 8 || by["ann"] != 1 || by["eve"] != 7 {
			t.Errorf("%d of %d sessions are held, %v; want 1 of ann and 7 of eve", open, most, by)
		}
	}
	held()
	for i, id := range ids {
		if !ping(id, "eve") {
			t.Errorf("session %d of eve was put aside, and can't be resumed", i)
		}
	}
	held()
	select {
	case line, open := <-lines:
		t.Errorf("the session with a stream was put aside: %q, %t", line, open)
	default:
	}
	if !ping(ann, "ann") {
		t.Error("ann's session does not continue")
	}
}

func TestSessionsAllBusy(t *testing.T) {
	t.Parallel()
	h := newApp(t).http(t, mcp.Options{Sessions: 2})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		id := h.begin()
		go h.do(ctx, http.MethodPost, "", request("1", "tools/call", legacy, `"name":"wait"`), "Mcp-Session-Id", id)
		<-h.waiting
	}
	status, body := h.post(begin)
	if status != 503 || !strings.Contains(body, "Too many sessions") {
		t.Errorf("got %d %s", status, body)
	}
	cancel()
	<-h.ended
	<-h.ended
	testkit.Until(t, "a session is idle", func() bool { status, _ := h.post(begin); return status == 200 })
}

// A client that reads nothing is disconnected, and delays nobody else.
func TestSessionSlowReader(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	large := tool("large", `{"type":"object"}`, func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
		for i := range 10_000 {
			call.Listener.Progress(float64(i), 0, strings.Repeat("x", 1000))
		}
		return bytes.Repeat([]byte("1"), 10), nil
	})
	if err := a.table.Replace([]*wasmtools.Tool{large, tool("echo", `{"type":"object"}`, add)}, nil); err != nil {
		t.Fatal(err)
	}
	h := a.http(t, mcp.Options{})
	id := h.begin()
	answered := make(chan struct{})
	var calls sync.WaitGroup
	for i := range 4 {
		r := h.do(t.Context(), http.MethodPost, "", request(fmt.Sprint(i), "tools/call", legacy, `"name":"large"`, `"_meta":{"progressToken":1}`), "Mcp-Session-Id", id)
		calls.Go(func() {
			select { // without reading
			case <-answered:
			case <-time.After(time.Minute):
				t.Error("the others wait for a client that does not read")
			}
			_ = r.Body.Close()
		})
	}
	if status, _ := h.post(request("1", "ping", legacy), "Mcp-Session-Id", id); status != 200 {
		t.Errorf("status %d", status)
	}
	close(answered)
	calls.Wait()
}

// The end of the service ends streams, calls and sessions.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	door := mcp.NewDoor(a.set, mcp.Options{})
	mux := web.NewMux(web.Options{})
	mux.Mount(mcp.Path, door)
	server := httptest.NewServer(mux)
	defer server.Close()
	h := &house{app: a, t: t, mux: mux, url: server.URL + mcp.Path}
	id, other := h.begin(), h.begin()
	lines := h.listen(t.Context(), id)
	answer := make(chan string, 1)
	go func() {
		_, body := h.post(request("1", "tools/call", legacy, `"name":"wait"`), "Mcp-Session-Id", other)
		answer <- body
	}()
	<-h.waiting
	mux.EndStreams()
	if _, open := <-lines; open {
		t.Error("the stream goes on")
	}
	if err := door.Close(); err != nil {
		t.Error(err)
	}
	if err := <-h.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if got := <-answer; !strings.Contains(got, "The session has ended") {
		t.Errorf("got %s", got)
	}
	if status, _ := h.post(begin); status != 503 {
		t.Errorf("a session begins after the end: %d", status)
	}
}

// A sink is a ResponseWriter that keeps no body.
type sink struct{ header http.Header }

func (s sink) Header() http.Header         { return s.header }
func (s sink) Write(b []byte) (int, error) { return len(b), nil }
func (s sink) WriteHeader(int)             {}

// All answers share the bytes of a list: a client that reads slowly must not hold a copy. The test is not parallel, because it counts what the whole
// process allocates.
func TestListIsShared(t *testing.T) {
	a := newApp(t)
	var all []*wasmtools.Tool
	for i := range 100 {
		large := tool(fmt.Sprintf("large%d", i), `{"type":"object","description":"`+strings.Repeat("x", 10_000)+`"}`, add)
		all = append(all, large)
	}
	if err := a.table.Replace(all, nil); err != nil {
		t.Fatal(err)
	}
	h := a.http(t, mcp.Options{})
	id := h.begin()
	list := func() {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, mcp.Path, strings.NewReader(request("1", "tools/list", legacy)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Mcp-Session-Id", id)
		h.mux.ServeHTTP(sink{http.Header{}}, r)
	}
	list() // makes it
	const n = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		list()
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 200_000 {
		t.Errorf("a list of 1 MB takes %d bytes each time", each)
	}
}
