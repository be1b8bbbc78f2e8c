package core

import (
	"cmp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/metrics"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Figures are the metrics of a Service, apart from those of its calls. They are a prometheus.Collector, and safe for concurrent use until the Service
// is closed.
type Figures struct{ Of *Service }

var _ prometheus.Collector = Figures{}

var (
	ready         = metrics.Describe("tools_listed", "Whether all tools found at the start are listed: 1 or 0.")
	compiled      = metrics.Describe("tools_compiled", "Whether all tools that are served are compiled: 1 or 0.")
	generation    = metrics.Describe("generation", "The number of the list of tools, which grows with each change.")
	changed       = metrics.Describe("generation_timestamp_seconds", "When the current list of tools was made.")
	tools         = metrics.Describe("tools", "Tools that are served, by whether they can be called.", "state")
	files         = metrics.Describe("files", "Files of tools, by their source and by the state of their newest version.", "source", "state")
	problems      = metrics.Describe("source_problems", "Folders of a source that can't be listed.", "source")
	served        = metrics.Describe("file_served_seconds", "How long it took from noticing a changed file until its tools were served, without the files found at the start.", "source")
	running       = metrics.Describe("calls_running", "Running calls of a tool.", "tool")
	waiting       = metrics.Describe("calls_waiting", "Calls of a tool that are waiting for their turn.", "tool")
	places        = metrics.Describe("places", "Calls of a tool that may run at the same time.", "tool")
	queue         = metrics.Describe("queue_places", "Calls of a tool that may wait for their turn. Further calls are refused.", "tool")
	inEngine      = metrics.Describe("calls_in_progress", "Running and waiting calls of all tools.")
	held          = metrics.Describe("resource_held_bytes", "How much of each limit is used: memory, compiled code, files, and arguments and results.", "resource")
	limit         = metrics.Describe("resource_limit_bytes", "The limits.", "resource")
	mapped        = metrics.Describe("mappings", "Memory mappings in use.")
	mostMapped    = metrics.Describe("mappings_limit", "How many memory mappings may be in use.")
	inFiles       = metrics.Describe("guest_open_files", "Files that tools have open.")
	mostInFiles   = metrics.Describe("guest_open_files_limit", "How many files tools may have open.")
	queued        = metrics.Describe("resource_waiting", "How many requests for more of a limited resource are waiting, mappings included.", "resource")
	code          = metrics.Describe("modules", "Modules, by where their compiled code is.", "code")
	snapshots     = metrics.Describe("snapshots", "Initialised modules, whose memory is kept.")
	idle          = metrics.Describe("instances_idle", "Instances that are waiting for a call.")
	compiling     = metrics.Describe("compilations", "Modules that are being compiled or read from disk, or are waiting for that.", "state")
	compileTook   = metrics.Describe("compile_seconds", "How long modules took to compile.")
	compileFailed = metrics.Describe("compile_failed_total", "How often a module could not be compiled.")
	loadTook      = metrics.Describe("code_load_seconds", "How long it took to load code that is kept on disk. Code that is not on disk is compiled.")
	cached        = metrics.Describe("code_cache_bytes", "Compiled code that is kept on disk, as counted in the last minute.")
	mostCached    = metrics.Describe("code_cache_limit_bytes", "How much compiled code may be kept on disk. Beyond that, code that has gone unused longest is removed.")
	dropped       = metrics.Describe("code_dropped_total", "How often compiled code was dropped from memory, because nobody had called it for long, or for lack of room.", "reason")
	stateTook     = metrics.Describe("state_write_seconds", "How long callers waited until a write or deletion was on disk.")
	stateFailed   = metrics.Describe("state_writes_failed_total", "How often a write or deletion failed.")
	stateBytes    = metrics.Describe("state_bytes", "The size of the file in which tools and operators keep things.")
	changes       = metrics.Describe("changes_total", "Changes that operators and the configuration have made, by outcome.", "action", "outcome")
	changeRefused = metrics.Describe("changes_refused_total", "Attempts to change something that were refused.")
	auditLost     = metrics.Describe("audit_lost_total", "Entries of the audit that could not be stored.")
	spansDropped  = metrics.Describe("spans_dropped_total", "Spans that did not reach the OpenTelemetry collector, because too many were waiting, or it refused them.", "reason")
	stateBroken   = metrics.Describe("state_broken", "Whether tools and operators can't keep anything: 1 or 0.")
	stateCutOff   = metrics.Describe("state_cut_off", "Whether NATS, which holds the state, is unreachable, so that nothing can be changed: 1 or 0.")
	rateLimited   = metrics.Describe("calls_rate_limited_total", "Calls that were refused because the caller made too many.")
	rateLimitedBy = metrics.Describe("rates_known", "Callers whose calls are counted for their rates.", "kind")
)

// Describe sends no descriptions, because the metrics of this collector come and go.
func (f Figures) Describe(chan<- *prometheus.Desc) {}

// Collect sends all figures that are available without waiting for a call.
func (f Figures) Collect(out chan<- prometheus.Metric) {
	s := f.Of
	to := metrics.Sink(out)
	table := s.Table.Current()
	disabled, ungranted := Switched(table)
	to.Gauge(generation, float64(table.Number()))
	to.When(changed, table.Published())
	to.Gauge(tools, float64(len(table.Routes())-disabled-ungranted), "enabled")
	to.Gauge(tools, float64(disabled), "disabled")
	to.Gauge(tools, float64(ungranted), "not_granted")
	if s.Catalog != nil {
		to.Whether(compiled, s.Catalog.Compiled())
		of := s.Catalog.State()
		to.Whether(ready, of.Awaited == 0)
		told := map[string]bool{}
		for _, source := range of.Sources {
			place := strings.ToValidUTF8(cmp.Or(source.Name, source.Place), "\uFFFD")
			if told[place] {
				continue // Prometheus would refuse all metrics
			}
			told[place] = true
			for _, stage := range catalog.Stages() {
				to.Gauge(files, float64(source.Files[stage]), place, string(stage))
			}
			to.Gauge(problems, float64(source.Problems), place)
			to.Durations(served, source.Served, place)
		}
	}

	of := s.Engine.State()
	to.Gauge(inEngine, float64(of.Calls))
	to.Gauge(snapshots, float64(of.Snapshots))
	to.Gauge(idle, float64(of.Idle))
	to.Gauge(compiling, float64(of.Compiling.Running), "running")
	to.Gauge(compiling, float64(of.Compiling.Queued), "queued")
	for _, state := range []sandbox.CodeState{sandbox.CodeMissing, sandbox.CodeStored, sandbox.CodePending, sandbox.CodeLoaded, sandbox.CodeRefused} {
		to.Gauge(code, float64(of.Code[state]), string(state))
	}
	to.Durations(compileTook, of.Compiled)
	to.Count(compileFailed, of.CompileFailures)
	to.Durations(loadTook, of.Loaded)
	if bytes, most, ok := s.Engine.CacheSize(); ok {
		to.Gauge(cached, float64(bytes))
		to.Gauge(mostCached, float64(most))
	}
	to.Count(dropped, of.Unused, "unused")
	to.Count(dropped, of.Crowded, "room")
	bodies, mostBodies := s.Invoker.Memory()
	for name, use := range map[string]account.Use{
		"memory": of.Memory, "code": of.CodeMemory, "manifests": of.Manifests, "sources": of.Sources,
		"bodies": {Held: bodies, Limit: mostBodies},
	} {
		to.Gauge(held, float64(use.Held), name)
		to.Gauge(queued, float64(use.Waiting), name)
		if use.Limit > 0 {
			to.Gauge(limit, float64(use.Limit), name)
		}
	}
	to.Gauge(mapped, float64(of.Mappings.Held))
	to.Gauge(queued, float64(of.Mappings.Waiting), "mappings")
	if of.Mappings.Limit > 0 {
		to.Gauge(mostMapped, float64(of.Mappings.Limit))
	}
	to.Gauge(inFiles, float64(of.Files.Held))
	if of.Files.Limit > 0 {
		to.Gauge(mostInFiles, float64(of.Files.Limit))
	}
	f.collectKept(to)
	var crowded, unsent uint64
	if s.Tracer != nil {
		crowded, unsent = s.Tracer.Lost()
	}
	to.Count(spansDropped, crowded, "queue")
	to.Count(spansDropped, unsent, "unsent")
	principals, addresses := s.Rates.Known()
	to.Gauge(rateLimitedBy, float64(principals), "principal")
	to.Gauge(rateLimitedBy, float64(addresses), "address")
	to.Count(rateLimited, uint64(s.Rates.Refused()))

	for _, path := range s.Metrics.Counted() {
		route, ok := table.Lookup(path)
		if !ok {
			continue
		}
		if p, ok := PlacesOf(route.Tool); ok {
			labels := metrics.LabelsOf("tool", path)
			to.GaugeOf(running, float64(p.Running), labels)
			to.GaugeOf(waiting, float64(p.Waiting), labels)
			to.GaugeOf(places, float64(p.Most), labels)
			to.GaugeOf(queue, float64(p.Queue), labels)
		}
	}
}

// collectKept sends the figures of the state, the audit and the tracer.
func (f Figures) collectKept(to metrics.Sink) {
	s := f.Of
	to.Whether(stateBroken, s.State.Broken() != nil)
	to.Whether(stateCutOff, s.State.CutOff() != nil)
	if written, ok := s.State.Figures(); ok {
		to.Durations(stateTook, written.Written)
		to.Count(stateFailed, written.Failed)
		if written.Bytes > 0 {
			to.Gauge(stateBytes, float64(written.Bytes))
		}
	}
	for kind, n := range s.Audit.Changes() {
		outcome := "ok"
		if kind.Failed {
			outcome = "failed"
		}
		to.Count(changes, n.Load(), kind.Action, outcome)
	}
	to.Count(changeRefused, s.Audit.Refused())
	to.Count(auditLost, s.Audit.Lost())
}

// Engines are the interpreters for scripts that the program contains.
func Engines() ([]engine.About, error) { return engine.Carried().List() }

// Switched returns how many tools of a generation are switched off, and how many others lack a grant that they need.
func Switched(g *wasmtools.Generation) (disabled, ungranted int) {
	for _, route := range g.Routes() {
		switch {
		case route.Ungranted:
			ungranted++
		case !route.Enabled:
			disabled++
		}
	}
	return disabled, ungranted
}

// Places are how many calls of a tool run and wait for their turn, and how many may do so.
type Places struct{ Running, Waiting, Most, Queue int }

// PlacesOf returns the Places of a tool. It returns false for a tool of the program itself, whose calls never wait.
func PlacesOf(t *wasmtools.Tool) (p Places, ok bool) {
	counted, ok := t.Caller.(interface {
		Places() (running, waiting, places, queue int)
	})
	if ok {
		p.Running, p.Waiting, p.Most, p.Queue = counted.Places()
	}
	return p, ok
}
