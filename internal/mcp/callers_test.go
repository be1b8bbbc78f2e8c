package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// callers is a dependency that admits some callers, each with its own scopes. A header of the request names the caller.
type callers struct {
	now atomic.Pointer[[]*wasmtools.Principal]
}

func (*callers) Check(*http.Request) error { return nil }

func (c *callers) Principal(r *http.Request, _ *wasmtools.Principal) (*wasmtools.Principal, error) {
	n, err := strconv.Atoi(r.Header.Get("Caller"))
	if err != nil {
		return nil, err
	}
	return (*c.now.Load())[n], nil
}

// reload makes new principals, as a reload of the configuration does.
func (c *callers) reload(t *testing.T, many int) {
	t.Helper()
	next := make([]*wasmtools.Principal, many)
	for n := range next {
		p, err := wasmtools.NewPrincipal(fmt.Sprint("caller", n), "test", fmt.Sprintf("n%d", n), "common")
		if err != nil {
			t.Fatal(err)
		}
		next[n] = p
	}
	c.now.Store(&next)
}

// TestChangesAmongManyCallers has hundreds of callers with their own scopes wait for changes in thousands of streams, half of them in sessions. A
// change makes one list for each caller that it concerns, and none for the others. The same is true of a reload.
// Proves: A caller reaches its own tools only
func TestChangesAmongManyCallers(t *testing.T) {
	many, each := 500, 10 // how many callers there are, and how many streams each has
	if testing.Short() || testkit.Race(t) || testkit.Emulated() {
		many, each = 100, 4
	}
	for _, sessions := range []bool{true, false} {
		t.Run(fmt.Sprint("sessions ", sessions), func(t *testing.T) {
			tools := []*wasmtools.Tool{tool("common/add", echo)}
			for n := range many {
				tools = append(tools, tool(fmt.Sprintf("n%d/a", n), echo), tool(fmt.Sprintf("n%d/b", n), echo), tool(fmt.Sprintf("n%d/c", n), echo))
			}
			table := tableOf(t, tools...)
			who := &callers{}
			who.reload(t, many)
			h := appOf(t, table, options{Options: withStreams(many*each + 100), dependencies: []web.Dependency{who}})
			heard := make([]atomic.Int64, many) // how many events each caller got
			total := func() (sum int64) {
				for n := range heard {
					sum += heard[n].Load()
				}
				return sum
			}
			var ended sync.WaitGroup
			for n := range many * each {
				r := listening(`{"toolsListChanged":true}`)
				if sessions {
					r = sessionOf(t, h, n%many)
				}
				r.Header.Set("Caller", fmt.Sprint(n%many))
				ended.Go(func() { h.ServeHTTP(&counter{http.Header{}, &heard[n%many]}, r) })
			}
			want := int64(0)
			if !sessions {
				want = int64(many * each) // acknowledgements
			}
			await := func(what string) {
				t.Helper()
				for end := time.Now().Add(time.Minute); total() < want; time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%s: got %d events, want %d", what, total(), want)
					}
				}
			}
			for end := time.Now().Add(time.Minute); h.streams() < int64(many*each); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d streams are open", h.streams())
				}
			}
			await("the beginning")
			told := make(chan struct{}, 100)
			defer h.set.Subscribe(func() { told <- struct{}{} })() // subscribed after the door, so it is called after the door
			for _, step := range []struct {
				name   string
				change func() error
				views  int64 // how many views it may have made
				events int
			}{
				{"one caller's tool", func() error { return table.Disable("/n7/a", "") }, 1, each},
				{"another's", func() error { return table.Disable("/n8/a", "") }, 1, each},
				{"a tool that all see", func() error { return table.Disable("/common/add", "") }, int64(many), many * each},
				{"new principals with the same scopes", func() error {
					who.reload(t, many)
					h.Recheck()
					return table.Enable("/n9/a") // it is
				}, 0, 0},
				{"tools that look the same", func() error { return table.Replace(append([]*wasmtools.Tool(nil), tools...), nil) }, 0, 0},
				{"one of the tools is back", func() error { return table.Enable("/n8/a") }, 1, each},
			} {
				before, at := h.set.ViewsMade(), time.Now()
				if err := step.change(); err != nil {
					t.Fatal(err)
				}
				<-told
				took := time.Since(at)
				want += int64(step.events)
				await(step.name)
				t.Logf("%s: %d views, %d events, told in %v, heard in %v", step.name, h.set.ViewsMade()-before, step.events, took, time.Since(at))
				if got := h.set.ViewsMade() - before; got > step.views {
					t.Errorf("%s: %d views were made, want %d", step.name, got, step.views)
				}
			}
			h.EndStreams()
			ended.Wait()
			if !sessions {
				want += int64(many * each) // the responses
			}
			if total() != want {
				t.Errorf("got %d events, want %d", total(), want)
			}
			if got, want := heard[7].Load()-heard[6].Load(), int64(each); got != want {
				t.Errorf("the caller whose tool was switched off got %d events more than another, want %d", got, want)
			}
		})
	}
}

// sessionOf begins a session of a caller, and returns the request for its stream.
func sessionOf(t *testing.T, h *app, caller int) *http.Request {
	t.Helper()
	post := func(id, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, mcp.Path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Caller", fmt.Sprint(caller))
		if id != "" {
			r.Header.Set("Mcp-Session-Id", id)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	begun := post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	id := begun.Header().Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("no session begins: %d %s", begun.Code, begun.Body)
	}
	post(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, mcp.Path, http.NoBody)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", id)
	return r
}

// streams returns how many streams are open.
func (a *app) streams() int64 {
	_, streams := a.door.State()
	return streams
}
