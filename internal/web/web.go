// Package web has what every HTTP door of the service needs: request ids, the request log, recovery from panics, allowed hosts and origins,
// authorisation before routing, error bodies, ETags, streams and probes.
//
// A [Mux] passes each request to the [Door] that is mounted at the beginning of its path. The door gets an [Exchange], the request with its response,
// and answers with its methods. The doors themselves are in other packages, such as openapi for REST.
package web

import (
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/naming"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Door answers the requests for its part of the paths. The Mux does what a door could forget: a request reaches the door only if its host is
// allowed, if it doesn't come from a page of another origin, and if its principal is known. Reading more than 1 MiB of the body of [Exchange.Request]
// fails. A door with other needs has one more method, which Mount calls once:
//
//	Policy() Policy
//
// A door that may be switched off has another method, which is called concurrently and must be fast. If it returns true for a request's generation,
// which is nil without a table, the request is answered as if the door did not exist:
//
//	IsOff(g *wasmtools.Generation) bool
type Door interface {
	// Serve answers one request. It is called concurrently. A panic is answered with CodeInternal, and logged.
	Serve(x *Exchange)
}

// Options are the settings of a Mux. The zero value is usable.
type Options struct {
	// Access says which hosts requests may name and which pages may make them. It is checked before the Dependencies. If nil, it is the Access of the
	// zero AccessOptions: requests may name any host, and pages of other origins may make none.
	Access *Access
	// Dependencies are checked in the given order. The first refusal is the answer.
	Dependencies []Dependency
	// Table is the doors' table. What a request sees of it, and the request's principal, belong to one moment. If the Value of its configuration
	// is an [Admitter], that replaces Access and Dependencies. If Table is nil, the doors manage their own tables.
	Table *wasmtools.RouteTable
	// Closed returns an error once no new requests are to be answered, except probes. It is called concurrently. If nil, requests are always
	// answered.
	Closed func() error
	// Logger gets a line for each request, with the cause of a failure. The log comes before the other observers. If nil, nothing is logged.
	Logger *slog.Logger
	// Observers are told of each request, in the given order.
	Observers []Observer
	// Tracer is told before the log and all other observers. [Exchange.Trace] is for it. If nil, requests are not traced.
	Tracer Observer
	// Ready returns why the service is not ready, or nil. While it returns an error, /readyz answers 503. The error is
	// logged, not shown. Ready is called concurrently. If nil, always ready.
	Ready func() error
	// Condition returns what /readyz reports about a ready service. It is called concurrently. If nil, it reports nothing.
	Condition func() Condition
	// StreamWrite is how long the client of a stream may take to read a part of it, at most 64 KiB. Zero means 10 seconds.
	StreamWrite time.Duration
	// Socket returns the connection of a request, or nil. It is called concurrently. If nil, no connection is known, and the system's defaults decide
	// how much is buffered for clients that do not read.
	Socket func(*http.Request) *net.TCPConn
}

// A Mux serves the doors of one service, and the probes /healthz and /readyz. It is an http.Handler, safe for
// concurrent use once all doors are mounted.
type Mux struct {
	admission   *Admission            // unless the table has one
	table       *wasmtools.RouteTable // or nil
	closed      func() error          // or nil
	observers   []Observer
	log         *requestLog // the observer that writes the log, or nil
	traced      bool        // requests have a trace.Request
	ready       func() error
	condition   func() Condition
	fixed       headers
	began       time.Time // when the Mux was made; durations since then take less memory than times
	mounts      []mount   // the longest prefixes first
	streams     streams
	streamWrite time.Duration
	socket      func(*http.Request) *net.TCPConn // or nil
}

var _ http.Handler = (*Mux)(nil)

// A mount is a mounted door.
type mount struct {
	path   string // the path at which it was mounted; if empty, there is no door
	prefix string // begins with a slash and does not end with one; if empty, every path
	exact  bool   // tools may have the paths below it
	door   Door
	off    func(*wasmtools.Generation) bool // nil: never
	policy Policy
}

// headers are header values that responses share. They never change.
type headers struct {
	json, nosniff, noStore, noCache, gzip []string
	varies                                []string // what lists depend on: the caller, and the accepted encodings
}

// NewMux returns a Mux without doors. It panics if a dependency is nil, or if a security scheme has a bad name or is not a
// JSON object.
func NewMux(o Options) *Mux {
	m := &Mux{
		table:       o.Table,
		closed:      o.Closed,
		ready:       o.Ready,
		condition:   o.Condition,
		admission:   NewAdmission(o.Access, o.Dependencies...),
		streamWrite: o.StreamWrite,
		socket:      o.Socket,
		began:       time.Now(),
		fixed: headers{
			json:    []string{"application/json"},
			nosniff: []string{"nosniff"},
			noStore: []string{"no-store"},
			noCache: []string{"no-cache"},
			varies:  []string{"Authorization", "Accept-Encoding"},
			gzip:    []string{"gzip"},
		},
	}
	if m.traced = o.Tracer != nil; m.traced {
		m.observers = append(m.observers, o.Tracer)
	}
	if o.Logger != nil {
		m.log = &requestLog{logger: o.Logger, refusals: refusals{log: o.Logger, recent: map[refused]*refusal{}}}
		m.observers = append(m.observers, m.log)
	}
	m.observers = append(m.observers, o.Observers...)
	if m.streamWrite <= 0 {
		m.streamWrite = defaultStreamWrite
	}
	m.streams.open = map[*stream]struct{}{}
	return m
}

// Mount makes door answer the requests for path and everything below it, except what is mounted at a longer path. "/" means every path, and "/{$}"
// the path "/" alone. Any other path must be one that no tool can have ([naming.Reserved]): one of the service's own, such as "/admin", or one with a
// character that names of tools can't have, such as "/hello.api". If tools can be below it, the door answers that path alone, or as its policy says.
// Mount must not be called after the Mux has begun to serve. It panics if the path is not of the form "/a/b", may be a tool's, or has a door already.
func (m *Mux) Mount(path string, door Door) {
	prefix := strings.TrimSuffix(path, "/")
	at, below := naming.Reserved(path)
	if path == root {
		path, prefix, below = "/", "/", false
	}
	switch {
	case door == nil:
		panic("web.Mux.Mount: the door is nil")
	case path != "/" && (path != prefix || !strings.HasPrefix(path, "/")), isProbe(path):
		panic("web.Mux.Mount: cannot mount a door at " + path)
	case !at:
		panic("web.Mux.Mount: a door at " + path + " would hide tools; use a path that no tool can have, such as " + path + ".api")
	case slices.ContainsFunc(m.mounts, func(m mount) bool { return m.prefix == prefix }):
		panic("web.Mux.Mount: two doors at " + path)
	}
	next := mount{path: path, prefix: prefix, exact: !below, door: door}
	if d, ok := door.(interface{ Policy() Policy }); ok {
		next.policy = d.Policy()
	}
	if d, ok := door.(interface {
		IsOff(*wasmtools.Generation) bool
	}); ok {
		next.off = d.IsOff
	}
	if next.policy.Open && next.policy.Role != "" {
		panic("web.Mux.Mount: the door at " + path + " is open, and asks for a role")
	}
	m.mounts = append(m.mounts, next)
	slices.SortStableFunc(m.mounts, func(a, b mount) int { return len(b.prefix) - len(a.prefix) })
}

// root is the pattern for the path "/" alone, as in net/http.
const root = "/{$}"

// noDoor answers requests for which there is no door.
var noDoor = mount{door: missing{}}

type missing struct{}

// Serve answers 404.
func (missing) Serve(x *Exchange) { x.Fail(&wasmtools.Error{Code: wasmtools.CodeNotFound}) }

// mountOf returns the mounted door for a request with this generation.
func (m *Mux) mountOf(r *http.Request, g *wasmtools.Generation) *mount {
	for i := range m.mounts {
		if at := &m.mounts[i]; at.covers(r) && (at.off == nil || !at.off(g)) {
			return at
		}
	}
	return &noDoor
}

func (m *mount) covers(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, m.prefix)
	if !ok || rest == "" || m.prefix == "" {
		return ok
	}
	return rest[0] == '/' && (!m.exact || m.policy.Below && (r.Method == http.MethodGet || r.Method == http.MethodHead))
}

