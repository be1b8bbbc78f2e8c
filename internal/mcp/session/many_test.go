package session_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// The largest number of sessions costs little memory and time, whatever their clients send in initialize.
func TestManySessions(t *testing.T) {
	testkit.SkipEmulated(t, "it measures")
	if testing.Short() || testkit.Race(t) {
		t.Skip("it takes seconds")
	}
	const most = 2 << 10 // bytes that each session may take; 700 were measured
	a := newApp(t)
	door := mcp.NewDoor(a.set, mcp.Options{})
	mux := web.NewMux(web.Options{})
	mux.Mount(mcp.Path, door)
	// These clients send a long description of themselves: a message that calls no tool may have 64 KiB.
	first := strings.Replace(begin, `"name":"test"`, `"name":"`+strings.Repeat("x", 16<<10)+`"`, 1)
	do := func(id, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, mcp.Path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Mcp-Session-Id", id)
		if id == "" {
			r.Header.Del("Mcp-Session-Id")
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	used := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := used()
	begun := time.Now()
	ids := make([]string, 10_000)
	for i := range ids {
		if ids[i] = do("", first).Header().Get("Mcp-Session-Id"); ids[i] == "" {
			t.Fatalf("session %d was refused", i)
		}
	}
	each := (int64(used()) - int64(before)) / int64(len(ids))
	t.Logf("%d bytes each, in %v", each, time.Since(begun))
	if each > most {
		t.Errorf("a session takes %d bytes; at most %d are allowed", each, most)
	}
	ping := func(id string) int { return do(id, request("1", "ping", legacy)).Code }
	extra := do("", first).Code
	if open, most, _ := door.Sessions(); extra != http.StatusOK || open != most || ping(ids[0]) != http.StatusOK {
		t.Errorf("one more session: status %d, %d of %d are held; want another one put aside, which continues when it is used again", extra, open, most)
	}
	begun = time.Now()
	if err := door.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("ending all sessions took %v", took)
	}
}

// A change of the tools delays no request, although every session has to be checked, and there are more namespaces than lists that the set keeps.
func TestManySessionsChange(t *testing.T) {
	testkit.SkipEmulated(t, "it measures")
	if testing.Short() || testkit.Race(t) {
		t.Skip("it takes seconds")
	}
	const sessions, namespaces = 5_000, 200
	a := newApp(t)
	var all []*wasmtools.Tool
	for i := range 10_000 {
		all = append(all, tool(fmt.Sprintf("n%d/t%d", i%namespaces, i), `{"type":"object"}`, add))
	}
	if err := a.table.Replace(all, nil); err != nil {
		t.Fatal(err)
	}
	door := mcp.NewDoor(a.set, mcp.Options{})
	mux := web.NewMux(web.Options{})
	mux.Mount(mcp.Path, door)
	t.Cleanup(func() { _ = door.Close() })
	do := func(namespace int, id, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("%s/n%d", mcp.Path, namespace), strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if id != "" {
			r.Header.Set("Mcp-Session-Id", id)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	id := do(0, "", begin).Header().Get("Mcp-Session-Id")
	for i := 1; i < sessions; i++ {
		do(i%namespaces, "", begin)
	}
	begun := time.Now()
	for i := range sessions {
		a.set.View(fmt.Sprintf("n%d", i%namespaces), wasmtools.Everybody())
	}
	one := time.Since(begun) // how long it takes to look at each list
	told := make(chan struct{}, 1)
	defer a.set.Subscribe(func() { told <- struct{}{} })() // after the sessions have been told
	if err := a.table.Disable("/n1/t1", ""); err != nil {
		t.Fatal(err)
	}
	var worst time.Duration
	for done := false; !done; {
		begun := time.Now()
		if status := do(0, id, request("1", "ping", legacy)).Code; status != http.StatusOK {
			t.Fatal(status)
		}
		worst = max(worst, time.Since(begun))
		select {
		case <-told:
			done = true
		default:
		}
	}
	if t.Logf("the slowest request took %v, and looking at each list %v", worst, one); worst > one/3 {
		t.Errorf("a request took %v while the tools changed; to look at each list takes %v", worst, one)
	}
}
