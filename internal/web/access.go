package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/toolsrv/toolsrv/internal/origin"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// AccessOptions are the settings of an Access. With the zero value, requests may name any host, and pages of other origins may
// make none.
type AccessOptions struct {
	// Hosts are the names by which clients reach the service, with any port: names and IP addresses, patterns such as
	// "*.example.com", which matches every name below example.com, or "*" for every host. If there are none, every host, unless Loopback
	// is set.
	Hosts []string
	// Loopback says that clients on this machine only reach the service. Then localhost, the names below it and the loopback
	// addresses are among its hosts, and without Hosts they are all, but for requests over a socket of the file system, which may name any.
	Loopback bool
	// Origins are those whose pages may call the service, such as "https://app.example.com", or "*" for every origin.
	Origins []string
	// Proxies are the addresses of proxies in front of the service, which are believed when they say for whom they send a request. The log
	// shows who that is. If there are none, the peer of the connection is the client.
	Proxies []netip.Prefix
	// ProxyHeader is the one header in which they say it, ForwardedFor or Forwarded: what a request has in another one, its client can have
	// written. If empty, ForwardedFor.
	ProxyHeader string
}

// An Access says which hosts requests may name, and pages of which other origins may make requests. The first ends DNS rebinding, in which
// a page makes its own domain name mean the address of the service; the second ends cross-site request forgery, and is CORS for those that
// may. It also says which proxies are believed about the client. It never changes.
type Access struct {
	hosts     origin.Patterns
	everyHost bool
	loopback  bool

	everyOrigin bool
	origins     map[origin.Origin]struct{}

	proxies proxies
	header  accessHeader
}

// An accessHeader has values that responses share. They never change.
type accessHeader struct {
	every, varies, methods, headers, exposed, maxAge, yes []string
}

// NewAccess returns an error that says what is wrong with a host, an origin or the header of proxies.
func NewAccess(o AccessOptions) (*Access, error) {
	hosts, err := origin.NewPatterns(o.Hosts)
	if err != nil {
		return nil, fmt.Errorf("allow hosts: %w", err)
	}
	a := &Access{
		hosts:     hosts,
		everyHost: hosts.Every() || len(o.Hosts) == 0 && !o.Loopback,
		loopback:  o.Loopback,
		origins:   map[origin.Origin]struct{}{},
		header: accessHeader{
			every:   []string{"*"},
			varies:  []string{"Origin"},
			methods: []string{"DELETE, GET, HEAD, POST"},
			// The asterisk stands for every name but Authorization, and only without credentials such as cookies, which are
			// never allowed here. So the answer does not depend on what a page asks for.
			headers: []string{"*, Authorization"},
			exposed: []string{"ETag, Mcp-Session-Id, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id"},
			maxAge:  []string{"7200"}, // seconds; Chrome keeps it no longer
			yes:     []string{"true"},
		},
	}
	known := false
	if a.proxies, known = newProxies(o.Proxies, o.ProxyHeader); !known {
		return nil, fmt.Errorf("trust proxies: the header %q can't name the client: use %s or %s", text.Short(o.ProxyHeader), ForwardedFor, Forwarded)
	}
	for _, s := range o.Origins {
		checked, err := origin.CheckOrigin(s)
		if err != nil {
			return nil, fmt.Errorf("allow origins: %w", err)
		}
		if checked == "*" {
			a.everyOrigin = true
		} else if page, ok := origin.ParseOrigin(checked); ok {
			a.origins[page] = struct{}{}
		}
	}
	return a, nil
}

// orStrict returns an Access that is not nil: without one, pages of other origins may make no requests.
func orStrict(a *Access) *Access {
	if a == nil {
		a, _ = NewAccess(AccessOptions{}) // nothing in it can be wrong
	}
	return a
}

// check returns nil if a request may name its host, and come from its page. Behind a proxy, the host that counts is the one that the
// proxy sends as Host: what it says in other headers, any client can say.
func (a *Access) check(r *http.Request, pages Pages) error {
	if !a.everyHost && !a.isHost(r.Host) && !(a.loopback && isSocket(r)) {
		return notAllowed(wasmtools.CodeHostNotAllowed, "host", r.Host, "server.hosts")
	}
	return a.checkPage(r, pages)
}

