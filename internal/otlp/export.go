package otlp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/toolsrv/toolsrv/internal/nothttp"
	"github.com/toolsrv/toolsrv/internal/text"
)

const (
	// failed is the status of a span that has failed.
	failed = codes.Error
	// maxAnswer is how many bytes of the collector's answer are read, and maxShown how many of them are logged.
	maxAnswer = 64 << 10
	maxShown  = 512
	// maxBatch is the largest batch in bytes. Usually a batch has a few hundred kilobytes.
	maxBatch = 8 << 20
	// tries is how long sending a batch is retried while the collector is overloaded or away, as a multiple of the timeout.
	tries = 3

	// late is how long a collector may take to answer before it counts as unavailable.
	late = time.Second

	defaultTimeout = 10 * time.Second
)

// An exporter sends spans to the collector, and logs if it can't.
type exporter struct {
	*otlptrace.Exporter
	*notice
	patience time.Duration
	closed   atomic.Bool

	waiting         atomic.Int64  // spans that wait or are being sent
	crowded, unsent atomic.Uint64 // lost spans
	told            atomic.Uint64 // how many lost spans have been logged
	warned          time.Time     // when too many spans were last logged; only for the goroutine that sends
}

// A notice logs when the collector stops accepting spans or metrics, and when it accepts them again. Only one request is sent at a time.
type notice struct {
	logger *slog.Logger // or nil
	what   string
	away   atomic.Bool
	began  atomic.Int64 // when the current request began, as Unix time in nanoseconds; zero if none is being sent
}

// sent runs send, which sends one request.
func (n *notice) sent(send func() error) {
	n.began.Store(time.Now().UnixNano())
	err := send()
	n.began.Store(0)
	away := n.away.Swap(err != nil)
	if n.logger == nil {
		return
	}
	switch {
	case err != nil && !away:
		n.logger.Warn("the collector doesn't accept "+n.what+": they are lost until it does", "error", text.Clip(err.Error(), maxShown))
	case err == nil && away:
		n.logger.Info("the collector accepts " + n.what + " again")
	}
}

// isMissing reports whether the last request failed, or the current one has had no answer for long. It is safe for concurrent use.
func (n *notice) isMissing() bool {
	began := n.began.Load()
	return n.away.Load() || began != 0 && time.Since(time.Unix(0, began)) > late
}

var _ sdk.SpanExporter = (*exporter)(nil)

func newExporter(o *Options) (*exporter, error) {
	timeout := o.timeout()
	e := &exporter{notice: &notice{logger: o.Logger, what: "spans"}, patience: tries * timeout}
	made, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(strings.TrimSuffix(o.Endpoint, "/")+"/v1/traces"),
		otlptracehttp.WithHTTPClient(newClient(o, timeout)),
		otlptracehttp.WithHeaders(map[string]string{}), // the client adds the headers, whatever the environment says
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithMaxRequestSize(maxBatch),
		otlptracehttp.WithMaxResponseSize(maxAnswer),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: timeout, MaxElapsedTime: e.patience}),
	)
	e.Exporter = made
	return e, err
}

func (o *Options) timeout() time.Duration { return cmp.Or(o.Timeout, defaultTimeout) }

// newClient returns a client for a collector that is not trusted: it follows no redirect, since that would send the headers elsewhere.
func newClient(o *Options, timeout time.Duration) *http.Client {
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		DialContext:     (&net.Dialer{Timeout: timeout}).DialContext,
		MaxConnsPerHost: 2, MaxResponseHeaderBytes: maxAnswer, TLSHandshakeTimeout: timeout, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}
	return &http.Client{Transport: headers{transport, o.Headers}, Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("it redirects elsewhere: set otlp.endpoint to the collector's own address")
	}}
}

// headers adds the operator's headers to requests.
type headers struct {
	next http.RoundTripper
	of   func() (map[string]string, error) // or nil
}

// RoundTrip sends a request with the operator's headers.
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.of != nil {
		all, err := h.of()
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		for name, value := range all {
			r.Header.Set(name, value)
		}
	}
	answer, err := h.next.RoundTrip(r)
	return answer, nothttp.Error(err)
}

// ExportSpans sends spans. Spans that can't be sent are lost, but it returns no error: an error would go to OpenTelemetry's log instead of the
// server's.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if e.closed.Load() {
		e.waiting.Add(-int64(len(spans)))
		e.unsent.Add(uint64(len(spans)))
		return nil
	}
	away := e.away.Load()
	e.sent(func() error {
		err := e.Exporter.ExportSpans(ctx, spans)
		e.waiting.Add(-int64(len(spans)))
		if err != nil {
			e.unsent.Add(uint64(len(spans)))
		}
		return err
	})
	switch { // the outage has been logged already
	case e.away.Load():
	case away:
		e.tell("spans were lost while the collector didn't accept them", 0)
	case time.Since(e.warned) > time.Minute && e.tell("spans are being lost: there are more than the collector can accept in time", 0):
		e.warned = time.Now()
	}
	return nil
}

// tell logs how many spans, including others, were lost since its last call, and reports whether there were any.
func (e *exporter) tell(what string, others uint64) bool {
	lost := e.crowded.Load() + e.unsent.Load() + others
	told := e.told.Swap(lost)
	if lost > told && e.logger != nil {
		e.logger.Warn(what, "spans", lost-told)
	}
	return lost > told
}

// close ends requests that are still being sent.
func (e *exporter) close() {
	e.closed.Store(true)
	_ = e.Exporter.Shutdown(context.Background()) // fails if it was shut down before; otherwise it ends requests that hang
	e.tell("spans were lost, because the server stopped before the collector had accepted them", uint64(e.waiting.Load()))
}
