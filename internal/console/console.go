// Package console serves the pages for people who open the server's address in a browser: at /, what the server is and which tools it has; at /docs,
// its API. Their scripts are below /console.
//
// The pages are the same for everybody and contain no secrets, so anybody may load them. They get what they show from the server's API, as any other
// program would, with the token that was typed into them.
package console

import (
	"net/http"
	"path"
	"strings"

	"github.com/toolsrv/toolsrv/internal/naming"
	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Options say what the answer to GET / says about the server.
type Options struct {
	// Title, Version and Description are those of the OpenAPI document.
	Title, Version, Description string
	// Address is where clients reach the server, such as "https://example.com/tools". If empty, it is the address that a client has used.
	Address string
	// MCP is whether it answers MCP clients.
	MCP bool
	// Hidden is whether the pages are switched off.
	Hidden bool
}

// Doors returns the doors of the pages by the paths to mount them at.
func Doors(o Options) map[string]web.Door {
	index := index{body: newIndex(&o)}
	doors := map[string]web.Door{"/{$}": &index}
	if !o.Hidden {
		files := newFiles()
		index.page = func() *web.Document { return files().pages["index.html"] }
		doors["/docs"] = docs{files}
		doors["/console"] = below{files: files}
	}
	return doors
}

// policy is the policy of all pages: anybody may load them, and pages of other sites may link to them.
type policy struct{}

// Policy says so.
func (policy) Policy() web.Policy { return web.Policy{Open: true, Pages: web.PagesRead} }

// send answers GET and HEAD with a page or a script.
func send(x *web.Exchange, d *web.Document) {
	secure(x.Header())
	switch {
	case !x.Allow(http.MethodGet, http.MethodHead):
	case d == nil:
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeNotFound})
	default:
		x.SendDocument(d)
	}
}

// content is the content security policy. Pages load nothing from other hosts, send nothing to them, and have no inline scripts; results of tools may
// be pictures and sounds. No page of another site may show a page in a frame.
const content = "default-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"

// secure sets the header fields that keep a page apart from all others.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", content)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
}

// below answers for the path /console with its page, and for the paths below it with the files that pages load.
type below struct {
	policy
	files func() *files
}

// Serve answers one request.
func (d below) Serve(x *web.Exchange) {
	f := d.files()
	if name, ok := strings.CutPrefix(x.Request().URL.Path, "/console/"); ok {
		send(x, f.loaded[name])
	} else {
		send(x, f.pages["console.html"])
	}
}

// docs answers with the page of the API, or of a namespace of it.
type docs struct{ files func() *files }

// Policy lets docs answer for the paths below /docs, such as /docs/math, although tools may have such paths, too.
func (docs) Policy() web.Policy {
	p := policy{}.Policy()
	p.Below = true
	return p
}

// Serve answers one request.
func (d docs) Serve(x *web.Exchange) {
	asked := x.Request().URL.Path
	namespace, ok := strings.CutPrefix(asked, "/docs/")
	switch {
	case !ok:
		send(x, d.files().pages["docs.html"])
	case len(namespace) <= naming.Max && naming.CheckNamespace(namespace) == nil && namespace != "":
		send(x, d.files().deep("docs.html", strings.Count(path.Clean(asked), "/")-1))
	default:
		send(x, nil)
	}
}
