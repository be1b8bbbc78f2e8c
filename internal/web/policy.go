package web

import (
	"fmt"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Policy is what a door wants of the Mux. The zero value is the safe one.
type Policy struct {
	// Open makes the door answer requests without the credentials that they would need: their principal is then [wasmtools.Nobody], who may
	// call nothing. One with valid credentials has its own principal.
	Open bool
	// Role is what the principal must have, such as [wasmtools.RoleAdmin]. So the door is closed if nobody has to show who they are. Empty:
	// none.
	Role string
	// Pages says which pages of other origins may make requests, besides those that the [Access] lists.
	Pages Pages
	// Below makes the door answer GET and HEAD for the paths below its own also where tools can have these: tools answer POST alone.
	Below bool
	// Unbounded leaves the body that [Exchange.Request] has as large as it comes, for a door that reads it with [Exchange.ReadBody] only.
	Unbounded bool
}

// admits returns why a principal may not use the door, or nil.
func (p *Policy) admits(principal *wasmtools.Principal) error {
	switch {
	case p.Role == "" || principal.Has(p.Role):
		return nil
	case principal.Origin() == wasmtools.OriginOpen: // it may be somebody who has the role
		return &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Message: fmt.Sprintf("This needs credentials with the role %q", p.Role)}
	}
	return &wasmtools.Error{Code: wasmtools.CodeForbidden, Message: fmt.Sprintf("This needs the role %q, which the caller doesn't have", p.Role)}
}

// Pages are the pages of other origins that may make requests of a door.
type Pages int

const (
	// PagesListed are those whose origins the Access lists.
	PagesListed Pages = iota
	// PagesRead are all pages, but with GET and HEAD only, and without seeing the answer: they may link to the door. It is for doors where
	// these methods do nothing but read.
	PagesRead
	// PagesAll are all pages: each may make any request, and see the answer.
	PagesAll
	// PagesOwn are only pages of the service's own origin, whatever the Access lists.
	PagesOwn
)

// Require returns why a principal may not do what needs a role, or nil: for a door that asks for several. An empty role asks for credentials
// only.
func Require(p *wasmtools.Principal, role string) error {
	if role == "" && (p.Origin() == "" || p.Origin() == wasmtools.OriginOpen) {
		return &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Message: "This needs credentials"}
	}
	policy := Policy{Role: role}
	return policy.admits(p)
}
