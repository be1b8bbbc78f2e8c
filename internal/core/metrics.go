package core

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
)

// Figures are what a Service tells Prometheus of itself, beside its calls. They are a prometheus.Collector, safe for concurrent use, until the
// Service is closed.
type Figures struct{ Of *Service }

var _ prometheus.Collector = Figures{}

func figure(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("toolsrv_"+name, help, labels, nil)
}

var (
	ready         = figure("tools_listed", "Whether all tools of the start are listed: 1 or 0.")
	compiled      = figure("tools_compiled", "Whether all tools that are served are compiled: 1 or 0.")
	generation    = figure("generation", "The number of the list of tools, which grows with each change.")
	changed       = figure("generation_timestamp_seconds", "When that list came.")
	tools         = figure("tools", "Tools that are served, by whether they can be called.", "state")
	files         = figure("files", "Files of tools, by how far their newest version has come.", "state")
	running       = figure("calls_running", "Calls that run in a tool.", "tool")
	waiting       = figure("calls_waiting", "Calls that wait for their turn in a tool.", "tool")
	places        = figure("places", "Calls of a tool that may run at the same time.", "tool")
	inEngine      = figure("calls_in_progress", "Calls that run or wait in all tools.")
	held          = figure("resource_held", "What is taken of what is limited: bytes of memory, of compiled code and of files, and mappings.", "resource")
	limit         = figure("resource_limit", "How much of it may be taken.", "resource")
	queued        = figure("resource_waiting", "How many wait for more of it.", "resource")
	code          = figure("modules", "Modules, by where their compiled code is.", "code")
	snapshots     = figure("snapshots", "Modules that have been initialised, whose memory is kept.")
	idle          = figure("instances_idle", "Instances that wait for a call.")
	compiling     = figure("compilations", "Modules that are being compiled or read from disk, or wait for that.", "state")
	stateBroken   = figure("state_broken", "Whether what tools and operators keep can't be kept: 1 or 0.")
	rateLimited   = figure("calls_rate_limited_total", "Calls that were refused because the caller made too many.")
	rateLimitedBy = figure("rates_known", "Callers of whom calls are counted for their rates.", "kind")
)

// Describe sends no descriptions, as a collector does whose metrics come and go.
func (f Figures) Describe(chan<- *prometheus.Desc) {}

// Collect sends all that can be asked without waiting for a call.
func (f Figures) Collect(to chan<- prometheus.Metric) {
	s := f.Of
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	whether := func(d *prometheus.Desc, is bool) {
		var value float64
		if is {
			value = 1
		}
		gauge(d, value)
	}

	table := s.Table.Current()
	var enabled, disabled, ungranted int
	for _, route := range table.Routes() {
		switch {
		case route.Enabled:
			enabled++
		case route.Ungranted:
			ungranted++
		default:
			disabled++
		}
	}
	gauge(generation, float64(table.Number()))
	gauge(changed, float64(table.Published().UnixMilli())/1000)
	gauge(tools, float64(enabled), "enabled")
	gauge(tools, float64(disabled), "disabled")
	gauge(tools, float64(ungranted), "not_granted")
	if s.Catalog != nil {
		whether(compiled, s.Catalog.Compiled())
		of := s.Catalog.State()
		whether(ready, of.Awaited == 0)
		for _, stage := range catalog.Stages() {
			gauge(files, float64(of.Files[stage]), string(stage))
		}
	}

	engine := s.Engine.State()
	gauge(inEngine, float64(engine.Calls))
	gauge(snapshots, float64(engine.Snapshots))
	gauge(idle, float64(engine.Idle))
	gauge(compiling, float64(engine.Compiling.Running), "running")
	gauge(compiling, float64(engine.Compiling.Queued), "queued")
	for _, state := range []sandbox.CodeState{sandbox.CodeMissing, sandbox.CodeStored, sandbox.CodePending, sandbox.CodeLoaded, sandbox.CodeRefused} {
		gauge(code, float64(engine.Code[state]), string(state))
	}
	for name, use := range map[string]account.Use{"memory": engine.Memory, "code": engine.CodeMemory, "mappings": engine.Mappings, "manifests": engine.Manifests, "sources": engine.Sources} {
		gauge(held, float64(use.Held), name)
		gauge(queued, float64(use.Waiting), name)
		if use.Limit > 0 {
			gauge(limit, float64(use.Limit), name)
		}
	}
	whether(stateBroken, s.State.Broken() != nil)
	principals, addresses := s.Rates.Known()
	gauge(rateLimitedBy, float64(principals), "principal")
	gauge(rateLimitedBy, float64(addresses), "address")
	to <- prometheus.MustNewConstMetric(rateLimited, prometheus.CounterValue, float64(s.Rates.Refused()))

	for _, path := range s.Metrics.Counted() {
		route, ok := table.Lookup(path)
		if !ok {
			continue
		}
		if counted, ok := route.Tool.Caller.(interface {
			Places() (running, waiting, places int)
		}); ok {
			r, w, p := counted.Places()
			gauge(running, float64(r), path)
			gauge(waiting, float64(w), path)
			gauge(places, float64(p), path)
		}
	}
}
