// Package openapi is the REST door: it serves the tools of a route table over HTTP and describes them.
//
// [NewApp] makes an http.Handler of a [wasmtools.RouteTable]. A tool answers POST at its path. /tools and /openapi.json list the enabled
// tools, and the probes /healthz and /readyz report the service's state. docs/http.md describes the whole interface. A program with more
// doors mounts a [Door] on a [web.Mux] of its own.
//
// Everything that requests need from the table is built before the table changes, and published with its generation. A request uses a single
// generation, the current one when the whole request has been read, so that its router, switches, lists and ETags always agree.
package openapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Dependency is a condition that every request must meet, except those for /healthz and /readyz.
type Dependency = web.Dependency

// Options are the settings of an App. The zero value is usable.
type Options struct {
	// Title, Version and Description go into the document's info. The defaults are "Tools", "0.1.0" and no description.
	Title, Version, Description string
	// Servers are the addresses at which clients reach the application, such as "https://example.com/tools", or "/tools" if
	// a proxy serves it below a prefix of the same host. They go into the document. If there are none, clients use the root of the
	// address that they got the document from.
	Servers []string
	// Access says which hosts requests may name and which pages may make them; [web.NewAccess] makes one. If nil, requests may name any host, and
	// pages of other origins may make none.
	Access *web.Access
	// Doors are further doors, by their paths: see [web.Mux.Mount].
	Doors map[string]web.Door
	// Dependencies are checked in this order. The first refusal is the answer.
	Dependencies []Dependency
	// Memory is how many bytes of bodies and results above 64 KiB all calls together may hold. Calls that need more are answered with
	// CodeOverloaded; a single call may hold as much as its tool allows. Zero means 256 MiB.
	Memory int64
	// Invoker calls the tools. Doors with the same Invoker share its memory, and Memory is ignored. If nil, the application has
	// its own.
	Invoker *invoker.Invoker
	// Logger gets a line for each request, with the cause of a failure. If nil, nothing is logged.
	Logger *slog.Logger
	// Ready returns why the service is not ready, or nil. While it returns an error, /readyz answers 503. The error is
	// logged, not shown. Ready is called concurrently. If nil, always ready.
	Ready func() error
}

// An App is the HTTP application of one route table: a [Door] on a [web.Mux] of its own. It is an http.Handler, safe for
// concurrent use.
type App struct {
	mux  *web.Mux
	door *Door
}

var _ http.Handler = (*App)(nil)

// NewApp returns the application for a table, which it follows until Close. The next request after a method has changed the
// table sees the change. NewApp panics if table or a dependency is nil, or if a security scheme has a bad name or is not a
// JSON object.
func NewApp(table *wasmtools.RouteTable, o Options) *App {
	if table == nil {
		panic("openapi.NewApp: table is nil; make one with wasmtools.NewRouteTable")
	}
	if o.Invoker == nil {
		o.Invoker = invoker.New(invoker.Options{Memory: o.Memory})
	}
	mux := web.NewMux(web.Options{Access: o.Access, Dependencies: o.Dependencies, Table: table, Logger: o.Logger, Ready: o.Ready})
	door := NewDoor(mux, table, DoorOptions{
		Title:       o.Title,
		Version:     o.Version,
		Description: o.Description,
		Servers:     o.Servers,
		Invoker:     o.Invoker,
		Logger:      o.Logger,
	})
	mux.Mount("/", door)
	for path, d := range o.Doors {
		mux.Mount(path, d)
	}
	return &App{mux, door}
}

// ServeHTTP answers one request.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// Close ends the subscriptions to the table and to the dependencies, and logs what has not been logged yet. The application
// continues to serve the tools that it has then. Close returns nil and can be called twice.
func (a *App) Close() error {
	return errors.Join(a.door.Close(), a.mux.Close())
}

// RequestID returns the id of the request on behalf of which a tool is called, as [web.RequestID] does.
func RequestID(ctx context.Context) string { return web.RequestID(ctx) }
