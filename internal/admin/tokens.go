package admin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/scope"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// NewToken are the arguments of the operations tokens add and tokens attenuate.
type NewToken struct {
	Name     string   `json:"name" description:"Whose token it is: at most 64 of the characters A-Z a-z 0-9 . _ @ -" maxLength:"64"`
	Scopes   []string `json:"scopes,omitempty" description:"Patterns of tools such as math/*, and the roles admin, admin:read and metrics. By default it may do nothing." maxItems:"64"`
	Expires  string   `json:"expires,omitempty" description:"How long the token lasts, such as 90d or 12h, or never; by default 90 days." maxLength:"32"`
	Networks []string `json:"networks,omitempty" description:"Ranges of addresses that may use it, such as 10.0.0.0/8. By default all addresses." maxItems:"64"`
	TokenBounds
}

// TokenBounds are how many calls a token makes at most.
type TokenBounds struct {
	Rate       string `json:"rate,omitempty" description:"How many calls it may make on average, such as 10/s, 100/min or 1000/h. By default as in rates.default of the configuration." maxLength:"32"`
	Burst      int    `json:"burst,omitempty" description:"How many calls it may make in a burst after a pause; by default as in rates.default of the configuration, or the number in rate." minimum:"0" maximum:"1000000"`
	Concurrent int    `json:"concurrent,omitempty" description:"How many of its calls may run at the same time. By default as in rates.default of the configuration." minimum:"0" maximum:"1000000"`
}

// parse parses the bounds.
func (b TokenBounds) parse() (wasmtools.Rate, error) {
	r, err := rates.Text(b).Parse()
	if err != nil {
		return r, invalid(sentence(err))
	}
	return r, nil
}

// TokenRate are the arguments of the operation tokens rate.
type TokenRate struct {
	Name string `json:"name" description:"The token's name, or the token's beginning up to the secret." maxLength:"128"`
	TokenBounds
}

// TokenName are the arguments of operations on one token.
type TokenName struct {
	Name string `json:"name" description:"The token's name, or the token's beginning up to the secret." maxLength:"128"`
}

// Revocation are the arguments of the operation tokens revoke.
type Revocation struct {
	Name   string `json:"name" description:"The token's name, or the token's beginning up to the secret." maxLength:"128"`
	DryRun bool   `json:"dry_run,omitempty" description:"Whether to only show what would end."`
}

// Rotation are the arguments of the operation tokens rotate.
type Rotation struct {
	Name  string `json:"name" description:"The token's name, or the token's beginning up to the secret." maxLength:"128"`
	Grace string `json:"grace,omitempty" description:"How long the old secret stays valid, such as 1h; by default it ends at once." maxLength:"32"`
}

// TokenScopes are the arguments of the operation tokens scopes.
type TokenScopes struct {
	Name   string   `json:"name" description:"The token's name, or the token's beginning up to the secret." maxLength:"128"`
	Scopes []string `json:"scopes" description:"The token's new scopes. A token without scopes may do nothing." maxItems:"64"`
}

// A Token describes a token. Its secret is never shown.
type Token struct {
	Name     string   `json:"name" description:"The name of the token's caller."`
	ID       string   `json:"id,omitempty" description:"The token's beginning, up to the secret."`
	Scopes   []string `json:"scopes" description:"The scopes of the token."`
	Networks []string `json:"networks,omitempty" description:"The addresses that may use it; all if missing."`
	TokenBounds
	State    string     `json:"state" description:"valid, expired, or why the token is refused."`
	Expires  *time.Time `json:"expires,omitempty" description:"When the token expires; missing if never."`
	Used     *time.Time `json:"used,omitempty" description:"When the token was last used, to the minute."`
	Former   *time.Time `json:"former_until,omitempty" description:"How long the secret before the last rotation stays valid."`
	Created  *time.Time `json:"created,omitempty" description:"When the token was made."`
	By       string     `json:"by,omitempty" description:"Who made the token."`
	Declared bool       `json:"declared,omitempty" description:"Whether the configuration declares the token; then it can be changed only there."`
	Version  string     `json:"version,omitempty" description:"The token's version, for If-Match."`
}

// Tokens are the tokens of a server.
type Tokens struct {
	Tokens []Token `json:"tokens" description:"The tokens of the state by name, and then the tokens that the configuration declares."`
}

