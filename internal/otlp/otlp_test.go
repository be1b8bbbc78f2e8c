package otlp_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/otlp"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/otlptest"
	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

func TestMain(m *testing.M) { testkit.Main(m, "internal/otlp") }

// tracer returns a Tracer that is closed when the test ends.
func tracer(t testing.TB, o otlp.Options) *otlp.Tracer {
	t.Helper()
	made, err := otlp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

// call makes a call of a tool that takes no time.
func call(ctx context.Context, t *otlp.Tracer, within func(ctx context.Context)) {
	r := &invoke.Record{Path: "/math/add", Principal: wasmtools.Everybody()}
	ctx = t.Began(ctx, r)
	if within != nil {
		within(ctx)
	}
	r.Times = wasmtools.Times{Validate: 1, Ready: 3, Turn: 1, Compile: 1, Run: 1}
	t.Ended(ctx, r)
}

// TestBadCollectors makes many calls while the collector hangs, refuses, floods, redirects or goes away: no call waits, memory is bounded, and the
// shutdown is quick.
func TestBadCollectors(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, test := range []struct {
		name    string
		timeout time.Duration
		serve   http.HandlerFunc
		want    string // a part of the log
	}{
		{"hangs", 300 * time.Millisecond, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }, "timeout"},
		{"fails", time.Minute, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) }, "500 Internal Server Error"},
		{"is overloaded for a year", 300 * time.Millisecond, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "31536000")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, "traces export"},
		{"floods", time.Minute, func(w http.ResponseWriter, _ *http.Request) {
			for part := []byte(strings.Repeat("x", 1<<16)); ; {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}, "too large"},
		{"floods in the header", time.Minute, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, "header"},
		{"leads elsewhere", time.Minute, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "set otlp.endpoint"},
		{"closes", time.Minute, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		{"does not speak HTTP", time.Minute, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "220 mail.example ready\r\n")
			conn.Close()
		}, "what answers does not speak HTTP"},
		{"answers nonsense", time.Minute, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = io.WriteString(w, "nonsense")
		}, "proto"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(test.serve)
			defer s.Close()
			log := &testkit.Log{}
			o, err := otlp.New(otlp.Options{Endpoint: s.URL, Sample: 1, Timeout: test.timeout, Headers: func() (map[string]string, error) { return map[string]string{"Key": "key"}, nil }, Logger: log.Logger(slog.LevelInfo)})
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			for range 3000 {
				call(t.Context(), o, nil)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("3,000 calls took %s", took)
			}
			log.Wait(t, test.want)
			begun = time.Now()
			o.Close()
			if took := time.Since(begun); took > 6*time.Second {
				t.Errorf("the shutdown took %s", took)
			}
			if n := log.Count("doesn't accept spans"); n != 1 {
				t.Errorf("%d lines: %s", n, log)
			}
			if len(log.String()) > 4<<10 {
				t.Errorf("the log has %d bytes", len(log.String()))
			}
		})
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}

// TestCollectorComesBack has a collector that fails at first. The log says that it fails, and later that it accepts spans again.
func TestCollectorComesBack(t *testing.T) {
	t.Parallel()
	good := otlptest.Serve(t)
	var fails atomic.Bool
	fails.Store(true)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		good.ServeHTTP(w, r)
	}))
	defer s.Close()
	log := &testkit.Log{}
	o := tracer(t, otlp.Options{Endpoint: s.URL, Sample: 1, Logger: log.Logger(slog.LevelInfo)})
	for range 200 { // more than a batch
		call(t.Context(), o, nil)
	}
	log.Wait(t, "doesn't accept spans")
	fails.Store(false)
	for range 200 {
		call(t.Context(), o, nil)
	}
	log.Wait(t, "accepts spans again")
	log.Wait(t, "spans were lost while the collector didn't accept them")
	if crowded, unsent := o.Lost(); crowded != 0 || unsent == 0 {
		t.Errorf("%d spans were too many, and %d not sent", crowded, unsent)
	}
}

