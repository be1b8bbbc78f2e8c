package web

import (
	"fmt"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Policy is what a door requires from the Mux. The zero value is the safe one.
type Policy struct {
	// Open makes the door answer even requests without the required credentials: their principal is [wasmtools.Nobody], who may call nothing. A
	// request with valid credentials has its own principal.
	Open bool
	// Role is the role that the principal must have, such as [wasmtools.RoleAdmin]. With a role, the door is closed if the service requires no
	// credentials. Empty means that no role is required.
	Role string
	// Pages says which pages of other origins may make requests, in addition to those that the [Access] lists.
	Pages Pages
	// Below makes the door answer GET and HEAD for the paths below its own even if tools can have these paths, since tools answer only POST.
	Below bool
	// Unbounded leaves the body of [Exchange.Request] without a bound, for a door that reads it only with [Exchange.ReadBody].
	Unbounded bool
}

// admits returns why a principal may not use the door, or nil.
func (p *Policy) admits(principal *wasmtools.Principal) error {
	switch {
	case p.Role == "" || principal.Has(p.Role):
		return nil
	case principal.Origin() == wasmtools.OriginOpen: // the caller may have the role, but has not identified itself
		return &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Message: fmt.Sprintf("This needs credentials with the role %q", p.Role)}
	}
	return &wasmtools.Error{Code: wasmtools.CodeForbidden, Message: fmt.Sprintf("This needs the role %q, which the caller doesn't have", p.Role)}
}

// Pages says which pages of other origins may make requests to a door.
type Pages int

const (
	// PagesListed are the pages whose origins the Access lists.
	PagesListed Pages = iota
	// PagesRead are all pages, but only with GET and HEAD, and without seeing the answer: so they may link to the door. It is for doors for which
	// these methods only read.
	PagesRead
	// PagesAll are all pages: each may make any request and see the answer.
	PagesAll
	// PagesOwn are only pages of the service's own origin, whatever the Access lists.
	PagesOwn
)

// Require returns an error if a principal lacks a role. It is for a door that needs different roles. An empty role requires only credentials.
func Require(p *wasmtools.Principal, role string) error {
	if role == "" && (p.Origin() == "" || p.Origin() == wasmtools.OriginOpen) {
		return &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Message: "This needs credentials"}
	}
	policy := Policy{Role: role}
	return policy.admits(p)
}
