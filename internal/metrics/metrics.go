// Package metrics counts calls by tool: in the last hour, for those who look at the server without another program, and for Prometheus.
package metrics

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/fault"
	"github.com/toolsrv/toolsrv/internal/metrics/counters"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// Others stands in place of a path for all tools that have no figures of their own. It can't be a tool's path, since paths begin with a slash.
const Others = "other"

// DefaultTools is the default of Options.Tools.
const DefaultTools = 1000

// Options are the settings of Metrics.
type Options struct {
	// Table is the route table with the tools that are served.
	Table *wasmtools.RouteTable
	// Tools is how many tools have figures of their own: the ones that are called most. All others share their figures. Zero means DefaultTools.
	Tools int
	// Prometheus says whether to count what a [Collector] collects, too, and not only the last hour.
	Prometheus bool
	// Principals says whether to count calls by caller, too.
	Principals bool
}

// Metrics are an observer of calls. They are safe for concurrent use.
type Metrics struct {
	table    *wasmtools.RouteTable
	detailed bool
	byCaller *callers               // nil if calls are not counted by caller
	outcomes map[wasmtools.Code]int // the indexes of codes in detail
	tools    sync.Map               // *wasmtools.Tool → *counted
	others   *figures               // shared by the tools without figures of their own
	stop     context.CancelFunc
	stopped  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	byPath map[string]*counted
	free   int       // how many more tools may have figures of their own
	turns  int       // how many steps have ended
	turned time.Time // when the last step ended
}

// counted is a tool whose calls are counted. All its versions are counted together.
type counted struct {
	path string
	own  atomic.Pointer[figures] // nil if it is counted among the others
	// busy is how many calls there were since compare last ran.
	busy atomic.Uint64
}

// figures are the figures of one tool, or of all others together.
type figures struct {
	path string // the path of the tool, or Others
	hour hour
	*detail
}

var _ invoke.Observer = (*Metrics)(nil)

// New returns Metrics, which the caller must close.
func New(o Options) *Metrics {
	ctx, stop := context.WithCancel(context.Background())
	m := &Metrics{table: o.Table, detailed: o.Prometheus, outcomes: map[wasmtools.Code]int{}, stop: stop, byPath: map[string]*counted{}, free: cmp.Or(o.Tools, DefaultTools), turned: time.Now()}
	for i, code := range fault.Codes() {
		m.outcomes[code] = i + 1
	}
	if o.Prometheus && o.Principals {
		m.byCaller = counters.New[caller, called](mostCallers, caller{name: Others})
	}
	m.others = m.figuresOf(Others)
	m.stopped.Go(func() { m.run(ctx) })
	return m
}

// Close stops the goroutine that ends the steps. A second Close does nothing.
func (m *Metrics) Close() {
	m.stop()
	m.stopped.Wait()
}

func (m *Metrics) run(ctx context.Context) {
	tick := time.NewTicker(Step)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			m.turn()
		}
	}
}

// turn ends a step of the last hour.
func (m *Metrics) turn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns++
	m.turned = time.Now()
	m.others.hour.turn(m.turns)
	for _, c := range m.byPath {
		if f := c.own.Load(); f != nil {
			f.hour.turn(m.turns)
		}
	}
	m.forget()
	m.compare()
}

// forget frees the memory of tools that are no longer served. It keeps figures for an hour after the last call, since the service's own tools are in
// no table. m.mu is held.
func (m *Metrics) forget() {
	g := m.table.Current()
	m.tools.Range(func(key, _ any) bool {
		t := key.(*wasmtools.Tool)
		if route, ok := g.Lookup(t.Path()); !ok || route.Tool != t {
			m.tools.Delete(t)
		}
		return true
	})
	for path, c := range m.byPath {
		f := c.own.Load()
		if _, served := g.Lookup(path); served || c.busy.Load() > 0 || f != nil && !f.hour.empty() {
			continue
		}
		delete(m.byPath, path)
		if f != nil {
			m.free++
		}
	}
}

// compare gives figures of their own to the tools that are called most. A tool loses its figures only to a tool that is called at least twice as
// often, so that figures don't come and go. m.mu is held.
func (m *Metrics) compare() {
	type ranked struct {
		*counted
		busy uint64
	}
	var with, without []ranked
	for _, c := range m.byPath {
		busy := c.busy.Swap(0)
		if c.own.Load() != nil {
			with = append(with, ranked{c, busy})
		} else if busy > 0 {
			without = append(without, ranked{c, busy})
		}
	}
	if len(without) == 0 {
		return
	}
	slices.SortFunc(with, func(a, b ranked) int { return cmp.Compare(a.busy, b.busy) })
	slices.SortFunc(without, func(a, b ranked) int { return cmp.Compare(b.busy, a.busy) })
	for _, c := range without {
		if m.free == 0 {
			if len(with) == 0 || c.busy < 2*with[0].busy {
				return
			}
			with[0].own.Store(nil)
			with = with[1:]
			m.free++
		}
		m.free--
		c.own.Store(m.figuresOf(c.path))
	}
}

func (m *Metrics) figuresOf(path string) *figures {
	f := &figures{path: path}
	if m.detailed {
		f.detail = newDetail(len(m.outcomes) + 1)
	}
	return f
}

// of returns the entry of a tool.
func (m *Metrics) of(t *wasmtools.Tool) *counted {
	if c, ok := m.tools.Load(t); ok {
		return c.(*counted)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	path := t.Path()
	c := m.byPath[path]
	if c == nil {
		c = &counted{path: path}
		m.byPath[path] = c
		if m.free > 0 {
			m.free--
			c.own.Store(m.figuresOf(path))
		}
	}
	m.tools.Store(t, c)
	return c
}

// figures returns the figures in which a call of the tool is counted.
func (m *Metrics) figures(t *wasmtools.Tool) *figures {
	if t == nil {
		return m.others
	}
	c := m.of(t)
	c.busy.Add(1)
	return cmp.Or(c.own.Load(), m.others)
}

// outcome returns the index of a code in detail.
func (m *Metrics) outcome(r *invoke.Record) int {
	if r.Error == nil {
		return 0
	}
	return m.outcomes[r.Error.Code]
}

// Began does nothing: calls that have not ended are counted elsewhere.
func (m *Metrics) Began(ctx context.Context, _ *invoke.Record) context.Context { return ctx }

// Ended counts a call.
func (m *Metrics) Ended(_ context.Context, r *invoke.Record) {
	f := m.figures(r.Tool)
	f.hour.add(r.Took, r.Error != nil, r.Fuel)
	if f.detail == nil {
		return
	}
	f.ended(m.outcome(r), r)
	if m.byCaller != nil {
		addTo(m.byCaller, r.Principal, r.Error)
	}
}

// Refused counts a call that was refused.
func (m *Metrics) Refused(r *invoke.Record) {
	f := m.figures(r.Tool)
	f.hour.refuse()
	if f.detail == nil {
		return
	}
	f.refused[m.outcome(r)].Add(1)
	if m.byCaller != nil {
		addTo(m.byCaller, r.Principal, r.Error)
	}
}
