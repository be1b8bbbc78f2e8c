// Package openapi serves the tools of a route table over REST, and describes them.
//
// [NewApp] makes an http.Handler of a [wasmtools.RouteTable]. A tool answers POST at its path. /tools and /openapi.json list the enabled
// tools, and the probes /healthz and /readyz report the service's state. docs/http.md describes the whole interface.
package openapi

import (
	"log/slog"
	"net/http"

	"github.com/toolsrv/toolsrv/internal/door"
	"github.com/toolsrv/toolsrv/internal/openapi"
	inner "github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// A Dependency is a condition that every request must meet, except those for /healthz and /readyz. It may have more methods; a Dependency
// of package auth has all of these:
//
//	Principal(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error)
//
// Principal says who makes the request. It is called after Check and, like Check, concurrently. current is the principal that the
// dependencies before this one returned, at first [wasmtools.Everybody]. Principal returns current or another principal, never nil. An error refuses
// the request, as one from Check does.
//
//	Schemes() []auth.Scheme
//	Subscribe(changed func()) (unsubscribe func())
//
// Schemes returns how clients can meet the condition at the moment: in one of these ways, which documents name; none if no credentials are
// needed. Schemes must not take a lock. Subscribe calls changed after each change of what Schemes returns. Without Subscribe, the schemes
// are always the same.
//
//	Challenges() []string
//
// Challenges returns what the header WWW-Authenticate says to a request that is refused with CodeUnauthorized.
//
//	Version() uint64
//
// Version returns a number that grows when Check or Principal may answer a request differently. If the number has changed by the time
// the body of a request has arrived, or when a tool that the request runs calls another tool, Check and Principal are called again for
// that request. Without Version, they are called again only after a change of the table's configuration. Version must not take a lock.
type Dependency interface {
	// Check returns nil, or why the request is refused. The client sees an *wasmtools.Error, while any other error counts as
	// internal and is not shown. Check must not read the body. It is called concurrently.
	Check(r *http.Request) error
}

// Options are the settings of an App. The zero value is usable.
type Options struct {
	// Title, Version and Description go into the document's info. Zero means "Tools", "0.1.0" and none.
	Title, Version, Description string
	// Servers are the addresses at which clients reach the application, such as "https://example.com/tools", or "/tools" if
	// a proxy serves it below a prefix of the same host. They go into the document. If there are none, clients use the root of the
	// address that they got the document from.
	Servers []string
	// Access says which hosts requests may name and which pages may make them; [web.NewAccess] makes one. If nil, requests may name any host, and
	// pages of other origins may make none.
	Access *web.Access
	// Doors are served beside the tools, by their paths: see [github.com/toolsrv/toolsrv/wasmtools/server.Options].
	Doors map[string]web.Door
	// Dependencies are checked in this order. The first refusal is the answer.
	Dependencies []Dependency
	// Memory is how many bytes of bodies and results above 64 KiB all calls together may hold. Calls that need more are answered with
	// CodeOverloaded; a single call may hold as much as its tool allows. Zero means 256 MiB.
	Memory int64
	// Logger gets a line for each request, with the cause of a failure. If nil, nothing is logged.
	Logger *slog.Logger
	// Ready returns why the service is not ready, or nil. While it returns an error, /readyz answers 503. The error is
	// logged, not shown. Ready is called concurrently. If nil, always ready.
	Ready func() error
}

// An App is the HTTP application of one route table. It is an http.Handler, safe for concurrent use.
type App openapi.App

var _ http.Handler = (*App)(nil)

// NewApp returns the application of a table, which it follows until Close. The next request after a method has changed the
// table sees the change. NewApp panics if table or a dependency is nil, if a security scheme has a bad name or is not a
// JSON object, or if a door can't have its path.
func NewApp(table *wasmtools.RouteTable, o Options) *App {
	doors := map[string]inner.Door{}
	for path, d := range o.Doors {
		doors[path] = door.Of(d)
	}
	dependencies := make([]openapi.Dependency, len(o.Dependencies))
	for i, d := range o.Dependencies {
		dependencies[i] = d
	}
	app := openapi.NewApp(table, openapi.Options{
		Title:        o.Title,
		Version:      o.Version,
		Description:  o.Description,
		Servers:      o.Servers,
		Access:       (*inner.Access)(o.Access),
		Memory:       o.Memory,
		Logger:       o.Logger,
		Ready:        o.Ready,
		Doors:        doors,
		Dependencies: dependencies,
	})
	return (*App)(app)
}

// ServeHTTP answers one request.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*openapi.App)(a).ServeHTTP(w, r) }

// Close ends the subscriptions to the table and to the dependencies, and logs what has not been logged yet. The application
// continues to serve the tools that it has then. Close returns nil and can be called twice.
func (a *App) Close() error { return (*openapi.App)(a).Close() }
