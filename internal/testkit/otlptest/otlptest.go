// Package otlptest has an OpenTelemetry collector for tests, which accepts OTLP over HTTP.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	counted "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Collector keeps the spans and metrics that it gets.
type Collector struct {
	URL string

	mu      sync.Mutex
	spans   []Span
	points  []Point
	headers []http.Header
	came    chan struct{} // closed when more comes
}

// A Span is a span that the collector got.
type Span struct {
	Name, Kind, Trace, ID, Parent, State string
	Status                               string
	Began, Ended                         time.Time
	// Of has its attributes, and those of its resource with "resource." before their names.
	Of map[string]string
	// Links are the ids of the spans that it links to.
	Links []string
	// Raw is the whole span as text.
	Raw string
}

// A Point is a data point of a metric.
type Point struct {
	Name string
	// Of has its attributes.
	Of map[string]string
	// Value is the number, or for a histogram how many values it has counted.
	Value float64
}

// Serve starts a collector that stops when the test ends.
func Serve(t testing.TB) *Collector {
	c := &Collector{came: make(chan struct{})}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// ServeHTTP accepts spans and metrics.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := read(r)
	var spans []Span
	var points []Point
	switch r.URL.Path {
	case "/v1/traces":
		spans, err = spansIn(body, err)
	case "/v1/metrics":
		points, err = pointsIn(body, err)
	default:
		err = fmt.Errorf("a collector has no %s", r.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.spans, c.points = append(c.spans, spans...), append(c.points, points...)
	c.headers = append(c.headers, r.Header.Clone())
	close(c.came)
	c.came = make(chan struct{})
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-protobuf")
	b, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
	_, _ = w.Write(b)
}

func read(r *http.Request) ([]byte, error) {
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return nil, fmt.Errorf("a collector takes no %s of %s", r.Method, r.Header.Get("Content-Type"))
	}
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	body, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(body)
}

func pointsIn(b []byte, err error) (points []Point, _ error) {
	var q counted.ExportMetricsServiceRequest
	if err == nil {
		err = proto.Unmarshal(b, &q)
	}
	if err != nil {
		return nil, err
	}
	add := func(name string, value float64, attributes []*common.KeyValue) {
		p := Point{Name: name, Value: value, Of: map[string]string{}}
		note(p.Of, "", attributes)
		points = append(points, p)
	}
	number := func(name string, all []*metrics.NumberDataPoint) {
		for _, p := range all {
			add(name, p.GetAsDouble()+float64(p.GetAsInt()), p.Attributes)
		}
	}
	for _, of := range q.ResourceMetrics {
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				number(m.Name, m.GetGauge().GetDataPoints())
				number(m.Name, m.GetSum().GetDataPoints())
				for _, p := range m.GetHistogram().GetDataPoints() {
					add(m.Name, float64(p.Count), p.Attributes)
				}
				for _, p := range m.GetExponentialHistogram().GetDataPoints() {
					add(m.Name, float64(p.Count), p.Attributes)
				}
			}
		}
	}
	return points, nil
}

// Last returns the last value of a metric with these attributes, and perhaps others. ok is false if there is none.
func (c *Collector) Last(name string, of map[string]string) (value float64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Backward(c.points) {
		is := p.Name == name
		for key, want := range of {
			is = is && p.Of[key] == want
		}
		if is {
			return p.Value, true
		}
	}
	return 0, false
}

func spansIn(b []byte, err error) (spans []Span, _ error) {
	var q collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(b, &q)
	}
	if err != nil {
		return nil, err
	}
	for _, of := range q.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				one := spanOf(s)
				note(one.Of, "resource.", of.Resource.GetAttributes())
				spans = append(spans, one)
			}
		}
	}
	return spans, nil
}

func spanOf(s *wire.Span) Span {
	one := Span{
		Name: s.Name, Kind: strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")), State: s.TraceState,
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
		Status: strings.ToLower(strings.TrimPrefix(s.Status.GetCode().String(), "STATUS_CODE_")),
		Began:  time.Unix(0, int64(s.StartTimeUnixNano)), Ended: time.Unix(0, int64(s.EndTimeUnixNano)), Of: map[string]string{}, Raw: s.String(),
	}
	note(one.Of, "", s.Attributes)
	for _, l := range s.Links {
		one.Links = append(one.Links, hex.EncodeToString(l.SpanId))
	}
	return one
}

func note(to map[string]string, before string, attributes []*common.KeyValue) {
	for _, a := range attributes {
		switch v := a.Value.GetValue().(type) {
		case *common.AnyValue_StringValue:
			to[before+a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			to[before+a.Key] = fmt.Sprint(v.IntValue)
		default:
			to[before+a.Key] = fmt.Sprint(v)
		}
	}
}

// Spans returns the spans that have come.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Headers returns the headers of the requests that have come.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}

// Await waits for a span, and returns it.
func (c *Collector) Await(t testing.TB, what string, is func(s Span) bool) Span {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		c.mu.Lock()
		i, more := slices.IndexFunc(c.spans, is), c.came
		c.mu.Unlock()
		if i >= 0 {
			return c.Spans()[i]
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("no span of %s came: %+v", what, c.Spans())
		}
	}
}

// Tree returns the spans of a trace as an indented tree, a line for each, in the order in which they began.
func (c *Collector) Tree(trace string) string {
	spans := c.Spans()
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Began.Compare(b.Began) })
	known := map[string]bool{}
	for _, s := range spans {
		known[s.ID] = true
	}
	var out strings.Builder
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for _, s := range spans {
			if s.Trace == trace && (s.Parent == parent || parent == "" && !known[s.Parent]) {
				fmt.Fprintf(&out, "%s%s (%s)\n", indent, s.Name, s.Kind)
				write(s.ID, indent+"  ")
			}
		}
	}
	write("", "")
	return out.String()
}
