package otlp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/toolsrv/toolsrv/internal/trace"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

const (
	// defaultInterval is Options.Interval if that is zero.
	defaultInterval = 15 * time.Second
	// mostSeries is how many combinations of attributes a metric has. The others count together.
	mostSeries = 2000
	// maxFigures is how many bytes all metrics may have when they are sent. A thousand tools have some megabytes.
	maxFigures = 64 << 20
)

// durations are the upper bounds of histograms that OpenTelemetry's conventions have for what agents do, in seconds.
var durations = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}

// A provider is one of the SDK's. Each package that has a Tracer somewhere in its types, as most doors have, would otherwise compile all generic
// functions of that SDK again: 300 KB each, two seconds of a processor.
type provider interface {
	ForceFlush(ctx context.Context) error
	Shutdown(ctx context.Context) error
}

// A meter tells the collector how long MCP messages and calls took, and what else the server counts.
type meter struct {
	*notice
	provider        provider
	messages, calls metric.Float64Histogram

	mu       sync.Mutex    // guards what follows, also while from is asked
	from     sdk.Producer  // nil: nothing else is told
	gathered chan struct{} // closed when from has been asked the next time; if nil, nobody waits for that

	flushing sync.WaitGroup  // what sends what was gathered last
	ending   context.Context // until which that may go on
	end      context.CancelFunc
}

func newMeter(o *Options, r *resource.Resource) (*meter, error) {
	timeout := o.timeout()
	made, err := otlpmetrichttp.New(context.Background(),
		otlpmetrichttp.WithEndpointURL(strings.TrimSuffix(o.Endpoint, "/")+"/v1/metrics"),
		otlpmetrichttp.WithHTTPClient(newClient(o, timeout)),
		otlpmetrichttp.WithHeaders(map[string]string{}),
		otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression),
		otlpmetrichttp.WithMaxRequestSize(maxFigures),
		otlpmetrichttp.WithMaxResponseSize(maxAnswer),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}), // the next figures have all that these had
	)
	if err != nil {
		return nil, fmt.Errorf("make the exporter of metrics: %w", err)
	}
	interval := defaultInterval
	if o.Interval > 0 {
		interval = o.Interval
	}
	m := &meter{notice: &notice{logger: o.Logger, what: "metrics"}}
	m.ending, m.end = context.WithCancel(context.Background())
	meters := sdk.NewMeterProvider(
		sdk.WithResource(r),
		sdk.WithCardinalityLimit(mostSeries),
		sdk.WithReader(sdk.NewPeriodicReader(figures{made, m.notice}, sdk.WithInterval(interval), sdk.WithTimeout(timeout), sdk.WithProducer(m))),
	)
	m.provider = meters
	of := meters.Meter(scope)
	bounds := metric.WithExplicitBucketBoundaries(durations...)
	if m.messages, err = of.Float64Histogram("mcp.server.operation.duration", metric.WithUnit("s"), metric.WithDescription("How long MCP messages took."), bounds); err != nil {
		return nil, err
	}
	m.calls, err = of.Float64Histogram("gen_ai.execute_tool.duration", metric.WithUnit("s"), metric.WithDescription("How long calls of tools took."), bounds)
	return m, err
}

// Produce returns what else the server counts.
func (m *meter) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gathered != nil {
		defer close(m.gathered)
		m.gathered = nil
	}
	if m.from == nil {
		return nil, nil
	}
	return m.from.Produce(ctx)
}

// Gather has the collector be told what is gathered from now on, beside what the Tracer measures itself. If nil, that is gathered once more, and
// nothing after Gather has returned. [Tracer.Close] waits until the collector has been told. Where Options.Metrics is not set, Gather does nothing.
func (t *Tracer) Gather(from prometheus.Gatherer) {
	m := t.meter
	if m == nil {
		return
	}
	var next sdk.Producer
	if from != nil {
		next = bridge.NewMetricProducer(bridge.WithGatherer(from))
	} else {
		t.wait(m.flush)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.from = next
}

// flush begins to send what is gathered now, and waits until it is gathered: not for long, as the figures before may hang.
func (m *meter) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hurried)
	defer cancel()
	gathered := make(chan struct{})
	m.mu.Lock()
	m.gathered = gathered
	m.mu.Unlock()
	m.flushing.Go(func() { _ = m.provider.ForceFlush(m.ending) }) // the exporter logs what goes wrong
	select {
	case <-gathered:
	case <-ctx.Done():
	}
}

// close waits until all is sent, or ctx ends.
func (m *meter) close(ctx context.Context) {
	stop := context.AfterFunc(ctx, m.end)
	m.flushing.Wait()
	stop()
	m.end()
	_ = m.provider.Shutdown(ctx)
}

// message measures a message of MCP.
func (m *meter) message(a *web.Answer, q *trace.Request) {
	of, failed := ofMessage(a, q)
	if failed != "" {
		of = append(of, attribute.String("error.type", failed))
	}
	m.messages.Record(context.Background(), a.Took().Seconds(), metric.WithAttributeSet(attribute.NewSet(of...)))
}

// call measures a call of a tool.
func (m *meter) call(r *invoke.Record) {
	of := ofTool(r.Path)
	if code := r.Code(); code != "" {
		of = append(of, attribute.String("error.type", string(code)))
	}
	m.calls.Record(context.Background(), r.Took.Seconds(), metric.WithAttributeSet(attribute.NewSet(of...)))
}

// figures is an exporter of metrics that logs if it can't send them.
type figures struct {
	*otlpmetrichttp.Exporter
	*notice
}

// Export sends them. What can't be sent is not an error, as for spans.
func (f figures) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	f.sent(func() error { return f.Exporter.Export(ctx, all) })
	return nil
}
