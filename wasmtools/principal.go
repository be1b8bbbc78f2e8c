package wasmtools

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/text"
)

// MaxPrincipalName is the largest length of a principal's name in bytes.
const MaxPrincipalName = 128

// The origins of the principals that the service makes itself. Other programs may use their own words.
const (
	OriginOpen    = "open"    // no dependency asked who is calling
	OriginProcess = "process" // the call comes from the process itself, such as a command
	OriginToken   = "token"   // a bearer token
)

// The roles of the service's own doors.
const (
	RoleAdmin     = "admin"      // may change the service itself
	RoleAdminRead = "admin:read" // may read everything about the service; RoleAdmin includes this role
	RoleMetrics   = "metrics"    // may read the service's metrics
)

// A Principal is the caller of a tool: its name for logs and metrics, and the tools that it may call. Package auth makes one from each request; it
// travels in the [Call]. Its roles say what it may do besides calling tools. No scope includes a role, not even "*".
//
// A Principal never changes and is safe for concurrent use. The zero Principal, like nil, has no name and may call nothing.
type Principal struct {
	name, origin  string
	realm         string
	credential    string
	scopes, roles []string
	patterns      []string           // the scopes without a fingerprint
	approved      []pattern.Approval // those with one
	all           bool               // one of the scopes stands for every tool
	rate          Rate
	within        *Principal // the principal against whose rate calls also count, or nil
}

// NewPrincipal returns a principal that may call the tools that match one of the scopes; without any, it may call nothing. A scope is a
// path such as "math/add", a namespace such as "math", or a pattern such as "math/*" and "**/add"; "*" is every tool. A path with a
// fingerprint, such as "math/add@…", is that tool as long as what clients see of it stays the same. The name appears in logs, so it must
// not be a secret; origin says in a word how the principal came to be, such as "token".
//
// NewPrincipal fails where the name or the origin is empty, longer than MaxPrincipalName or has characters that can't be printed, and where
// a scope can't match any tool.
func NewPrincipal(name, origin string, scopes ...string) (*Principal, error) {
	if err := checkWord(name); err != nil {
		return nil, fmt.Errorf("principal's name: %w", err)
	}
	if err := checkWord(origin); err != nil {
		return nil, fmt.Errorf("origin of principal %q: %w", text.Short(name), err)
	}
	p := &Principal{name: name, origin: origin, scopes: slices.Clone(scopes)}
	for _, scope := range scopes {
		approval, ok, err := pattern.ParseApproval(scope)
		if ok && err == nil {
			p.approved = append(p.approved, approval)
			continue
		}
		if err == nil {
			err = pattern.Check(scope)
		}
		if err != nil {
			return nil, fmt.Errorf("scope of principal %q: %w", text.Short(name), err)
		}
		p.patterns = append(p.patterns, scope)
		if s := strings.TrimPrefix(scope, "/"); s == "*" || s == "**" {
			p.all = true
		}
	}
	return p, nil
}

// WithRoles returns the principal with these roles in place of its own. A role is a word such as RoleAdmin. WithRoles fails if a role is
// empty, is longer than MaxPrincipalName, or has characters that can't be printed.
func (p *Principal) WithRoles(roles ...string) (*Principal, error) {
	for _, role := range roles {
		if err := checkWord(role); err != nil {
			return nil, fmt.Errorf("role of principal %q: %w", text.Short(p.String()), err)
		}
	}
	next := p.clone()
	next.roles = slices.Clone(roles)
	return next, nil
}

// clone returns a copy, which may be changed until other code gets it.
func (p *Principal) clone() *Principal {
	if p == nil {
		return &Principal{}
	}
	next := *p
	return &next
}

// maxRealm is the largest length of a principal's realm in bytes.
const maxRealm = 1024

