package oidc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolsrv/toolsrv/internal/claim"
	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// Origin is the origin of principals who are identified by a token of an issuer.
const Origin = "oidc"

const (
	// maxToken is the longest token in bytes.
	maxToken = 16 << 10
	// skew is how much the clocks of the issuer and this machine may differ.
	skew = time.Minute
	// maxVerified is how many verified tokens are remembered.
	maxVerified = 10_000
	// maxTried is how many keys are tried for a token that names no key.
	maxTried = 8
)

// Options say which tokens of an issuer are accepted, and which scopes they give.
type Options struct {
	// Audience has the accepted values of aud: a token must have one of them.
	Audience []string
	// Name is the claim that is the principal's name. If empty, it is sub.
	Name  string
	Rules []claim.Rule
	// Now returns the time. If nil, time.Now is used.
	Now func() time.Time
}

// A Verifier identifies callers by tokens of an issuer. It is safe for concurrent use.
type Verifier struct {
	issuer *Issuer
	o      Options
	rules  *claim.Rules

	mu       sync.RWMutex
	number   uint64 // the number of the keys that verified those tokens
	verified map[[sha256.Size]byte]verified
}

// A verified is what is remembered of a verified token.
type verified struct {
	principal *wasmtools.Principal
	until     time.Time
}

var _ auth.Verifier = (*Verifier)(nil)

// New returns a Verifier, or an error that says what is wrong with the rules.
func New(issuer *Issuer, o Options) (*Verifier, error) {
	rules, err := claim.New(Origin, o.Rules)
	if err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = "sub"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Verifier{issuer: issuer, o: o, rules: rules, verified: map[[sha256.Size]byte]verified{}}, nil
}

// Scopes returns the OAuth scopes that the rules mention: those that a client should ask for.
func (v *Verifier) Scopes() []string { return v.rules.Values("scope") }

// Issuer returns the issuer.
func (v *Verifier) Issuer() *Issuer { return v.issuer }

// Verify returns the principal of the request's token, or nil if the request has no token that could be the issuer's.
func (v *Verifier) Verify(r *http.Request) (*wasmtools.Principal, error) {
	token := tokenOf(credential.Bearer(r.Header["Authorization"]))
	if token == "" {
		return nil, nil
	}
	digest := digestOf(token)
	set, now := v.issuer.keys.Load(), v.o.Now()
	if set != nil {
		v.mu.RLock()
		known, ok := v.verified[digest]
		ok = ok && v.number == set.number
		v.mu.RUnlock()
		if ok && now.Before(known.until) {
			return known.principal, nil
		}
	}
	if strings.ContainsFunc(token, isForeign) {
		return nil, nil
	}
	p, until, number, err := v.verify(r.Context(), token, now)
	if err != nil {
		return nil, err
	}
	v.remember(digest, verified{p, until}, number, now)
	return p, nil
}

// tokenOf returns a token that may be a JWT, or "".
func tokenOf(token string) string {
	if len(token) > maxToken || !strings.HasPrefix(token, "ey") || strings.Count(token, ".") != 2 {
		return ""
	}
	return token
}

// isForeign reports whether a character can't be part of a JWT.
func isForeign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// digestOf returns the digest of a token. A token of the usual length is copied to the stack, so that requests don't allocate.
func digestOf(token string) [sha256.Size]byte {
	var buf [4 << 10]byte
	if len(token) > len(buf) {
		return sha256.Sum256([]byte(token))
	}
	return sha256.Sum256(buf[:copy(buf[:], token)])
}

// remember keeps a token that was verified.
func (v *Verifier) remember(digest [sha256.Size]byte, token verified, number uint64, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if number < v.number {
		return
	}
	if number > v.number {
		v.number = number
		clear(v.verified)
	}
	if len(v.verified) >= maxVerified {
		for d, one := range v.verified {
			// Any token is dropped: if it is still in use, it will be verified again.
			if !now.Before(one.until) || len(v.verified) > maxVerified*7/8 {
				delete(v.verified, d)
			}
		}
	}
	v.verified[digest] = token
}

// verify returns the principal of a token, until when the token is valid, and the number of the keys that verified it.
func (v *Verifier) verify(ctx context.Context, token string, now time.Time) (p *wasmtools.Principal, until time.Time, number uint64, err error) {
	refused := func(err error) (*wasmtools.Principal, time.Time, uint64, error) {
		return nil, time.Time{}, 0, &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Err: fmt.Errorf("OpenID Connect token: %w", err)}
	}
	signed, err := jose.ParseSignedCompact(token, algorithms())
	if err != nil {
		return refused(errors.New("it is not a JWT signed with EdDSA, ES256 or RS256"))
	}
	set, payload, err := v.issuer.verify(ctx, signed)
	if set == nil {
		return nil, time.Time{}, 0, &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "The token issuer can't be asked for its keys at the moment; try again.", Err: err}
	}
	if err != nil {
		return refused(err)
	}
	var claims map[string]any
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	if err := d.Decode(&claims); err != nil {
		return refused(errors.New("its claims are not a JSON object"))
	}
	if until, err = v.check(claims, now); err != nil {
		return refused(err)
	}
	name, _ := claims[v.o.Name].(string)
	if name == "" || !isBelieved(claims, v.o.Name) {
		return refused(fmt.Errorf("its claim %s doesn't name the caller", v.o.Name))
	}
	p, err = v.rules.Principal(name, v.issuer.url, func(claim string) []string { return valuesOf(claims, claim) })
	switch {
	case err != nil:
		return refused(err)
	case p == nil:
		return nil, time.Time{}, 0, &wasmtools.Error{Code: wasmtools.CodeForbidden, Message: "The server has no rule that lets this caller in", Err: fmt.Errorf("no [[auth.oidc.rule]] matches a claim of %q", text.Short(name))}
	}
	return p, until, set.number, nil
}

