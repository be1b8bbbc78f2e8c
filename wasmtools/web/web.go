// Package web has what a program needs to add HTTP doors to a server, and to be told of its requests.
package web

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Door answers the requests for its part of the paths. Doors can't forget the checks: a request reaches one only if its host is
// allowed, if it doesn't come from a page of another origin, and if its principal is known; reading its body from
// [Exchange.Request] fails after 1 MiB. A door that needs something else has one more method, which is called once:
//
//	Policy() Policy
type Door interface {
	// Serve answers one request. It is called concurrently. A panic is answered with CodeInternal, and logged.
	Serve(x *Exchange)
}

// A Policy is what a door wants. The zero value is the safe one.
type Policy struct {
	// Open makes the door answer even requests without the credentials that others need: their principal is then [wasmtools.Nobody], who
	// may call nothing. A request with valid credentials has its own principal.
	Open bool
	// Role is what the principal must have, such as [wasmtools.RoleAdmin]. So the door is closed if no caller has to show credentials. If
	// Role is empty, no role is needed.
	Role string
	// Pages says which pages of other origins may make requests, besides those that the [Access] lists.
	Pages Pages
}

// Pages are the pages of other origins that may make requests of a door.
type Pages int

const (
	// PagesListed are those whose origins the Access lists.
	PagesListed Pages = iota
	// PagesRead are all pages, but only with GET and HEAD, and without seeing the answer: so they may link to the door. It is for doors where
	// these methods do nothing but read.
	PagesRead
	// PagesAll are all pages: any page that somebody visits may make any request, and see the answer.
	PagesAll
	// PagesOwn are only those of the service's own origin, whatever the Access lists.
	PagesOwn
)

// An Access says which hosts requests may name, and pages of which other origins may make requests. The hosts prevent DNS rebinding, in
// which a page makes its own domain name lead to the address of the service. The pages prevent cross-site request forgery; those that are
// allowed get the headers of CORS. It also says which proxies are believed about the client. It never changes.
type Access web.Access

// AccessOptions are the settings of an Access. With the zero value, requests may name any host, and pages of other origins may
// make none.
type AccessOptions struct {
	// Hosts are the names by which clients reach the service, with any port: names and IP addresses, patterns such as
	// "*.example.com", which matches every name below example.com, or "*" for every host. If there are none, every host is allowed,
	// unless Loopback is set.
	Hosts []string
	// Loopback says that only clients on this machine reach the service. Then localhost, the names below it and the loopback
	// addresses are allowed, too; without Hosts, nothing else is.
	Loopback bool
	// Origins are those whose pages may call the service, such as "https://app.example.com", or "*" for every origin.
	Origins []string
	// Proxies are the addresses of proxies in front of the service, which are believed when they say for whom they send a request. The log
	// shows who that is. If there are none, the peer of the connection is the client.
	Proxies []netip.Prefix
	// ProxyHeader is the one header in which the Proxies name the client, "X-Forwarded-For" or "Forwarded": any other header may have
	// been written by the client. If it is empty, X-Forwarded-For is used.
	ProxyHeader string
}

// NewAccess returns an error that says what is wrong with a host, an origin or the header of proxies.
func NewAccess(o AccessOptions) (*Access, error) {
	a, err := web.NewAccess(web.AccessOptions(o))
	return (*Access)(a), err
}

// RequestID returns the id of the request that a tool is called for, as its answer and the log have it, or "".
func RequestID(ctx context.Context) string { return web.RequestID(ctx) }

// CheckType returns why a request's type is not JSON in UTF-8, or nil. A missing type is wrong, too: a page of another site
// can make a browser send a body without a type, as text/plain or as a form, but not as JSON.
func CheckType(h http.Header) error { return web.CheckType(h) }

// Describe returns the status of an error, and the sentence that says what it is.
func Describe(e *wasmtools.Error) (status int, sentence string) { return web.Describe(e) }
