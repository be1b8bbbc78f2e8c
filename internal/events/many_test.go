package events_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/events"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A reader is a client that records what it gets, and when.
type reader struct {
	header http.Header
	mu     sync.Mutex
	text   strings.Builder
	came   []time.Time
	begun  *atomic.Int64
	events *atomic.Int64
	keeps  bool
}

func (r *reader) Header() http.Header { return r.header }
func (r *reader) WriteHeader(int)     {}
func (r *reader) Flush()              {}
func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keeps {
		r.text.Write(p)
	}
	if n := strings.Count(string(p), "event: "); n > 0 {
		r.came = append(r.came, time.Now())
		r.events.Add(int64(n))
	} else {
		r.begun.Add(1)
	}
	return len(p), nil
}

func (r *reader) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.text.Reset()
	return r.text.String()
}

func newReader() *reader {
	return &reader{header: http.Header{}, begun: new(atomic.Int64), events: new(atomic.Int64), keeps: true}
}

func request(who string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, events.Path, nil)
	r.Header.Set("X-Who", who)
	return r
}

func await(t *testing.T, n *atomic.Int64, want int64) {
	t.Helper()
	for end := time.Now().Add(time.Minute); n.Load() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %d, want %d", n.Load(), want)
		}
	}
}

func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// TestTenThousandListeners connects the largest number of listeners, with different scopes: each takes little memory, and all are soon told of a
// change. It is not parallel, since it measures the memory of the process.
// Proves: Clients keep nobody out
func TestTenThousandListeners(t *testing.T) {
	const listeners = 10_000
	w := newWorld(t, tableOf(t, tool("math/add", "a"), tool("web/get", "a")), listeners+100)
	for i := range 10 {
		w.callers.set(fmt.Sprint(i), principal(t, fmt.Sprint(i), "math/add", fmt.Sprintf("other%d/*", i)))
	}
	var begun, got atomic.Int64
	var ended sync.WaitGroup
	all, requests := make([]*reader, listeners), make([]*http.Request, listeners)
	for i := range all {
		all[i], requests[i] = &reader{header: http.Header{}, begun: &begun, events: &got}, request(fmt.Sprint(i%10))
	}
	before := memory()
	for i, r := range all {
		ended.Go(func() { w.mux.ServeHTTP(r, requests[i]) })
	}
	await(t, &begun, listeners)
	each := (memory() - before) / listeners
	t.Logf("%d bytes for each listener", each)
	if !testkit.Race(t) && each > 12<<10 {
		t.Errorf("a listener takes %d bytes", each)
	}
	change := time.Now()
	if err := errors.Join(w.table.Disable("/web", ""), w.table.Disable("/math/add", "")); err != nil {
		t.Fatal(err)
	}
	await(t, &got, listeners)
	w.mux.EndStreams()
	ended.Wait()
	var took []time.Duration
	for _, r := range all {
		if len(r.came) != 1 {
			t.Fatalf("a listener got %d events", len(r.came))
		}
		took = append(took, r.came[0].Sub(change))
	}
	slices.Sort(took)
	t.Logf("p50 %s, p99 %s", took[listeners/2], took[listeners*99/100])
}

// TestMillion adds a million events, some with texts of the largest size, while many listen: memory is bounded, and each listener either gets all of
// the last events or is told that it has missed some. It is not parallel, since it measures the memory of the process.
func TestMillion(t *testing.T) {
	million := 1_000_000
	if testkit.Race(t) { // the detector makes it take ten times as long
		million /= 10
	}
	w := newWorld(t, tableOf(t), 100)
	w.callers.set("admin", principal(t, "boss", "admin"))
	var ended sync.WaitGroup
	before := memory()
	var readers []*reader
	for range 20 {
		r := newReader()
		r.keeps = false
		readers = append(readers, r)
		ended.Go(func() { w.mux.ServeHTTP(r, request("admin")) })
	}
	for _, r := range readers {
		await(t, r.begun, 1)
	}
	long := strings.Repeat("x", 4000)
	for n := range million {
		e := audit.Entry{Action: "tokens.add"}
		if n%10 == 0 {
			e.After = []byte(`"` + long + `"`)
		}
		w.log.AddAudit(audit.Record{Entry: e})
	}
	for _, r := range readers {
		await(t, r.events, 1)
	}
	w.mux.EndStreams()
	ended.Wait()
	if took := int64(memory()) - int64(before); took > 32<<20 {
		t.Errorf("a million events take %d bytes", took)
	}
	page := w.log.After("", 100_000, func(*events.Event) bool { return true })
	if len(page.Events) < 1000 || len(page.Events) > 10_000 || page.Missed {
		t.Errorf("%d events are kept", len(page.Events))
	}
}