// Close ends the streams and logs what has not been logged yet. The Mux can still serve afterwards. Close returns nil and can be called twice.
func (m *Mux) Close() error {
	m.EndStreams()
	if m.log != nil {
		m.log.refusals.close()
	}
	return nil
}

// ServeHTTP answers one request.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &Exchange{w: w, mux: m, request: r, start: time.Since(m.began)}
	x.setID()
	defer x.finish()
	probe := isProbe(r.URL.Path)
	if !probe {
		g, _ := m.now()
		x.at = m.mountOf(r, g)
		x.boundBody()
		if m.traced {
			x.trace = newTrace(r)
		}
		x.call.Door, x.call.RequestID, x.call.Times = x.at.path, x.id[0], &x.times
	}
	if (probe || r.Method == http.MethodOptions) && x.admitAnybody(probe) {
		return
	}
	// Callers who may not call a tool must not learn which paths exist, so this comes before routing.
	if !probe {
		err := x.admit()
		for at := m.mountOf(r, x.in.generation); at != x.at; at = m.mountOf(r, x.in.generation) { // the door was switched on or off meanwhile
			x.at, x.call.Door = at, at.path
			err = x.admit()
		}
		if err != nil {
			x.Fail(err)
			return
		}
	}
	// In the decoded path that doors look at, an encoded slash is like any other. A proxy in front that decides by the path
	// may see it differently.
	if raw := r.URL.RawPath; raw != "" && strings.Contains(strings.ToLower(raw), "%2f") {
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeNotFound})
		return
	}
	if probe {
		answerProbe(x)
	} else {
		if r.Method != http.MethodOptions {
			w.Header()["Cache-Control"] = m.fixed.noStore // for doors that don't set it
		}
		x.at.door.Serve(x)
	}
}

// Tell tells the log and the other observers of a request that came without HTTP.
func (m *Mux) Tell(a Message) {
	if len(m.observers) == 0 {
		return
	}
	x := &Exchange{mux: m, start: a.Began.Sub(m.began), operation: a.Operation, tool: a.Tool, call: *a.Call, failed: a.Error, trace: a.Trace}
	x.id[0] = a.Call.RequestID
	for _, o := range m.observers {
		o.Answered((*Answer)(x))
	}
}
