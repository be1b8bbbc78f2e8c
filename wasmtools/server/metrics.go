package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/events"
	"github.com/toolsrv/toolsrv/internal/listen"
	"github.com/toolsrv/toolsrv/internal/mcp"
	"github.com/toolsrv/toolsrv/internal/metrics"
	"github.com/toolsrv/toolsrv/internal/metrics/counters"
	"github.com/toolsrv/toolsrv/internal/origin"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// metricsPath is the path that Prometheus requests.
const metricsPath = "/metrics"

// scrapes is how many answers may be made at the same time: each takes some megabytes.
const scrapes = 2

// A metricsDoor answers Prometheus.
type metricsDoor struct {
	handler http.Handler
	server  *Server // nil if anybody may read the metrics
}

// Serve answers callers with the role, or everybody if no credentials are needed.
func (d metricsDoor) Serve(x *web.Exchange) {
	if d.server != nil && !d.server.inForce().auth.Open() {
		if err := web.Require(x.Call().Principal, wasmtools.RoleMetrics); err != nil {
			x.Fail(err)
			return
		}
	}
	if x.Allow(http.MethodGet, http.MethodHead) {
		x.SetOperation("metrics")
		web.ServePacked(x, d.handler)
	}
}

// openMetrics opens the door for Prometheus, and sends the same metrics to an OpenTelemetry collector, as far as these are switched on.
func openMetrics(ctx context.Context, s *Server, c *config.Config) error {
	if !core.Counts(c) {
		return nil
	}
	engines, err := core.Engines()
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		s.service.Metrics.Collector(),
		core.Figures{Of: s.service},
		figures{s, admin.ThisBuild(), engines},
		s.requests,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	if s.service.Tracer != nil {
		s.service.Tracer.Gather(registry)
	}
	if !c.Metrics.Enabled {
		return nil
	}
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: scrapes, DisableCompression: true})
	if c.Metrics.Address == "" {
		s.mount(metricsPath, metricsDoor{handler, s})
		return nil
	}
	s.metrics, err = openMetricsServer(ctx, s, handler, c.Metrics.Address)
	return err
}

// A metricsServer answers Prometheus at a separate address.
type metricsServer struct {
	http    *http.Server
	web     *web.Mux
	stop    context.CancelFunc
	serving sync.WaitGroup
}

// mostScrapers is how many clients may be connected at the separate address.
const mostScrapers = 64

// scraperIdle is how long such a client may be connected without a request, so that others soon get its place.
const scraperIdle = 2 * time.Second

// openMetricsServer listens at the separate address. If the server replaces another process that listens there, it waits until that one has ended.
func openMetricsServer(ctx context.Context, s *Server, handler http.Handler, address string) (*metricsServer, error) {
	host, ok := origin.ParseHost(address)
	access, err := web.NewAccess(web.AccessOptions{Loopback: ok && host.IsLoopback()})
	if err != nil {
		return nil, err
	}
	const setting = "metrics.address"
	listener, err := listen.TCP(ctx, address, setting)
	if err != nil && !s.awaited {
		return nil, err
	}
	if err != nil { // the previous process may still have the address
		s.logger.Warn("the metrics are served once their address is free", "error", err)
	}
	m := &metricsServer{web: web.NewMux(web.Options{Access: access, Logger: s.logger})}
	m.web.Mount(metricsPath, metricsDoor{handler: handler})
	m.http = &http.Server{Handler: m.web, ReadHeaderTimeout: scraperIdle, ReadTimeout: readTimeout, WriteTimeout: writeTimeout(s.started), IdleTimeout: scraperIdle,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn)}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	m.serving.Go(func() {
		for err != nil {
			select {
			case <-background.Done():
				return
			case <-time.After(time.Second):
				listener, err = listen.TCP(background, address, setting)
			}
		}
		s.logger.Info("metrics", "address", listener.Addr().String())
		if err := m.http.Serve(netutil.LimitListener(listener, mostScrapers)); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("the metrics are no longer served", "error", err)
		}
	})
	return m, nil
}

func (m *metricsServer) close() error {
	m.stop()
	err := m.http.Close()
	m.serving.Wait()
	return cmp.Or(err, m.web.Close())
}

// A requests is an observer that counts requests for Prometheus.
type requests struct {
	by       *counters.Map[requestKind, atomic.Uint64]
	versions []string // of MCP
}