// A TokenMade is a new token with its secret.
type TokenMade struct {
	Secret   string   `json:"secret" description:"The new token itself. It is shown only here."`
	Token    Token    `json:"token" description:"What the token is, without its secret."`
	Warnings []string `json:"warnings,omitempty" description:"What may not be intended."`
}

// A TokenChanged is a token after a change.
type TokenChanged struct {
	Token    Token    `json:"token" description:"The token after the change."`
	Warnings []string `json:"warnings,omitempty" description:"What may not be intended."`
}

// A TokenRevoked is a token that has ended, or would end.
type TokenRevoked struct {
	DryRun bool     `json:"dry_run" description:"Whether nothing was changed."`
	Token  Token    `json:"token" description:"The token as it is now or was before it ended."`
	Ends   []string `json:"ends" description:"The names of the narrower tokens that end with the token."`
}

// A Self describes the caller.
type Self struct {
	Name   string   `json:"name" description:"The name in the log."`
	Origin string   `json:"origin" description:"How the caller is known: issued, for example, for a token in the state."`
	Scopes []string `json:"scopes" description:"Which tools the caller may call."`
	Roles  []string `json:"roles" description:"What else the caller may do."`
	Rates  []Rate   `json:"rates" description:"The limits on the caller's calls: all of them apply."`
	Token  *Token   `json:"token,omitempty" description:"The caller's token, if it is in the state."`
	// Principal is the caller's [personal.ID].
	Principal string `json:"principal,omitempty" description:"The name under which the caller's secrets and values are kept, such as issued+ann; missing if the caller has no lasting name."`
}

// A Rate bounds calls.
type Rate struct {
	Of string `json:"of" description:"Whose calls count towards it: the caller's own, or also those of a token that the caller's was made from."`
	TokenBounds
	Left    int `json:"left" description:"How many calls rate allows at once now."`
	Running int `json:"running" description:"How many of the calls that concurrent allows are running."`
}

// tokenOperations are the operations on tokens.
func tokenOperations() []Operation {
	attenuate := Changes("tokens attenuate", "Make a narrower token from the caller's own", func(ctx context.Context, r *Request, in NewToken) (TokenMade, error) {
		return r.makeToken(ctx, in, r.Principal, func(ctx context.Context, spec tokens.Spec) (string, tokens.Token, error) {
			return r.Service.Tokens.Attenuate(ctx, r.Principal, spec)
		})
	})
	attenuate.Role = "" // the holder of a token may pass on a part of its permissions
	self := Looks("self", "Show who is asking, and what they may do", func(_ context.Context, r *Request, _ struct{}) (Self, error) { return r.self(), nil })
	self.Role = ""
	return []Operation{
		self,
		Looks("tokens list", "List the tokens of a running server", func(_ context.Context, r *Request, _ struct{}) (Tokens, error) { return r.tokens() }),
		Looks("tokens show", "Show a token of a running server", func(ctx context.Context, r *Request, in TokenName) (Token, error) {
			if err := r.Service.Tokens.Refresh(ctx, in.Name); err != nil && r.Service.State.CutOff() == nil { // when cut off, list what is known
				return Token{}, tokenError(err)
			}
			all, err := r.tokens()
			for _, t := range all.Tokens {
				if t.Name == in.Name || t.ID != "" && t.ID == in.Name {
					r.Version = t.Version
					return t, nil
				}
			}
			if err == nil {
				err = unknownToken
			}
			return Token{}, err
		}),
		Changes("tokens add", "Make a token", func(ctx context.Context, r *Request, in NewToken) (TokenMade, error) {
			return r.makeToken(ctx, in, nil, r.Service.Tokens.Add)
		}),
		attenuate,
		Changes("tokens rotate", "Give a token a new secret", func(ctx context.Context, r *Request, in Rotation) (TokenMade, error) {
			grace, err := duration(in.Grace, 0)
			if err != nil {
				return TokenMade{}, err
			}
			var secret string
			changed, err := r.changeToken(ctx, in.Name, in, func(ctx context.Context, expect int64) (now tokens.Token, err error) {
				secret, now, err = r.Service.Tokens.Rotate(ctx, in.Name, grace, expect)
				return now, err
			})
			return TokenMade{secret, changed.Token, nil}, err
		}),
		Changes("tokens scopes", "Give a token other scopes", func(ctx context.Context, r *Request, in TokenScopes) (TokenChanged, error) {
			if _, err := scope.Parse(in.Scopes); err != nil {
				return TokenChanged{}, tokenError(err)
			}
			if err := r.Service.Tokens.Refresh(ctx, in.Name); err != nil {
				return TokenChanged{}, tokenError(err)
			}
			if t, err := r.Service.Tokens.Show(in.Name); err == nil && slices.Equal(t.Scopes, in.Scopes) && !strings.Contains(t.Name, "/") { // for a narrower token, this shows what is in effect
				err := r.Expect(strconv.FormatUint(t.Version, 10))
				r.Version = strconv.FormatUint(t.Version, 10)
				return TokenChanged{tokenOf(t), r.unmatched(in.Scopes)}, err
			}
			changed, err := r.changeToken(ctx, in.Name, in, func(ctx context.Context, expect int64) (tokens.Token, error) {
				return r.Service.Tokens.SetScopes(ctx, in.Name, in.Scopes, expect)
			})
			changed.Warnings = r.unmatched(in.Scopes)
			return changed, err
		}),
		Changes("tokens rate", "Give a token another rate", func(ctx context.Context, r *Request, in TokenRate) (TokenChanged, error) {
			rate, err := in.parse()
			if err != nil {
				return TokenChanged{}, err
			}
			return r.changeToken(ctx, in.Name, in, func(ctx context.Context, expect int64) (tokens.Token, error) {
				return r.Service.Tokens.SetRate(ctx, in.Name, rate, expect)
			})
		}),
		Changes("tokens revoke", "End a token, and those made from it, or show which would end", func(ctx context.Context, r *Request, in Revocation) (TokenRevoked, error) {
			if in.DryRun {
				return r.wouldEnd(ctx, in.Name)
			}
			done := TokenRevoked{Ends: []string{}}
			changed, err := r.changeToken(ctx, in.Name, in, func(ctx context.Context, expect int64) (tokens.Token, error) {
				all, _ := r.Service.Tokens.List() // even if this list is incomplete, a later token with the same name starts without old data
				was, err := r.Service.Tokens.Revoke(ctx, in.Name, expect)
				if err != nil {
					return was, err
				}
				done.Ends = endingWith(was.Name, all)
				for _, name := range done.Ends {
					err = errors.Join(err, r.forget(ctx, name))
				}
				return was, errors.Join(err, r.forget(ctx, was.Name))
			})
			done.Token = changed.Token
			return done, err
		}),
	}
}

