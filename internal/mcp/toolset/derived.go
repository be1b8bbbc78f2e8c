package toolset

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/follow"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A derived holds all that views need of one generation of the table. Only its views change.
type derived struct {
	set        *Set
	generation *wasmtools.Generation
	number     uint64       // counts the set's generations
	entries    []*entry     // entries of the generation's routes, in their order
	names      func() names // of entries
	index      *index       // of entries

	kept     atomic.Int64         // how many bytes of pages the views keep
	all      atomic.Pointer[View] // the view of principals that may call every tool
	mu       sync.Mutex
	views    map[viewKey]*View
	byScopes map[scopesKey]*View // the same views; principals with the same scopes share one
}

type viewKey struct {
	namespace string
	principal *wasmtools.Principal
}

type scopesKey struct{ namespace, scopes string }

const (
	// maxViews is how many views are kept, and maxViewers how many principals are kept with their views.
	maxViews, maxViewers = 64, 1024
	// maxKept is about how many bytes of pages all views of a generation keep. A list of 10,000 tools has some 10 MB. Further pages are made for each
	// request.
	maxKept = 32 << 20
)

// newDerived makes the derived of a generation. It reuses old's entries of the same tools, by path: while thousands of files are loaded, it is called
// once for every few of them.
func (s *Set) newDerived(g *wasmtools.Generation, old *derived) *derived {
	next := &derived{set: s, generation: g, views: map[viewKey]*View{}, byScopes: map[scopesKey]*View{}}
	before := old
	if before == nil {
		before = new(derived)
	}
	entries, change := follow.MadeOfTools(g, before.generation, before.entries, s.newEntry)
	next.number, next.entries, next.names, next.index = before.number+1, entries, before.names, before.index
	if change != follow.SameTools {
		next.index = &index{}
	}
	if change == follow.OtherPaths {
		next.names = sync.OnceValue(func() names { return namesOf(entries) }) // the function may outlive next
	}
	return next
}

// names are the entries of a generation by name.
type names struct {
	places     map[string]int  // in entries
	sorted     []int           // the same
	namespaces map[string]bool // namespaces with tools in them or below them
}

func namesOf(entries []*entry) names {
	n := names{make(map[string]int, len(entries)), make([]int, len(entries)), map[string]bool{}}
	for i, e := range entries {
		n.places[e.name], n.sorted[i] = i, i
		for namespace := e.tool.Namespace; namespace != "" && !n.namespaces[namespace]; {
			n.namespaces[namespace] = true
			namespace = namespace[:max(0, strings.LastIndexByte(namespace, '/'))]
		}
	}
	slices.SortFunc(n.sorted, func(a, b int) int { return strings.Compare(entries[a].name, entries[b].name) })
	return n
}

// View returns what a principal sees of a namespace and those below it, at this moment. The empty namespace has all tools. A namespace
// without a tool that the principal may call is an empty view.
func (s *Set) View(namespace string, p *wasmtools.Principal) *View {
	return s.ViewOf(nil, namespace, p)
}

// ViewOf is View for a generation of the table. Nil means the current one.
func (s *Set) ViewOf(g *wasmtools.Generation, namespace string, p *wasmtools.Principal) *View {
	return s.made.Of(g).view(namespace, p, true)
}

// Edition returns the edition of the view that a principal has of a namespace at this moment.
func (s *Set) Edition(namespace string, p *wasmtools.Principal) Edition {
	return s.editions.edition(s.made.Current(), namespace, p)
}

// view returns what ViewOf returns. A view that no client has asked for yet does not displace others.
func (st *derived) view(namespace string, p *wasmtools.Principal, asked bool) *View {
	if p.MayAll() {
		p = wasmtools.Everybody() // they all share one view
	}
	key := viewKey{namespace, p}
	if v := st.viewOf(key); v != nil {
		return v
	}
	if namespace != "" && !st.names().namespaces[namespace] { // otherwise made-up names could fill memory
		return st.newView(namespace, nil)
	}
	scopes := scopesKey{namespace, strings.Join(p.Scopes(), "\n")}
	st.mu.Lock()
	v := st.byScopes[scopes]
	st.mu.Unlock()
	if v == nil {
		v = st.newView(namespace, p) // without the lock: it looks at every tool
	}
	return st.keep(key, scopes, v, asked)
}

// viewOf returns a view if it has been made already, or nil.
func (st *derived) viewOf(key viewKey) *View {
	if key.namespace == "" && key.principal == wasmtools.Everybody() {
		return st.all.Load()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.views[key]
}

// keep keeps a view and returns it, or an equal one that was made at the same time. If too many views are kept already, v replaces all of them if a
// client has asked for it. Otherwise v is not kept.
func (st *derived) keep(key viewKey, scopes scopesKey, v *View, asked bool) *View {
	if key.namespace == "" && key.principal == wasmtools.Everybody() {
		st.all.CompareAndSwap(nil, v)
		return st.all.Load()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	other := st.byScopes[scopes]
	switch {
	case other != nil:
		v = other
	case len(st.byScopes) >= maxViews && !asked:
		return v
	case len(st.byScopes) >= maxViews:
		clear(st.views)
		clear(st.byScopes)
		st.kept.Store(0)
	}
	if len(st.views) >= maxViewers {
		clear(st.views)
	}
	st.views[key], st.byScopes[scopes] = v, v
	return v
}
