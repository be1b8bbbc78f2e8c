package tokens

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/scope"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// originDeclared is the origin of principals whose tokens the configuration declares.
const originDeclared = "declared"

// A Verifier identifies callers by the tokens of a Store, and by those that one configuration declares. It is safe for concurrent use.
type Verifier struct {
	store    *Store
	declared map[digest]*entry
	names    map[string]*entry // the same
	client   func(r *http.Request) netip.Addr
}

var _ auth.Verifier = (*Verifier)(nil)

// NewVerifier returns the verifier of a configuration. client returns the address for which a request is made, or the zero Addr if it has none.
// before, which may be nil, is the verifier of the previous configuration: a declared token that it also knows keeps its principal if its scopes
// and rate are the same.
func NewVerifier(store *Store, declared []config.Token, client func(r *http.Request) netip.Addr, before *Verifier) (*Verifier, error) {
	v := &Verifier{store: store, client: client, declared: make(map[digest]*entry, len(declared)), names: make(map[string]*entry, len(declared))}
	for _, d := range declared {
		if v.names[d.Name] != nil {
			return nil, fmt.Errorf("two tokens are named %s", d.Name)
		}
		key := store.keyed(d.SHA256)
		if v.declared[key] != nil {
			return nil, fmt.Errorf("another token has the same secret as the token of %s", d.Name)
		}
		p, err := PrincipalOf(&d)
		if err != nil {
			return nil, err
		}
		e := &entry{principal: p, networks: d.Networks, used: new(atomic.Int64)}
		if !d.Expires.IsZero() {
			e.ends = d.Expires.UnixNano()
		}
		if before != nil {
			if old := before.names[d.Name]; old != nil && slices.Equal(old.principal.Scopes(), p.Scopes()) && slices.Equal(old.principal.Roles(), p.Roles()) && old.principal.Rate() == p.Rate() {
				e.principal, e.used = old.principal, old.used
			}
		}
		v.declared[key], v.names[d.Name] = e, e
	}
	return v, nil
}

// PrincipalOf returns the principal of a declared token.
func PrincipalOf(d *config.Token) (*wasmtools.Principal, error) {
	scopes, err := scope.Parse(d.Scopes)
	if err != nil {
		return nil, fmt.Errorf("the token of %s: %w", d.Name, err)
	}
	p, err := scopes.Principal(d.Name, originDeclared)
	if err == nil && !d.Rate.IsZero() {
		p = p.WithRate(d.Rate, nil)
	}
	return p, err
}

// Verify returns the principal of the request's token, or nil if the request has no token or an unknown one. It allocates nothing for a valid token.
// Only the log says why a token is refused.
func (v *Verifier) Verify(r *http.Request) (*wasmtools.Principal, error) {
	ix := v.store.index.Load()
	if ix.open && len(v.declared) == 0 {
		return nil, nil
	}
	token := credential.Bearer(r.Header["Authorization"])
	if credential.Check(token) != nil {
		return nil, nil
	}
	key := v.store.keyed(sum(token))
	e := v.declared[key]
	if e == nil {
		e = ix.find(key)
	}
	if e == nil {
		return nil, v.unknown(token, ix)
	}
	now := time.Now()
	if e.ends != 0 && now.UnixNano() >= e.ends {
		return nil, refused(fmt.Errorf("the token of %s has expired", e.principal))
	}
	if len(e.networks) > 0 {
		if from := v.client(r); !from.IsValid() || !slices.ContainsFunc(e.networks, func(n netip.Prefix) bool { return n.Contains(from) }) {
			return nil, refused(fmt.Errorf("the token of %s was used from %s, which is not in its networks", e.principal, from))
		}
	}
	if minute := now.Unix() / 60; e.used.Load() != minute {
		e.used.Store(minute)
	}
	return e.principal, nil
}

// sum returns the digest of a token that credential.Check accepts. The buffer is on the stack, so that requests don't allocate.
func sum(token string) digest {
	var buf [credential.Max]byte
	return sha256.Sum256(buf[:copy(buf[:], token)])
}

// unknown returns why a token is not known, with a cause that only the log shows. It returns nil for tokens that don't look like ours.
func (v *Verifier) unknown(token string, ix *index) error {
	id, isOurs, intact := idOf(token)
	switch {
	case !isOurs:
		return nil
	case !intact:
		return refused(fmt.Errorf("the token is mistyped or cut off: its checksum does not fit"))
	case ix.lost != nil:
		return &wasmtools.Error{Code: wasmtools.CodeNotReady, Err: fmt.Errorf("the token %s%s can't be looked up: %w", prefix, id, ix.lost)}
	}
	return refused(fmt.Errorf("the token %s%s is not known: it was revoked, rotated or made for another server", prefix, id))
}

// refused returns the error for a request without a valid token. The message is always the same.
func refused(why error) error {
	return &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Err: why}
}

// Principals returns the principals whose tokens are valid at the moment, each once, in no particular order.
func (v *Verifier) Principals() (all []*wasmtools.Principal) {
	now, seen := time.Now().UnixNano(), map[*wasmtools.Principal]bool{}
	take := func(entries map[digest]*entry) {
		for _, e := range entries {
			if (e.ends == 0 || e.ends > now) && !seen[e.principal] {
				seen[e.principal] = true
				all = append(all, e.principal)
			}
		}
	}
	take(v.declared)
	for _, part := range v.store.index.Load().parts {
		take(part)
	}
	return all
}

// Scheme returns the scheme of HTTP bearer tokens.
func (v *Verifier) Scheme() auth.Scheme {
	return auth.Scheme{Name: "bearer", Description: json.RawMessage(`{"type":"http","scheme":"bearer"}`), Challenge: "Bearer", Refusal: "Invalid or missing bearer token"}
}

// Open reports whether no token is declared and none has ever been made.
func (v *Verifier) Open() bool { return len(v.declared) == 0 && v.store.index.Load().open }

// Version returns a number that grows with each change, and each time that a token expires.
func (v *Verifier) Version() uint64 { return v.store.index.Load().version }

// Subscribe makes the Verifier call changed after each change of the tokens in the state, and of the result of Open.
func (v *Verifier) Subscribe(changed func()) (unsubscribe func()) { return v.store.Subscribe(changed) }

// InForce says that the configuration of the verifier is in force: from now on subscribers are called when one of its tokens expires.
func (v *Verifier) InForce() {
	v.store.declaring.Store(v)
	select {
	case v.store.wake <- struct{}{}:
	default:
	}
}

// Ended reports whether a principal belongs to a token that is no longer valid.
func (v *Verifier) Ended(p *wasmtools.Principal) bool {
	switch p.Origin() {
	case originDeclared:
		e := v.names[p.String()]
		return e == nil || e.ends != 0 && time.Now().UnixNano() >= e.ends
	case personal.OriginIssued:
		t, err := v.store.find(p.String())
		return err != nil || t.record.ID != p.Credential() || t.wrong != nil || t.expired(time.Now())
	}
	return false
}