var unknownToken = &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: "There is no such token: `toolsrv tokens list` lists them all"}

// makeToken makes a token with produce. by is the principal whose token makes it, or nil. Everything is checked first, in a way that concurrent
// requests can't invalidate: the audit must not get a secret in the wrong place, nor be filled by callers with few permissions.
func (r *Request) makeToken(ctx context.Context, in NewToken, by *wasmtools.Principal, produce func(context.Context, tokens.Spec) (string, tokens.Token, error)) (made TokenMade, err error) {
	spec := tokens.Spec{Name: in.Name, Scopes: in.Scopes, By: r.by()}
	if spec.Lifetime, err = duration(in.Expires, tokens.Forever); err != nil {
		return made, err
	}
	if spec.Rate, err = in.parse(); err != nil {
		return made, err
	}
	for _, one := range in.Networks {
		network, err := netip.ParsePrefix(one)
		if err != nil {
			return made, invalid(rangeHelp(one))
		}
		if network.Addr().Is4In6() {
			return made, invalid(strconv.Quote(one) + " is an IPv4 range in IPv6 form: write it as IPv4, such as 10.0.0.0/8")
		}
		spec.Networks = append(spec.Networks, network)
	}
	for _, d := range r.inForce().Auth.Declared {
		if d.Name == in.Name {
			return made, invalid("The configuration declares a token of this name")
		}
	}
	target := in.Name
	if by != nil {
		target = by.String() + "/" + in.Name
	}
	release, err := r.Service.Tokens.Reserve(ctx, by, spec)
	if errors.Is(err, tokens.ErrExists) { // another server may just have revoked the old one
		if err = r.Service.Tokens.Refresh(ctx, target); err == nil {
			release, err = r.Service.Tokens.Reserve(ctx, by, spec)
		}
	}
	if err != nil {
		return made, tokenError(err)
	}
	defer release()
	err = r.change(ctx, target, nil, in, func(ctx context.Context) error {
		secret, t, err := produce(ctx, spec)
		if err == nil {
			err = r.beginAnew(ctx, t)
		}
		made.Secret, made.Token = secret, tokenOf(t)
		return err
	})
	made.Warnings, r.Version = r.unmatched(in.Scopes), made.Token.Version
	return made, tokenError(err)
}

