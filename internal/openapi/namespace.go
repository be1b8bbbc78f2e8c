package openapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// documentName is the end of a document's path, which begins with a namespace unless the document has all tools. No tool has such a name.
const documentName = "/openapi.json"

// answerNamespace answers with the document of a namespace and those below it. It returns false if the path names no namespace, or one without a tool
// that the principal may call.
func answerNamespace(x *exchange) bool {
	namespace, ok := strings.CutSuffix(x.Request().URL.Path, documentName)
	if !ok {
		return false
	}
	d := x.derived.documentOf(namespace, x.Call().Principal)
	if d == nil {
		return false
	}
	if x.Allow(http.MethodGet, http.MethodHead) {
		x.SendDocument(d)
	}
	return true
}

// documentOf returns the document with the tools of a namespace that a principal may call, or nil if there are none. The namespace is given as a
// path such as /shop/eu.
func (s *derived) documentOf(namespace string, p *wasmtools.Principal) *web.Document {
	routes := s.generation.Routes()
	begin, _ := slices.BinarySearchFunc(routes, namespace+"/", func(r wasmtools.Route, path string) int { return strings.Compare(r.Path, path) })
	end, may := begin, false
	for ; end < len(routes) && strings.HasPrefix(routes[end].Path, namespace+"/"); end++ {
		may = may || p.MayCall(&routes[end])
	}
	if !may || namespace == "" {
		return nil
	}
	scopes := ""
	if !p.MayAll() {
		scopes = strings.Join(p.Scopes(), "\n")
	}
	l := s.library.Load()
	key := scopes + "\n" + namespace
	l.building.Lock()
	defer l.building.Unlock()
	if found, ok := l.byNamespace[key]; ok {
		return found
	}
	var shown []*entry
	for i := begin; i < end; i++ {
		if routes[i].Enabled && p.MayCall(&routes[i]) {
			shown = append(shown, s.entries[i])
		}
	}
	d := s.describing(l.security, s.door.title+": "+namespace[1:], shown).document(l.keep)
	l.putNamespace(key, d, len(shown), len(routes))
	return d
}

// putNamespace keeps a document that has the given number of tools, out of all tools. All kept documents together are bounded by the size of
// maxDocuments whole ones.
func (l *library) putNamespace(key string, d *web.Document, tools, all int) {
	if l.tools += tools + 1; l.tools > maxDocuments*(all+maxDocuments) {
		clear(l.byNamespace)
		l.tools = tools + 1
	}
	l.byNamespace[key] = d
}
