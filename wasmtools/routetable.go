package wasmtools

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/text"
)

// A RouteTable is the set of tools that a service serves, with their switches. Every change makes a new
// [Generation] and swaps it in whole. All methods are safe for concurrent use.
type RouteTable struct {
	current atomic.Pointer[Generation]
	coming  atomic.Pointer[func(path string) bool] // nil: none is

	mu          sync.Mutex     // guards what follows, and the order of generations
	entries     []entry        // sorted by path
	byPath      map[string]int // indexes of entries; like refused, it is shared with generations, and never changes
	refused     []Refusal
	switches    switches
	value       any // of the configuration
	epoch       uint64
	followers   []*follower
	subscribers []*func(*Generation)
}

// An entry is a tool with its path and operation id, which take allocations to make.
type entry struct {
	path, id string
	tool     *Tool
	print    *fingerprint
}

// A Route is a tool with its switch.
type Route struct {
	Tool *Tool
	// Path is the tool's, such as "/math/add".
	Path string
	// Enabled is whether the tool is listed and can be called: nobody has switched it off, and it was granted what it needs.
	Enabled bool
	// Ungranted is whether the only reason why the tool is not enabled is that it lacks something: its Missing says what.
	Ungranted bool
	// Reason says why the tool is switched off, or is empty.
	Reason string

	print *fingerprint // nil if the route is in no table
}

// A Refusal is a file that holds no tool that can be served.
type Refusal struct {
	// Source is the file's path.
	Source string
	// Err says what is wrong, where, and what to do.
	Err error
}

// A Generation is a RouteTable at one moment. It never changes.
type Generation struct {
	number    uint64
	published time.Time
	routes    []Route // sorted by path
	byPath    map[string]int
	refused   []Refusal
	switches  []Switch
	value     any    // of the configuration
	epoch     uint64 // changes with each configuration and each switch, but not with the tools
	table     *RouteTable
	made      []made
}

// A Configuration holds the decisions of a service's operator, as far as they concern a table.
type Configuration struct {
	// Policy says which tools start enabled. Enable and Disable still override it.
	Policy Policy
	// Value is the rest of the configuration, such as who is let in: [Generation.Configuration] returns it. The table doesn't look at it. It must not
	// change from now on.
	Value any
}

// A Switch records that [RouteTable.Enable] or [RouteTable.Disable] was called for a tool, or for a namespace and all namespaces below it.
type Switch struct {
	// Scope is the path, such as "/math" or "/math/add"; "/" is all tools.
	Scope   string
	Enabled bool
	// Reason says why it is disabled, or is empty.
	Reason string
	// Since is when the method was called.
	Since time.Time
	// By says who switched it, or is empty if the program did.
	By string
}

// NewRouteTable returns a table of tools, all enabled. It fails as Replace does.
func NewRouteTable(tools ...*Tool) (*RouteTable, error) {
	r := &RouteTable{}
	r.current.Store(&Generation{})
	if err := r.Replace(tools, nil); err != nil {
		return nil, err
	}
	return r, nil
}

// Current returns the current generation.
func (r *RouteTable) Current() *Generation { return r.current.Load() }

// Tools returns all tools with their switches, sorted by path. The slice is shared and must not be changed.
func (r *RouteTable) Tools() []Route { return r.Current().Routes() }

// Lookup returns the tool that is served at a path such as "/math/add".
func (r *RouteTable) Lookup(path string) (Route, bool) { return r.Current().Lookup(path) }

// Replace replaces the whole content of the table: tools are the tools that it serves, and refused are the files that it reports.
// Switches stay as they are: a disabled tool stays disabled when its file is replaced. It fails, and changes nothing, where a tool has
// no valid name, no parameters or no caller, or two have the same path or operation id. With many tools it is fastest if they are sorted
// by path.
func (r *RouteTable) Replace(tools []*Tool, refused []Refusal) error {
	return r.replace(tools, refused, nil)
}

// Configure does what Replace does, together with a new configuration. Both changes are in one generation: nobody ever sees only one of
// them. Enable and Disable still override the configuration's policy.
func (r *RouteTable) Configure(tools []*Tool, refused []Refusal, c Configuration) error {
	return r.replace(tools, refused, &c)
}