// beginAnew deletes what an earlier token with the same name has kept, for a new token whose secret nobody knows yet. If that fails, the new token is
// removed.
func (r *Request) beginAnew(ctx context.Context, t tokens.Token) error {
	err := r.forget(ctx, t.Name)
	if err != nil {
		_, undone := r.Service.Tokens.Revoke(ctx, t.Name, state.Any)
		err = errors.Join(err, undone)
	}
	return err
}

// forget deletes what a token's principal has kept as its own, since the next token with this name may belong to somebody else.
func (r *Request) forget(ctx context.Context, name string) error {
	id, err := personal.Issued(name)
	if err != nil {
		return err
	}
	if store := r.Service.State.Store(); store != nil {
		if _, err := kv.Erase(ctx, store, id); err != nil {
			return err
		}
	}
	return r.Service.Brought.Forget(ctx, id)
}

// tokenToChange returns a token of the state, including what other servers have changed, or an error if it can't be changed.
func (r *Request) tokenToChange(ctx context.Context, name string) (t tokens.Token, err error) {
	if err := r.Service.Tokens.Refresh(ctx, name); err != nil {
		return t, tokenError(err)
	}
	t, err = r.Service.Tokens.Show(name)
	if err == nil {
		return t, nil
	}
	for _, d := range r.inForce().Auth.Declared {
		if d.Name == name {
			return t, invalid("The configuration declares this token: change its table [[auth.token]], and reload")
		}
	}
	return t, tokenError(err)
}

// changeToken changes a token with change.
func (r *Request) changeToken(ctx context.Context, name string, asked any, change func(ctx context.Context, expect int64) (tokens.Token, error)) (changed TokenChanged, err error) {
	expect := state.Any
	if r.Expected != "" {
		if expect, err = strconv.ParseInt(r.Expected, 10, 64); err != nil || expect < 1 {
			return changed, &wasmtools.Error{Code: wasmtools.CodeChanged, Message: "No token has the expected version"}
		}
	}
	before, err := r.tokenToChange(ctx, name)
	if err != nil {
		return changed, err
	}
	err = r.change(ctx, before.Name, tokenOf(before), asked, func(ctx context.Context) error {
		now, err := change(ctx, expect)
		changed.Token = tokenOf(now)
		return err
	})
	r.Version = changed.Token.Version
	return changed, tokenError(err)
}

// wouldEnd returns what a revocation would end.
func (r *Request) wouldEnd(ctx context.Context, name string) (TokenRevoked, error) {
	would := TokenRevoked{DryRun: true}
	was, err := r.tokenToChange(ctx, name)
	if err != nil {
		return would, err
	}
	all, err := r.Service.Tokens.List()
	if err != nil {
		return would, tokenError(err)
	}
	would.Token, would.Ends = tokenOf(was), endingWith(was.Name, all)
	err = r.Expect(would.Token.Version)
	r.Version = would.Token.Version
	return would, err
}

// endingWith returns the names of the tokens that end together with a token, because they were made from it, directly or through others.
func endingWith(name string, all []tokens.Token) []string {
	ends := []string{}
	for _, t := range all {
		if strings.HasPrefix(t.Name, name+"/") {
			ends = append(ends, t.Name)
		}
	}
	return ends
}

// tokenError returns the caller's error for an error. An error that is already meant for callers is returned unchanged.
func tokenError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*wasmtools.Error](err); ok {
		return e
	}
	switch {
	case errors.Is(err, tokens.ErrUnknown):
		return unknownToken
	case errors.Is(err, state.ErrConflict):
		return &wasmtools.Error{Code: wasmtools.CodeChanged, Message: "Somebody else has changed the token: " + err.Error()}
	case errors.Is(err, state.ErrUnavailable), errors.Is(err, state.ErrQuota), errors.Is(err, tokens.ErrNowhere):
		return &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "Nothing was changed: " + err.Error(), Err: err}
	}
	e := invalid(sentence(err))
	if errors.Is(err, tokens.ErrMore) { // an attempt to get more permissions, which the audit records
		e.Code = wasmtools.CodeForbidden
	}
	return e
}

