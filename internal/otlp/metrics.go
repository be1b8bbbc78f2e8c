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
	// defaultInterval is the default of Options.Interval.
	defaultInterval = 15 * time.Second
	// mostSeries is how many combinations of attributes a metric has at most. Further ones are counted together.
	mostSeries = 2000
	// maxFigures is the largest message with all metrics in bytes. For a thousand tools it has a few megabytes.
	maxFigures = 64 << 20
)

// durations are the upper bounds of histograms, in seconds. OpenTelemetry's conventions recommend them for operations of agents.
var durations = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}

// A provider is a meter provider of the SDK. It is hidden behind an interface because otherwise each package with a Tracer somewhere in its types,
// such as most doors, would compile all generic functions of the SDK again, which takes 300 KB and two seconds of processor time each.
type provider interface {
	ForceFlush(ctx context.Context) error
	Shutdown(ctx context.Context) error
}

// A meter sends the collector how long MCP messages and calls took, and what else the server counts.
type meter struct {
	*notice
	provider        provider
	messages, calls metric.Float64Histogram

	mu       sync.Mutex    // guards what follows, and is held while from is gathered
	from     sdk.Producer  // nil if nothing else is sent
	gathered chan struct{} // closed once from has been gathered again; nil if nobody waits for that

	flushing sync.WaitGroup  // sends what was gathered last
	ending   context.Context // bounds how long sending may take
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
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}), // no retry: the next figures include those that were not sent
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

// Produce returns the server's other metrics.
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

// Gather sets the source of the metrics that the collector gets from now on, in addition to those of the Tracer itself. If from is nil, the current
// source is gathered once more, and never after Gather has returned. [Tracer.Close] waits until the collector has those metrics. If Options.Metrics
// is not set, Gather does nothing.
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

// flush starts sending all metrics, and waits until they are gathered. It does not wait for long, since earlier metrics may still be being sent.
func (m *meter) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hurried)
	defer cancel()
	gathered := make(chan struct{})
	m.mu.Lock()
	m.gathered = gathered
	m.mu.Unlock()
	m.flushing.Go(func() { _ = m.provider.ForceFlush(m.ending) }) // the exporter logs its errors
	select {
	case <-gathered:
	case <-ctx.Done():
	}
}

// close waits until all metrics are sent, or ctx ends.
func (m *meter) close(ctx context.Context) {
	stop := context.AfterFunc(ctx, m.end)
	m.flushing.Wait()
	stop()
	m.end()
	_ = m.provider.Shutdown(ctx)
}

// message measures an MCP message.
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

// Export sends metrics. As with spans, it returns no error if they can't be sent.
func (f figures) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	f.sent(func() error { return f.Exporter.Export(ctx, all) })
	return nil
}
