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
	// maxAnswer is how many bytes of the collector's answer are read, and maxShown how many of them the log has.
	maxAnswer = 64 << 10
	maxShown  = 512
	// maxBatch is how many bytes a batch may have. It has some hundred kilobytes.
	maxBatch = 8 << 20
	// tries is how many time-outs a batch is sent for, where the collector is overloaded or away.
	tries = 3

	// late is after how long a collector that has not answered counts as one that doesn't.
	late = time.Second

	defaultTimeout = 10 * time.Second
)

// An exporter sends spans to the collector, and logs if it can't.
type exporter struct {
	*otlptrace.Exporter
	*notice
	patience time.Duration
	closed   atomic.Bool

	waiting         atomic.Int64  // spans that wait, or are being sent
	crowded, unsent atomic.Uint64 // those that were lost
	told            atomic.Uint64 // how many of these the log has told
	warned          time.Time     // when it told that there were too many; of who sends
}

// A notice tells the log when the collector does not take something, and when it does again. One thing is sent at a time.
type notice struct {
	logger *slog.Logger // or nil
	what   string
	away   atomic.Bool
	began  atomic.Int64 // when what is being sent was begun, in nanoseconds of Unix; zero means nothing is
}

// sent runs what sends something.
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

// isMissing reports whether the collector did not take what it was sent last, or has not answered for long. It is safe for concurrent use.
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
		otlptracehttp.WithHeaders(map[string]string{}), // the client's, whatever the environment says
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

// newClient returns a client for a collector that may be anything: it follows no redirect, which would take the headers along.
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

// headers sets the operator's headers.
type headers struct {
	next http.RoundTripper
	of   func() (map[string]string, error) // or nil
}

// RoundTrip sends a request with them.
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

// ExportSpans sends spans. What can't be sent is lost, and is not an error: that would go to OpenTelemetry's log, which is not the server's.
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
	switch { // an outage has been told of
	case e.away.Load():
	case away:
		e.tell("spans were lost while the collector didn't accept them", 0)
	case time.Since(e.warned) > time.Minute && e.tell("spans are being lost: there are more than the collector can accept in time", 0):
		e.warned = time.Now()
	}
	return nil
}

// tell logs how many spans were lost that it has not told yet, with others, and reports whether there were any.
func (e *exporter) tell(what string, others uint64) bool {
	lost := e.crowded.Load() + e.unsent.Load() + others
	told := e.told.Swap(lost)
	if lost > told && e.logger != nil {
		e.logger.Warn(what, "spans", lost-told)
	}
	return lost > told
}

// close ends what is still being sent.
func (e *exporter) close() {
	e.closed.Store(true)
	_ = e.Exporter.Shutdown(context.Background()) // it has been shut down, or ends what hangs
	e.tell("spans were lost, because the server stopped before the collector had accepted them", uint64(e.waiting.Load()))
}
