// Package openapi is the HTTP application: it serves the tools of a route table and describes them.
//
// [NewApp] makes an http.Handler of a [wasmtools.RouteTable]. A tool answers POST under its path; /tools and
// /openapi.json list the enabled tools; /healthz and /readyz tell how the service is. docs/http.md is the
// reference of the interface.
//
// All that a request needs from the table is built when the table changes, into one value that never changes
// itself. A request loads it once, so that router, switches, lists and ETags always agree.
package openapi

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Dependency is a condition that every request but those for /healthz and /readyz must meet.
//
// A Dependency may also have a method SecurityScheme() (name string, scheme json.RawMessage): a name of the
// characters A-Z a-z 0-9 . _ - and an OpenAPI security scheme, a JSON object. They go into the document, and so
// does the requirement. Where it holds at times only, two more methods say when: Required() bool, which takes no lock,
// and Subscribe(changed func()) (unsubscribe func()), which has changed called before the change of Required returns.
// A Dependency made by package auth has all three.
type Dependency interface {
	// Check returns nil, or why the request is refused: an *wasmtools.Error is told to the client, any other
	// error counts as internal and is not shown. It must not read the body, and is called concurrently.
	Check(r *http.Request) error
}

// Options are the settings of an App. The zero value is usable.
type Options struct {
	// Title, Version and Description go into the document's info. Zero: "Tools", "0.1.0" and none.
	Title, Version, Description string
	// Servers are the addresses under which clients reach the application, such as "https://example.com/tools", or
	// "/tools" where a proxy serves it below a prefix of the same host. They go into the document. None: clients take
	// the root of the address from which they have the document.
	Servers []string
	// Dependencies are checked in this order; the first refusal is the answer.
	Dependencies []Dependency
	// Memory is how many bytes of bodies and results above 64 KiB all calls may hold at the same time; calls that
	// need more are answered with CodeOverloaded. One call alone may hold as much as its tool allows. Zero: 256 MiB.
	Memory int64
	// Logger receives a line for each request, and the causes of failures. Nil: nothing is logged.
	Logger *slog.Logger
	// Ready says why the service is not ready, and /readyz answers 503 then. Nil: always ready. The error is
	// logged, not shown. Ready is called concurrently.
	Ready func() error
	// Settled reports whether the table tells of every tool that there is. While it returns false, a path without a tool
	// is answered with 503 CodeNotReady, not with 404. Nil: always. Settled is called concurrently, and must be fast.
	Settled func() bool
}

// An App is the HTTP application of one route table. It is an http.Handler, safe for concurrent use.
type App struct {
	title, version, description string
	servers                     []documentServer

	dependencies []Dependency
	schemes      []scheme
	log          *slog.Logger
	ready        func() error
	settled      func() bool
	fixed        headers
	buffers      sync.Pool // of *buffer
	memory       *memory
	refusals     refusals
	unsubscribe  []func()

	mu    sync.Mutex // orders rebuilds; below the locks of the route table and of dependencies
	state atomic.Pointer[state]
}

var _ http.Handler = (*App)(nil)

// headers are values that responses share. Nobody writes to them.
type headers struct {
	json, nosniff, noStore, noCache, authorization []string
}

// NewApp returns the application of a table, which it follows until Close. A change of the table is visible to the
// next request once the change's method has returned. NewApp panics where table or a dependency is nil, and
// where a security scheme has a bad name or is no JSON object.
func NewApp(table *wasmtools.RouteTable, o Options) *App {
	if table == nil {
		panic("openapi.NewApp: table is nil; make one with wasmtools.NewRouteTable")
	}
	a := &App{
		title:        o.Title,
		version:      o.Version,
		description:  o.Description,
		dependencies: slices.Clone(o.Dependencies),
		schemes:      schemesOf(o.Dependencies),
		log:          o.Logger,
		ready:        o.Ready,
		settled:      o.Settled,
		fixed: headers{
			json:          []string{"application/json"},
			nosniff:       []string{"nosniff"},
			noStore:       []string{"no-store"},
			noCache:       []string{"no-cache"},
			authorization: []string{"Authorization"},
		},
		buffers: sync.Pool{New: func() any { return new(buffer) }},
		memory:  newMemory(o.Memory),
	}
	if a.title == "" {
		a.title = "Tools"
	}
	if a.version == "" {
		a.version = "0.1.0"
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.refusals = refusals{log: a.log, recent: map[refused]*refusal{}}
	for _, address := range o.Servers {
		// Clients put a path behind it, which begins with a slash.
		a.servers = append(a.servers, documentServer{URL: cmp.Or(strings.TrimRight(address, "/"), "/")})
	}
	// A change between subscribing and rebuilding is seen by both; the older of two generations is dropped.
	a.unsubscribe = append(a.unsubscribe, table.Subscribe(a.rebuild))
	for _, s := range a.schemes {
		if s.on != nil {
			a.unsubscribe = append(a.unsubscribe, s.on.Subscribe(a.secure))
		}
	}
	a.rebuild(table.Current())
	return a
}

// Close ends the subscriptions to the table and to the dependencies, and logs what it has not logged yet; the application goes on to serve what it serves
// then. It returns nil and can be called twice.
func (a *App) Close() error {
	for _, unsubscribe := range a.unsubscribe {
		unsubscribe()
	}
	a.refusals.close()
	return nil
}

// ServeHTTP answers one request.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{ResponseWriter: w, app: a, state: a.state.Load(), request: r, start: time.Now()}
	x.identify()
	defer x.finish()
	// Whoever may not call a tool may not learn either which paths exist, so this comes before routing.
	if !isProbe(r.URL.Path) {
		for _, d := range a.dependencies {
			if err := d.Check(r); err != nil {
				x.fail(err)
				return
			}
		}
	}
	// The router looks at the decoded path, in which an encoded slash is like any other. A proxy in front that decides
	// by the path may not take it for one.
	if strings.Contains(strings.ToLower(r.URL.RawPath), "%2f") {
		x.fail(&wasmtools.Error{Code: wasmtools.CodeNotFound})
		return
	}
	x.state.router.ServeHTTP(x, r)
}

// isProbe reports whether a path is served to everybody, without the dependencies.
func isProbe(path string) bool { return path == "/healthz" || path == "/readyz" }
