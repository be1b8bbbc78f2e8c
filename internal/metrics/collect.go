package metrics

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/toolsrv/toolsrv/internal/durations"
	"github.com/toolsrv/toolsrv/internal/fault"
)

// A Collector collects what is counted, for a Prometheus registry. It is safe for concurrent use.
type Collector struct {
	metrics *Metrics
	codes   []string // the codes by their indexes
	sorted  []int    // indexes of codes, in the alphabetical order of the codes
}

var _ prometheus.Collector = (*Collector)(nil)

// Collector returns a collector of the metrics. Options.Prometheus must be set.
func (m *Metrics) Collector() *Collector {
	c := &Collector{metrics: m, codes: []string{"ok"}}
	for _, code := range fault.Codes() {
		c.codes = append(c.codes, string(code))
	}
	for i := range c.codes {
		c.sorted = append(c.sorted, i)
	}
	slices.SortFunc(c.sorted, func(a, b int) int { return strings.Compare(c.codes[a], c.codes[b]) })
	return c
}

// Describe returns the description of one of the server's metrics.
func Describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("toolsrv_"+name, help, labels, nil)
}

// The metrics of each tool, of each capability that its calls use, and of each caller.
var (
	calls      = Describe("calls_total", "Finished calls of a tool, by outcome.", "tool", "outcome")
	took       = Describe("call_duration_seconds", "How long calls of a tool took.", "tool", "outcome")
	refusals   = Describe("calls_refused_total", "Calls of a tool that did not begin, by the reason.", "tool", "reason")
	arguments  = Describe("call_arguments_bytes_total", "Sizes of the arguments of a tool's calls.", "tool", "outcome")
	results    = Describe("call_results_bytes_total", "Sizes of the results of a tool's calls.", "tool", "outcome")
	burned     = Describe("call_fuel_total", "Instructions that a tool's calls have run, including the calls inside them.", "tool", "outcome")
	phaseTimes = Describe("call_phase_seconds_total", "How long the phases of a tool's calls took.", "tool", "phase")

	uses         = Describe("capability_uses_total", "How often calls of a tool used a capability.", "tool", "capability")
	usesFailed   = Describe("capability_uses_failed_total", "How often that failed, or was refused.", "tool", "capability")
	usesRefused  = Describe("capability_uses_refused_total", "How often that was refused because the tool's grant does not allow it.", "tool", "capability")
	usesSent     = Describe("capability_sent_bytes_total", "What a tool's calls sent through a capability.", "tool", "capability")
	usesReceived = Describe("capability_received_bytes_total", "What a tool's calls received through a capability.", "tool", "capability")
	usesTook     = Describe("capability_seconds_total", "How long calls of a tool used a capability, including the time they waited.", "tool", "capability")

	callerCalls   = Describe("principal_calls_total", "Calls of a caller.", "principal", "origin", "realm")
	callerFailed  = Describe("principal_calls_failed_total", "Calls of a caller that failed or were refused.", "principal", "origin", "realm")
	callerLimited = Describe("principal_calls_limited_total", "Calls of a caller that were refused because there were too many.", "principal", "origin", "realm")
)

// Describe sends no descriptions, because this collector's metrics come and go.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of each tool that has figures of its own, and those of the others.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	m := c.metrics
	m.mu.Lock()
	all := m.all()
	m.mu.Unlock()
	// The registry sorts metrics by their labels, and is faster if they are sorted already.
	slices.SortFunc(all, func(a, b *figures) int { return strings.Compare(a.path, b.path) })
	for _, at := range c.sorted {
		for _, f := range all {
			c.collect(Sink(to), f, at)
		}
	}
	for i, name := range phases {
		for _, f := range all {
			if ns := f.phases[i].Load(); ns > 0 {
				Sink(to).count(phaseTimes, time.Duration(ns).Seconds(), LabelsOf("phase", name, "tool", f.path))
			}
		}
	}
	for _, f := range all {
		collectUses(Sink(to), f)
	}
	if m.byCaller != nil {
		collectCallers(Sink(to), m.byCaller)
	}
}

