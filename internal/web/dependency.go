package web

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// A Dependency is a condition that every request must meet, except those for /healthz and /readyz. It may have more methods; a Dependency
// of package auth has all of these:
//
//	Principal(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error)
//
// Principal says who makes the request. It is called after Check and, like Check, concurrently. current is the principal so far, at first
// [wasmtools.Everybody]. Principal returns current or another principal, never nil. An error refuses the request, as
// one from Check does.
//
//	Schemes() []auth.Scheme
//	Subscribe(changed func()) (unsubscribe func())
//
// Schemes returns the ways in which clients can currently meet the condition, for documents. One of them is enough. There are none if no credentials
// are needed. It must not take a lock. Subscribe calls changed after each change of what Schemes returns. Without Subscribe, the schemes never
// change.
//
//	Challenges() []string
//
// Challenges returns the values of the header WWW-Authenticate for a request that is refused with CodeUnauthorized.
//
//	ChallengesFor(r *http.Request) []string
//
// ChallengesFor replaces Challenges if they depend on the request.
//
//	Version() uint64
//
// Version returns a number that grows when the result of Check or Principal for a request may have changed. If it has grown by the time the body of a
// request has been read, or when a called tool calls another, both are called again for that request. Without this method they are called again only
// after a change of the table's configuration. Version must not take a lock.
type Dependency interface {
	// Check returns nil, or why the request is refused. The client sees an *wasmtools.Error. Any other error is treated as internal and not shown.
	// Check must not read the body. It is called concurrently.
	Check(r *http.Request) error
}

// An identifier is a Dependency that says who makes a request.
type identifier interface {
	Principal(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error)
}

// A versioned is a Dependency that can report that it has changed.
type versioned interface{ Version() uint64 }

// A dependency is a Dependency split into its methods.
type dependency struct {
	check    Dependency // nil: identify checks as well
	identify identifier // nil: the principal stays the same
	version  versioned  // nil: it never reports changes
}

// dependenciesOf splits dependencies into their methods. The Principal method of an auth.Authenticator includes its Check, and looking up a token
// twice would cost a tenth of a call, so Check is left out. But a type that embeds an Authenticator may have a Check of its own, so its Check and
// its Principal method are both called.
func dependenciesOf(all []Dependency) []dependency {
	found := make([]dependency, len(all))
	for i, d := range all {
		found[i].identify, _ = d.(identifier)
		found[i].version, _ = d.(versioned)
		if _, both := d.(*auth.Authenticator); !both {
			found[i].check = d
		}
	}
	return found
}

// identify returns who makes a request to a door, or why it is refused.
func (a *Admission) identify(r *http.Request, policy *Policy) (*wasmtools.Principal, error) {
	principal := wasmtools.Everybody()
	for i := range a.dependencies {
		next, err := a.dependencies[i].meet(r, principal)
		switch {
		case err != nil && policy.Open && isUnauthorized(err):
			principal = wasmtools.Nobody()
		case err != nil:
			return nil, err
		case next == nil:
			return nil, fmt.Errorf("dependency %d, a %T, returned neither a principal nor an error", i, a.dependencies[i].identify)
		default:
			principal = next
		}
	}
	return principal, policy.admits(principal)
}

// meet returns the principal of a request that meets the condition. current is the principal so far.
func (d *dependency) meet(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error) {
	if d.check != nil {
		if err := d.check.Check(r); err != nil {
			return nil, err
		}
	}
	if d.identify == nil {
		return current, nil
	}
	return d.identify.Principal(r, current)
}

func isUnauthorized(err error) bool {
	failed, ok := errors.AsType[*wasmtools.Error](err)
	return ok && failed.Code == wasmtools.CodeUnauthorized
}

// version returns a number that changes with the dependencies.
func (a *Admission) version() (sum uint64) {
	for i := range a.dependencies {
		if v := a.dependencies[i].version; v != nil {
			sum += v.Version() // the sum grows because each of them only grows
		}
	}
	return sum
}
