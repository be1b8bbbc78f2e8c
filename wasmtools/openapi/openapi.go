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
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// A Dependency is a condition that every request but those for /healthz and /readyz must meet.
type Dependency = web.Dependency

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
	// Invoker calls the tools. Doors that have the same one share its memory, and Memory counts for nothing. Nil: one of the
	// application's own.
	Invoker *invoke.Invoker
	// Logger receives a line for each request, and the causes of failures. Nil: nothing is logged.
	Logger *slog.Logger
	// Ready says why the service is not ready, and /readyz answers 503 then. Nil: always ready. The error is
	// logged, not shown. Ready is called concurrently.
	Ready func() error
	// Settled reports whether the table tells of every tool that there is. While it returns false, a path without a tool
	// is answered with 503 CodeNotReady, not with 404. Nil: always. Settled is called concurrently, and must be fast.
	Settled func() bool
}

// An App is the HTTP application of one route table: a [Door] on a [web.Mux] of its own. It is an http.Handler, safe for
// concurrent use.
type App struct {
	mux  *web.Mux
	door *Door
}

var _ http.Handler = (*App)(nil)

// NewApp returns the application of a table, which it follows until Close. A change of the table is visible to the
// next request once the change's method has returned. NewApp panics where table or a dependency is nil, and
// where a security scheme has a bad name or is not a JSON object.
func NewApp(table *wasmtools.RouteTable, o Options) *App {
	if table == nil {
		panic("openapi.NewApp: table is nil; make one with wasmtools.NewRouteTable")
	}
	invoker := o.Invoker
	if invoker == nil {
		invoker = invoke.New(invoke.Options{Memory: o.Memory})
	}
	mux := web.NewMux(web.Options{Dependencies: o.Dependencies, Logger: o.Logger, Ready: o.Ready})
	door := NewDoor(mux, table, DoorOptions{
		Title:       o.Title,
		Version:     o.Version,
		Description: o.Description,
		Servers:     o.Servers,
		Invoker:     invoker,
		Logger:      o.Logger,
		Settled:     o.Settled,
	})
	mux.Mount("/", door)
	return &App{mux, door}
}

// ServeHTTP answers one request.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// Close ends the subscriptions to the table and to the dependencies, and logs what has not been logged yet. The
// application continues to serve what it serves then. Close returns nil and can be called twice.
func (a *App) Close() error {
	return errors.Join(a.door.Close(), a.mux.Close())
}

// RequestID returns the id of the request that a [wasmtools.Caller] is called for, as [web.RequestID] does.
func RequestID(ctx context.Context) string { return web.RequestID(ctx) }
