package tokens

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/scope"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// Bounds of tokens.
const (
	// DefaultLifetime is how long a token lasts by default.
	DefaultLifetime = 90 * 24 * time.Hour
	// MaxLifetime is the longest lifetime of a token that expires.
	MaxLifetime = 5 * 365 * 24 * time.Hour
	// Forever makes a token last until it is revoked.
	Forever time.Duration = -1
	// MaxGrace is the longest time that a secret stays valid after a rotation.
	MaxGrace = 30 * 24 * time.Hour
	// maxTokens is how many tokens there can be.
	maxTokens = 100_000
	// maxNetworks is how many networks a token can have.
	maxNetworks = 64
	// maxWithin is how many narrower tokens there can be below one token, and maxDepth how many levels. A narrower token has at most maxNarrow
	// scopes, since each is compared with all scopes of its maker.
	maxWithin, maxDepth, maxNarrow = 1000, 4, 16
	// maxPatterns is how many bytes the scopes with an asterisk of all these narrower tokens can have together. At startup, and when their maker
	// changes, all of these scopes are compared again, and no token can be revoked meanwhile. A hard pattern takes a millisecond.
	maxPatterns = 64 << 10
	// keepExpired is how long an expired token is still listed.
	keepExpired = 30 * 24 * time.Hour
)

// Errors that callers tell apart with errors.Is. All other errors, except those of package state, say what is wrong with the request.
var (
	// ErrUnknown is returned if there is no such token.
	ErrUnknown = errors.New("there is no such token")
	// ErrExists is returned if the name is taken.
	ErrExists = errors.New("a token with this name exists already")
	// ErrMore means that a narrower token would have more rights than its maker.
	ErrMore = errors.New("more than the token has")
	// ErrNowhere is returned if there is no state to store a token in.
	ErrNowhere = errors.New("tokens can't be stored: set state.directory or state.url in the configuration")
)

// A moreError is an ErrMore with a message of its own.
type moreError struct{ error }

func (moreError) Is(target error) bool { return target == ErrMore }

// A Spec describes a new token.
type Spec struct {
	// Name has at most 64 of the characters A-Z a-z 0-9 . _ @ -. For a narrower token, it is the part after its maker's name.
	Name string
	// Scopes are patterns of tools, or roles. A token without scopes may do nothing.
	Scopes []string
	// Lifetime is how long the token lasts. Zero means DefaultLifetime, but for a narrower token no longer than its maker lasts.
	Lifetime time.Duration
	// Networks are the addresses from which the token is accepted. If there are none, it is accepted from all addresses, or for a narrower token from
	// those of its maker.
	Networks []netip.Prefix
	// Rate limits the calls with the token. Calls with a narrower token also count for its maker, whatever its own rate is.
	Rate wasmtools.Rate
	// By is the name of who makes the token, for lists of tokens.
	By string
}

// A Token describes a token without its secret.
type Token struct {
	Name string `json:"name"`
	// ID is the beginning of the token, up to its secret.
	ID       string         `json:"id"`
	Scopes   []string       `json:"scopes"`
	Networks []netip.Prefix `json:"networks,omitempty"`
	// Rate is the token's own rate.
	Rate    rates.Text `json:"rate,omitzero"`
	Created time.Time  `json:"created,omitzero"`
	By      string     `json:"by,omitempty"`
	Expires time.Time  `json:"expires,omitzero"` // zero: never
	// Used is when the token was last used, to the minute; zero means never.
	Used time.Time `json:"used,omitzero"`
	// Former is when the secret from before the last rotation expires; zero means that it is not accepted.
	Former time.Time `json:"former_until,omitzero"`
	// State is "valid", "expired", or why the token is refused.
	State string `json:"state"`
	// Version changes with each change of the token.
	Version uint64 `json:"version"`
}

// Add makes a token, and returns it with its secret, which can't be shown again. Once the first token is made, callers without a token are refused.
func (s *Store) Add(ctx context.Context, spec Spec) (secret string, made Token, err error) {
	return s.add(ctx, spec.Name, spec, "")
}

