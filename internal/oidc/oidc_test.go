package oidc_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/toolsrv/toolsrv/internal/claim"
	"github.com/toolsrv/toolsrv/internal/oidc"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const patience = 30 * time.Second

// A provider is an issuer that can change its keys, be unavailable, and answer anything.
type provider struct {
	*httptest.Server
	mu     sync.Mutex
	keys   oidctest.Server
	answer func(w http.ResponseWriter, r *http.Request) bool // answers in place of the provider, if it returns true
	asked  atomic.Int64
}

func newProvider(t testing.TB, keys ...oidctest.PublicKey) *provider {
	t.Helper()
	p := &provider{}
	p.keys.PublicKeys = keys
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.answer == nil || !p.answer(w, r) {
			p.keys.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	p.keys.SetIssuer(p.URL)
	return p
}

func (p *provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// run lets an issuer read its keys until the test ends.
func run(t testing.TB, address string) (*oidc.Issuer, *testkit.Log) {
	t.Helper()
	log := &testkit.Log{}
	issuer := oidc.NewIssuer(address, log.Logger(slog.LevelInfo))
	oidc.SetPause(issuer, 10*time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		issuer.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return issuer, log
}

func verifier(t testing.TB, issuer *oidc.Issuer, o oidc.Options) *oidc.Verifier {
	t.Helper()
	if o.Audience == nil {
		o.Audience = []string{"https://tools.example.com/mcp", "toolsrv"}
	}
	if o.Rules == nil {
		o.Rules = []claim.Rule{{Claim: "groups", Value: "team-a", Scopes: []string{"math/*"}}, {Claim: "groups", Value: "ops-*", Scopes: []string{"admin"}}}
	}
	v, err := oidc.New(issuer, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ask returns the result of a Verifier for a token.
func ask(v *oidc.Verifier, token string) (*wasmtools.Principal, error) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return v.Verify(r)
}

// claims returns the claims of a valid token, with some changed; a nil value removes a claim.
func claims(p *provider, changes map[string]any) string {
	all := map[string]any{"iss": p.URL, "aud": "toolsrv", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(), "groups": []string{"team-a"}}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func ecKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func public(key crypto.Signer, id, algorithm string) oidctest.PublicKey {
	return oidctest.PublicKey{PublicKey: key.Public(), KeyID: id, Algorithm: algorithm}
}

func encoded(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// TestTokens tries valid tokens, and everything that might pass for one.
// Proves: A caller reaches its own tools only
func TestTokens(t *testing.T) {
	t.Parallel()
	ec, other := ecKey(t), ecKey(t)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider(t, public(ec, "ec", "ES256"), public(rs, "rs", "RS256"), public(ed, "ed", "EdDSA"))
	issuer, log := run(t, p.URL)
	log.Wait(t, "the token issuer's keys were read")
	v := verifier(t, issuer, oidc.Options{})
	good := oidctest.SignIDToken(ec, "ec", "ES256", claims(p, nil))
	parts := strings.Split(good, ".")
	der, err := x509.MarshalPKIXPublicKey(rs.Public())
	if err != nil {
		t.Fatal(err)
	}
	hs := encoded(`{"alg":"HS256","kid":"rs"}`) + "." + encoded(claims(p, nil))
	mac := hmac.New(sha256.New, der)
	_, _ = io.WriteString(mac, hs)
	in := func(change map[string]any) string { return oidctest.SignIDToken(ec, "ec", "ES256", claims(p, change)) }
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for name, tt := range map[string]struct {
		token string
		want  string // the principal's name; "" if there is none
		why   string // a part of the error; "" if there is none
	}{
		"ES256":                               {good, "ann", ""},
		"RS256":                               {oidctest.SignIDToken(rs, "rs", "RS256", claims(p, nil)), "ann", ""},
		"EdDSA":                               {oidctest.SignIDToken(ed, "ed", "EdDSA", claims(p, nil)), "ann", ""},
		"without a kid":                       {oidctest.SignIDToken(rs, "", "RS256", claims(p, nil)), "ann", ""},
		"one audience of several":             {in(map[string]any{"aud": []string{"a", "https://tools.example.com/mcp"}}), "ann", ""},
		"has just expired":                    {in(map[string]any{"exp": at(-30 * time.Second)}), "ann", ""},
		"is about to be valid":                {in(map[string]any{"nbf": at(30 * time.Second)}), "ann", ""},
		"alg none":                            {encoded(`{"alg":"none"}`) + "." + parts[1] + ".", "", "it is not a JWT signed with"},
		"alg None":                            {encoded(`{"alg":"None","kid":"ec"}`) + "." + parts[1] + "." + parts[2], "", "it is not a JWT signed with"},
		"HS256 with the public key":           {hs + "." + encoded(string(mac.Sum(nil))), "", "it is not a JWT signed with"},
		"RS512":                               {oidctest.SignIDToken(rs, "rs", "RS512", claims(p, nil)), "", "it is not a JWT signed with"},
		"PS256":                               {oidctest.SignIDToken(rs, "rs", "PS256", claims(p, nil)), "", "it is not a JWT signed with"},
		"another's key":                       {oidctest.SignIDToken(other, "ec", "ES256", claims(p, nil)), "", "its signature is not the issuer's"},
		"another's key without a kid":         {oidctest.SignIDToken(other, "", "ES256", claims(p, nil)), "", "its signature is not the issuer's"},
		"another's key with its own kid":      {oidctest.SignIDToken(other, "other", "ES256", claims(p, nil)), "", "no key of the issuer has its kid"},
		"a key in another algorithm":          {oidctest.SignIDToken(ec, "rs", "ES256", claims(p, nil)), "", "no key of the issuer has its kid"},
		"changed claims":                      {parts[0] + "." + encoded(claims(p, map[string]any{"sub": "bob"})) + "." + parts[2], "", "its signature is not the issuer's"},
		"a changed head":                      {encoded(`{"alg":"ES256","kid":"ec","x":1}`) + "." + parts[1] + "." + parts[2], "", "its signature is not the issuer's"},
		"a critical extension":                {encoded(`{"alg":"ES256","kid":"ec","crit":["exp"],"exp":1}`) + "." + parts[1] + "." + parts[2], "", "OpenID Connect"},
		"no signature":                        {parts[0] + "." + parts[1] + ".", "", "OpenID Connect"},
		"another issuer":                      {in(map[string]any{"iss": "https://evil.example"}), "", "it is from another issuer"},
		"nearly the issuer":                   {in(map[string]any{"iss": p.URL + "/"}), "", "it is from another issuer"},
		"no issuer":                           {in(map[string]any{"iss": nil}), "", "it is from another issuer"},
		"another audience":                    {in(map[string]any{"aud": "other"}), "", "which is not in auth.oidc.audience"},
		"a part of the audience":              {in(map[string]any{"aud": "tools"}), "", "which is not in auth.oidc.audience"},
		"no audience":                         {in(map[string]any{"aud": nil}), "", "which is not in auth.oidc.audience"},
		"an audience that is not a string":    {in(map[string]any{"aud": map[string]any{"toolsrv": 1}}), "", "which is not in auth.oidc.audience"},
		"has expired":                         {in(map[string]any{"exp": at(-2 * time.Minute)}), "", "it has expired"},
		"never expires":                       {in(map[string]any{"exp": nil}), "", "it has expired"},
		"expires in words":                    {in(map[string]any{"exp": "tomorrow"}), "", "it has expired"},
		"expires at the latest possible time": {in(map[string]any{"exp": 1e300}), "", "it has expired"},
		"not yet valid":                       {in(map[string]any{"nbf": at(2 * time.Minute)}), "", "it is not valid yet"},
		"valid from a word instead of a time": {in(map[string]any{"nbf": "now"}), "", "it is not valid yet"},
		"no name":                             {in(map[string]any{"sub": nil}), "", "doesn't name the caller"},
		"a name that is not a string":         {in(map[string]any{"sub": []string{"ann"}}), "", "doesn't name the caller"},
		"a name that can't be printed":        {in(map[string]any{"sub": "a\nb"}), "", "can't be printed"},
		"a name that is too long":             {in(map[string]any{"sub": strings.Repeat("x", 200)}), "", "at most 128"},
		"no rule":                             {in(map[string]any{"groups": []string{"team-b", "team-a-evil", "Team-A"}}), "", "no [[auth.oidc.rule]] matches"},
		"no groups":                           {in(map[string]any{"groups": nil}), "", "no [[auth.oidc.rule]] matches"},
		"claims that are a list":              {oidctest.SignIDToken(ec, "ec", "ES256", `["team-a"]`), "", "not a JSON object"},
		"claims that are not JSON":            {oidctest.SignIDToken(ec, "ec", "ES256", `{"iss":`), "", "not a JSON object"},
		"giant":                               {in(map[string]any{"x": strings.Repeat("x", 20<<10)}), "", ""},
		"a token of another kind":             {"tsv_123_456", "", ""},
		"not a token at all":                  {"ey.ey", "", ""},
		"nonsense in the form of a JWT":       {"ey.ey.ey", "", "it is not a JWT signed with"},
		"a JWS in JSON that is also a JWT":    {`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, "", ""},
		"a JWE with the name of a JWT":        {"ey.ey.ey.ey.ey", "", ""},
		"a blank within":                      {parts[0] + ". " + parts[1] + "." + parts[2], "", ""},
		"a line feed within":                  {parts[0] + ".\n" + parts[1] + "." + parts[2], "", ""},
		"with padding":                        {parts[0] + "." + parts[1] + "." + parts[2] + "=", "", ""},
		"a signature of zeros":                {parts[0] + "." + parts[1] + "." + encoded(string(make([]byte, 64))), "", "its signature is not the issuer's"},
		"a signature that is too long":        {parts[0] + "." + parts[1] + "." + encoded(string(make([]byte, 5000))), "", "its signature is not the issuer's"},
		"its own key in the header":           {oidctest.SignIDToken(other, "ec", "ES256", claims(p, nil)), "", "its signature is not the issuer's"},
		"a token that is unchanged":           {oidctest.SignIDToken(ec, "ec", "ES256", claims(p, nil)), "ann", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time, the token may be remembered
				got, err := ask(v, tt.token)
				failed, _ := errors.AsType[*wasmtools.Error](err)
				switch {
				case got.String() != tt.want:
					t.Errorf("got %q, %v, want %q", got, err, tt.want)
				case tt.why == "" && err != nil, tt.why != "" && (failed == nil || !strings.Contains(fmt.Sprint(failed.Err), tt.why)):
					t.Errorf("got %v, want %q in the cause", err, tt.why)
				case failed != nil && strings.Contains(fmt.Sprint(failed.Message, failed.Err), tt.token):
					t.Errorf("the error shows the token: %v", failed.Err)
				}
			}
		})
	}
}

// TestRules checks how claims are read.
func TestRules(t *testing.T) {
	t.Parallel()
	key := ecKey(t)
	p := newProvider(t, public(key, "1", "ES256"))
	issuer, log := run(t, p.URL)
	log.Wait(t, "were read")
	for name, tt := range map[string]struct {
		claim, value string
		claims       map[string]any
		good         bool
	}{
		"an element":             {"groups", "a", map[string]any{"groups": []string{"b", "a"}}, true},
		"a word":                 {"team", "a", map[string]any{"team": "a"}, true},
		"a word with a blank":    {"team", "a", map[string]any{"team": "a b"}, false},
		"a scope":                {"scope", "b", map[string]any{"scope": "a b"}, true},
		"scopes as a list":       {"scp", "b", map[string]any{"scp": []string{"a", "b"}}, true},
		"a beginning":            {"sub", "repo:acme/*", map[string]any{"sub": "repo:acme/tools:ref:main"}, true},
		"another beginning":      {"sub", "repo:acme/*", map[string]any{"sub": "repo:acme-evil/tools"}, false},
		"an asterisk in a claim": {"groups", "admin", map[string]any{"groups": []string{"*", "admi*"}}, false},
		"within":                 {"realm.roles", "a", map[string]any{"realm": map[string]any{"roles": []string{"a"}}}, true},
		"with dots":              {"https://a.example/groups", "a", map[string]any{"https://a.example/groups": []string{"a"}}, true},
		"within nothing":         {"realm.roles", "a", map[string]any{"realm": "a"}, false},
		"true":                   {"ok", "true", map[string]any{"ok": true}, true},
		"a number":               {"n", "1", map[string]any{"n": 1}, false},
		"email":                  {"email", "a@b.example", map[string]any{"email": "a@b.example"}, true},
		"verified email":         {"email", "a@b.example", map[string]any{"email": "a@b.example", "email_verified": true}, true},
		"unverified email":       {"email", "a@b.example", map[string]any{"email": "a@b.example", "email_verified": false}, false},
		"email, verified maybe":  {"email", "a@b.example", map[string]any{"email": "a@b.example", "email_verified": "true"}, false},
	} {
		v := verifier(t, issuer, oidc.Options{Rules: []claim.Rule{{Claim: tt.claim, Value: tt.value, Scopes: []string{"math/*", "metrics"}}}})
		token := oidctest.SignIDToken(key, "1", "ES256", claims(p, tt.claims))
		got, err := ask(v, token)
		if (got != nil) != tt.good {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if tt.good && (!got.May("/math/add") || got.May("/web/get") || !got.Has("metrics") || got.Has("admin") || got.Origin() != oidc.Origin) {
			t.Errorf("%s: got scopes %q and roles %q", name, got.Scopes(), got.Roles())
		}
		again, _ := ask(v, oidctest.SignIDToken(key, "1", "ES256", claims(p, tt.claims)))
		if got != again {
			t.Errorf("%s: another token of the same caller has another principal", name)
		}
	}
}

// TestRotation lets an issuer change its keys: tokens of new keys are accepted at once, and those of withdrawn keys no longer.
func TestRotation(t *testing.T) {
	t.Parallel()
	first, second := ecKey(t), ecKey(t)
	p := newProvider(t, public(first, "1", "ES256"))
	issuer, log := run(t, p.URL)
	log.Wait(t, "were read")
	v := verifier(t, issuer, oidc.Options{})
	before := v.Version()
	old, next := oidctest.SignIDToken(first, "1", "ES256", claims(p, nil)), oidctest.SignIDToken(second, "2", "ES256", claims(p, nil))
	if got, err := ask(v, old); got == nil {
		t.Fatal(err)
	}
	p.set(func() { p.keys.PublicKeys = []oidctest.PublicKey{public(second, "2", "ES256")} })
	for deadline := time.Now().Add(patience); ; {
		got, err := ask(v, next)
		if got != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if got, _ := ask(v, old); got != nil {
		t.Error("a token of a withdrawn key is let in")
	}
	if v.Version() <= before {
		t.Error("Version has not grown")
	}
}

// TestIssuerAway starts while the issuer is unavailable, and loses it again later: known keys stay in use.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	key := ecKey(t)
	p := newProvider(t, public(key, "1", "ES256"))
	p.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadGateway)
		return true
	}
	issuer, log := run(t, p.URL)
	log.Wait(t, "can't be asked for its keys")
	v := verifier(t, issuer, oidc.Options{})
	token := oidctest.SignIDToken(key, "1", "ES256", claims(p, nil))
	if _, err := ask(v, token); !isCode(err, wasmtools.CodeNotReady) {
		t.Errorf("before the keys are known: got %v", err)
	}
	p.set(func() { p.answer = nil })
	log.Wait(t, "can be asked again")
	if got, err := ask(v, token); got.String() != "ann" {
		t.Errorf("got %v, %v", got, err)
	}
	p.Close()
	for i := range 3 {
		if got, err := ask(v, oidctest.SignIDToken(key, "1", "ES256", claims(p, map[string]any{"n": i}))); got.String() != "ann" {
			t.Errorf("while the issuer is away: got %v, %v", got, err)
		}
	}
	if _, err := ask(v, oidctest.SignIDToken(ecKey(t), "2", "ES256", claims(p, nil))); !isCode(err, wasmtools.CodeUnauthorized) {
		t.Errorf("an unknown key: got %v", err)
	}
}

func isCode(err error, code wasmtools.Code) bool {
	failed, ok := errors.AsType[*wasmtools.Error](err)
	return ok && failed.Code == code
}

// TestHostileIssuers lets issuers, or impostors in their place, answer with what they should not.
func TestHostileIssuers(t *testing.T) {
	t.Parallel()
	key := ecKey(t)
	endless := func(w http.ResponseWriter) {
		for part := []byte(strings.Repeat(" ", 64<<10)); ; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}
	text := func(s string) func(*provider, http.ResponseWriter, *http.Request) {
		return func(_ *provider, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
	}
	for name, tt := range map[string]struct {
		path   string
		answer func(*provider, http.ResponseWriter, *http.Request)
		want   string
	}{
		"a configuration that never ends": {"/.well-known/openid-configuration", func(_ *provider, w http.ResponseWriter, _ *http.Request) { endless(w) }, "more than 262144 bytes"},
		"keys that never end":             {"/keys", func(_ *provider, w http.ResponseWriter, _ *http.Request) { endless(w) }, "more than 262144 bytes"},
		"keys that never begin": {"/keys", func(_ *provider, w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "deadline exceeded"},
		"a page":         {"/keys", text("<html>"), "did not answer with the expected JSON"},
		"another issuer": {"/.well-known/openid-configuration", text(`{"issuer":"https://evil.example","jwks_uri":"https://evil.example/keys"}`), `it calls itself`},
		"keys without TLS": {"/.well-known/openid-configuration", func(p *provider, w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"http://192.0.2.1/keys"}`, p.URL)
		}, "must begin with https://"},
		"keys at a file URL": {"/.well-known/openid-configuration", func(p *provider, w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"file:///etc/passwd"}`, p.URL)
		}, "is not the address of an issuer"},
		"keys elsewhere": {"/keys", func(_ *provider, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://evil.example/")
			w.WriteHeader(302)
		}, "it redirects elsewhere"},
		"keys without HTTP": {"/keys", func(_ *provider, w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "220 mail.example ready\r\n")
			conn.Close()
		}, "what answers does not speak HTTP"},
		"no keys":                  {"/keys", text(`{"keys":[]}`), "it has no key for"},
		"only a secret":            {"/keys", text(`{"keys":[{"kty":"oct","k":"AAAA","kid":"1","alg":"HS256"}]}`), "it has no key for"},
		"a short key":              {"/keys", text(`{"keys":[{"kty":"RSA","kid":"1","n":"AQAB","e":"AQAB"}]}`), "it has no key for"},
		"too many keys":            {"/keys", text(`{"keys":[` + strings.Repeat("{},", 200) + `{}]}`), "at most 100"},
		"keys that are not a list": {"/keys", text(`{"keys":{"1":2}}`), "did not answer with the expected JSON"},
		"deep keys":                {"/keys", text(strings.Repeat("[", 100_000)), "did not answer with the expected JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, public(key, "1", "ES256"))
			p.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != tt.path {
					return false
				}
				tt.answer(p, w, r)
				return true
			}
			issuer, log := run(t, p.URL)
			log.Wait(t, tt.want)
			v := verifier(t, issuer, oidc.Options{})
			if got, err := ask(v, oidctest.SignIDToken(key, "1", "ES256", claims(p, nil))); got != nil || !isCode(err, wasmtools.CodeNotReady) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// TestUnknownKeys lets many callers show tokens of unknown keys: the issuer is not asked for each of them.
func TestUnknownKeys(t *testing.T) {
	t.Parallel()
	key := ecKey(t)
	p := newProvider(t, public(key, "1", "ES256"))
	log := &testkit.Log{}
	issuer := oidc.NewIssuer(p.URL, log.Logger(slog.LevelInfo)) // an issuer with the real pause between requests
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		issuer.Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	log.Wait(t, "were read")
	v := verifier(t, issuer, oidc.Options{})
	var all sync.WaitGroup
	for i := range 200 {
		token := oidctest.SignIDToken(key, fmt.Sprint("unknown-", i), "ES256", claims(p, nil))
		all.Go(func() {
			if got, _ := ask(v, token); got != nil {
				t.Error("a token of an unknown key is let in")
			}
		})
	}
	all.Wait()
	if got := p.asked.Load(); got > 4 { // two requests for two answers
		t.Errorf("the issuer was asked %d times", got)
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"https://login.example.com": true, "https://login.example.com/realms/a": true, "http://127.0.0.1:8080": true, "http://[::1]:80/a": true, "http://localhost:1": true,
		"": false, "login.example.com": false, "http://login.example.com": false, "http://127.0.0.1.example.com": false, "http://localhost.example.com": false, "ftp://127.0.0.1": false,
		"https://": false, "https://a@login.example.com": false, "https://login.example.com?a=b": false, "https://login.example.com#a": false, "https:login.example.com": false,
		"https://" + strings.Repeat("x", 3000): false, "https://a b": false,
	} {
		if err := oidc.CheckURL(address); (err == nil) != good {
			t.Errorf("%q: got %v", address, err)
		}
	}
}

// BenchmarkVerified verifies a token that has been verified before.
func BenchmarkVerified(b *testing.B) {
	key := ecKey(b)
	p := newProvider(b, public(key, "1", "ES256"))
	issuer, log := run(b, p.URL)
	log.Wait(b, "were read")
	v := verifier(b, issuer, oidc.Options{})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+oidctest.SignIDToken(key, "1", "ES256", claims(p, map[string]any{"more": strings.Repeat("x", 600)})))
	for b.Loop() {
		if p, err := v.Verify(r); p == nil {
			b.Fatal(err)
		}
	}
}
