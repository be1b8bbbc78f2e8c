package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

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

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("toolsrv_"+name, help, labels, nil)
}

// What is told of each tool, of what its calls use, and of each caller.
var (
	calls      = describe("calls_total", "Calls of a tool that have ended, by how they ended.", "tool", "outcome")
	took       = describe("call_duration_seconds", "How long calls of a tool took.", "tool", "outcome")
	refusals   = describe("calls_refused_total", "Calls of a tool that did not begin, by the reason.", "tool", "reason")
	arguments  = describe("call_arguments_bytes_total", "Arguments that calls of a tool came with.", "tool", "outcome")
	results    = describe("call_results_bytes_total", "Results of calls of a tool.", "tool", "outcome")
	phaseTimes = describe("call_phase_seconds_total", "What the phases of a tool's calls took.", "tool", "phase")

	uses         = describe("capability_uses_total", "How often calls of a tool used a capability.", "tool", "capability")
	usesFailed   = describe("capability_uses_failed_total", "How often that failed, or was refused.", "tool", "capability")
	usesSent     = describe("capability_sent_bytes_total", "What calls of a tool sent by a capability.", "tool", "capability")
	usesReceived = describe("capability_received_bytes_total", "What calls of a tool received by a capability.", "tool", "capability")
	usesTook     = describe("capability_seconds_total", "How long calls of a tool used a capability, with the time that they waited.", "tool", "capability")

	callerCalls   = describe("principal_calls_total", "Calls of a caller.", "principal", "origin", "realm")
	callerFailed  = describe("principal_calls_failed_total", "Calls of a caller that failed or were refused.", "principal", "origin", "realm")
	callerLimited = describe("principal_calls_limited_total", "Calls of a caller that were refused because there were too many.", "principal", "origin", "realm")
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
		c.collect(sink(to), f)
	}
	if m.byCaller != nil {
		collectCallers(sink(to), m.byCaller)
	}
}

func (c *Collector) collect(to sink, f *figures) {
	for i := range f.outcomes {
		if n := f.refused[i].Load(); n > 0 {
			to.count(refusals, n, f.path, c.codes[i])
		}
		o := f.outcomes[i].Load()
		if o == nil {
			continue
		}
		h := &histogram{took, o.durations, []*dto.LabelPair{pair("outcome", c.codes[i]), pair("tool", f.path)}}
		var now dto.Metric
		if err := o.durations.Write(&now); err != nil {
			continue
		}
		to <- h
		to.count(calls, now.Histogram.GetSampleCount(), f.path, c.codes[i])
		to.count(arguments, o.arguments.Load(), f.path, c.codes[i])
		to.count(results, o.results.Load(), f.path, c.codes[i])
	}
	for i, name := range phases {
		if ns := f.phases[i].Load(); ns > 0 {
			to.seconds(phaseTimes, ns, f.path, name)
		}
	}
	for _, u := range *f.uses.Load() {
		to.count(uses, u.count.Load(), f.path, u.capability)
		to.count(usesFailed, u.failed.Load(), f.path, u.capability)
		to.count(usesSent, u.sent.Load(), f.path, u.capability)
		to.count(usesReceived, u.received.Load(), f.path, u.capability)
		to.seconds(usesTook, u.nanoseconds.Load(), f.path, u.capability)
	}
}

func collectCallers(to sink, c *callers) {
	for who, n := range c.All() {
		to.count(callerCalls, n.calls.Load(), who.name, who.origin, who.realm)
		to.count(callerFailed, n.failed.Load(), who.name, who.origin, who.realm)
		to.count(callerLimited, n.limited.Load(), who.name, who.origin, who.realm)
	}
}

// A sink takes metrics.
type sink chan<- prometheus.Metric

func (s sink) count(d *prometheus.Desc, n uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func (s sink) seconds(d *prometheus.Desc, ns uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, time.Duration(ns).Seconds(), labels...)
}

// A histogram is one with labels, which take memory only while it is collected.
type histogram struct {
	desc *prometheus.Desc
	of   prometheus.Histogram
	with []*dto.LabelPair // sorted by name
}

func (h *histogram) Desc() *prometheus.Desc { return h.desc }

func (h *histogram) Write(to *dto.Metric) error {
	err := h.of.Write(to)
	to.Label = h.with
	return err
}

func pair(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: proto.String(name), Value: proto.String(value)}
}