// verify returns the payload of a token that one of the keys has signed, and the set of keys, which is nil while no keys are known.
func (i *Issuer) verify(ctx context.Context, signed *jose.JSONWebSignature) (set *keySet, payload []byte, err error) {
	set = i.keys.Load()
	for again := true; ; again = false {
		if set != nil {
			if payload, err = set.verify(signed); err == nil || !errors.Is(err, errNoKey) {
				return set, payload, err
			}
		}
		if !again || !i.more(ctx) {
			break
		}
		set = i.keys.Load()
	}
	if set == nil {
		return nil, nil, errors.New("the keys of the issuer are not known yet")
	}
	return set, nil, err
}

var errNoKey = errors.New("no key of the issuer has its kid")

func (s *keySet) verify(signed *jose.JSONWebSignature) ([]byte, error) {
	header := signed.Signatures[0].Protected
	tried := 0
	for k := range s.keys {
		key := &s.keys[k]
		if header.KeyID != "" && key.KeyID != header.KeyID || key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		if tried++; tried > maxTried {
			break
		}
		if payload, err := signed.Verify(key); err == nil {
			return payload, nil
		}
	}
	if tried == 0 {
		return nil, errNoKey
	}
	return nil, errors.New("its signature is not the issuer's")
}

// check returns until when a token with these claims is valid, or why it is not.
func (v *Verifier) check(claims map[string]any, now time.Time) (until time.Time, err error) {
	if claims["iss"] != v.issuer.url {
		return until, errors.New("it is from another issuer")
	}
	audience := stringsOf(claims["aud"])
	if !slices.ContainsFunc(audience, func(a string) bool { return slices.Contains(v.o.Audience, a) }) {
		return until, fmt.Errorf("its audience is %q, which is not in auth.oidc.audience", text.Short(strings.Join(audience, ", ")))
	}
	expires, ok := timeOf(claims["exp"])
	if until = expires.Add(skew); !ok || !now.Before(until) {
		return until, errors.New("it has expired, or has no expiry")
	}
	if begins, ok := timeOf(claims["nbf"]); claims["nbf"] != nil && (!ok || now.Add(skew).Before(begins)) {
		return until, errors.New("it is not valid yet")
	}
	return until, nil
}

// timeOf returns the time of a claim.
func timeOf(value any) (time.Time, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return time.Time{}, false
	}
	seconds, err := number.Float64()
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}

// stringsOf returns the strings of a claim, which is a string or a list of strings.
func stringsOf(value any) (all []string) {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		for _, one := range value {
			if s, ok := one.(string); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

// valuesOf returns the values of the claim with this name. If there is none, the dots in the name lead to a claim within other claims.
func valuesOf(claims map[string]any, name string) []string {
	if !isBelieved(claims, name) {
		return nil
	}
	value, ok := claims[name]
	for in, rest := claims, name; !ok; {
		outer, inner, nested := strings.Cut(rest, ".")
		if !nested {
			value = in[outer]
			break
		}
		if in, nested = in[outer].(map[string]any); !nested {
			return nil
		}
		rest = inner
	}
	if list, isText := value.(string); isText && (name == "scope" || name == "scp") {
		return strings.Fields(list)
	}
	if truth, ok := value.(bool); ok {
		return []string{fmt.Sprint(truth)}
	}
	return stringsOf(value)
}

// isBelieved reports whether the issuer vouches for a claim: an e-mail address that it has not verified is only the caller's word.
func isBelieved(claims map[string]any, name string) bool {
	verified, said := claims["email_verified"]
	return name != "email" || !said || verified == true
}

// Scheme returns the scheme of OpenID Connect.
func (v *Verifier) Scheme() auth.Scheme {
	description, _ := json.Marshal(map[string]string{"type": "openIdConnect", "openIdConnectUrl": Discovery(v.issuer.url)}) // strings only
	return auth.Scheme{Name: "oidc", Description: description, Challenge: "Bearer", Refusal: "Invalid or missing bearer token"}
}

// Open returns false: nobody is let in without a token.
func (v *Verifier) Open() bool { return false }

// Version returns a number that grows when the issuer's keys change.
func (v *Verifier) Version() uint64 {
	if set := v.issuer.keys.Load(); set != nil {
		return set.number + 1
	}
	return 0
}

// Subscribe does nothing, since Open never changes.
func (v *Verifier) Subscribe(func()) func() { return func() {} }
