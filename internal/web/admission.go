package web

import (
	"errors"
	"net/http"

	"github.com/toolsrv/toolsrv/internal/origin"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// An Admission decides which requests are admitted, by host and page, and finds out who makes them. It never changes, but its dependencies may.
type Admission struct {
	access       *Access
	dependencies []dependency
	described    []described // of the dependencies
}

// NewAdmission returns an Admission. A nil access has the same meaning as in [Options]. Dependencies are checked in the given order. NewAdmission
// panics if one is nil, or if a security scheme has a bad name or is not a JSON object.
func NewAdmission(access *Access, dependencies ...Dependency) *Admission {
	return &Admission{access: orStrict(access), described: describedOf(dependencies), dependencies: dependenciesOf(dependencies)}
}

// An Admitter may be the Value of a table's configuration. It then decides which requests are admitted.
type Admitter interface {
	// Admission returns the same Admission at every call.
	Admission() *Admission
}

// admissionOf returns the Admission of a generation, or nil.
func admissionOf(g *wasmtools.Generation) *Admission {
	if c, ok := g.Configuration().(Admitter); ok {
		return c.Admission()
	}
	return nil
}

// now returns the current generation, or nil without a table, and its Admission.
func (m *Mux) now() (*wasmtools.Generation, *Admission) {
	if m.table == nil {
		return nil, m.admission
	}
	g := m.table.Current()
	if a := admissionOf(g); a != nil {
		return g, a
	}
	return g, m.admission
}

// An admitted is how a request was admitted: by which Admission, when, and as which principal.
type admitted struct {
	generation *wasmtools.Generation
	admission  *Admission
	version    uint64
	principal  *wasmtools.Principal
}

// isCurrent reports whether a request would still be admitted in the same way.
func (in *admitted) isCurrent(g *wasmtools.Generation, a *Admission) bool {
	return a == in.admission && a.version() == in.version && g.SameConfiguration(in.generation)
}

// admit admits a request to a door, or returns why it is refused. The result belongs to one moment, at which generation, tokens and hosts were all in
// force. A request that was admitted before the Mux was closed is not refused for that.
func (m *Mux) admit(r *http.Request, policy *Policy, isNew bool) (in admitted, err error) {
	for {
		in.generation, in.admission = m.now()
		in.version = in.admission.version()
		if err := in.admission.access.check(r, policy.Pages); err != nil {
			return in, err
		}
		if isNew && m.closed != nil {
			if err := m.closed(); err != nil {
				return in, err
			}
		}
		if in.principal, err = in.admission.identify(r, policy); err != nil {
			return in, err
		}
		if g, a := m.now(); a == in.admission && g.SameConfiguration(in.generation) {
			return in, nil
		}
	}
}

// Generation returns the request's generation, or nil if the Mux has no table.
func (x *Exchange) Generation() *wasmtools.Generation { return x.in.generation }

// Renew checks the request again under the current configuration and generation, which the request then uses. A door calls it after reading the body
// and before acting on the request, since there may have been a change after the header arrived. Renew reports whether the generation or the
// principal has changed. The error means that the request is no longer admitted, and is for [Exchange.Fail].
func (x *Exchange) Renew() (changed bool, err error) {
	g, a := x.mux.now()
	if x.in.isCurrent(g, a) {
		changed = g != x.in.generation
		x.in.generation, x.call.Generation = g, g
		return changed, nil
	}
	before := x.in
	if err := x.admit(); err != nil {
		return true, err
	}
	if x.at.off != nil && x.at.off(x.in.generation) { // by now
		return true, &wasmtools.Error{Code: wasmtools.CodeNotFound}
	}
	return x.in.generation != before.generation || x.in.principal != before.principal, nil
}

// admit admits the request, and sets generation and principal of its call.
func (x *Exchange) admit() error {
	before := x.in.admission
	in, err := x.mux.admit(x.request, &x.at.policy, before == nil)
	if before != nil && before != in.admission {
		before.access.undescribe(x)
	}
	if before != in.admission && !isHostError(err) {
		in.admission.access.describe(x)
	}
	x.in = in
	x.call.Generation, x.call.Principal, x.call.Client = in.generation, in.principal, x
	return err
}

// admitAnybody checks probes and preflights, which need no token. It reports whether it has answered the request.
func (x *Exchange) admitAnybody(probe bool) (answered bool) {
	_, a := x.mux.now()
	check := a.access.check
	if probe { // load balancers probe by address
		check = a.access.checkPage
	}
	err := check(x.request, x.pages())
	if !isHostError(err) {
		a.access.describe(x)
	}
	if err != nil {
		x.Fail(err)
		return true
	}
	return a.access.answerPreflight(x)
}

// isHostError reports whether a request named a host that is not the service's. Then pages must not be able to read the answer.
func isHostError(err error) bool {
	if err == nil { // nearly always
		return false
	}
	failed, ok := errors.AsType[*wasmtools.Error](err)
	return ok && failed.Code == wasmtools.CodeHostNotAllowed
}

var _ wasmtools.Client = (*Exchange)(nil)

// Now returns the current generation, and the request's principal under its configuration. It fails if the request would no longer be admitted.
func (x *Exchange) Now() (*wasmtools.Generation, *wasmtools.Principal, error) {
	g, a := x.mux.now()
	if x.in.isCurrent(g, a) {
		return g, x.in.principal, x.checkBlind(x.in.principal)
	}
	in, err := x.mux.admit(x.request, &x.at.policy, false)
	if err == nil {
		err = x.checkBlind(in.principal)
	}
	return in.generation, in.principal, err
}

// checkBlind returns an error if any page may have made a browser send the request, and nothing in the request would show it. That is a GET
// without a token over plain HTTP to another machine, as for a picture. A door may answer such a request, but no tool is called for it.
func (x *Exchange) checkBlind(p *wasmtools.Principal) error {
	r := x.request
	if r.Method != http.MethodGet && r.Method != http.MethodHead || p.Origin() != wasmtools.OriginOpen || x.pages() == PagesAll {
		return nil
	}
	if r.TLS != nil || len(r.Header["Sec-Fetch-Site"]) > 0 || len(r.Header["Origin"]) > 0 {
		return nil // then the page's origin is visible
	}
	if host, ok := origin.ParseHost(r.Host); isSocket(r) || ok && host.IsLoopback() {
		return nil // browsers treat it as secure
	}
	return &wasmtools.Error{Code: wasmtools.CodeOriginNotAllowed, Message: "Any page can make a browser send a GET over plain HTTP without a token, so such a request calls no tool: use POST, HTTPS or a token"}
}

// pages returns which pages may make the request. The answer to a probe is of no use to a page.
func (x *Exchange) pages() Pages {
	if x.at == nil {
		return PagesRead
	}
	return x.at.policy.Pages
}