// TestPages lets an administrator read the events in pages: forwards from an id, and backwards from now.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tableOf(t), 10)
	for n := range 6 {
		w.log.AddAudit(audit.Record{Entry: audit.Entry{Action: "reload", Target: strconv.Itoa(n)}})
	}
	all := w.log.After("", 100, func(*events.Event) bool { return true }).Events
	if len(all) != 6 {
		t.Fatalf("got %d events", len(all))
	}
	odd := func(e *events.Event) bool { return (e.Audit.Target[0]-'0')%2 == 1 }
	every := func(*events.Event) bool { return true }
	for name, c := range map[string]struct {
		after  string
		limit  int
		match  func(*events.Event) bool
		want   string
		next   string // the id to continue from
		missed bool
	}{
		"the last ones":              {"", 2, every, "45", "", false},
		"the last events that match": {"", 2, odd, "35", "", false},
		"after the first":            {all[0].ID, 2, every, "12", "345", false},
		"after the first, matching":  {all[0].ID, 2, odd, "13", "45", false},
		"all events after the first": {all[0].ID, 100, every, "12345", "", false},
		"nothing that matches":       {all[0].ID, 100, func(*events.Event) bool { return false }, "", "", false},
		"after the last":             {all[5].ID, 2, every, "", "", false},
		"an id of another run":       {"AAAAAAAAAAAAAAAAAAAAAA", 2, every, "45", "", true},
		"not an id":                  {"99999999999999999999", 2, every, "45", "", true},
		"a long one":                 {strings.Repeat("A", 1<<20), 2, every, "45", "", true},
	} {
		targets := func(all []events.Event) (s string) {
			for _, e := range all {
				s += e.Audit.Target
			}
			return s
		}
		page := w.log.After(c.after, c.limit, c.match)
		next := w.log.After(page.Last, 100, every)
		if got := targets(page.Events); got != c.want || page.Missed != c.missed || targets(next.Events) != c.next || next.Missed {
			t.Errorf("%s: got %q and then %q, missed %t; want %q and %q, %t", name, got, targets(next.Events), page.Missed, c.want, c.next, c.missed)
		}
	}
}

// TestAlive has a listener that stays for hours: it gets positions to continue from, and no events that it must not see. Its stream changes with its
// permissions, and ends when the listener is no longer let in, or events are switched off.
// Proves: A caller reaches its own tools only
func TestAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tableOf(t, tool("math/add", "a"), tool("web/get", "a")), 10)
		listen := func(p *wasmtools.Principal) (r *reader, ended chan struct{}) {
			w.callers.set("x", p)
			r, ended = newReader(), make(chan struct{})
			go func() { w.mux.ServeHTTP(r, request("x")); close(ended) }()
			synctest.Wait()
			if got := r.take(); !strings.HasPrefix(got, "retry: ") || !strings.Contains(got, "\nid: ") || !strings.HasSuffix(got, "\n\n") {
				t.Fatalf("got %q", got)
			}
			return r, ended
		}
		switchAll := func() {
			t.Helper()
			if err := errors.Join(w.table.Disable("/math/add", ""), w.table.Enable("/math/add")); err != nil {
				t.Fatal(err)
			}
		}
		r, ended := listen(principal(t, "x", "web/*"))
		switchAll()
		time.Sleep(time.Hour + time.Second)
		got := r.take()
		if n := strings.Count(got, ":\nid: "); n != 144 || strings.Contains(got, "event: ") {
			t.Errorf("in an hour, got %d signs of life: %.200s", n, got)
		}
		ids := strings.Fields(strings.ReplaceAll(got, ":\nid: ", ""))
		slices.Sort(ids)
		if len(slices.Compact(ids)) != 144 {
			t.Error("two positions have the same id")
		}
		w.callers.set("x", principal(t, "x", "web/*", "math/*"))
		time.Sleep(time.Minute)
		if got := r.take(); strings.Count(got, "event: reset\n") != 1 {
			t.Errorf("with other scopes, got %q", got)
		}
		w.callers.set("x", principal(t, "x", "math/*", "web/*"))
		switchAll() // the listener gets no events from before it was told to read the lists
		time.Sleep(time.Minute)
		if got := r.take(); strings.Count(got, "event: ") != 1 || !strings.Contains(got, "event: reset\n") {
			t.Errorf("with other scopes, and after a change, got %q", got)
		}
		switchAll()
		time.Sleep(time.Minute)
		if got := r.take(); strings.Count(got, "event: tool.switched\n") != 2 {
			t.Errorf("after a change, got %q", got)
		}
		w.callers.set("x", nil)
		switchAll()
		<-ended
		if got := r.take(); got != "" {
			t.Errorf("a caller that is no longer let in gets %q", got)
		}
		r, ended = listen(principal(t, "x", "*"))
		w.off.Store(true)
		switchAll()
		<-ended
		if got := r.take(); got != "" {
			t.Errorf("after events were switched off, got %q", got)
		}
		w.off.Store(false)
		_, ended = listen(principal(t, "x", "*"))
		w.mux.EndStreams()
		<-ended
	})
}

// TestPauses checks that a listener gets many quick changes in only a few writes.
func TestPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tableOf(t, tool("a", "0")), 10)
		w.callers.set("x", principal(t, "x", "*"))
		r := newReader()
		go w.mux.ServeHTTP(r, request("x"))
		synctest.Wait()
		for n := range 100 {
			w.replace(tool("a", fmt.Sprint(n+1)))
			synctest.Wait()
		}
		time.Sleep(time.Second)
		if r.events.Load() != 100 || len(r.came) != 2 {
			t.Errorf("got %d events in %d parts", r.events.Load(), len(r.came))
		}
		w.mux.EndStreams()
		synctest.Wait()
	})
}

// TestSlow has listeners that read nothing: they are cut off, and keep nobody waiting.
// Proves: Clients keep nobody out
func TestSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tableOf(t), 100).serve()
	w.callers.set("admin", principal(t, "boss", "admin"))
	for range 10 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(1); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nX-Who: admin\r\n\r\n", events.Path); err != nil {
			t.Fatal(err)
		}
	}
	fast := w.listen("admin").begun()
	long := strings.Repeat("x", 4000)
	stop := make(chan struct{})
	var adding sync.WaitGroup
	adding.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				w.log.AddAudit(audit.Record{Entry: audit.Entry{Action: "tokens.add", After: []byte(`"` + long + `"`)}})
			}
		}
	})
	for range 1000 {
		if e := fast.next(); e.Kind != "audit" {
			t.Fatalf("the listener that reads got %s", said(e))
		}
	}
	close(stop)
	adding.Wait()
	for end := time.Now().Add(30 * time.Second); w.door.State() > 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d listeners that read nothing are left", w.door.State()-1)
		}
	}
}