func (r *RouteTable) replace(tools []*Tool, refused []Refusal, c *Configuration) error {
	refused = slices.Clone(refused)
	r.mu.Lock()
	defer r.mu.Unlock()
	entries, samePaths, err := r.entriesOf(tools)
	if err != nil {
		return err
	}
	byPath := r.byPath
	if !samePaths {
		if byPath, err = placesOf(entries); err != nil {
			return err
		}
	}
	r.entries, r.byPath, r.refused = entries, byPath, refused
	if c != nil {
		r.switches.initial, r.value = newInitial(c.Policy), c.Value
		r.epoch++
	}
	r.publish()
	return nil
}

// entriesOf returns the entries of tools, sorted by path. Tools that are already in the table are not checked again: entriesOf finds these
// by walking both sorted lists at once. samePaths is whether all paths are the same as before. r.mu is held.
func (r *RouteTable) entriesOf(tools []*Tool) (entries []entry, samePaths bool, err error) {
	entries = make([]entry, len(tools))
	samePaths = len(tools) == len(r.entries) && r.byPath != nil
	n := 0
	for i, t := range tools {
		if n < len(r.entries) && r.entries[n].tool == t {
			entries[i] = r.entries[n]
			n++
			continue
		}
		path := t.Path()
		for n < len(r.entries) && r.entries[n].path < path {
			n++
		}
		switch {
		case n < len(r.entries) && r.entries[n].tool == t:
			entries[i] = r.entries[n]
		default:
			if err := t.Check(); err != nil {
				return nil, false, err
			}
			entries[i] = entry{path, t.OperationID(), t, &fingerprint{}}
		}
		if n < len(r.entries) && r.entries[n].path == path {
			n++
		}
	}
	byPath := func(a, b entry) int { return strings.Compare(a.path, b.path) }
	if !slices.IsSortedFunc(entries, byPath) {
		slices.SortStableFunc(entries, byPath)
	}
	samePaths = samePaths && slices.EqualFunc(entries, r.entries, func(a, b entry) bool { return a.path == b.path })
	return entries, samePaths, nil
}

// placesOf returns the index of each entry by its path. It fails if two entries have the same path or
// operation id.
func placesOf(entries []entry) (byPath map[string]int, err error) {
	byPath = make(map[string]int, len(entries))
	operations := make(map[string]*Tool, len(entries))
	for i, e := range entries {
		if first, ok := operations[e.id]; ok { // the same path means the same id
			return nil, Conflict(first, e.tool)
		}
		operations[e.id] = e.tool
		byPath[e.path] = i
	}
	return byPath, nil
}

// Enable switches on a tool, such as "/math/add", or all tools of a namespace and of those below it; "/" means all tools. The first slash
// may be missing. Tools that appear in the namespace later are on, too. Enable fails with CodeNotFound if the table has no such tool or
// namespace.
func (r *RouteTable) Enable(path string) error {
	return r.change(path, change{enabled: true, since: time.Now()})
}

// Disable switches a tool or a namespace off, as Enable switches it on. Running calls finish; later ones get CodeToolDisabled and the
// reason, which may be empty.
func (r *RouteTable) Disable(path, reason string) error {
	return r.change(path, change{reason: reason, since: time.Now()})
}

// Switch applies switches, in their order, and undoes what was switched at the scopes in reset and below them, all in one generation.
// Unlike with Enable and Disable, it is not an error if the table has no tool for a switch: one may be added later.
func (r *RouteTable) Switch(set []Switch, reset []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range set {
		r.switches.set(scopeOf(s.Scope), change{enabled: s.Enabled, reason: s.Reason, since: s.Since, by: s.By})
	}
	for _, scope := range reset {
		r.switches.reset(scopeOf(scope))
	}
	r.epoch++
	r.publish()
}

func (r *RouteTable) change(path string, c change) error {
	scope := scopeOf(path)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(r.entries, func(e entry) bool { return covers(scope, e.path) }) {
		return &Error{Code: CodeNotFound, Message: fmt.Sprintf("no tool or namespace is named %q", text.Short(path))}
	}
	r.switches.set(scope, c)
	r.epoch++
	r.publish()
	return nil
}