// TestTooManySpans makes more spans than may wait for a collector that never answers. All further spans are counted and logged as lost.
func TestTooManySpans(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	log := &testkit.Log{}
	o := tracer(t, otlp.Options{Endpoint: "http://" + silent.Addr().String(), Sample: 1, Timeout: time.Minute, Logger: log.Logger(slog.LevelInfo)})
	const calls, each = 1000, 6
	for range calls {
		call(t.Context(), o, nil)
	}
	if crowded, unsent := o.Lost(); crowded != calls*each-2048 || unsent != 0 {
		t.Errorf("%d spans were too many, and %d not sent", crowded, unsent)
	}
	o.Hurry()
	o.Close()
	o.Close()
	if n := log.Count("spans were lost, because the server stopped"); n != 1 {
		t.Errorf("%d lines: %s", n, log)
	}
}

// TestEnd shuts down while the collector does not answer. All parts of the shutdown together take three seconds at most, or a fraction of a second if
// the next process waits, or the collector was not answering before.
func TestEnd(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		timeout time.Duration
		before  func(*testing.T, *otlp.Tracer, *testkit.Log)
		most    time.Duration
	}{
		{"nothing is known", time.Minute, func(*testing.T, *otlp.Tracer, *testkit.Log) {}, 5 * time.Second},
		{"somebody waits", time.Minute, func(_ *testing.T, o *otlp.Tracer, _ *testkit.Log) { o.Hurry() }, 2 * time.Second},
		{"the collector is away", time.Second, func(t *testing.T, o *otlp.Tracer, log *testkit.Log) {
			for range 200 { // more than a batch
				call(t.Context(), o, nil)
			}
			log.Wait(t, "doesn't accept spans")
		}, 2 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			silent, err := net.Listen("tcp", "127.0.0.1:0") // which accepts nobody
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			log := &testkit.Log{}
			o, err := otlp.New(otlp.Options{Endpoint: "http://" + silent.Addr().String(), Sample: 1, Metrics: true, Timeout: test.timeout, Logger: log.Logger(slog.LevelInfo)})
			if err != nil {
				t.Fatal(err)
			}
			call(t.Context(), o, nil)
			test.before(t, o, log)
			begun := time.Now()
			o.Gather(nil)
			o.Close()
			o.Close()
			if took := time.Since(begun); took > test.most {
				t.Errorf("the shutdown took %s, want %s at most", took, test.most)
			}
		})
	}
}

