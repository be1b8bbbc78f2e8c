// Package otlptest is a collector of OpenTelemetry for tests, which takes what OTLP says over HTTP.
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

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Collector keeps the spans that it is sent.
type Collector struct {
	URL string

	mu      sync.Mutex
	spans   []Span
	headers []http.Header
	came    chan struct{} // closed when more has come
}

// A Span is one that came.
type Span struct {
	Name, Kind, Trace, ID, Parent, State string
	Status                               string
	Began, Ended                         time.Time
	// Of are its attributes, and those of what sent it with "resource." before their names.
	Of map[string]string
	// Links are the ids of the spans that it names.
	Links []string
	// Raw is all that the span says.
	Raw string
}

// Serve begins a collector that ends with the test.
func Serve(t testing.TB) *Collector {
	c := &Collector{came: make(chan struct{})}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// ServeHTTP takes spans.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	spans, err := read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.spans = append(c.spans, spans...)
	c.headers = append(c.headers, r.Header.Clone())
	close(c.came)
	c.came = make(chan struct{})
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-protobuf")
	b, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
	_, _ = w.Write(b)
}

func read(r *http.Request) (spans []Span, err error) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return nil, fmt.Errorf("a collector has no %s %s of %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			return nil, err
		}
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var q collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &q); err != nil {
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

// Spans returns those that have come.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Headers returns those of the requests that have come.
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

// Tree returns the spans of a trace, each on a line with those inside it below it, in the order in which they began.
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
