package wasmtools

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/text"
)

// A RouteTable is the set of tools that a service serves, with their switches. Every change makes a new
// [Generation] and swaps it in whole. All methods are safe for concurrent use.
type RouteTable struct {
	current atomic.Pointer[Generation]

	mu          sync.Mutex     // guards what follows, and the order of generations
	entries     []entry        // sorted by path
	byPath      map[string]int // places in entries; like refused shared with generations and never changed
	refused     []Refusal
	switches    switches
	subscribers []*func(*Generation)
}

// An entry is a tool with its path, which takes an allocation to make.
type entry struct {
	path string
	tool *Tool
}

// A Route is a tool with its switch.
type Route struct {
	Tool *Tool
	// Path is the tool's, such as "/math/add".
	Path    string
	Enabled bool
	// Reason says why the tool is disabled, or is empty.
	Reason string
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
	number  uint64
	routes  []Route // sorted by path
	byPath  map[string]int
	refused []Refusal
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

// Current returns the generation of this moment.
func (r *RouteTable) Current() *Generation { return r.current.Load() }

// Tools returns all tools with their switches, sorted by path. The slice is shared and must not be changed.
func (r *RouteTable) Tools() []Route { return r.Current().Routes() }

// Lookup returns the tool that is served at a path such as "/math/add".
func (r *RouteTable) Lookup(path string) (Route, bool) { return r.Current().Lookup(path) }

// Replace makes tools the whole content of the table, and refused the files it reports. Switches stay as they
// are: a tool that was disabled is so after its file was replaced. It fails, and changes nothing, where a tool
// has no valid name, no parameters or no caller, or two have the same path or operation id.
func (r *RouteTable) Replace(tools []*Tool, refused []Refusal) error {
	entries := make([]entry, len(tools))
	for i, t := range tools {
		if err := t.Check(); err != nil {
			return err
		}
		entries[i] = entry{t.Path(), t}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	byPath := make(map[string]int, len(tools))
	operations := make(map[string]*Tool, len(tools))
	for i, e := range entries {
		id := e.tool.OperationID()
		if first, ok := operations[id]; ok { // the same path means the same id
			return Conflict(first, e.tool)
		}
		operations[id] = e.tool
		byPath[e.path] = i
	}
	refused = slices.Clone(refused)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries, r.byPath, r.refused = entries, byPath, refused
	r.publish()
	return nil
}

// SetPolicy changes which tools start enabled. What Enable and Disable said still holds above it.
func (r *RouteTable) SetPolicy(p Policy) {
	initial := newInitial(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.switches.initial = initial
	r.publish()
}

// Enable switches a tool ("/math/add", the first slash may be missing) or all tools of a namespace and of those below it
// on; "/" is all there are. Tools that appear in the namespace later are on, too. It fails with CodeNotFound where the
// table has neither.
func (r *RouteTable) Enable(path string) error { return r.change(path, change{enabled: true}) }

// Disable switches a tool or a namespace off, as Enable switches it on. Calls that run are not cut off; later
// ones are answered with CodeToolDisabled and the reason, which may be empty.
func (r *RouteTable) Disable(path, reason string) error {
	return r.change(path, change{reason: reason})
}

func (r *RouteTable) change(path string, c change) error {
	scope := scopeOf(path)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(r.entries, func(e entry) bool { return covers(scope, e.path) }) {
		return &Error{Code: CodeNotFound, Message: fmt.Sprintf("there is no tool and no namespace %q", text.Short(path))}
	}
	r.switches.set(scope, c)
	r.publish()
	return nil
}

// Subscribe has f called with each new generation, before the change that made it returns. Calls come one at a
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

// publish builds the next generation, swaps it in and tells the subscribers. r.mu is held, so that generations
// reach everybody in order.
func (r *RouteTable) publish() {
	g := &Generation{
		number:  r.Current().number + 1,
		routes:  make([]Route, len(r.entries)),
		byPath:  r.byPath,
		refused: r.refused,
	}
	for i, e := range r.entries {
		g.routes[i].Tool, g.routes[i].Path = e.tool, e.path
		g.routes[i].Enabled, g.routes[i].Reason = r.switches.state(e.path)
	}
	r.current.Store(g)
	for _, f := range r.subscribers {
		(*f)(g)
	}
}

// Number counts the generations of a table, from 1; a later one has a higher number.
func (g *Generation) Number() uint64 { return g.number }

// Routes returns all tools with their switches, sorted by path. The slice is shared and must not be changed.
func (g *Generation) Routes() []Route { return g.routes }

// Refused returns the files that could not be taken up. The slice is shared and must not be changed.
func (g *Generation) Refused() []Refusal { return g.refused }

// Lookup returns the tool that is served at a path such as "/math/add".
func (g *Generation) Lookup(path string) (Route, bool) {
	i, ok := g.byPath[path]
	if !ok {
		return Route{}, false
	}
	return g.routes[i], true
}
