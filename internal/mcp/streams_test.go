package mcp_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A counter is a client that counts the events that it gets.
type counter struct {
	header http.Header
	events *atomic.Int64
}

func (c *counter) Header() http.Header { return c.header }
func (c *counter) WriteHeader(int)     {}
func (c *counter) Flush()              {}
func (c *counter) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), "event: ") {
		c.events.Add(1)
	}
	return len(p), nil
}

// TestTenThousandStreams opens as many streams as are allowed: each takes little memory, reports a change, and ends with the service. The test is not
// parallel, because it measures the memory of the process.
// Proves: A caller reaches its own tools only
func TestTenThousandStreams(t *testing.T) {
	const streams = 10_000
	table := tableOf(t, tool("add", echo))
	h := appOf(t, table, options{Options: withStreams(streams + 100)})
	await := func(n *atomic.Int64, want int64) {
		t.Helper()
		for end := time.Now().Add(time.Minute); n.Load() < want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("got %d events, want %d", n.Load(), want)
			}
		}
	}
	taken := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	requests := make([]*http.Request, streams)
	for i := range requests {
		requests[i] = listening(`{"toolsListChanged":true}`)
		requests[i].RemoteAddr = fmt.Sprintf("192.0.2.%d:1", i%20)
	}
	before := taken()
	var events atomic.Int64
	var ended sync.WaitGroup
	for _, r := range requests {
		ended.Go(func() { h.ServeHTTP(&counter{http.Header{}, &events}, r) })
	}
	await(&events, streams)
	each := (taken() - before) / streams
	t.Logf("%d bytes for each stream", each)
	if !testkit.Race(t) && each > 12<<10 {
		t.Errorf("a stream takes %d bytes", each)
	}
	if err := table.Disable("/add", ""); err != nil {
		t.Fatal(err)
	}
	await(&events, 2*streams)
	h.EndStreams()
	ended.Wait()
	if got := events.Load(); got != 3*streams {
		t.Errorf("got %d events, want %d", got, 3*streams)
	}
}

// A turnstile is a dependency that admits nobody once it is shut. Until then it admits its principal.
type turnstile struct {
	principal atomic.Pointer[wasmtools.Principal] // nil: shut
}

func (s *turnstile) Check(*http.Request) error { return nil }

func (s *turnstile) Principal(*http.Request, *wasmtools.Principal) (*wasmtools.Principal, error) {
	if p := s.principal.Load(); p != nil {
		return p, nil
	}
	return nil, &wasmtools.Error{Code: wasmtools.CodeUnauthorized}
}

// A transcript is a client that keeps what it receives.
type transcript struct {
	header http.Header
	mu     sync.Mutex
	text   strings.Builder
}

func (s *transcript) Header() http.Header { return s.header }
func (s *transcript) WriteHeader(int)     {}
func (s *transcript) Flush()              {}
func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *transcript) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.text.Reset()
	return s.text.String()
}

// TestLongStream keeps a stream open for hours: it sends signs of life, follows what its caller may see, and ends when the caller is no longer
// admitted.
// Proves: A caller reaches its own tools only
func TestLongStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := tableOf(t, tool("math/add", echo), tool("text/upper", echo))
		gate := &turnstile{}
		gate.principal.Store(principal(t, "math"))
		h := appOf(t, table, options{dependencies: []web.Dependency{gate}})
		client := &transcript{header: http.Header{}}
		ended := false
		go func() {
			h.ServeHTTP(client, listening(`{"toolsListChanged":true}`))
			ended = true
		}()
		event := func(message string) string { return "event: message\ndata: " + message + "\n\n" }
		expect := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := client.take(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		expect(event(acknowledged))
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := client.take(); got != strings.Repeat(":\n\n", 144) {
			t.Errorf("in an hour: got %d bytes", len(got))
		}
		for range 100 { // the client is notified once immediately, and once more later
			if err := table.Disable("/math/add", ""); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := table.Enable("/math/add"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		expect(event(listChanged))
		time.Sleep(time.Second)
		expect(event(listChanged))
		if err := table.Disable("/text/upper", ""); err != nil { // this caller may not see it
			t.Fatal(err)
		}
		expect("")
		if err := table.Enable("/text/upper"); err != nil {
			t.Fatal(err)
		}
		expect("")
		gate.principal.Store(principal(t, "*")) // a reload gave its token more
		time.Sleep(25 * time.Second)
		expect(event(listChanged))
		if err := table.Disable("/text/upper", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		expect(event(listChanged))
		gate.principal.Store(nil)
		time.Sleep(25 * time.Second)
		expect(event(finished))
		if !ended {
			t.Error("the stream goes on")
		}
	})
}