// Subscribe calls f with each new generation, before the change that made it returns. Calls come one at a
// time and in order; f must change neither the table nor its subscriptions. A change between a look at Current and
// Subscribe would be missed: subscribe first, then take Current, and drop the older of two generations by Number.
// The returned function ends the subscription; once it has returned, f is not called any more.
func (r *RouteTable) Subscribe(f func(*Generation)) (unsubscribe func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := &f
	r.subscribers = append(r.subscribers, entry)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.subscribers = slices.DeleteFunc(r.subscribers, func(e *func(*Generation)) bool { return e == entry })
	}
}

// SetComing sets the function that reports whether a path that has no tool may have one in a moment, because files are still being read;
// the path "/" stands for any path at all. The function is called concurrently, and must be fast. Before SetComing, the answer is no for every path.
func (r *RouteTable) SetComing(coming func(path string) bool) { r.coming.Store(&coming) }

// publish builds the next generation and everything that is derived from it, swaps it in and calls the subscribers. r.mu is held, so that generations
// reach everybody in order.
func (r *RouteTable) publish() {
	before := r.Current()
	g := &Generation{
		number:    before.number + 1,
		published: time.Now(),
		routes:    make([]Route, len(r.entries)),
		byPath:    r.byPath,
		refused:   r.refused,
		switches:  r.switches.list(),
		value:     r.value,
		epoch:     r.epoch,
		table:     r,
	}
	for i, e := range r.entries {
		route := &g.routes[i]
		route.Tool, route.Path, route.print = e.tool, e.path, e.print
		route.Enabled, route.Reason = r.switches.state(e.path)
		if route.Enabled && len(e.tool.Missing) > 0 {
			route.Enabled, route.Ungranted = false, true
		}
	}
	g.made = r.makeAll(g, before.made)
	r.current.Store(g)
	for _, f := range r.subscribers {
		(*f)(g)
	}
}

// Number counts the generations of a table, from 1; a later one has a higher number.
func (g *Generation) Number() uint64 { return g.number }

// Published returns when the generation took the place of the one before it.
func (g *Generation) Published() time.Time { return g.published }

// Configuration returns the Value of the [Configuration] that the generation belongs to, or nil.
func (g *Generation) Configuration() any {
	if g == nil {
		return nil
	}
	return g.value
}

// SameConfiguration reports whether two generations of a table belong to the same configuration and switches. Their tools may
// differ, as files come and go.
func (g *Generation) SameConfiguration(other *Generation) bool {
	if g == nil || other == nil {
		return g == other
	}
	return g.epoch == other.epoch
}

// Routes returns all tools with their switches, sorted by path. The slice is shared and must not be changed.
func (g *Generation) Routes() []Route { return g.routes }

// Refused returns the files that could not be used. The slice is shared and must not be changed.
func (g *Generation) Refused() []Refusal { return g.refused }

// Coming reports whether a path that has no tool may have one in a moment: see [RouteTable.SetComing]. The answer is about the present,
// not about the time of the generation.
func (g *Generation) Coming(path string) bool {
	if g == nil || g.table == nil {
		return false
	}
	coming := g.table.coming.Load()
	return coming != nil && (*coming)(path)
}

// Switches returns the switches that Enable and Disable have set, sorted by scope. The most specific switch for a tool overrides the [Policy]. The
// slice is shared and must not be changed.
func (g *Generation) Switches() []Switch { return g.switches }

// Switch returns the switch that decides whether the tool at a path such as "/math/add" is enabled: its own, or a namespace's. It reports false
// if the policy decides.
func (g *Generation) Switch(path string) (Switch, bool) {
	at := -1
	for i := range g.switches {
		if s := &g.switches[i]; covers(s.Scope, path) && (at < 0 || len(s.Scope) > len(g.switches[at].Scope)) {
			at = i
		}
	}
	if at < 0 {
		return Switch{}, false
	}
	return g.switches[at], true
}

// Lookup returns the tool that is served at a path such as "/math/add". A nil generation has none.
func (g *Generation) Lookup(path string) (Route, bool) {
	if g == nil {
		return Route{}, false
	}
	i, ok := g.byPath[path]
	if !ok {
		return Route{}, false
	}
	return g.routes[i], true
}