// collect sends the metrics of one outcome of a tool's calls.
func (c *Collector) collect(to Sink, f *figures, at int) {
	if n := f.refused[at].Load(); n > 0 {
		to.count(refusals, float64(n), LabelsOf("reason", c.codes[at], "tool", f.path))
	}
	o := f.outcomes[at].Load()
	if o == nil {
		return
	}
	labels := LabelsOf("outcome", c.codes[at], "tool", f.path)
	h := &histogram{}
	if err := o.durations.Write(&h.now); err != nil {
		return
	}
	h.now.Label = labels
	to <- h
	to.count(calls, float64(h.now.Histogram.GetSampleCount()), labels)
	to.count(arguments, float64(o.arguments.Load()), labels)
	to.count(results, float64(o.results.Load()), labels)
	to.count(burned, float64(o.fuel.Load()), labels)
}

func collectUses(to Sink, f *figures) {
	for _, u := range *f.uses.Load() {
		labels := LabelsOf("capability", u.capability, "tool", f.path)
		to.count(uses, float64(u.count.Load()), labels)
		to.count(usesFailed, float64(u.failed.Load()), labels)
		to.count(usesRefused, float64(u.refused.Load()), labels)
		to.count(usesSent, float64(u.sent.Load()), labels)
		to.count(usesReceived, float64(u.received.Load()), labels)
		to.count(usesTook, time.Duration(u.nanoseconds.Load()).Seconds(), labels)
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

// Count sends a counter.
func (s Sink) Count(d *prometheus.Desc, n uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// count sends a counter.
func (s Sink) count(d *prometheus.Desc, n float64, labels Labels) {
	s <- &sample{desc: d, value: n, labels: labels, counts: true}
}

// GaugeOf sends a gauge with labels that other metrics share.
func (s Sink) GaugeOf(d *prometheus.Desc, value float64, labels Labels) {
	s <- &sample{desc: d, value: value, labels: labels}
}

// Gauge sends a gauge.
func (s Sink) Gauge(d *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// Whether sends a condition as a gauge: 1 or 0.
func (s Sink) Whether(d *prometheus.Desc, is bool) {
	var value float64
	if is {
		value = 1
	}
	s.Gauge(d, value)
}

// When sends a time, in seconds since 1970.
func (s Sink) When(d *prometheus.Desc, t time.Time) { s.Gauge(d, float64(t.UnixMilli())/1000) }

// Durations sends a histogram of durations.
func (s Sink) Durations(d *prometheus.Desc, of durations.Sum, labels ...string) {
	s <- prometheus.MustNewConstHistogram(d, of.Count, of.Took.Seconds(), of.Below, labels...)
}

// A histogram is a collected histogram with its labels, which take no memory before it is collected.
type histogram struct{ now dto.Metric }

func (h *histogram) Desc() *prometheus.Desc { return took }

func (h *histogram) Write(to *dto.Metric) error {
	to.Histogram, to.Label = h.now.Histogram, h.now.Label
	return nil
}

// Labels are the labels of one or more metrics, sorted by name. Thousands of metrics are made for one answer, so the metrics of one tool share their
// labels.
type Labels []*dto.LabelPair

// LabelsOf returns labels from names and values, which must be sorted by name.
func LabelsOf(namesAndValues ...string) Labels {
	labels := make(Labels, 0, len(namesAndValues)/2)
	for i := 0; i < len(namesAndValues); i += 2 {
		labels = append(labels, &dto.LabelPair{Name: &namesAndValues[i], Value: &namesAndValues[i+1]})
	}
	return labels
}

// A sample is one number with labels.
type sample struct {
	desc   *prometheus.Desc
	value  float64
	labels Labels
	counts bool // it only grows
}

func (s *sample) Desc() *prometheus.Desc { return s.desc }

func (s *sample) Write(to *dto.Metric) error {
	to.Label = s.labels
	if s.counts {
		to.Counter = &dto.Counter{Value: &s.value}
	} else {
		to.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}
