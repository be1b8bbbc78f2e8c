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
	// MaxLifetime is the longest one that ends.
	MaxLifetime = 5 * 365 * 24 * time.Hour
	// Forever makes a token last until it is revoked.
	Forever time.Duration = -1
	// MaxGrace is the longest time that a secret stays valid after a rotation.
	MaxGrace = 30 * 24 * time.Hour
	// maxTokens is how many tokens there are at most.
	maxTokens = 100_000
	// maxNetworks is how many networks a token has at most.
	maxNetworks = 64
	// maxWithin is how many narrower tokens there may be below one token, and maxDepth how deep. A narrower token has at most maxNarrow scopes,
	// since each is compared with all scopes of its maker.
	maxWithin, maxDepth, maxNarrow = 1000, 4, 16
	// maxPatterns is how many bytes the scopes with an asterisk of all those narrower ones have together. Each is compared anew at a start, and when
	// the one changes that made it, while nobody can revoke any: hard ones take a millisecond.
	maxPatterns = 64 << 10
	// keepExpired is how long a token is still listed that has expired.
	keepExpired = 30 * 24 * time.Hour
)

// Errors that callers tell apart with errors.Is. Any other but those of package state says what is wrong with what was asked for.
var (
	// ErrUnknown is returned if there is no such token.
	ErrUnknown = errors.New("there is no such token")
	// ErrExists is returned if the name is taken.
	ErrExists = errors.New("a token with this name exists already")
	// ErrMore means that a narrower token would have more rights than its maker.
	ErrMore = errors.New("more than the token has")
	// ErrNowhere is returned if there is no state to keep a token in.
	ErrNowhere = errors.New("tokens can't be stored: set state.directory or state.url in the configuration")
)

// A moreError says in its own words what was more.
type moreError struct{ error }

func (moreError) Is(target error) bool { return target == ErrMore }

// A Spec says what a new token is.
type Spec struct {
	// Name is at most 64 of the characters A-Z a-z 0-9 . _ @ -, and of a narrower token the part behind the name of the one that makes it.
	Name string
	// Scopes are patterns of tools, or roles. If there are none, it may do nothing.
	Scopes []string
	// Lifetime is how long it lasts. Zero means DefaultLifetime; of a narrower one, no longer than the one that makes it.
	Lifetime time.Duration
	// Networks are the addresses from which it is taken. If there are none, all; of a narrower one, those of the one that makes it.
	Networks []netip.Prefix
	// Rate limits how many calls are made with it. The calls of a narrower one count for the one that makes it, too, whatever its own rate
	// is.
	Rate wasmtools.Rate
	// By is who makes it, for those who list tokens.
	By string
}

// A Token is what is known of a token. Its secret is not.
type Token struct {
	Name string `json:"name"`
	// ID is the token's beginning, up to its secret.
	ID       string         `json:"id"`
	Scopes   []string       `json:"scopes"`
	Networks []netip.Prefix `json:"networks,omitempty"`
	// Rate is the token's own.
	Rate    rates.Text `json:"rate,omitzero"`
	Created time.Time  `json:"created,omitzero"`
	By      string     `json:"by,omitempty"`
	Expires time.Time  `json:"expires,omitzero"` // zero: never
	// Used is when it was used last, to the minute; zero means never.
	Used time.Time `json:"used,omitzero"`
	// Former is until when the secret is taken that the last rotation has replaced; zero means it is not.
	Former time.Time `json:"former_until,omitzero"`
	// State is "valid", "expired", or why it is refused.
	State string `json:"state"`
	// Version changes with each change of the token.
	Version uint64 `json:"version"`
}

// Add makes a token, and returns it with its secret, which can't be shown again. From the first one on, the service is closed to callers
// without a token.
func (s *Store) Add(ctx context.Context, spec Spec) (secret string, made Token, err error) {
	return s.add(ctx, spec.Name, spec, "")
}

// Attenuate makes a narrower token from the token of a principal that [Verifier.Verify] returned, named after it with a slash and the name
// in spec. spec must not ask for more than its maker may do. It ends with that one, and can never do more, even if that one loses scopes.
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

