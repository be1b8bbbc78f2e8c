package metrics

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// phases are the values of the label phase.
var phases = [...]string{"validate", "wait", "compile", "prepare", "run", "reset"}

// detail has the counters of a tool for Prometheus.
type detail struct {
	outcomes []atomic.Pointer[outcome]  // outcomes by the index of their code; nil if there was none
	refused  []atomic.Uint64            // refused calls by the index of their code
	phases   [len(phases)]atomic.Uint64 // nanoseconds
	uses     atomic.Pointer[[]*use]     // the uses of capabilities
	mu       sync.Mutex                 // held while outcomes or uses are added
}

// An outcome has the counters of calls that ended with one code.
type outcome struct {
	durations          prometheus.Histogram
	arguments, results atomic.Uint64 // bytes
	fuel               atomic.Uint64
}

// A use has the counters of a capability that calls used.
type use struct {
	capability                                          string
	count, failed, refused, sent, received, nanoseconds atomic.Uint64
}

func newDetail(outcomes int) *detail {
	d := &detail{outcomes: make([]atomic.Pointer[outcome], outcomes), refused: make([]atomic.Uint64, outcomes)}
	d.uses.Store(&[]*use{})
	return d
}

// bounds are the upper bounds of a histogram, in seconds.
var bounds = []float64{.0001, .001, .005, .01, .05, .1, .5, 1, 5, 30}

// outcome returns one.
func (d *detail) outcome(at int) *outcome {
	if o := d.outcomes[at].Load(); o != nil {
		return o
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.outcomes[at].Load()
	if o == nil {
		o = &outcome{durations: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "any", Buckets: bounds, NativeHistogramBucketFactor: 1.2, NativeHistogramMaxBucketNumber: 64,
		})}
		d.outcomes[at].Store(o)
	}
	return o
}

// use returns the counters of a capability. There are few capabilities, and their names come from the program, never from a guest.
func (d *detail) use(capability string) *use {
	is := func(u *use) bool { return u.capability == capability }
	known := *d.uses.Load()
	if i := slices.IndexFunc(known, is); i >= 0 {
		return known[i]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known = *d.uses.Load()
	if i := slices.IndexFunc(known, is); i >= 0 {
		return known[i]
	}
	u := &use{capability: capability}
	more := append(slices.Clone(known), u)
	d.uses.Store(&more)
	return u
}

// ended counts a call that ended with the code at this index.
func (d *detail) ended(at int, r *invoke.Record) {
	o := d.outcome(at)
	o.durations.Observe(r.Took.Seconds())
	o.arguments.Add(uint64(len(r.Arguments)))
	o.results.Add(uint64(len(r.Result)))
	o.fuel.Add(uint64(max(r.Fuel, 0)))
	t := &r.Times
	for i, took := range [len(phases)]int64{int64(t.Validate), int64(t.Turn), int64(t.Compile), int64(t.Ready - t.Turn - t.Compile), int64(t.Run), int64(t.Reset)} {
		if took > 0 {
			d.phases[i].Add(uint64(took))
		}
	}
	for i := range r.Uses {
		d.used(&r.Uses[i])
	}
}

func (d *detail) used(of *wasmtools.Use) {
	u := d.use(of.Capability)
	u.count.Add(uint64(max(of.Count, 0)))
	u.failed.Add(uint64(max(of.Failed, 0)))
	u.refused.Add(uint64(max(of.Refused, 0)))
	u.sent.Add(uint64(max(of.Sent, 0)))
	u.received.Add(uint64(max(of.Received, 0)))
	u.nanoseconds.Add(uint64(max(of.Took, 0)))
}
