// Package otlp sends traces of requests and calls, and metrics, to an OpenTelemetry collector. It is an observer of requests and of calls.
//
// Whether a request is recorded is decided once, for the request and all calls inside it. The id of a span is known from its beginning, but the span
// itself is made when it has ended. No spans are made for a request that is not recorded.
package otlp

import (
	"context"
	crypto "crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	// queued is how many spans may wait for the collector, including those being sent; more are dropped. A batch is sent after batchAfter, or as soon
	// as there are that many spans.
	queued     = 2048
	batch      = 512
	batchAfter = 5 * time.Second
	// flush is how long the shutdown waits for the collector in total.
	flush = 3 * time.Second
	// hurried is how long the shutdown waits for the collector if another process waits for the shutdown, or the collector was not answering
	// before.
	hurried = 250 * time.Millisecond
	// maxText is the longest text of a span in characters.
	maxText = 256
)

// scope is the instrumentation scope of spans and metrics.
const scope = "github.com/toolsrv/toolsrv"

// Options are the settings of a Tracer. Endpoint is required.
type Options struct {
	// Endpoint is the address of the collector, such as "https://collector.example:4318". Spans go to /v1/traces below it, and metrics to
	// /v1/metrics.
	Endpoint string
	// Headers returns the headers of the next request. It is called concurrently. If nil, there are none.
	Headers func() (map[string]string, error)
	// Sample is the fraction of requests to record, from 0 to 1.
	Sample float64
	// Metrics is whether metrics are sent, too, and Interval how often. Zero means every 15 seconds.
	Metrics  bool
	Interval time.Duration
	// Timeout is how long the collector may take for an answer. Zero means 10 seconds.
	Timeout time.Duration
	// Service and Version are the name and version of the server that the collector gets.
	Service, Version string
	// Logger gets a line when the collector can't be reached, and one when it can be reached again. It may be nil.
	Logger *slog.Logger
}

// A Tracer records requests and calls. It is safe for concurrent use.
type Tracer struct {
	provider provider
	spans    trace.Tracer
	exporter *exporter
	meter    *meter // nil: no metrics
	least    uint64 // a request is recorded if a random number is below this
	all      bool
	left     atomic.Int64 // how many nanoseconds the shutdown may still wait for the collector
}

// New returns a Tracer. The caller closes it.
func New(o Options) (*Tracer, error) {
	e, err := newExporter(&o)
	if err != nil {
		return nil, fmt.Errorf("make the exporter of spans: %w", err)
	}
	t := &Tracer{exporter: e, all: o.Sample >= 1, least: uint64(max(o.Sample, 0) * math.MaxUint64)}
	t.left.Store(int64(flush))
	if t.all {
		t.least = math.MaxUint64
	}
	instance := make([]byte, 16)
	_, _ = crypto.Read(instance) // it never fails
	from, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(attribute.String("service.name", o.Service),
		attribute.String("service.version", o.Version), attribute.String("service.instance.id", fmt.Sprintf("%x", instance))))
	if err != nil {
		return nil, fmt.Errorf("describe the sender of spans: %w", err)
	}
	if o.Metrics {
		if t.meter, err = newMeter(&o, from); err != nil {
			return nil, err
		}
	}
	tracers := sdk.NewTracerProvider(
		sdk.WithSampler(sdk.AlwaysSample()), // a request that is not recorded has no span
		sdk.WithIDGenerator(ids{}),
		sdk.WithResource(from),
		sdk.WithRawSpanLimits(sdk.SpanLimits{AttributeValueLengthLimit: maxText, AttributeCountLimit: 64, EventCountLimit: 0, LinkCountLimit: 1,
			AttributePerEventCountLimit: 0, AttributePerLinkCountLimit: 0}),
		sdk.WithBatcher(e, sdk.WithMaxQueueSize(queued), sdk.WithMaxExportBatchSize(batch), sdk.WithBatchTimeout(batchAfter),
			sdk.WithExportTimeout(e.patience)),
	)
	t.provider, t.spans = tracers, tracers.Tracer(scope)
	return t, nil
}

// Hurry makes the shutdown wait for the collector for a quarter of a second at most, because another process waits for it.
func (t *Tracer) Hurry() { t.left.Store(min(t.left.Load(), int64(hurried))) }

// Close sends all that has been recorded. Together with the last Gather it takes three seconds at most, or a quarter of a second if the collector was
// not answering before. A second Close does nothing.
func (t *Tracer) Close() {
	t.wait(func(ctx context.Context) {
		_ = t.provider.Shutdown(ctx) // the exporters have logged their errors
		t.exporter.close()
		if t.meter != nil {
			t.meter.close(ctx)
		}
	})
}

// Lost returns how many spans were lost since the start: crowded because too many were waiting, and unsent because the collector did not accept them.
func (t *Tracer) Lost() (crowded, unsent uint64) {
	return t.exporter.crowded.Load(), t.exporter.unsent.Load()
}

// wait runs one part of the shutdown with the time that is left for all of it. Parts run one after another.
func (t *Tracer) wait(part func(ctx context.Context)) {
	if t.exporter.isMissing() || t.meter != nil && t.meter.isMissing() {
		t.Hurry()
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(t.left.Load()))
	defer cancel()
	part(ctx)
	t.left.Add(-int64(time.Since(begun)))
}

// chance decides at random whether a request is recorded.
func (t *Tracer) chance() bool { return t.all || rand.Uint64() < t.least }

// A span is a span that has ended.
type span struct {
	in     trace.SpanContext // the span's trace, and its parent if that has an id
	id     trace.SpanID
	name   string
	kind   trace.SpanKind
	link   trace.SpanContext // the context of a span to link to; zero if there is none
	begun  time.Time
	ended  time.Time
	failed string // the span's error.type; empty if the span has not failed
	of     []attribute.KeyValue
}

// put queues a span for the collector.
func (t *Tracer) put(s *span) {
	if t.exporter.waiting.Add(1) > queued {
		t.exporter.waiting.Add(-1)
		t.exporter.crowded.Add(1)
		return
	}
	ctx := context.WithValue(context.Background(), spanKey{}, s)
	if s.in.SpanID().IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, s.in)
	}
	options := make([]trace.SpanStartOption, 0, 4)
	options = append(options, trace.WithTimestamp(s.begun), trace.WithSpanKind(s.kind))
	if s.failed != "" {
		s.of = append(s.of, attribute.String("error.type", s.failed))
	}
	options = append(options, trace.WithAttributes(s.of...))
	if s.link.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: s.link}))
	}
	_, made := t.spans.Start(ctx, s.name, options...)
	if s.failed != "" {
		made.SetStatus(failed, "")
	}
	made.End(trace.WithTimestamp(s.ended))
}

type spanKey struct{}

// ids gives a span the id that was chosen before the span was made.
type ids struct{}

var _ sdk.IDGenerator = ids{}

// NewIDs returns the ids of a span without a parent.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	s := ctx.Value(spanKey{}).(*span)
	return s.in.TraceID(), s.id
}

// NewSpanID returns the id of a span with a parent.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	return ctx.Value(spanKey{}).(*span).id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}