// Attenuate makes a narrower token from the token of a principal that [Verifier.Verify] returned. The narrower token's name is its maker's name,
// a slash, and the name in spec. spec must not ask for more than the maker may do. The new token ends when its maker does, and can never do more,
// even if the maker loses scopes later.
func (s *Store) Attenuate(ctx context.Context, by *wasmtools.Principal, spec Spec) (secret string, made Token, err error) {
	parent, err := s.narrower(by, &spec)
	if err != nil {
		return "", made, err
	}
	if err := s.makeRoom(ctx, parent.name, spec.Scopes); err != nil {
		return "", made, err
	}
	return s.add(ctx, parent.name+"/"+spec.Name, spec, parent.record.ID)
}

// Reserve returns what is wrong with the spec of a new token, or waits until it is the caller's turn to make it. by is the principal whose token
// makes it, or nil. The answer holds until release is called: nobody else who uses Reserve makes a token in the meantime.
func (s *Store) Reserve(ctx context.Context, by *wasmtools.Principal, spec Spec) (release func(), err error) {
	if err := s.check(by, spec); err != nil { // checked before the turn, since comparing scopes may take long
		return nil, err
	}
	select {
	case s.turn <- struct{}{}:
		release = func() { <-s.turn }
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := s.check(by, spec); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

func (s *Store) check(by *wasmtools.Principal, spec Spec) error {
	name := spec.Name
	if by != nil {
		parent, err := s.narrower(by, &spec)
		if err != nil {
			return err
		}
		name = parent.name + "/" + name
	}
	if err := spec.check(); err != nil {
		return err
	}
	return s.isFree(name)
}

func (s *Store) isFree(name string) error {
	if _, err := s.Show(name); err == nil {
		return fmt.Errorf("%w: %s", ErrExists, name)
	}
	return nil
}

// narrower returns the token that makes a narrower one, if it may, and fills in what spec leaves out.
func (s *Store) narrower(by *wasmtools.Principal, spec *Spec) (parent known, err error) {
	if parent, err = s.ofPrincipal(by); err != nil {
		return parent, err
	}
	asked, err := scope.Parse(spec.Scopes)
	switch {
	case err != nil:
		return parent, err
	case len(spec.Scopes) > maxNarrow:
		return parent, fmt.Errorf("there are %d scopes; a narrower token has at most %d: use patterns such as \"math/*\"", len(spec.Scopes), maxNarrow)
	}
	if err := asked.Within(parent.scopes); err != nil {
		return parent, moreError{err}
	}
	if !parent.expires.IsZero() {
		left := time.Until(parent.expires)
		switch {
		case spec.Lifetime == 0:
			spec.Lifetime = min(left, DefaultLifetime)
		case spec.Lifetime == Forever || spec.Lifetime > left:
			return parent, moreError{fmt.Errorf("the token expires at %s: a narrower one can't last longer", parent.expires.UTC().Format(time.RFC3339))}
		}
	}
	for _, network := range spec.Networks {
		if len(parent.networks) > 0 && !slices.ContainsFunc(parent.networks, func(p netip.Prefix) bool { return p.Bits() <= network.Bits() && p.Contains(network.Addr()) }) {
			return parent, moreError{fmt.Errorf("the network %s is not within the networks of the token", network)}
		}
	}
	name := parent.name + "/" + spec.Name
	if strings.Count(name, "/") > maxDepth || len(name) > wasmtools.MaxPrincipalName {
		return parent, fmt.Errorf("the name is too long with the token's name in front, or has more than %d parts", maxDepth)
	}
	top, _, _ := strings.Cut(name, "/")
	live, _, _ := s.within(top)
	switch {
	case live.tokens >= maxWithin:
		return parent, fmt.Errorf("the token %s and those made from it have made %d tokens already, including those of the last day: revoke some", top, maxWithin)
	case live.patterns+patternBytes(asked) > maxPatterns:
		return parent, fmt.Errorf("the narrower tokens of %s have %d KiB of patterns already: revoke some, or name tools and namespaces without an asterisk", top, maxPatterns>>10)
	}
	return parent, nil
}

func (s *Store) add(ctx context.Context, name string, spec Spec, parent string) (secret string, made Token, err error) {
	if s.space == nil {
		return "", made, ErrNowhere
	}
	if err := spec.check(); err != nil {
		return "", made, err
	}
	if err := s.isFree(name); err != nil {
		return "", made, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	r := record{ID: newID(), Parent: parent, Scopes: spec.Scopes, Networks: spec.Networks, By: spec.By, Created: now, Lifetime: spec.Lifetime, Rate: rates.TextOf(spec.Rate)}
	r.live(now)
	secret = newToken(r.ID)
	r.Digest = sha256.Sum256([]byte(secret))
	if _, err := s.set(ctx, name, &r, state.Absent); errors.Is(err, state.ErrConflict) {
		return "", made, fmt.Errorf("%w: %s", ErrExists, name)
	} else if err != nil {
		return "", made, err
	}
	if err := s.noteIssued(ctx); err != nil { // otherwise everybody would be let in once the token is revoked
		_, taken := s.space.Delete(ctx, keyName+name, state.Any)
		return "", made, errors.Join(err, taken)
	}
	if err := s.refresh(ctx, name); err != nil {
		return "", made, err
	}
	made, err = s.Show(name)
	return secret, made, err
}

// live sets the expiry of a token whose lifetime begins now.
func (r *record) live(now time.Time) {
	switch r.Lifetime {
	case Forever:
		r.Expires = time.Time{}
		return
	case 0:
		r.Lifetime = DefaultLifetime
	}
	r.Expires = now.Add(r.Lifetime)
}

func (spec *Spec) check() error {
	if err := credential.CheckName(spec.Name); err != nil {
		return err
	}
	if _, err := scope.Parse(spec.Scopes); err != nil {
		return err
	}
	if err := rates.Check(spec.Rate); err != nil {
		return err
	}
	switch {
	case spec.Lifetime != Forever && (spec.Lifetime < 0 || spec.Lifetime > MaxLifetime):
		return fmt.Errorf("a token lasts at most %d days, or forever", MaxLifetime/(24*time.Hour))
	case len(spec.Networks) > maxNetworks:
		return fmt.Errorf("there are %d networks; at most %d are allowed", len(spec.Networks), maxNetworks)
	}
	for i, network := range spec.Networks {
		if !network.IsValid() || network.Addr().Is4In6() {
			return fmt.Errorf("network %d of %d is not a range of addresses: use one such as 10.0.0.0/8", i+1, len(spec.Networks))
		}
		spec.Networks[i] = network.Masked()
	}
	return nil
}

// set writes the record of a token.
func (s *Store) set(ctx context.Context, name string, r *record, expect int64) (version uint64, err error) {
	value, err := state.Encode(Form, r)
	if err != nil {
		return 0, err
	}
	o := state.SetOptions{Quota: state.Usage{Entries: maxTokens}}
	if !r.Expires.IsZero() {
		o.TTL = min(max(time.Until(r.Expires), 0)+keepExpired, state.MaxTTL)
	}
	return s.space.Set(ctx, keyName+name, value, expect, o)
}

// noteIssued makes the service refuse callers without a token even when no token is left.
func (s *Store) noteIssued(ctx context.Context) error {
	s.mu.Lock()
	noted := s.noted
	s.mu.Unlock()
	if noted {
		return nil
	}
	value, err := state.Encode(Form, struct{}{})
	if err != nil {
		return err
	}
	if _, err = s.space.Set(ctx, keyIssued, value, state.Any, state.SetOptions{}); err != nil {
		return err
	}
	err = s.putMark() // the state's directory exists now
	if err != nil && !s.without {
		return err
	}
	s.unmarked.Set(err)
	s.mu.Lock()
	s.issued, s.noted = true, true
	s.mu.Unlock()
	return nil
}

// Rotate gives a token a new secret, and starts the token's original lifetime again. The old secret is accepted for the time grace; the one
// before it no longer is. expect is the token's version, or [state.Any].
func (s *Store) Rotate(ctx context.Context, name string, grace time.Duration, expect int64) (secret string, now Token, err error) {
	if grace < 0 || grace > MaxGrace {
		return "", now, fmt.Errorf("an old secret can stay valid for at most %d days", MaxGrace/(24*time.Hour))
	}
	now, err = s.change(ctx, name, expect, func(r *record) error {
		at := time.Now().UTC().Truncate(time.Second)
		old := *r
		r.live(at)
		secret = newToken(r.ID)
		r.Digest, r.Former = sha256.Sum256([]byte(secret)), nil
		if grace > 0 {
			r.Former = &former{old.Digest, earlier(at.Add(grace), old.Expires)}
		}
		return nil
	})
	return secret, now, err
}

// SetScopes changes the scopes of a token; its secret stays the same. A narrower token can't get more than its maker has. Tokens that it has made
// lose the scopes that it loses. expect is the token's version, or [state.Any].
func (s *Store) SetScopes(ctx context.Context, name string, scopes []string, expect int64) (Token, error) {
	asked, err := scope.Parse(scopes)
	if err != nil {
		return Token{}, err
	}
	return s.change(ctx, name, expect, func(r *record) error {
		if r.Parent != "" {
			t, err := s.find(name) // name may also be the beginning of the token
			if err != nil {
				return err
			}
			parent, err := s.find(parentOf(t.name))
			if err != nil {
				return err
			}
			if err := asked.Within(parent.scopes); err != nil {
				return err
			}
		}
		r.Scopes = scopes
		return nil
	})
}

// SetRate changes the rate of a token; calls that it has used up stay used up. expect is the token's version, or [state.Any].
func (s *Store) SetRate(ctx context.Context, name string, rate wasmtools.Rate, expect int64) (Token, error) {
	if err := rates.Check(rate); err != nil {
		return Token{}, err
	}
	return s.change(ctx, name, expect, func(r *record) error {
		r.Rate = rates.TextOf(rate)
		return nil
	})
}

// change changes the record of a token, and returns when the change is in force.
func (s *Store) change(ctx context.Context, name string, expect int64, f func(*record) error) (Token, error) {
	for {
		t, err := s.find(name)
		if err != nil {
			return Token{}, err
		}
		if err := state.Conflict(t.version, expect); err != nil {
			return Token{}, err
		}
		if t.record.ID == "" {
			return Token{}, fmt.Errorf("the token can't be changed: %w", t.wrong)
		}
		r := t.record
		if err := f(&r); err != nil {
			return Token{}, err
		}
		_, err = s.set(ctx, t.name, &r, int64(t.version))
		again := errors.Is(err, state.ErrConflict) && expect == state.Any
		if err != nil && !again {
			return Token{}, err
		}
		if err := s.refresh(ctx, t.name); err != nil {
			return Token{}, err
		}
		if !again {
			return s.Show(t.name)
		}
	}
}

// Revoke ends a token, and the tokens that it has made. After Revoke has returned, no request is let in with one of them. expect is the token's
// version, or [state.Any].
func (s *Store) Revoke(ctx context.Context, name string, expect int64) (was Token, err error) {
	for {
		t, err := s.find(name)
		if err != nil {
			return was, err
		}
		was = t.shown(time.Now())
		if err := state.Conflict(t.version, expect); err != nil {
			return was, err
		}
		_, err = s.space.Delete(ctx, keyName+t.name, int64(t.version))
		again := errors.Is(err, state.ErrConflict) && expect == state.Any
		if err != nil && !again {
			return was, err
		}
		if err := s.refresh(ctx, t.name); err != nil && !again { // the token is gone from the state, even if the state can't be read now
			s.mu.Lock()
			if s.known[t.name] != nil {
				s.drop(t.name)
				s.publish()
			}
			s.mu.Unlock()
			s.tell()
		}
		if !again {
			return was, s.clear(ctx, t.name)
		}
	}
}

// clear removes the tokens that a revoked token has made. They are refused already.
func (s *Store) clear(ctx context.Context, name string) error {
	s.mu.Lock()
	var names []string
	for _, other := range s.below(name) {
		if s.known[other].wrong != nil {
			names = append(names, other)
		}
	}
	s.mu.Unlock()
	for _, name := range names {
		if _, err := s.space.Delete(ctx, keyName+name, state.Any); err != nil {
			return fmt.Errorf("the token was revoked, but the narrower %s is still listed: %w", name, err)
		}
		if err := s.refresh(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// An amount is a number of tokens, and the bytes of their patterns.
type amount struct{ tokens, patterns int }

// madeCounts is how long a narrower token counts towards its maker's limit, even if it has expired. Each has an entry in the audit, so callers who
// could make any number of tokens would push out all other entries.
const madeCounts = 24 * time.Hour

// within returns how many tokens below a token still count, how many there are in all, and which of those that no longer count expired first, if
// there are any.
func (s *Store) within(name string) (live, all amount, first known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, other := range s.below(name) {
		t := s.known[other]
		patterns := patternBytes(t.asked)
		all = amount{all.tokens + 1, all.patterns + patterns}
		if !t.expired(now) || now.Sub(t.record.Created) < madeCounts {
			live = amount{live.tokens + 1, live.patterns + patterns}
		} else if first.name == "" || t.expires.Before(first.expires) {
			first = *t
		}
	}
	return live, all, first
}

// makeRoom removes expired narrower tokens if they would keep parent, or others with the same outermost token, from making another one.
func (s *Store) makeRoom(ctx context.Context, parent string, scopes []string) error {
	asked, err := scope.Parse(scopes)
	if err != nil {
		return err
	}
	top, _, _ := strings.Cut(parent, "/")
	for {
		_, all, first := s.within(top)
		if first.name == "" || all.tokens < maxWithin && all.patterns+patternBytes(asked) <= maxPatterns {
			return nil
		}
		if _, err := s.space.Delete(ctx, keyName+first.name, int64(first.version)); err != nil && !errors.Is(err, state.ErrConflict) {
			return fmt.Errorf("make room for the token: %w", err)
		}
		if err := s.refresh(ctx, first.name); err != nil {
			return err
		}
	}
}

// patternBytes returns how many bytes the scopes with an asterisk have together.
func patternBytes(of scope.Set) (n int) {
	for _, p := range of.Tools {
		if strings.Contains(p, "*") {
			n += len(p)
		}
	}
	return n
}

// idWithin returns the id in a token, or in its beginning up to the secret.
func idWithin(name string) (id string, ok bool) {
	id, ok = strings.CutPrefix(name, prefix)
	return id, ok && len(id) == idLen
}

// find returns a copy of a token, found by its name or by its beginning up to the secret.
func (s *Store) find(name string) (t known, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.known[name]; found != nil {
		return *found, nil
	}
	if id, ok := idWithin(name); ok {
		for _, t := range s.known {
			if t.record.ID == id {
				return *t, nil
			}
		}
	}
	if s.lost != nil {
		return t, s.lost
	}
	return t, ErrUnknown
}

// ofPrincipal returns the current token of a principal, whose scopes or rate may have changed since the principal was identified.
func (s *Store) ofPrincipal(p *wasmtools.Principal) (t known, err error) {
	if p.Origin() == personal.OriginIssued {
		if t, err = s.find(p.String()); err == nil && t.wrong == nil && !t.expired(time.Now()) {
			if t.record.ID != p.Credential() { // by now another token has that name, which may have more rights
				return t, errors.New("the token was revoked meanwhile, and another one has its name")
			}
			return t, nil
		}
	}
	return t, errors.New("only a token that was made with `toolsrv tokens add` can make narrower ones: ask with it, in TOOLSRV_TOKEN and with --server")
}

// Of returns the token of a principal that [Verifier.Verify] has returned, if it is in the state.
func (s *Store) Of(p *wasmtools.Principal) (Token, bool) {
	t, err := s.ofPrincipal(p)
	if err != nil {
		return Token{}, false
	}
	return t.shown(time.Now()), true
}

// Show returns a token, found by its name or by its beginning up to the secret.
func (s *Store) Show(name string) (Token, error) {
	t, err := s.find(name)
	if err != nil {
		return Token{}, err
	}
	return t.shown(time.Now()), nil
}

// List returns all tokens sorted by name, or an error if they can't be read.
func (s *Store) List() ([]Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	all := make([]Token, 0, len(s.known))
	for _, t := range s.sorted() {
		all = append(all, t.shown(now))
	}
	return all, s.lost
}

// Len returns how many tokens there are.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.known)
}

func (t *known) expired(now time.Time) bool { return !t.expires.IsZero() && !t.expires.After(now) }

// shown returns the description of a token, with the rights that are in effect.
func (t *known) shown(now time.Time) Token {
	r := &t.record
	shown := Token{Name: t.name, Version: t.version, State: "valid"}
	if r.ID != "" {
		shown.ID, shown.Created, shown.By = prefix+r.ID, r.Created, r.By
		shown.Scopes, shown.Networks, shown.Expires = t.scopes.Scopes(), t.networks, t.expires
		shown.Rate = r.Rate
		if f := r.Former; f != nil && f.Until.After(now) {
			shown.Former = f.Until
		}
		if minute := t.used.Load(); minute > 0 {
			shown.Used = time.Unix(minute*60, 0).UTC()
		}
	}
	switch {
	case t.wrong != nil:
		shown.State = "refused: " + t.wrong.Error()
	case t.expired(now):
		shown.State = "expired"
	}
	if shown.Scopes == nil {
		shown.Scopes = []string{}
	}
	return shown
}
