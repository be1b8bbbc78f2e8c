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
	// Hosts are the host names by which clients reach the service, with any port: names, IP addresses, patterns such as "*.example.com", which
	// matches every name below example.com, or "*" for every host. If empty, every host is allowed, unless Loopback is set.
	Hosts []string
	// Loopback says that only clients on this machine reach the service. Then localhost, the names below it and the loopback addresses are among its
	// hosts. Without Hosts, only these are allowed, except that a request over a Unix socket may name any host.
	Loopback bool
	// Origins are the origins whose pages may call the service, such as "https://app.example.com", or "*" for every origin.
	Origins []string
	// Proxies are the addresses of trusted proxies in front of the service. They name the client of a request, and the log shows it. If empty, the
	// peer of the connection is the client.
	Proxies []netip.Prefix
	// ProxyHeader is the one header in which the proxies name the client, ForwardedFor or Forwarded. Any other header may come from the client
	// itself. Empty means ForwardedFor.
	ProxyHeader string
}

// An Access says which hosts requests may name, and pages of which other origins may make requests. The first prevents DNS rebinding, in which a page
// makes its own domain name resolve to the address of the service. The second prevents cross-site request forgery, and enables CORS for the listed
// origins. An Access also says which proxies are trusted to name the client. It never changes.
type Access struct {
	hosts     origin.Patterns
	everyHost bool
	loopback  bool

	everyOrigin bool
	origins     map[origin.Origin]struct{}

	proxies proxies
	header  accessHeader
}

// An accessHeader has header values that responses share. They never change.
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
			// The asterisk means every header except Authorization, and works only without credentials such as cookies, which are never allowed here.
			// So the answer does not depend on what a page asks for.
			headers: []string{"*, Authorization"},
			exposed: []string{"ETag, Mcp-Session-Id, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id"},
			maxAge:  []string{"7200"}, // seconds; Chrome keeps an answer no longer than this
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

// orStrict returns a, or if that is nil an Access under which pages of other origins may make no requests.
func orStrict(a *Access) *Access {
	if a == nil {
		a, _ = NewAccess(AccessOptions{}) // the zero options are always valid
	}
	return a
}

// check returns nil if a request's host and page are allowed. Behind a proxy, the host is the one that the proxy sends as Host, since any client can
// set the other headers.
func (a *Access) check(r *http.Request, pages Pages) error {
	if !a.everyHost && !a.isHost(r.Host) && !(a.loopback && isSocket(r)) {
		return notAllowed(wasmtools.CodeHostNotAllowed, "host", r.Host, "server.hosts")
	}
	return a.checkPage(r, pages)
}

// checkPage is check for the page alone. Pages of the service's own origin need no permission. For links, pictures and forms, a browser sends
// requests without an Origin header, but says in Sec-Fetch-Site where they come from. It leaves Sec-Fetch-Site out over plain HTTP to other
// machines.
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

// otherOrigin returns the error for a request from a page of another origin.
func otherOrigin(origin string, pages Pages) error {
	if pages == PagesOwn {
		return &wasmtools.Error{Code: wasmtools.CodeOriginNotAllowed, Message: "Pages of other origins may not make this request", Err: fmt.Errorf("the origin is %q", text.Short(origin))}
	}
	return notAllowed(wasmtools.CodeOriginNotAllowed, "origin", origin, "server.cors_origins")
}

// allows reports whether a request's origin is listed.
func (a *Access) allows(origins []string) bool {
	page, ok := origin.ParseOrigin(origins[0])
	_, listed := a.origins[page]
	return ok && listed && len(origins) == 1
}

// isSocket reports whether a request came over a Unix socket, which a browser's page can't reach by DNS rebinding.
func isSocket(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && local.Network() == "unix"
}

// isHost reports whether a host is one of the service's.
func (a *Access) isHost(s string) bool {
	host, ok := origin.ParseHost(s)
	return ok && (a.loopback && host.IsLoopback() || a.hosts.Match(host))
}

// undescribe removes what describe has set.
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

// answerPreflight answers a CORS preflight request, and reports whether the request was one. Preflights carry no token, so the answer must not depend
// on what is served: it is the same for every path.
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

// notAllowed returns the error for a request whose host or origin is not allowed. Its cause, for the log, has the value.
func notAllowed(code wasmtools.Code, what, value, key string) error {
	return &wasmtools.Error{
		Code:    code,
		Message: fmt.Sprintf("The %s %q is not allowed here; the operator of the server can add it to %s", what, text.Short(value), key),
		Err:     fmt.Errorf("%s %q is not in %s", what, text.Short(value), key),
	}
}