// Reserve returns what is wrong with a new token, or waits for the turn to make one. by is the principal whose token is to make it, or nil.
// The answer holds until release is called: nobody else who has reserved one makes it in the meantime.
func (s *Store) Reserve(ctx context.Context, by *wasmtools.Principal, spec Spec) (release func(), err error) {
	if err := s.check(by, spec); err != nil { // which nobody has to wait for: scopes may take long to compare
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

// narrower returns the token that is to make a narrower one, if it may, and what spec leaves to it.
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
	if err := s.noteIssued(ctx); err != nil { // once the token was revoked, everybody would be let in
		_, taken := s.space.Delete(ctx, keyName+name, state.Any)
		return "", made, errors.Join(err, taken)
	}
	if err := s.refresh(ctx, name); err != nil {
		return "", made, err
	}
	made, err = s.Show(name)
	return secret, made, err
}

// live sets the end of a token's life, which begins now.
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

// noteIssued has the service stay closed when there is no token any more.
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
	err = s.putMark() // the directory is there now
	if err != nil && !s.without {
		return err
	}
	s.unmarked.Set(err)
	s.mu.Lock()
	s.issued, s.noted = true, true
	s.mu.Unlock()
	return nil
}

// Rotate gives a token a new secret, and the same lifetime as at first. The old secret is taken for grace longer; the one before that
// isn't. expect is the token's version, or [state.Any].
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

// SetScopes gives a token other scopes; its secret stays. A narrower token can't get more than its maker has. What a token loses, the tokens that
// it has made lose, too. expect is the token's version, or [state.Any].
func (s *Store) SetScopes(ctx context.Context, name string, scopes []string, expect int64) (Token, error) {
	asked, err := scope.Parse(scopes)
	if err != nil {
		return Token{}, err
	}
	return s.change(ctx, name, expect, func(r *record) error {
		if r.Parent != "" {
			t, err := s.find(name) // which may be its beginning
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

// SetRate gives a token another rate; what it has used up stays used up. expect is the token's version, or [state.Any].
func (s *Store) SetRate(ctx context.Context, name string, rate wasmtools.Rate, expect int64) (Token, error) {
	if err := rates.Check(rate); err != nil {
		return Token{}, err
	}
	return s.change(ctx, name, expect, func(r *record) error {
		r.Rate = rates.TextOf(rate)
		return nil
	})
}

// change changes the record of a token, and returns once that is in force.
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

// Revoke ends a token, and those that it made. No request that comes once Revoke has returned is let in by one. expect is the token's version, or
// [state.Any].
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
		if err := s.refresh(ctx, t.name); err != nil && !again { // it is gone from the state, whatever that says now
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

// clear removes the tokens that one has made which is gone. They are not taken any more in any case.
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

// An amount is how many tokens there are, and the bytes of their patterns.
type amount struct{ tokens, patterns int }

// madeCounts is how long a narrower token counts for the one that made it, even if it has expired: each has its entry in the audit, where whoever can make
// them without end pushes out all others.
const madeCounts = 24 * time.Hour

// within returns how many tokens one has made, and they, which count; how many with those that don't any more; and of these the one that expired
// first, if there is any.
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

// makeRoom removes narrower tokens that have expired, where they would keep others of the same one from being made.
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

// patternBytes returns how long the scopes are together that are more than a name.
func patternBytes(of scope.Set) (n int) {
	for _, p := range of.Tools {
		if strings.Contains(p, "*") {
			n += len(p)
		}
	}
	return n
}

// idWithin returns the id in the beginning of a token up to its secret.
func idWithin(name string) (id string, ok bool) {
	id, ok = strings.CutPrefix(name, prefix)
	return id, ok && len(id) == idLen
}

// find returns a copy of a token, by its name or by its beginning up to the secret.
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

// ofPrincipal returns the token of a principal as it is now. Its scopes or its rate may have changed since the principal was found.
func (s *Store) ofPrincipal(p *wasmtools.Principal) (t known, err error) {
	if p.Origin() == personal.OriginIssued {
		if t, err = s.find(p.String()); err == nil && t.wrong == nil && !t.expired(time.Now()) {
			if t.record.ID != p.Credential() { // another token has that name by now, which may do more
				return t, errors.New("the token was revoked meanwhile, and another one has its name")
			}
			return t, nil
		}
	}
	return t, errors.New("only a token that was made with `toolsrv tokens add` can make narrower ones: ask with it, in TOOLSRV_TOKEN and with --server")
}

// Of returns the token of a principal that [Verifier.Verify] has returned, if the state has it.
func (s *Store) Of(p *wasmtools.Principal) (Token, bool) {
	t, err := s.ofPrincipal(p)
	if err != nil {
		return Token{}, false
	}
	return t.shown(time.Now()), true
}

// Show returns a token, by its name or by its beginning up to the secret.
func (s *Store) Show(name string) (Token, error) {
	t, err := s.find(name)
	if err != nil {
		return Token{}, err
	}
	return t.shown(time.Now()), nil
}

// List returns all tokens by name, or an error where they can't be read.
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

// shown returns what is told of a token: what is in effect.
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