// A requestKind is the door of a request, its operation and MCP version, as far as these are known, and its status: 0 if it was not over HTTP.
type requestKind struct {
	door, operation, version string
	status                   int
}

// kindsOfRequests is how many kinds have counters of their own, since a client on standard input can make up kinds.
const kindsOfRequests = 1000

var (
	_ web.Observer         = (*requests)(nil)
	_ prometheus.Collector = (*requests)(nil)
)

func newRequests() *requests {
	return &requests{counters.New[requestKind, atomic.Uint64](kindsOfRequests, requestKind{door: metrics.Others}), mcp.Versions()}
}

// Answered counts a request.
func (r *requests) Answered(a *web.Answer) {
	kind := requestKind{door: a.Door(), operation: a.Operation(), status: a.Status()}
	if q := a.Request(); q != nil && kind.door == mcp.Path {
		if v := q.Header.Get("Mcp-Protocol-Version"); slices.Contains(r.versions, v) {
			kind.version = v
		}
	}
	r.by.Of(kind).Add(1)
}

var (
	allRequests = metrics.Describe("requests_total", "Answered requests, by the path of their door, what they did, the MCP version, and the status.", "door", "operation", "version", "status")
	isReady     = metrics.Describe("ready", "Whether the server is ready for calls: 1 or 0.")
	clients     = metrics.Describe("connections", "Connections of clients.")
	mostClients = metrics.Describe("connections_limit", "How many clients may be connected.")
	began       = metrics.Describe("start_timestamp_seconds", "When the server started.")
	sessions    = metrics.Describe("mcp_sessions", "Sessions of MCP.")
	listeners   = metrics.Describe("event_listeners", "Clients that are listening to events.")
	streams     = metrics.Describe("mcp_streams", "Streams of changes that MCP clients have open.")
	reloaded    = metrics.Describe("reloads_total", "How often the configuration was read again, by outcome.", "outcome")
	reloadedAt  = metrics.Describe("reload_timestamp_seconds", "When the configuration came into force.")
	notReloaded = metrics.Describe("reload_failed", "Whether the configuration could not be put in force when it was last read: 1 or 0.")
	carried     = metrics.Describe("engine_info", "An interpreter that the program carries for scripts: always 1.", "engine", "version")
	build       = metrics.Describe("build_info", "The program: always 1.", "version", "revision", "go")
)

// Describe sends no descriptions, because this collector's metrics come and go.
func (r *requests) Describe(chan<- *prometheus.Desc) {}

// Collect sends the number of requests of each kind.
func (r *requests) Collect(to chan<- prometheus.Metric) {
	for kind, n := range r.by.All() {
		metrics.Sink(to).Count(allRequests, n.Load(), kind.door, kind.operation, kind.version, strconv.Itoa(kind.status))
	}
}

// figures collects the metrics of the server itself.
type figures struct {
	of      *Server
	build   admin.Build
	engines []engine.About
}

// Describe sends no descriptions.
func (f figures) Describe(chan<- *prometheus.Desc) {}

// Collect sends them.
func (f figures) Collect(out chan<- prometheus.Metric) {
	to := metrics.Sink(out)
	s := f.of
	to.Whether(isReady, s.ready() == nil)
	to.Gauge(clients, float64(s.conns.clients()))
	to.Gauge(mostClients, float64(s.conns.most))
	to.When(began, s.service.Began)
	at := s.service.Began
	if ms := s.reloads.at.Load(); ms != 0 {
		at = time.UnixMilli(ms)
	}
	to.When(reloadedAt, at)
	to.Count(reloaded, s.reloads.ok.Load(), "ok")
	to.Count(reloaded, s.reloads.failed.Load(), "failed")
	to.Count(reloaded, s.reloads.prevented.Load(), "not_audited")
	to.Whether(notReloaded, s.reloads.last.Load())
	for _, e := range f.engines {
		to.Gauge(carried, 1, e.Name, e.Version)
	}
	to.Gauge(build, 1, f.build.Version, f.build.Revision, runtime.Version())
	for _, d := range s.doors {
		switch d := d.(type) {
		case mcpDoor:
			open, inUse := d.State()
			to.Gauge(sessions, float64(open))
			to.Gauge(streams, float64(inUse))
		case *events.Door:
			to.Gauge(listeners, float64(d.State()))
		}
	}
}