// TestNothingRecordedCostsNothing checks that calls that are not recorded allocate nothing. It is not parallel, since AllocsPerRun counts the
// allocations of the whole process.
func TestNothingRecordedCostsNothing(t *testing.T) {
	o := tracer(t, otlp.Options{Endpoint: "http://127.0.0.1:1"})
	r := &invoke.Record{Path: "/math/add", Principal: wasmtools.Everybody()}
	q := &trace.Request{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	ctx := context.WithValue(t.Context(), trace.RequestKey{}, q)
	if n := testing.AllocsPerRun(1000, func() {
		q.Kept = nil
		next := o.Began(ctx, r)
		if trace.SpanOf(next) != nil || next != ctx {
			t.Fatal("the call is recorded")
		}
		o.Ended(next, r)
	}); n != 0 {
		t.Errorf("%v allocations for a call", n)
	}
}

// TestSample makes enough calls to show that a hundredth of them is recorded, rather than another fraction.
func TestSample(t *testing.T) {
	t.Parallel()
	o := tracer(t, otlp.Options{Endpoint: "http://127.0.0.1:1", Sample: 0.01})
	r := &invoke.Record{Path: "/math/add", Principal: wasmtools.Everybody()}
	recorded, all := 0, 200_000
	for range all {
		if o.Began(t.Context(), r) != t.Context() {
			recorded++
		}
	}
	if recorded < 1700 || recorded > 2300 {
		t.Errorf("%d of %d are recorded", recorded, all)
	}
}

// TestUses lets a call use capabilities more often than it can have spans, with texts of any length.
func TestUses(t *testing.T) {
	t.Parallel()
	c := otlptest.Serve(t)
	o, err := otlp.New(otlp.Options{Endpoint: c.URL, Sample: 1, Service: "tools", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	call(t.Context(), o, func(ctx context.Context) {
		w := ctx.(hostcall.Watcher)
		for i := range 150 {
			w.Watched(hostcall.Use{Capability: "kv", Target: "get secret-key", Sent: int64(i)})
		}
	})
	call(t.Context(), o, func(ctx context.Context) {
		w := ctx.(hostcall.Watcher)
		w.Watched(hostcall.Use{Capability: "http", Target: "GET https://" + strings.Repeat("a", 300) + ".example/secret-path?secret-query", Outcome: "timeout", Took: time.Second})
		w.Watched(hostcall.Use{Capability: "http", Target: "POST http://[::1]:8000/secret-path"})
		w.Watched(hostcall.Use{Capability: "http", Target: "%zz"})
		w.Watched(hostcall.Use{Capability: "http", Outcome: "invalid"})
		for method, status := range map[string]int{"PUT": 204, "HEAD": 404, "DELETE": 599, "PATCH": 600, "OPTIONS": -1, "TRACE": 99} {
			w.Watched(hostcall.Use{Capability: "http", Target: method + " https://a.example/", Status: status})
		}
		w.Watched(hostcall.Use{Capability: "tools", Target: "secret-tool", Outcome: "not_granted"})
		call(ctx, o, nil)
		w.Watched(hostcall.Use{Capability: "tools", Target: "math/add"})
	})
	o.Close()
	count := map[string]int{}
	for _, s := range c.Spans() {
		count[s.Name]++
		if strings.Contains(s.Raw, "secret") {
			t.Errorf("a span shows what the server was asked for: %s", s.Raw)
		}
		answer, isAnswer := map[string][2]string{"PUT": {"204"}, "HEAD": {"404", "404"}, "DELETE": {"599", "599"}, "PATCH": {}, "OPTIONS": {}, "TRACE": {}}[s.Name]
		switch {
		case isAnswer && answer != [2]string{s.Of["http.response.status_code"], s.Of["error.type"]}:
			t.Errorf("got %+v, want the status and error.type %q", s, answer)
		case s.Name == "GET" && (s.Status != "error" || s.Of["error.type"] != "timeout" || len(s.Of["server.address"]) != 256 || s.Of["server.port"] != "443" || s.Ended.Sub(s.Began) != time.Second):
			t.Errorf("got %+v", s)
		case s.Name == "POST" && (s.Of["server.address"] != "::1" || s.Of["server.port"] != "8000"):
			t.Errorf("got %+v", s)
		case s.Of["resource.service.name"] != "tools" || s.Of["resource.service.version"] != "v1" || s.Of["resource.service.instance.id"] == "" || s.Of["resource.telemetry.sdk.name"] != "opentelemetry" ||
			s.Of["resource.telemetry.sdk.language"] != "go" || s.Of["resource.telemetry.sdk.version"] == "":
			t.Errorf("got %+v", s)
		}
	}
	if count["kv"] != 100 || count["tools"] != 1 || count["http"] != 1 || count["execute_tool math-add"] != 3 {
		t.Errorf("got %v", count)
	}
	untold := 0
	for _, s := range c.Spans() {
		if s.Of["toolsrv.uses.untold"] == "50" {
			untold++
		}
	}
	if untold != 1 {
		t.Errorf("%d calls say how many uses have no span", untold)
	}
}

// TestManyCalls calls from several goroutines at the same time. Each trace is complete.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	c := otlptest.Serve(t)
	o, err := otlp.New(otlp.Options{Endpoint: c.URL, Sample: 1})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 25 {
				call(t.Context(), o, func(ctx context.Context) { call(ctx, o, nil) })
			}
		}()
	}
	for range 4 {
		<-done
	}
	o.Close()
	traces := map[string]string{}
	for _, s := range c.Spans() {
		traces[s.Trace] = c.Tree(s.Trace)
	}
	if len(traces) != 100 {
		t.Errorf("%d traces", len(traces))
	}
	for id, tree := range traces {
		if strings.Count(tree, "\n") != 12 || strings.Count(tree, "execute_tool math-add (internal)") != 2 {
			t.Fatalf("%s: got\n%s", id, tree)
		}
	}
}

// BenchmarkCall measures a call if all, none or a hundredth of the calls are recorded.
func BenchmarkCall(b *testing.B) {
	for _, sample := range []float64{0, 0.01, 1} {
		b.Run(fmt.Sprint(sample), func(b *testing.B) {
			o := tracer(b, otlp.Options{Endpoint: "http://127.0.0.1:1", Sample: sample})
			r := &invoke.Record{Path: "/math/add", Principal: wasmtools.Everybody(), Times: wasmtools.Times{Validate: 1, Ready: 3, Turn: 1, Run: 1}}
			q := &trace.Request{}
			ctx := context.WithValue(b.Context(), trace.RequestKey{}, q)
			b.ReportAllocs()
			for b.Loop() {
				q.Kept = nil
				o.Ended(o.Began(ctx, r), r)
			}
		})
	}
}
