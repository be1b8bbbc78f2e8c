package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/toolsrv/toolsrv/internal/durations"
	"github.com/toolsrv/toolsrv/internal/fault"
)

// A Collector collects what is counted, for a registry of Prometheus. It is safe for concurrent use.
type Collector struct {
	metrics *Metrics
	codes   []string // by place
}

var _ prometheus.Collector = (*Collector)(nil)

// Collector returns the collector of what is counted. Options.Prometheus must be set.
func (m *Metrics) Collector() *Collector {
	c := &Collector{m, []string{"ok"}}
	for _, code := range fault.Codes() {
		c.codes = append(c.codes, string(code))
	}
	return c
}

// Describe returns the description of one of the server's metrics.
func Describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("toolsrv_"+name, help, labels, nil)
}

// What is told of each tool, of what its calls use, and of each caller.
var (
	calls      = Describe("calls_total", "Calls of a tool that have ended, by how they ended.", "tool", "outcome")
	took       = Describe("call_duration_seconds", "How long calls of a tool took.", "tool", "outcome")
	refusals   = Describe("calls_refused_total", "Calls of a tool that did not begin, by the reason.", "tool", "reason")
	arguments  = Describe("call_arguments_bytes_total", "Arguments that calls of a tool came with.", "tool", "outcome")
	results    = Describe("call_results_bytes_total", "Results of calls of a tool.", "tool", "outcome")
	burned     = Describe("call_fuel_total", "Instructions that calls of a tool have run, those of calls inside them included.", "tool", "outcome")
	phaseTimes = Describe("call_phase_seconds_total", "What the phases of a tool's calls took.", "tool", "phase")

	uses         = Describe("capability_uses_total", "How often calls of a tool used a capability.", "tool", "capability")
	usesFailed   = Describe("capability_uses_failed_total", "How often that failed, or was refused.", "tool", "capability")
	usesRefused  = Describe("capability_uses_refused_total", "How often that was refused because the tool's grant does not allow it.", "tool", "capability")
	usesSent     = Describe("capability_sent_bytes_total", "What calls of a tool sent by a capability.", "tool", "capability")
	usesReceived = Describe("capability_received_bytes_total", "What calls of a tool received by a capability.", "tool", "capability")
	usesTook     = Describe("capability_seconds_total", "How long calls of a tool used a capability, with the time that they waited.", "tool", "capability")

	callerCalls   = Describe("principal_calls_total", "Calls of a caller.", "principal", "origin", "realm")
	callerFailed  = Describe("principal_calls_failed_total", "Calls of a caller that failed or were refused.", "principal", "origin", "realm")
	callerLimited = Describe("principal_calls_limited_total", "Calls of a caller that were refused because there were too many.", "principal", "origin", "realm")
)

// Describe sends no descriptions, as a collector does whose metrics come and go.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of each tool that has figures of its own, and those of the others.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	m := c.metrics
	m.mu.Lock()
	all := m.all()
	m.mu.Unlock()
	for _, f := range all {
		c.collect(Sink(to), f)
	}
	if m.byCaller != nil {
		collectCallers(Sink(to), m.byCaller)
	}
}

func (c *Collector) collect(to Sink, f *figures) {
	for i := range f.outcomes {
		if n := f.refused[i].Load(); n > 0 {
			to.Count(refusals, n, f.path, c.codes[i])
		}
		o := f.outcomes[i].Load()
		if o == nil {
			continue
		}
		h := &histogram{}
		if err := o.durations.Write(&h.now); err != nil {
			continue
		}
		h.now.Label = []*dto.LabelPair{pair("outcome", c.codes[i]), pair("tool", f.path)} // sorted by name
		to <- h
		to.Count(calls, h.now.Histogram.GetSampleCount(), f.path, c.codes[i])
		to.Count(arguments, o.arguments.Load(), f.path, c.codes[i])
		to.Count(results, o.results.Load(), f.path, c.codes[i])
		to.Count(burned, o.fuel.Load(), f.path, c.codes[i])
	}
	for i, name := range phases {
		if ns := f.phases[i].Load(); ns > 0 {
			to.seconds(phaseTimes, ns, f.path, name)
		}
	}
	for _, u := range *f.uses.Load() {
		to.Count(uses, u.count.Load(), f.path, u.capability)
		to.Count(usesFailed, u.failed.Load(), f.path, u.capability)
		to.Count(usesRefused, u.refused.Load(), f.path, u.capability)
		to.Count(usesSent, u.sent.Load(), f.path, u.capability)
		to.Count(usesReceived, u.received.Load(), f.path, u.capability)
		to.seconds(usesTook, u.nanoseconds.Load(), f.path, u.capability)
	}
}

func collectCallers(to Sink, c *callers) {
	for who, n := range c.All() {
		to.Count(callerCalls, n.calls.Load(), who.name, who.origin, who.realm)
		to.Count(callerFailed, n.failed.Load(), who.name, who.origin, who.realm)
		to.Count(callerLimited, n.limited.Load(), who.name, who.origin, who.realm)
	}
}

// A Sink takes metrics.
type Sink chan<- prometheus.Metric

// Count sends a number that only grows.
func (s Sink) Count(d *prometheus.Desc, n uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func (s Sink) seconds(d *prometheus.Desc, ns uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, time.Duration(ns).Seconds(), labels...)
}

// Gauge sends how much there is of something.
func (s Sink) Gauge(d *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// Whether sends 1 or 0.
func (s Sink) Whether(d *prometheus.Desc, is bool) {
	var value float64
	if is {
		value = 1
	}
	s.Gauge(d, value)
}

// When sends a time, in seconds since 1970.
func (s Sink) When(d *prometheus.Desc, t time.Time) { s.Gauge(d, float64(t.UnixMilli())/1000) }

// Durations sends how long something took.
func (s Sink) Durations(d *prometheus.Desc, of durations.Sum, labels ...string) {
	s <- prometheus.MustNewConstHistogram(d, of.Count, of.Took.Seconds(), of.Below, labels...)
}

// A histogram is what one was when it was collected, with labels, which take no memory before.
type histogram struct{ now dto.Metric }

func (h *histogram) Desc() *prometheus.Desc { return took }

func (h *histogram) Write(to *dto.Metric) error {
	to.Histogram, to.Label = h.now.Histogram, h.now.Label
	return nil
}

func pair(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: proto.String(name), Value: proto.String(value)}
}
