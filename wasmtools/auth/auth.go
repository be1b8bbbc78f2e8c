// Package auth finds out who makes a request. An [Authenticator] asks its verifiers one after the other. Each of them knows one kind of
// credentials, such as the bearer tokens of a [BearerTokenAuth], which can change while requests run.
package auth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Verifier finds out who makes a request, by one kind of credentials. All methods are called concurrently. Only Subscribe may take a lock.
type Verifier interface {
	// Verify returns the principal of the request's credentials, or nil without valid credentials of its kind. An error says why the
	// principal is not known, or what a client should know about it. In both cases, the other verifiers are still asked. An
	// *wasmtools.Error is shown to clients, while any other error counts as internal. An error with CodeUnauthorized and no message refuses
	// as nil does, and the log says why. Verify must not read the body.
	Verify(r *http.Request) (*wasmtools.Principal, error)
	// Scheme says how clients show their credentials. It is the same at every call.
	Scheme() Scheme
	// Open reports whether callers need no credentials of this kind at the moment.
	Open() bool
	// Version returns a number that grows when Verify or Open may give another answer.
	Version() uint64
	// Subscribe calls changed after each change of what Open returns. The returned function ends the subscription.
	Subscribe(changed func()) (unsubscribe func())
}

// A Challenger is a Verifier whose challenge depends on the request: ChallengeFor replaces its scheme's Challenge.
type Challenger interface {
	Verifier
	ChallengeFor(r *http.Request) string
}

// A Scheme is how clients show who they are.
type Scheme struct {
	// Name and Description are the security scheme of OpenAPI documents: a name of the characters A-Z a-z 0-9 . _ -, and a JSON object.
	Name        string
	Description json.RawMessage
	// Challenge is the value of WWW-Authenticate for a request without valid credentials, such as "Bearer". If it is empty, there is none.
	Challenge string
	// Refusal is the sentence that tells such a client what it lacks, if no other kind of credentials is accepted. If it is empty, the
	// sentence is "Invalid or missing credentials".
	Refusal string
}

// Check returns what is wrong with the name or the description, or nil.
func (s Scheme) Check() error {
	var object map[string]json.RawMessage
	if !schemeName.MatchString(s.Name) || json.Unmarshal(s.Description, &object) != nil || object == nil {
		return fmt.Errorf("the security scheme %q must have a name of the characters A-Z a-z 0-9 . _ - and be a JSON object", s.Name)
	}
	return nil
}

var schemeName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// An Authenticator is a dependency of package web that says who makes a request: a caller that one of its verifiers knows. While all of
// them are open, nobody needs credentials. It is safe for concurrent use.
type Authenticator struct{ verifiers []Verifier }

// Dependency returns the Authenticator that asks verifiers in this order. It panics if there is none, if one is nil, or if a scheme has a bad
// name or is not a JSON object.
func Dependency(verifiers ...Verifier) *Authenticator {
	if len(verifiers) == 0 || slices.Contains(verifiers, nil) {
		panic("auth.Dependency(nil): make a verifier, such as a BearerTokenAuth with NewBearerTokenAuth")
	}
	for _, v := range verifiers {
		if err := v.Scheme().Check(); err != nil {
			panic("auth.Dependency: " + err.Error())
		}
	}
	return &Authenticator{slices.Clone(verifiers)}
}

// Check returns nil, or the reason why no caller was identified: a *wasmtools.Error with CodeUnauthorized that does not say what was wrong with
// its credentials, or the first error of a verifier.
func (a *Authenticator) Check(r *http.Request) error {
	_, err := a.Principal(r, wasmtools.Everybody())
	return err
}

// Principal returns who makes the request, or current while no credentials are needed. It fails as Check does.
func (a *Authenticator) Principal(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error) {
	for {
		version := a.Version()
		p, err := a.principal(r, current)
		if a.Version() == version { // no verifier has changed while they were all asked
			return p, err
		}
	}
}

