package openapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/julienschmidt/httprouter"

	"github.com/toolsrv/toolsrv/internal/follow"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A derived is all that requests need from one generation of the table. It never changes.
type derived struct {
	door       *Door
	generation *wasmtools.Generation
	entries    []*entry // one for each route of the generation, in its order
	router     *httprouter.Router
	near       *neighbourhood
	sights     sights
	library    atomic.Pointer[library] // replaced when the documents describe another security
}

// make makes the derived of a generation. It reuses the entries of unchanged tools. It also reuses the router if the paths are the same. Otherwise it
// makes a new one, because httprouter can't remove a route.
func (d *Door) make(g *wasmtools.Generation, old *derived) *derived {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := &derived{door: d, generation: g}
	before := old
	if before == nil {
		before = new(derived)
	}
	var change follow.Change
	next.entries, change = follow.MadeOfTools(g, before.generation, before.entries, d.newEntry)
	if change == follow.SameTools {
		next.router, next.near = before.router, before.near
	} else {
		router, err := before.router, error(nil) // the router knows tools by their indexes
		if change == follow.OtherPaths {
			router, err = newRouter(next.entries)
		}
		if err != nil { // a bug, since names are checked; the old tools are still served
			d.log.Error("the new tools can't be routed, so the old ones stay in service", slog.Any("error", err))
			d.unrouted = true
			if old != nil {
				return old
			}
			next.generation, next.entries = new(wasmtools.Generation), nil
			router, _ = newRouter(nil)
		}
		if err == nil && d.unrouted {
			d.unrouted = false
			d.log.Info("new tools can be routed again")
		}
		next.router, next.near = router, &neighbourhood{entries: next.entries}
	}
	next.describe(d.security(g))
	d.newest = next
	return next
}

// entryOf returns the entry of a path, which must be in the generation.
func (s *derived) entryOf(path string) *entry {
	i, _ := slices.BinarySearchFunc(s.entries, path, func(e *entry, path string) int { return strings.Compare(e.path, path) })
	return s.entries[i]
}

// A handler answers the requests for one path and method.
type handler func(x *exchange)

// newRouter returns a router whose handlers expect an exchange as their ResponseWriter. They know a tool by its number, with which they find its
// switch in the generation that the request began with.
func newRouter(entries []*entry) (r *httprouter.Router, err error) {
	defer func() {
		if v := recover(); v != nil { // httprouter panics if it refuses a route
			r, err = nil, fmt.Errorf("build router: %v", v)
		}
	}()
	r = httprouter.New()
	r.RedirectTrailingSlash = false // a tool's path is exact
	r.RedirectFixedPath = false
	r.HandleMethodNotAllowed = true
	r.HandleOPTIONS = true
	r.GlobalOPTIONS = handler((*exchange).answerOptions)
	r.NotFound = handler((*exchange).answerMissing)
	r.MethodNotAllowed = handler((*exchange).answerMethod)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		r.Handler(method, "/tools", handler(func(x *exchange) { x.SendDocument(x.derived.documentsFor(x.Call().Principal).tools) }))
		r.Handler(method, "/openapi.json", handler(func(x *exchange) { x.SendDocument(x.derived.documentsFor(x.Call().Principal).openapi) }))
	}
	for i, e := range entries {
		r.Handler(http.MethodPost, e.path, handler(func(x *exchange) { x.call(i) }))
	}
	return r, nil
}

// ServeHTTP makes the handler answer an exchange. This is the only type assertion, and Door.Serve passes only an Exchange to the router. The router
// passes on a ResponseWriter and a Request. A context in the Request would cost two allocations for each request.
func (h handler) ServeHTTP(w http.ResponseWriter, _ *http.Request) { h(w.(*exchange)) }

// answerMethod answers a method that a path does not have.
func (x *exchange) answerMethod() {
	if !x.hidden() {
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeMethodNotAllowed})
	}
}

// answerOptions answers which methods a path has; the router has set Allow. Preflight requests have been answered already.
func (x *exchange) answerOptions() {
	if !x.hidden() {
		x.WriteHeader(http.StatusNoContent)
	}
}

// hidden answers, and returns true, if the path belongs to a tool that the principal may not call. Such a tool looks missing, whatever the method.
func (x *exchange) hidden() bool {
	path := x.Request().URL.Path
	if _, ok := x.derived.generation.Lookup(path); !ok || x.Call().Principal.May(path) {
		return false
	}
	x.Header().Del("Allow")
	x.answerMissing()
	return true
}
