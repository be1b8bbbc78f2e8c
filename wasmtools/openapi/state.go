package openapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/julienschmidt/httprouter"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A state is all that requests need of one generation of the table. It never changes.
type state struct {
	door       *Door
	generation *wasmtools.Generation
	entries    []*entry // one for each route of the generation, in its order
	router     *httprouter.Router
	near       *neighbourhood
	library    atomic.Pointer[library] // replaced when the documents tell of another security
}

// make makes the state of a generation. It keeps the entries of tools that were there before. It keeps the router as well if the
// paths are the same; others need a new one, because httprouter can't remove a route.
func (d *Door) make(g *wasmtools.Generation, old *state) *state {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := &state{door: d, generation: g}
	if old != nil && sameTools(old.entries, g.Routes()) {
		next.entries, next.router, next.near = old.entries, old.router, old.near
	} else {
		var samePaths bool
		next.entries, samePaths = d.entriesOf(g, old)
		router, err := (*httprouter.Router)(nil), error(nil)
		if samePaths && old != nil {
			router = old.router // which knows tools by their places
		} else {
			router, err = newRouter(next.entries)
		}
		if err != nil { // a bug, since names are checked; the old tools stay in service
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

func sameTools(entries []*entry, routes []wasmtools.Route) bool {
	if len(entries) != len(routes) {
		return false
	}
	for i, e := range entries {
		if e.tool != routes[i].Tool {
			return false
		}
	}
	return true
}

// entryOf returns the entry of a path, which the generation has.
func (s *state) entryOf(path string) *entry {
	i, _ := slices.BinarySearchFunc(s.entries, path, func(e *entry, path string) int { return strings.Compare(e.path, path) })
	return s.entries[i]
}

// entriesOf returns the entries of a generation, and whether they have the paths of the state before. Both are sorted by path.
func (d *Door) entriesOf(g *wasmtools.Generation, old *state) (entries []*entry, samePaths bool) {
	var before []*entry
	if old != nil {
		before = old.entries
	}
	entries = make([]*entry, len(g.Routes()))
	samePaths = len(entries) == len(before)
	n := 0
	for i, route := range g.Routes() {
		for n < len(before) && before[n].tool != route.Tool && before[n].path < route.Path {
			n++
		}
		if n < len(before) && before[n].tool == route.Tool {
			entries[i] = before[n]
		} else {
			entries[i] = d.newEntry(route.Tool)
			samePaths = samePaths && before[i].path == route.Path
		}
	}
	return entries, samePaths
}

// newRouter returns a router whose handlers expect a web.Exchange as their ResponseWriter. They know a tool by its number, to
// find its switch in the state that the request began with.
func newRouter(entries []*entry) (r *httprouter.Router, err error) {
	defer func() {
		if v := recover(); v != nil { // httprouter refuses a route by a panic
			r, err = nil, fmt.Errorf("build router: %v", v)
		}
	}()
	r = httprouter.New()
	r.RedirectTrailingSlash = false // a tool's path is exact
	r.RedirectFixedPath = false
	r.HandleMethodNotAllowed = true
	r.HandleOPTIONS = true
	r.GlobalOPTIONS = http.HandlerFunc(answerOptions)
	r.NotFound = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { exchangeOf(w).answerMissing() })
	r.MethodNotAllowed = http.HandlerFunc(answerMethod)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		r.Handle(method, "/tools", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
			x := exchangeOf(w)
			x.SendDocument(x.state.documentsFor(x.Call().Principal).tools)
		})
		r.Handle(method, "/openapi.json", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
			x := exchangeOf(w)
			x.SendDocument(x.state.documentsFor(x.Call().Principal).openapi)
		})
	}
	for i, e := range entries {
		r.POST(e.path, func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) { exchangeOf(w).call(i) })
	}
	return r, nil
}

// answerMethod answers another method than a path has.
func answerMethod(w http.ResponseWriter, _ *http.Request) {
	if x := exchangeOf(w); !x.hidden() {
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeMethodNotAllowed})
	}
}

// answerOptions says which methods a path has; the router has set Allow. What a browser asks for a page of another origin has
// been answered by then.
func answerOptions(w http.ResponseWriter, _ *http.Request) {
	if x := exchangeOf(w); !x.hidden() {
		x.WriteHeader(http.StatusNoContent)
	}
}

// hidden answers, and returns true, if the path belongs to a tool that the principal may not call. Such a tool is missing,
// whatever the method.
func (x exchange) hidden() bool {
	path := x.Request().URL.Path
	if _, ok := x.state.generation.Lookup(path); !ok || x.Call().Principal.May(path) {
		return false
	}
	x.Header().Del("Allow")
	x.answerMissing()
	return true
}