// WithRealm returns the principal with this realm instead of its own: the realm is the place within which its name belongs to only one
// caller, such as the address of the issuer that gave the name. Two principals of one origin are the same caller only if they have the same realm. It
// fails where the realm is longer than 1,024 bytes or has characters that can't be printed.
func (p *Principal) WithRealm(realm string) (*Principal, error) {
	if err := check(realm, maxRealm); realm != "" && err != nil {
		return nil, fmt.Errorf("realm of principal %q: %w", text.Short(p.String()), err)
	}
	next := p.clone()
	next.realm = realm
	return next, nil
}

// WithCredential returns the principal of somebody who has shown the credential with this id, such as a token that can be revoked. An MCP
// session continues only with the credential that it began with, not with one that the same caller gets later. The id is shown to nobody.
func (p *Principal) WithCredential(id string) *Principal {
	next := p.clone()
	next.credential = id
	return next
}

func checkWord(s string) error { return check(s, MaxPrincipalName) }

func check(s string, most int) error {
	switch {
	case s == "":
		return errors.New("it is empty")
	case len(s) > most:
		return fmt.Errorf("it has %d bytes; at most %d are allowed", len(s), most)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%q has characters that can't be printed", text.Short(s))
	}
	return nil
}

var (
	everybody = &Principal{name: "everybody", origin: OriginOpen, scopes: []string{"*"}, all: true}
	nobody    = &Principal{name: "nobody", origin: OriginOpen}
	self      = &Principal{name: "process", origin: OriginProcess, scopes: []string{"*"}, all: true}
)

// Everybody returns the principal of callers that need no credentials. It may call every tool.
func Everybody() *Principal { return everybody }

// Nobody returns the principal of callers without the credentials that they would need. It may call nothing.
func Nobody() *Principal { return nobody }

// Self returns the principal of calls that the process makes for itself, such as a command's. It may call every tool.
func Self() *Principal { return self }

// String returns the name.
func (p *Principal) String() string {
	if p == nil {
		return ""
	}
	return p.name
}

// Origin says in a word how the principal came to be, such as OriginToken.
func (p *Principal) Origin() string {
	if p == nil {
		return ""
	}
	return p.origin
}

// Realm returns the place within which the name belongs to only one caller, or "" if the name is unique within the origin.
func (p *Principal) Realm() string {
	if p == nil {
		return ""
	}
	return p.realm
}

// Credential returns the id of the credential that was shown, or "" if it doesn't matter which credential it was.
func (p *Principal) Credential() string {
	if p == nil {
		return ""
	}
	return p.credential
}

// Is reports whether two principals are the same caller, whose scopes and roles may differ.
func (p *Principal) Is(other *Principal) bool {
	return p == other || p.String() == other.String() && p.Origin() == other.Origin() && p.Realm() == other.Realm()
}

// Scopes returns the scopes of the tools that the principal may call, as they are written.
func (p *Principal) Scopes() []string {
	if p == nil {
		return nil
	}
	return slices.Clone(p.scopes)
}

// Roles returns what the principal may do besides calling tools.
func (p *Principal) Roles() []string {
	if p == nil {
		return nil
	}
	return slices.Clone(p.roles)
}

// Has reports whether the principal has a role. RoleAdmin includes RoleAdminRead.
func (p *Principal) Has(role string) bool {
	return p != nil && (slices.Contains(p.roles, role) || role == RoleAdminRead && slices.Contains(p.roles, RoleAdmin))
}

// May reports whether the principal may call the tool at a path such as "/math/add", even if only with a certain fingerprint: see
// [Principal.MayCall]. It allocates nothing.
func (p *Principal) May(path string) bool {
	return p != nil && (p.all || p.matches(path) || slices.ContainsFunc(p.approved, func(a pattern.Approval) bool { return a.Path == path }))
}

// MayAll reports whether the principal may call every tool, whatever tools there are.
func (p *Principal) MayAll() bool { return p != nil && p.all }

func (p *Principal) matches(path string) bool {
	return slices.ContainsFunc(p.patterns, func(one string) bool { return pattern.Match(one, path) })
}