// tokens returns all tokens.
func (r *Request) tokens() (Tokens, error) {
	all := Tokens{Tokens: []Token{}}
	listed, err := r.Service.Tokens.List()
	if err != nil {
		return all, tokenError(err)
	}
	for _, t := range listed {
		all.Tokens = append(all.Tokens, tokenOf(t))
	}
	for _, d := range r.inForce().Auth.Declared {
		t := Token{Name: d.Name, Scopes: append([]string{}, d.Scopes...), Networks: texts(d.Networks), State: "valid", Expires: moment(d.Expires), Declared: true, TokenBounds: TokenBounds(rates.TextOf(d.Rate))}
		if !d.Expires.IsZero() && !d.Expires.After(time.Now()) {
			t.State = "expired"
		}
		all.Tokens = append(all.Tokens, t)
	}
	return all, nil
}

func (r *Request) self() Self {
	p := r.Principal
	s := Self{Name: p.String(), Origin: p.Origin(), Scopes: append([]string{}, p.Scopes()...), Roles: append([]string{}, p.Roles()...), Rates: r.ratesOf(p)}
	if id, err := personal.Of(p); err == nil && !r.Local {
		s.Principal = string(id)
	}
	if t, ok := r.Service.Tokens.Of(p); ok {
		own := tokenOf(t)
		s.Token = &own
	}
	return s
}

// ratesOf returns the rates for a principal.
func (r *Request) ratesOf(p *wasmtools.Principal) []Rate {
	all := []Rate{}
	for _, s := range r.Service.Rates.States(p, r.inForce().CallRates()) {
		all = append(all, Rate{Of: s.Of.String(), TokenBounds: TokenBounds(rates.TextOf(s.Rate)), Left: s.Left, Running: s.Running})
	}
	return all
}

// unmatched warns of scopes that match no served tool. It does not show the scope, which may be a secret in the wrong place.
func (r *Request) unmatched(scopes []string) (warnings []string) {
	routes := r.Service.Table.Tools()
	for i, text := range scopes {
		s, err := scope.Parse([]string{text})
		if err != nil || len(s.Tools)+len(s.Approved) == 0 {
			continue
		}
		p, err := s.Principal("scope", "admin")
		if err != nil {
			continue
		}
		may, mayNow := false, false
		for n := 0; n < len(routes) && !mayNow; n++ {
			may, mayNow = may || p.May(routes[n].Path), p.MayCall(&routes[n])
		}
		switch {
		case !may:
			warnings = append(warnings, fmt.Sprintf("scope %d of %d matches no tool that is served now", i+1, len(scopes)))
		case !mayNow:
			warnings = append(warnings, fmt.Sprintf("scope %d of %d has a fingerprint that is no longer the tool's, so it can't be called", i+1, len(scopes)))
		}
	}
	return warnings
}

// rangeHelp says what is wrong with a range of addresses.
func rangeHelp(s string) string {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return fmt.Sprintf("%q is one address: write %s/%d for just this one", s, a, a.BitLen())
	}
	return fmt.Sprintf("%q is not a range of addresses: write one such as 10.0.0.0/8 or fd00::/8", text.Short(s))
}

// duration reads a time such as 90d, 12h or 30m; empty means 0. never is the value of the word "never", or 0 if that is not allowed.
func duration(s string, never time.Duration) (time.Duration, error) {
	how := "write a whole number and a unit, such as 90d, 12h or 30m"
	if never != 0 {
		how += ", or never"
	}
	wrong := invalid(fmt.Sprintf("%q is not a time from now on: %s", text.Short(s), how))
	if s == "" {
		return 0, nil
	}
	if s == "never" && never != 0 {
		return never, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		const most = 100_000 // more would be too long for any purpose, and would overflow
		n, err := strconv.ParseUint(days, 10, 64)
		if err != nil || n == 0 {
			return 0, wrong
		}
		return time.Duration(min(n, most)) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Second {
		return 0, wrong
	}
	return d, nil
}

func tokenOf(t tokens.Token) Token {
	return Token{Name: t.Name, ID: t.ID, Scopes: append([]string{}, t.Scopes...), Networks: texts(t.Networks), State: t.State, Expires: moment(t.Expires), Used: moment(t.Used),
		Former: moment(t.Former), Created: moment(t.Created), By: t.By, Version: strconv.FormatUint(t.Version, 10), TokenBounds: TokenBounds(t.Rate)}
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func texts(networks []netip.Prefix) (all []string) {
	for _, n := range networks {
		all = append(all, n.String())
	}
	return all
}