// checkPage is check for the page alone. The pages of the service's own origin need no permission. Links, pictures and forms have a browser
// send requests without an origin, but it says in Sec-Fetch-Site whose they are. It doesn't to plain-HTTP addresses of other machines.
func (a *Access) checkPage(r *http.Request, pages Pages) error {
	origins, sites := r.Header["Origin"], r.Header["Sec-Fetch-Site"]
	switch {
	case len(origins) == 0 && len(sites) == 0, a.everyOrigin && pages != PagesOwn, pages == PagesAll: // mostly no browser
		return nil
	case len(origins) > 0:
		if pages != PagesOwn && a.allows(origins) {
			return nil
		}
		page, ok := origin.ParseOrigin(origins[0])
		if host, isHost := origin.ParseHost(r.Host); !ok || !isHost || len(origins) > 1 || !page.IsOf(host) {
			return otherOrigin(origins[0], pages)
		}
	}
	if len(sites) == 0 || len(sites) == 1 && (sites[0] == "same-origin" || sites[0] == "none") {
		return nil
	}
	if pages == PagesRead && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return nil
	}
	message := "Pages of other sites may not make this request"
	if pages != PagesOwn {
		message += "; the operator of the server can add its origin to server.cors_origins"
	}
	return &wasmtools.Error{Code: wasmtools.CodeOriginNotAllowed, Message: message, Err: fmt.Errorf("Sec-Fetch-Site is %q", text.Short(sites[0]))}
}

// otherOrigin returns why a request of a page of another origin is refused.
func otherOrigin(origin string, pages Pages) error {
	if pages == PagesOwn {
		return &wasmtools.Error{Code: wasmtools.CodeOriginNotAllowed, Message: "Pages of other origins may not make this request", Err: fmt.Errorf("the origin is %q", text.Short(origin))}
	}
	return notAllowed(wasmtools.CodeOriginNotAllowed, "origin", origin, "server.cors_origins")
}

// allows reports whether the origin of a request is listed.
func (a *Access) allows(origins []string) bool {
	page, ok := origin.ParseOrigin(origins[0])
	_, listed := a.origins[page]
	return ok && listed && len(origins) == 1
}

// isSocket reports whether a request came over a socket of the file system, which no page of a browser reaches by making a name mean another
// address.
func isSocket(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && local.Network() == "unix"
}

// isHost reports whether the service has a host.
func (a *Access) isHost(s string) bool {
	host, ok := origin.ParseHost(s)
	return ok && (a.loopback && host.IsLoopback() || a.hosts.Match(host))
}

// undescribe takes back what describe has set.
func (*Access) undescribe(x *Exchange) {
	for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Vary"} {
		delete(x.Header(), name)
	}
}

// describe sets the headers that tell a browser what a page may do with the answer.
func (a *Access) describe(x *Exchange) {
	h := x.Header()
	origins := x.request.Header["Origin"]
	switch {
	case x.pages() == PagesOwn:
	case a.everyOrigin, x.pages() == PagesAll:
		h["Access-Control-Allow-Origin"] = a.header.every
		h["Access-Control-Expose-Headers"] = a.header.exposed
	case len(a.origins) > 0:
		h["Vary"] = a.header.varies
		if len(origins) > 0 && a.allows(origins) {
			h["Access-Control-Allow-Origin"] = origins[:1:1]
			h["Access-Control-Expose-Headers"] = a.header.exposed
		}
	}
}

// answerPreflight answers a browser that asks whether a page may send a request, and reports whether it did. A browser sends no token
// with that question, so the answer must not depend on what is served: it is the same for every path.
func (a *Access) answerPreflight(x *Exchange) bool {
	asked := x.request.Header
	if x.request.Method != http.MethodOptions || len(asked["Access-Control-Request-Method"]) == 0 || len(asked["Origin"]) == 0 {
		return false
	}
	pages := x.pages()
	if pages == PagesOwn || !a.everyOrigin && pages != PagesAll && !a.allows(asked["Origin"]) { // the service's own page
		return false
	}
	h := x.Header()
	h["Access-Control-Allow-Methods"] = a.header.methods
	h["Access-Control-Allow-Headers"] = a.header.headers
	h["Access-Control-Max-Age"] = a.header.maxAge
	if len(asked["Access-Control-Request-Private-Network"]) > 0 {
		h["Access-Control-Allow-Private-Network"] = a.header.yes
	}
	x.WriteHeader(http.StatusNoContent)
	return true
}

// notAllowed returns why a request whose host or origin is not allowed is refused. The log has the value as the cause.
func notAllowed(code wasmtools.Code, what, value, key string) error {
	return &wasmtools.Error{
		Code:    code,
		Message: fmt.Sprintf("The %s %q is not allowed here; the operator of the server can add it to %s", what, text.Short(value), key),
		Err:     fmt.Errorf("%s %q is not in %s", what, text.Short(value), key),
	}
}
