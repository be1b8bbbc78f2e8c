package wasmtools

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A RouteTable is the set of tools that a service serves, with their switches. Every change makes a new
// [Generation] and swaps it in whole. All methods are safe for concurrent use.
type RouteTable struct {
	current atomic.Pointer[Generation]

	mu          sync.Mutex // guards what follows, and the order of generations
	tools       []*Tool    // sorted by path
	refused     []Refusal
	policy      Policy
	switches    []change // in the order of their making; no entry is covered by a later one
	subscribers []*func(*Generation)
}

// A Route is a tool with its switch.
type Route struct {
	Tool    *Tool
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

// A Policy says which tools start enabled. The zero Policy enables all.
type Policy struct {
	// Allowlist, when true, lets only those start enabled that Enabled names; otherwise all start enabled
	// but those that Disabled names. Entries are namespaces (with those below) or tools: "web", "math/div".
	Allowlist bool
	Enabled   []string
	Disabled  []string
}

// change is one call of Enable or Disable.
type change struct {
	path    string // "/web" or "/math/div"
	enabled bool
	reason  string
}

// NewRouteTable returns a table of tools, all enabled. It fails as Replace does.
func NewRouteTable(tools ...*Tool) (*RouteTable, error) {
	r := &RouteTable{}
	r.current.Store(&Generation{byPath: map[string]int{}})
	if len(tools) == 0 {
		return r, nil
	}
	return r, r.Replace(tools, nil)
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
	tools = slices.Clone(tools)
	slices.SortStableFunc(tools, func(a, b *Tool) int { return strings.Compare(a.Path(), b.Path()) })
	operations := make(map[string]*Tool, len(tools))
	for _, t := range tools {
		if err := t.Check(); err != nil {
			return err
		}
		if first, ok := operations[t.OperationID()]; ok {
			return Conflict(first, t)
		}
		operations[t.OperationID()] = t
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tools, r.refused = tools, slices.Clone(refused)
	r.publish()
	return nil
}

// SetPolicy changes which tools start enabled. What Enable and Disable said still holds above it.
func (r *RouteTable) SetPolicy(p Policy) {
	p.Enabled, p.Disabled = slices.Clone(p.Enabled), slices.Clone(p.Disabled)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.policy = p
	r.publish()
}

// Enable switches a tool ("/math/add", the first slash may be missing) or all tools of a namespace and those below it on.
// Tools that appear in the namespace later are on, too. It fails where the table has neither.
func (r *RouteTable) Enable(path string) error {
	return r.change(change{path: path, enabled: true})
}

// Disable switches a tool or a namespace off, as Enable switches it on. Calls that run are not cut off; later
// ones are answered with CodeToolDisabled and the reason, which may be empty.
func (r *RouteTable) Disable(path, reason string) error {
	return r.change(change{path: path, reason: reason})
}

func (r *RouteTable) change(c change) error {
	c.path = "/" + strings.Trim(c.path, "/")
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(r.tools, func(t *Tool) bool { return covers(c.path, t.Path()) }) {
		return &Error{Code: CodeNotFound, Message: fmt.Sprintf("there is no tool and no namespace %q", c.path)}
	}
	// A new switch takes the place of those it covers, so that their number stays below that of the paths.
	r.switches = append(slices.DeleteFunc(slices.Clone(r.switches), func(old change) bool { return covers(c.path, old.path) }), c)
	r.publish()
	return nil
}

// Subscribe has f called with each new generation, before the change that made it returns. Calls come one at a
// time and in order; f must not change the table. The returned function ends the subscription; once it has
// returned, f is not called any more.
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
		routes:  make([]Route, len(r.tools)),
		byPath:  make(map[string]int, len(r.tools)),
		refused: r.refused,
	}
	for i, t := range r.tools {
		path := t.Path()
		g.routes[i] = Route{Tool: t}
		g.routes[i].Enabled, g.routes[i].Reason = r.state(path)
		g.byPath[path] = i
	}
	r.current.Store(g)
	for _, f := range r.subscribers {
		(*f)(g)
	}
}

// state returns the switch of the tool at path: the newest change that covers it, or else the policy.
func (r *RouteTable) state(path string) (enabled bool, reason string) {
	for _, c := range slices.Backward(r.switches) {
		if covers(c.path, path) {
			return c.enabled, c.reason
		}
	}
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(entry string) bool { return covers("/"+strings.Trim(entry, "/"), path) })
	}
	if r.policy.Allowlist {
		return named(r.policy.Enabled), ""
	}
	return !named(r.policy.Disabled), ""
}

// covers reports whether the tool or namespace at scope is, or holds, the tool at path. "/" holds all.
func covers(scope, path string) bool {
	rest, ok := strings.CutPrefix(path, scope)
	return ok && (rest == "" || rest[0] == '/' || scope == "/")
}

// Number counts the generations of a table, from 1.
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
