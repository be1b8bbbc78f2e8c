package openapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/toolsrv/toolsrv/internal/journal"
	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// many returns a table of n tools with schemas of some size.
func many(tb testing.TB, n int) *wasmtools.RouteTable {
	tb.Helper()
	parameters := schema.MustCompile(`{"type":"object","properties":{"query":{"type":"string","description":"What to look for, in plain words."},
		"limit":{"type":"integer","minimum":1,"maximum":100,"default":10},"filter":{"$ref":"#/$defs/Filter"}},"required":["query"],
		"$defs":{"Filter":{"type":"object","properties":{"any":{"type":"array","items":{"$ref":"#/$defs/Filter"}},"name":{"type":"string"}}}}}`)
	nothing := wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte("{}"), nil })
	tools := make([]*wasmtools.Tool, n)
	for i := range tools {
		tools[i] = &wasmtools.Tool{
			Namespace: fmt.Sprintf("space-%d", i%50), Name: fmt.Sprintf("tool-%d", i), Version: "1.0.0",
			Description: "Looks something up and says where it is.", Parameters: parameters, Caller: nothing,
		}
	}
	return tableOf(tb, tools...)
}

func quick() *wasmtools.Tool {
	result := []byte("3")
	t := add()
	t.Caller = wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return result, nil })
	return t
}

// This test is not parallel, because AllocsPerRun counts what the whole process allocates.
func TestAllocations(t *testing.T) {
	any := quick()
	any.Name, any.Parameters = "any", schema.MustCompile(anyObject)
	app := appOf(t, tableOf(t, any), openapi.Options{})
	big := appOf(t, many(t, 1000), openapi.Options{})
	tag := func(path string) string { return serve(big, get(path)).Header.Get("ETag") }
	j, h := journal.New(io.Discard, func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) })
	defer j.Close()
	logged := appOf(t, tableOf(t, any), openapi.Options{Logger: slog.New(h)})
	tests := []struct {
		name    string
		app     *openapi.App
		request *http.Request
		status  int
		most    float64
	}{
		{"call, including three by the validation", app, post("/math/any", `{"a":1,"b":2}`), 200, 5},
		// A line has seven attributes, and a slog.Record room for five.
		{"call, including three by the validation, logged", logged, post("/math/any", `{"a":1,"b":2}`), 200, 6},
		{"/tools", big, get("/tools"), 200, 3},
		{"/tools not modified", big, get("/tools", "If-None-Match", tag("/tools")), 304, 3},
		{"/openapi.json", big, get("/openapi.json"), 200, 3},
		{"/openapi.json not modified", big, get("/openapi.json", "If-None-Match", tag("/openapi.json")), 304, 3},
	}
	for _, tt := range tests {
		r := testkit.Repeat(tt.request)
		got := testing.AllocsPerRun(100, func() {
			if status := r.Serve(tt.app); status != tt.status {
				t.Fatalf("%s: got %d, want %d", tt.name, status, tt.status)
			}
		})
		t.Logf("%s: %v allocations", tt.name, got)
		if !testkit.Race(t) && got > tt.most {
			t.Errorf("%s: got %v allocations, want at most %v", tt.name, got, tt.most)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	bare := quick()
	bare.Name, bare.Parameters = "any", schema.MustCompile(anyObject)
	table := tableOf(b, quick(), bare)
	plain := appOf(b, table, openapi.Options{})
	logged := appOf(b, table, openapi.Options{Logger: slog.New(slog.NewJSONHandler(io.Discard, nil))})
	locked := appOf(b, table, openapi.Options{Dependencies: []openapi.Dependency{bearer(b, "secret-token-of-the-benchmark")}})
	const body = `{"a":1,"b":2}`
	for _, bb := range []struct {
		name    string
		app     *openapi.App
		request *http.Request
	}{
		{"without validation", plain, post("/math/any", body)},
		{"validated", plain, post("/math/add", body)},
		{"validated, logged", logged, post("/math/add", body)},
		{"validated, with a token", locked, post("/math/add", body, "Authorization", "Bearer secret-token-of-the-benchmark")},
		{"refused", plain, post("/math/add", `{"a":1}`)},
		{"refused, logged", logged, post("/math/add", `{"a":1}`)},
		{"not found", plain, post("/math/nothing", body)},
		{"not found, logged", logged, post("/math/nothing", body)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := testkit.Repeat(bb.request)
			b.ReportAllocs()
			for b.Loop() {
				r.Serve(bb.app)
			}
		})
	}
}

// BenchmarkServer measures whole requests over a connection of net/http: without a log, with a log that is written directly to a pipe, and with the
// service's own log.
func BenchmarkServer(b *testing.B) {
	encode := func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) }
	request := func(b *testing.B, log slog.Handler) {
		server := httptest.NewServer(appOf(b, tableOf(b, quick()), openapi.Options{Logger: slog.New(log)}))
		defer server.Close()
		client := server.Client()
		b.ReportAllocs()
		for b.Loop() {
			r, err := client.Post(server.URL+"/math/add", "application/json", bytes.NewReader([]byte(`{"a":1,"b":2}`)))
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
	}
	b.Run("no log", func(b *testing.B) { request(b, slog.DiscardHandler) })
	b.Run("written at once", func(b *testing.B) { request(b, encode(readPipe(b))) })
	b.Run("journal", func(b *testing.B) {
		j, h := journal.New(readPipe(b), encode)
		defer j.Close()
		request(b, h)
	})
}

// readPipe returns the end of a pipe that somebody reads.
func readPipe(b *testing.B) io.Writer {
	b.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	b.Cleanup(func() { w.Close(); r.Close() })
	return w
}

func BenchmarkLists(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		app := appOf(b, many(b, n), openapi.Options{})
		for _, path := range []string{"/tools", "/openapi.json"} {
			tag := serve(app, get(path)).Header.Get("ETag")
			for _, bb := range []struct {
				name    string
				request *http.Request
			}{{"200", get(path)}, {"304", get(path, "If-None-Match", tag)}} {
				b.Run(fmt.Sprintf("%s/%s/%d tools", path, bb.name, n), func(b *testing.B) {
					r := testkit.Repeat(bb.request)
					b.ReportAllocs()
					for b.Loop() {
						r.Serve(app)
					}
					b.ReportMetric(float64(r.Written)/float64(b.N), "bytes/answer")
				})
			}
		}
	}
}

func BenchmarkRebuild(b *testing.B) {
	table := many(b, 10000)
	tools := make([]*wasmtools.Tool, 0, 10000)
	for _, r := range table.Tools() {
		tools = append(tools, r.Tool)
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			_ = openapi.NewApp(table, openapi.Options{}).Close()
		}
	})
	// This is the table's own cost for a change, to be subtracted from the next two.
	b.Run("table alone", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			_ = table.Disable("/space-1/tool-1", fmt.Sprint(i))
		}
	})
	_ = appOf(b, table, openapi.Options{})
	b.Run("switch", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_ = table.Disable("/space-1/tool-1", fmt.Sprint(i))
		}
	})
	b.Run("one file replaced", func(b *testing.B) {
		for b.Loop() {
			changed := *tools[77]
			tools[77] = &changed
			if err := table.Replace(tools, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
