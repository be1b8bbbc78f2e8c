// Package collector_test sends a server's traces and metrics to the receiver of OpenTelemetry's own collector.
package collector_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/wasmtools"
	public "github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// receive starts a receiver, which ends with the test, and returns its address.
func receive(t *testing.T, spans *consumertest.TracesSink, figures *consumertest.MetricsSink) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	factory := otlpreceiver.NewFactory()
	of := factory.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": address}}}).Unmarshal(of); err != nil {
		t.Fatal(err)
	}
	settings := receivertest.NewNopSettings(factory.Type())
	traces, err := factory.CreateTraces(t.Context(), settings, of, spans)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := factory.CreateMetrics(t.Context(), settings, of, figures)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []interface {
		Shutdown(ctx context.Context) error
	}{traces, metrics} {
		t.Cleanup(func() {
			if err := r.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	host := componenttest.NewNopHost()
	if err := traces.Start(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	if err := metrics.Start(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	return "http://" + address
}

// TestCollector calls a tool over REST and MCP. The collector's receiver gets each span once, in one tree for each request, and the metrics.
func TestCollector(t *testing.T) {
	t.Parallel()
	spans, figures := new(consumertest.TracesSink), new(consumertest.MetricsSink)
	c := config.Default()
	c.Server.Addresses = []string{"127.0.0.1:0"}
	c.Tools.Directory, c.Tools.CacheDir = t.TempDir(), t.TempDir()
	c.OTLP.Endpoint, c.OTLP.Metrics, c.OTLP.Service = receive(t, spans, figures), true, "tools for the test"
	add := gotool.New("math/add", "Adds.", func(_ context.Context, args struct{ A, B int }) (int, error) { return args.A + args.B, nil })
	of, err := service.Open(t.Context(), (*public.Config)(c.Handle()), service.Options{Tools: []*wasmtools.Tool{add}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), of, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	ask := func(path, body string, headers ...string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr().String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			q.Header.Set(headers[i], headers[i+1])
		}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		if text, err := io.ReadAll(a.Body); err != nil || a.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("42")) {
			t.Fatalf("%s: got %d %s %v", path, a.StatusCode, text, err)
		}
	}
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ask("/math/add", `{"A":40,"B":2}`, "Traceparent", parent)
	ask("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"math-add","arguments":{"A":40,"B":2},"_meta":{"traceparent":"`+parent+`",`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "math-add")
	stop()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	if err := of.Close(); err != nil {
		t.Fatal(err)
	}

	names, ids := map[string]int{}, map[string]bool{}
	var parents []string
	for _, all := range spans.AllTraces() {
		for _, of := range all.ResourceSpans().All() {
			if service, _ := of.Resource().Attributes().Get("service.name"); service.Str() != "tools for the test" {
				t.Errorf("the service is %q", service.Str())
			}
			for _, scope := range of.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					names[s.Name()]++
					ids[s.SpanID().String()] = true
					parents = append(parents, s.ParentSpanID().String())
					if s.TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" {
						t.Errorf("%s is part of %s", s.Name(), s.TraceID())
					}
					if isServer := s.Name() == "POST /math/add" || s.Name() == "POST /mcp" || s.Name() == "tools/call math-add"; isServer != (s.Kind() == ptrace.SpanKindServer) {
						t.Errorf("%s is of the kind %s", s.Name(), s.Kind())
					}
				}
			}
		}
	}
	for name, want := range map[string]int{"POST /math/add": 1, "execute_tool math-add": 1, "POST /mcp": 1, "tools/call math-add": 1, "run": 2} {
		if names[name] != want {
			t.Errorf("%s arrived %d times, want %d: %v", name, names[name], want, names)
		}
	}
	if len(ids) != len(parents) {
		t.Errorf("%d spans have %d ids", len(parents), len(ids))
	}
	for _, p := range parents {
		if !ids[p] && p != "00f067aa0ba902b7" {
			t.Errorf("a span is inside %s, which did not arrive", p)
		}
	}
	units := map[string]string{}
	for _, all := range figures.AllMetrics() {
		for _, of := range all.ResourceMetrics().All() {
			for _, scope := range of.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					units[m.Name()] = m.Unit()
				}
			}
		}
	}
	if units["mcp.server.operation.duration"] != "s" || units["gen_ai.execute_tool.duration"] != "s" {
		t.Errorf("got %v", units)
	}
	if _, ok := units["toolsrv_calls_total"]; !ok {
		t.Errorf("got %v", units)
	}
}