func (a *Authenticator) principal(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error) {
	var failed error
	for _, v := range a.verifiers {
		p, err := v.Verify(r)
		if err == nil && p != nil {
			return p, nil
		}
		if failed == nil {
			failed = err
		}
	}
	if a.Open() {
		return current, nil
	}
	refused := &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Message: a.refusal()}
	if e, ok := failed.(*wasmtools.Error); ok && e.Code == wasmtools.CodeUnauthorized && e.Message == "" {
		refused.Err = e.Err
	} else if failed != nil {
		return nil, failed
	}
	return nil, refused
}

// refusal returns the error that tells a client which credentials it lacks.
func (a *Authenticator) refusal() string {
	if all := a.Schemes(); len(all) == 1 && all[0].Refusal != "" {
		return all[0].Refusal
	}
	return "Invalid or missing credentials"
}

// Open reports whether callers need no credentials at the moment, because all verifiers are open.
func (a *Authenticator) Open() bool {
	for _, v := range a.verifiers {
		if !v.Open() {
			return false
		}
	}
	return true
}

// Principals returns the principals that are known before they make a request, sorted by name: everybody while no credentials are needed,
// and those of each verifier with a method Principals() []*wasmtools.Principal.
func (a *Authenticator) Principals() (all []*wasmtools.Principal) {
	if a.Open() {
		all = append(all, wasmtools.Everybody())
	}
	for _, v := range a.verifiers {
		if known, ok := v.(interface {
			Principals() []*wasmtools.Principal
		}); ok {
			all = append(all, known.Principals()...)
		}
	}
	slices.SortStableFunc(all, func(a, b *wasmtools.Principal) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// Schemes returns the schemes of all verifiers that are not open, one of each name. A request must meet one of them.
func (a *Authenticator) Schemes() (all []Scheme) {
	for _, v := range a.verifiers {
		if v.Open() {
			continue
		}
		if s := v.Scheme(); !slices.ContainsFunc(all, func(other Scheme) bool { return other.Name == s.Name }) {
			all = append(all, s)
		}
	}
	return all
}

// Challenges returns the values of WWW-Authenticate for a request without credentials: the challenges of Schemes or, where there are none,
// of all verifiers. So a door that requires more than a principal has challenges even while no other door needs credentials.
func (a *Authenticator) Challenges() []string {
	if all := challengesOf(a.Schemes()); len(all) > 0 {
		return all
	}
	schemes := make([]Scheme, len(a.verifiers))
	for i, v := range a.verifiers {
		schemes[i] = v.Scheme()
	}
	return challengesOf(schemes)
}

// ChallengesFor returns the values of WWW-Authenticate for one request, where Challenges has those for any. A challenge with parameters
// replaces the same challenge without them, since clients use the first one that they find.
func (a *Authenticator) ChallengesFor(r *http.Request) []string {
	all := a.Challenges()
	for _, v := range a.verifiers {
		c, ok := v.(Challenger)
		if !ok || v.Open() && !a.Open() {
			continue
		}
		own := c.ChallengeFor(r)
		word, _, more := strings.Cut(own, " ")
		if more {
			all = slices.DeleteFunc(all, func(other string) bool { return other == word })
		}
		if own != "" && !slices.Contains(all, own) {
			all = append(all, own)
		}
	}
	return all
}

func challengesOf(schemes []Scheme) (all []string) {
	for _, s := range schemes {
		if s.Challenge != "" && !slices.Contains(all, s.Challenge) {
			all = append(all, s.Challenge)
		}
	}
	return all
}

// Version returns a number that grows when the Authenticator may give another answer for a request.
func (a *Authenticator) Version() (sum uint64) {
	for _, v := range a.verifiers {
		sum += v.Version() // each version only grows
	}
	return sum
}

// Subscribe calls changed after each change of what Schemes returns. The returned function ends the subscription.
func (a *Authenticator) Subscribe(changed func()) (unsubscribe func()) {
	ends := make([]func(), len(a.verifiers))
	for i, v := range a.verifiers {
		ends[i] = v.Subscribe(changed)
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}
