package tokens_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// A door is a store of tokens with a verifier.
type door struct {
	*tokens.Store
	t        testing.TB
	verifier *tokens.Verifier
	auth     *auth.Authenticator
}

func peer(r *http.Request) netip.Addr {
	a, _ := netip.ParseAddr(r.RemoteAddr)
	return a
}

func open(t testing.TB, store state.Store, declared ...config.Token) *door {
	t.Helper()
	d := &door{Store: tokens.Open(store, tokens.Options{}), t: t}
	t.Cleanup(func() { _ = d.Close() })
	return d.declare(declared, nil)
}

func (d *door) declare(declared []config.Token, before *tokens.Verifier) *door {
	d.t.Helper()
	v, err := tokens.NewVerifier(d.Store, declared, peer, before)
	if err != nil {
		d.t.Fatal(err)
	}
	d.verifier, d.auth = v, auth.Dependency(v)
	return d
}

// add makes a token, and returns its secret.
func (d *door) add(name string, scopes ...string) string {
	d.t.Helper()
	secret, _, err := d.Add(context.Background(), tokens.Spec{Name: name, Scopes: scopes})
	if err != nil {
		d.t.Fatal(err)
	}
	return secret
}

func request(secret string) *http.Request {
	return &http.Request{RemoteAddr: "192.0.2.200", Header: http.Header{"Authorization": {"Bearer " + secret}}}
}

// who returns the name of a request's principal, or the reason in the log why it is refused.
func (d *door) who(r *http.Request) string {
	d.t.Helper()
	p, err := d.auth.Principal(r, wasmtools.Everybody())
	if err == nil {
		return p.String()
	}
	e, ok := err.(*wasmtools.Error)
	if !ok {
		d.t.Fatal(err)
	}
	if e.Code == wasmtools.CodeUnauthorized && e.Message != "Invalid or missing bearer token" {
		d.t.Errorf("a client is told %q", e.Message)
	}
	if e.Err == nil {
		return "refused"
	}
	return "refused: " + e.Err.Error()
}

func (d *door) principal(secret string) *wasmtools.Principal {
	d.t.Helper()
	p, err := d.auth.Principal(request(secret), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

func (d *door) want(secret, want string) {
	d.t.Helper()
	if got := d.who(request(secret)); got != want && (want == "" || !strings.HasPrefix(got, "refused") || !strings.Contains(got, want)) {
		d.t.Errorf("got %q, want %q", got, want)
	}
}

// TestGuesses sends tokens that nobody was given. The client is told the same each time.
// Proves: Secrets stay secret
func TestGuesses(t *testing.T) {
	t.Parallel()
	d, other := open(t, memory.New()), open(t, memory.New())
	good, foreign := d.add("ci", "*"), other.add("ci", "*")
	revoked := d.add("old", "*")
	if _, err := d.Revoke(t.Context(), "old", state.Any); err != nil {
		t.Fatal(err)
	}
	id := good[4:14]
	flipped := []byte(good)
	if flipped[20]++; flipped[20] > 'z' || flipped[20] == '8' {
		flipped[20] = 'a'
	}
	for name, test := range map[string]struct {
		headers []string
		want    string
	}{
		"the token":                     {[]string{"Bearer " + good}, "ci"},
		"in lower case":                 {[]string{"bearer " + good}, "ci"},
		"none":                          {nil, "refused"},
		"empty":                         {[]string{"Bearer "}, "refused"},
		"of another kind":               {[]string{"Bearer 0123456789abcdef"}, "refused"},
		"of another server":             {[]string{"Bearer " + foreign}, "refused: the token tsv_" + foreign[4:14] + " is not known"},
		"revoked":                       {[]string{"Bearer " + revoked}, "refused: the token tsv_" + revoked[4:14] + " is not known"},
		"one letter wrong":              {[]string{"Bearer " + string(flipped)}, "refused: the token is mistyped"},
		"one letter less":               {[]string{"Bearer " + good[:len(good)-1]}, "refused: the token is mistyped"},
		"one letter more":               {[]string{"Bearer " + good + "a"}, "refused: the token is mistyped"},
		"in capitals":                   {[]string{"Bearer " + strings.ToUpper(good)}, "refused"},
		"the prefix in capitals":        {[]string{"Bearer TSV_" + good[4:]}, "refused"},
		"the prefix alone":              {[]string{"Bearer tsv_"}, "refused: the token is mistyped"},
		"the id alone":                  {[]string{"Bearer tsv_" + id}, "refused: the token is mistyped"},
		"the id with no secret":         {[]string{"Bearer tsv_" + id + "_" + strings.Repeat("a", 59)}, "refused: the token is mistyped"},
		"a line in it":                  {[]string{"Bearer tsv_" + id + "\n" + good[15:]}, "refused"},
		"a blank in it":                 {[]string{"Bearer " + good + " x"}, "refused"},
		"a giant one":                   {[]string{"Bearer " + good + strings.Repeat("a", 1<<20)}, "refused"},
		"as long as is allowed":         {[]string{"Bearer tsv_" + strings.Repeat("a", 1020)}, "refused: the token is mistyped"},
		"twice":                         {[]string{"Bearer " + good, "Bearer " + good}, "refused"},
		"after an invalid header":       {[]string{"Bearer x", "Bearer " + good}, "refused"},
		"two in one header":             {[]string{"Bearer " + good + ", Bearer " + good}, "refused"},
		"another scheme":                {[]string{"Basic " + good}, "refused"},
		"the digest":                    {[]string{"Bearer e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}, "refused"},
		"an intact token made of words": {[]string{"Bearer " + made(t)}, "is not known"},
	} {
		r := &http.Request{Header: http.Header{"Authorization": test.headers}}
		if got := d.who(r); got != test.want && (!strings.Contains(got, test.want) || test.want == "refused") {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		if got := d.who(r); strings.Contains(got, good[15:40]) {
			t.Errorf("%s: the log has a secret: %s", name, got)
		}
	}
}

// made returns a well-formed token that nobody has.
func made(t *testing.T) string {
	t.Helper()
	return open(t, memory.New()).add("x")
}

// TestRevoke uses tokens again that were revoked.
// Proves: A caller reaches its own tools only
func TestRevoke(t *testing.T) {
	t.Parallel()
	store := memory.New()
	d := open(t, store)
	secret := d.add("ci", "math/*")
	child, _, err := d.Attenuate(t.Context(), d.principal(secret), tokens.Spec{Name: "night", Scopes: []string{"math/add"}})
	if err != nil {
		t.Fatal(err)
	}
	d.want(child, "ci/night")
	shown, err := d.Show("ci/night")
	if err != nil {
		t.Fatal(err)
	}
	if now, err := d.SetScopes(t.Context(), shown.ID, []string{"math/mul"}, state.Any); err != nil || now.Name != "ci/night" { // the token is found by its beginning
		t.Errorf("got %v, %v", now, err)
	}
	p, own := d.principal(child), d.principal(secret)
	if d.verifier.Ended(p) || d.verifier.Ended(own) {
		t.Error("it has ended before it was revoked")
	}
	version := d.auth.Version()
	if _, err := d.Revoke(t.Context(), "ci", state.Any); err != nil {
		t.Fatal(err)
	}
	d.want(secret, "is not known")
	d.want(child, "is not known")
	if d.auth.Version() == version || !d.verifier.Ended(p) {
		t.Error("no subscriber is told that the token has ended")
	}
	if d.verifier.Open() {
		t.Error("everybody is let in once the last token was revoked")
	}
	again := d.add("ci", "*")
	d.want(again, "ci")
	old, _ := wasmtools.NewPrincipal("ci", p.Origin(), "math/*")
	if _, _, err := d.Attenuate(t.Context(), old, tokens.Spec{Name: "late", Scopes: []string{"*"}}); err == nil {
		t.Error("a request with the old token makes a narrower one of the new token that has its name")
	}
	if next := d.principal(again); !d.verifier.Ended(own) || d.verifier.Ended(next) || next.Credential() == own.Credential() || !next.Is(own) {
		t.Error("another token of the same name is taken for the one that was revoked")
	}
	d.want(secret, "is not known")
	d.want(child, "is not known")
	if all, err := d.List(); err != nil || len(all) != 1 {
		t.Errorf("got %v, %v", all, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	later := open(t, store) // like a new process
	later.want(again, "ci")
	later.want(secret, "is not known")
	later.want("", "refused")
	for _, name := range []string{"ci", "nobody"} {
		if _, err := later.Revoke(t.Context(), name, state.Any); (err == nil) != (name == "ci") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if open(t, store).verifier.Open() {
		t.Error("everybody is let in after a restart")
	}
}

// TestRaces revokes tokens while they are used, rotated and given other scopes: no request after the confirmation is let in.
// Proves: A caller reaches its own tools only
func TestRaces(t *testing.T) {
	t.Parallel()
	store := memory.New()
	d, other := open(t, store), open(t, store) // for the store, these are two processes
	for range 100 {
		secret := d.add("ci", "*")
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				switch i % 3 {
				case 0:
					_, _, _ = d.Rotate(context.Background(), "ci", time.Hour, state.Any)
				case 1:
					_, _ = d.SetScopes(context.Background(), "ci", []string{"math"}, state.Any)
				case 2:
					_, _, _ = other.Rotate(context.Background(), "ci", time.Hour, state.Any)
				}
			}
		}()
		if _, err := d.Revoke(context.Background(), "ci", state.Any); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if got := d.who(request(secret)); !strings.HasPrefix(got, "refused") {
				t.Fatalf("a token that was revoked is let in as %s", got)
			}
		}
		close(stop)
		<-stopped
		if _, err := d.Show("ci"); err == nil {
			t.Fatal("the token came back")
		}
	}
}

// TestReserve lets many callers make a token of the same name at once: one makes it, and all others learn from Reserve that it exists. A caller
// that has left gets no turn.
func TestReserve(t *testing.T) {
	t.Parallel()
	d := open(t, memory.New())
	d.add("taken")
	spec := tokens.Spec{Name: "ci"}
	if _, err := d.Reserve(t.Context(), nil, tokens.Spec{Name: "taken"}); !errors.Is(err, tokens.ErrExists) {
		t.Errorf("a name that is taken: got %v", err)
	}
	var made, exists atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			release, err := d.Reserve(context.Background(), nil, spec)
			switch {
			case errors.Is(err, tokens.ErrExists):
				exists.Add(1)
				return
			case err != nil:
				t.Error(err)
				return
			}
			defer release()
			if _, _, err := d.Add(context.Background(), spec); err != nil {
				t.Errorf("the reserved token can't be made: %v", err)
			}
			made.Add(1)
		})
	}
	all.Wait()
	if made.Load() != 1 || exists.Load() != 19 {
		t.Errorf("%d made it, and %d were told that it exists", made.Load(), exists.Load())
	}
	release, err := d.Reserve(t.Context(), nil, tokens.Spec{Name: "next"})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := d.Reserve(left, nil, tokens.Spec{Name: "left"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has left: got %v", err)
	}
}

// TestAttenuateUpwards asks for more rights in every way.
// Proves: A caller reaches its own tools only
func TestAttenuateUpwards(t *testing.T) {
	t.Parallel()
	d := open(t, memory.New())
	secret, _, err := d.Add(t.Context(), tokens.Spec{Name: "ci", Scopes: []string{"math/*", "metrics"}, Lifetime: time.Hour, Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	if err != nil {
		t.Fatal(err)
	}
	by := d.principal(secret)
	for name, test := range map[string]struct {
		spec tokens.Spec
		want string // empty if it is made
	}{
		"less":                        {tokens.Spec{Scopes: []string{"math/add"}}, ""},
		"the same":                    {tokens.Spec{Scopes: []string{"math/*", "metrics"}, Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.128/25")}, Lifetime: time.Minute}, ""},
		"nothing":                     {tokens.Spec{}, ""},
		"every tool":                  {tokens.Spec{Scopes: []string{"*"}}, "is more than the token has"},
		"a prefix of the text":        {tokens.Spec{Scopes: []string{"math*/*"}}, "is more than the token has"},
		"a longer name":               {tokens.Spec{Scopes: []string{"maths/add"}}, "is more than the token has"},
		"the namespace's name":        {tokens.Spec{Scopes: []string{"math"}}, "it also matches /math"},
		"a role":                      {tokens.Spec{Scopes: []string{"admin"}}, "is more than the token has"},
		"a role that reads":           {tokens.Spec{Scopes: []string{"admin:read"}}, "is more than the token has"},
		"for longer":                  {tokens.Spec{Lifetime: 2 * time.Hour}, "can't last longer"},
		"for ever":                    {tokens.Spec{Lifetime: tokens.Forever}, "can't last longer"},
		"from elsewhere":              {tokens.Spec{Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}, "is not within the networks of the token"},
		"from a larger network":       {tokens.Spec{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.0.0/16")}}, "is not within the networks of the token"},
		"from everywhere":             {tokens.Spec{Networks: []netip.Prefix{netip.MustParsePrefix("::/0")}}, "is not within the networks of the token"},
		"a name with a slash":         {tokens.Spec{Name: "a/b"}, "the name is not valid"},
		"a name that leads elsewhere": {tokens.Spec{Name: "../admin"}, "the name is not valid"},
		"too many scopes":             {tokens.Spec{Scopes: slices.Repeat([]string{"math/add"}, 17)}, "at most 16"},
	} {
		if test.spec.Name == "" {
			test.spec.Name = strings.ReplaceAll(name, " ", "-")
		}
		narrow, made, err := d.Attenuate(t.Context(), by, test.spec)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
		if err != nil {
			continue
		}
		p := d.principal(narrow)
		if made.Expires.After(by1(d, "ci").Expires) || p.May("/web/get") || p.Has("admin") || p.String() != "ci/"+test.spec.Name {
			t.Errorf("%s: got %+v", name, made)
		}
		r := request(narrow)
		if r.RemoteAddr = "198.51.100.1"; d.who(r) == p.String() {
			t.Errorf("%s: the token is accepted from an address outside its networks", name)
		}
	}
	for _, p := range []*wasmtools.Principal{nil, wasmtools.Everybody(), wasmtools.Self()} {
		if _, _, err := d.Attenuate(t.Context(), p, tokens.Spec{Name: "x"}); err == nil {
			t.Errorf("%s makes a narrower token", p)
		}
	}
	deep, made := secret, tokens.Token{}
	for range 10 {
		if deep, made, err = d.Attenuate(t.Context(), d.principal(deep), tokens.Spec{Name: "x"}); err != nil {
			break
		}
	}
	if err == nil || strings.Count(made.Name, "/") != 0 {
		t.Errorf("narrower tokens can be nested without a limit: %v, %v", made, err)
	}
}

// TestManyNarrowOnes makes as many tokens with one token as it can.
func TestManyNarrowOnes(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("on one goroutine, so the race detector would only slow it down")
	}
	d := open(t, memory.New())
	by := d.principal(d.add("ci", "*"))
	for i := range 2000 {
		if _, _, err := d.Attenuate(t.Context(), by, tokens.Spec{Name: string(rune('a'+i%26)) + strings.Repeat("x", i/26%60) + strings.Repeat("y", i/1560)}); err != nil {
			if i != 1000 || !strings.Contains(err.Error(), "have made 1000 tokens already") {
				t.Errorf("after %d: %v", i, err)
			}
			return
		}
	}
	t.Error("a token can make any number of narrower ones")
}

// TestExpiredNarrowOnes makes narrower tokens that last an hour, for days: expired ones don't keep others from being made, and don't pile up.
func TestExpiredNarrowOnes(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("on one goroutine, so the race detector would only slow it down")
	}
	synctest.Test(t, func(t *testing.T) {
		d := open(t, memory.New())
		by := d.principal(d.add("ci", "a/*"))
		var scopes []string
		for i := range 16 {
			scopes = append(scopes, fmt.Sprintf("a/%d%s*%s", i, strings.Repeat("x", 55), strings.Repeat("/y", 30)))
		}
		for i := range 1200 {
			spec := tokens.Spec{Name: fmt.Sprint("n", i), Lifetime: time.Hour}
			if i%40 == 0 {
				spec.Scopes = scopes
			}
			if _, _, err := d.Attenuate(t.Context(), by, spec); err != nil {
				t.Fatalf("after %d: %v", i, err)
			}
			time.Sleep(2 * time.Minute) // so that 30 of them are valid
		}
		valid, expired := 0, 0
		all, err := d.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, made := range all {
			switch made.State {
			case "valid":
				valid++
			case "expired":
				expired++
			}
		}
		if valid != 30 || expired < 100 || valid+expired > 1001 {
			t.Errorf("%d tokens are valid, and %d have expired", valid, expired)
		}
	})
}

// TestNarrowOnesInADay makes narrower tokens that expire at once, one after another: their number is limited, so that they can't fill the audit.
func TestNarrowOnesInADay(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("on one goroutine, so the race detector would only slow it down")
	}
	synctest.Test(t, func(t *testing.T) {
		d := open(t, memory.New())
		by := d.principal(d.add("ci", "a/*"))
		attenuate := func(i int) error {
			_, _, err := d.Attenuate(t.Context(), by, tokens.Spec{Name: fmt.Sprint("n", i), Lifetime: time.Second})
			time.Sleep(2 * time.Second)
			return err
		}
		for i := range 1000 {
			if err := attenuate(i); err != nil {
				t.Fatalf("after %d: %v", i, err)
			}
		}
		if err := attenuate(1000); err == nil {
			t.Error("more than a thousand tokens are made in an hour")
		}
		time.Sleep(24 * time.Hour)
		if err := attenuate(1001); err != nil {
			t.Errorf("a day later: %v", err)
		}
	})
}

// TestManyPatterns makes narrower tokens with patterns that take long to compare. Their maker can still be changed quickly, and tokens without such
// patterns can still be made.
func TestManyPatterns(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("on one goroutine, so the race detector would only slow it down")
	}
	d := open(t, memory.New())
	by := d.principal(d.add("ci", "a/*", "b/*"))
	hard := func(n int) (scopes []string) {
		for i := range 16 {
			scopes = append(scopes, fmt.Sprintf("a/x%d*%d%s/%s", n, i, strings.Repeat("*a", 8), strings.Repeat("*b", 30)))
		}
		return scopes
	}
	made := 0
	for ; made < 1000; made++ {
		if _, _, err := d.Attenuate(t.Context(), by, tokens.Spec{Name: fmt.Sprint("n", made), Scopes: hard(made)}); err != nil {
			if !strings.Contains(err.Error(), "the narrower tokens of ci have 64 KiB of patterns already") {
				t.Error(err)
			}
			break
		}
	}
	if made < 20 || made > 64 {
		t.Errorf("%d were made", made)
	}
	if _, _, err := d.Attenuate(t.Context(), by, tokens.Spec{Name: "simple", Scopes: []string{"a/x", "b/y"}}); err != nil {
		t.Errorf("names alone: %v", err)
	}
	if _, err := d.SetScopes(t.Context(), "ci", []string{"a/x1*"}, state.Any); err != nil {
		t.Error(err)
	}
}

func by1(d *door, name string) tokens.Token {
	d.t.Helper()
	all, err := d.Show(name)
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// TestScopes changes the scopes of a token. The tokens that it made change with it.
// Proves: A caller reaches its own tools only
func TestScopes(t *testing.T) {
	t.Parallel()
	d := open(t, memory.New())
	secret := d.add("ci", "math/*", "web/*", "admin:read")
	child, _, err := d.Attenuate(t.Context(), d.principal(secret), tokens.Spec{Name: "x", Scopes: []string{"math/add", "web/*", "admin:read"}})
	if err != nil {
		t.Fatal(err)
	}
	before := d.principal(secret)
	for _, step := range []struct {
		name   string
		scopes []string
		want   string // the scopes and roles of ci, and those of ci/x
	}{
		{"ci", []string{"math/*"}, "[math/*] [] [math/add] []"},
		{"ci", nil, "[] [] [] []"},
		{"ci", []string{"*", "admin"}, "[*] [admin admin:read metrics] [math/add web/*] [admin:read]"},
		{"ci/x", []string{"math/sub", "metrics"}, "[*] [admin admin:read metrics] [math/sub] [metrics]"},
		{"ci", []string{"math/a*"}, "[math/a*] [] [] []"},
	} {
		if _, err := d.SetScopes(t.Context(), step.name, step.scopes, state.Any); err != nil {
			t.Fatal(err)
		}
		p, q := d.principal(secret), d.principal(child)
		if got := strings.Join([]string{list(p.Scopes()), list(p.Roles()), list(q.Scopes()), list(q.Roles())}, " "); got != step.want {
			t.Errorf("%s with %q: got %s, want %s", step.name, step.scopes, got, step.want)
		}
	}
	for name, scopes := range map[string][]string{"ci/x": {"math/*"}, "ci": {"admin:all"}, "nobody": {"math"}} {
		if _, err := d.SetScopes(t.Context(), name, scopes, state.Any); err == nil {
			t.Errorf("%s gets %q", name, scopes)
		}
	}
	if before.String() != d.principal(secret).String() || before.Origin() != d.principal(secret).Origin() {
		t.Error("it is another caller now")
	}
	if !before.May("/web/get") { // it never changes
		t.Error("a principal has changed")
	}
}

func list(words []string) string { return "[" + strings.Join(words, " ") + "]" }

// TestRotate checks that both secrets are accepted for a while.
func TestRotate(t *testing.T) {
	t.Parallel()
	d := open(t, memory.New())
	first := d.add("ci", "math")
	before := by1(d, "ci")
	second, now, err := d.Rotate(t.Context(), "ci", time.Hour, int64(before.Version))
	if err != nil {
		t.Fatal(err)
	}
	d.want(first, "ci")
	d.want(second, "ci")
	if d.principal(first) != d.principal(second) || now.ID != before.ID || now.Former.IsZero() || second == first {
		t.Errorf("after the rotation, got %+v; before it, the token was %+v", now, before)
	}
	if _, _, err := d.Rotate(t.Context(), "ci", 0, int64(before.Version)); err == nil {
		t.Error("an outdated version is accepted")
	}
	third, _, err := d.Rotate(t.Context(), before.ID, 0, state.Any)
	if err != nil {
		t.Fatal(err)
	}
	d.want(first, "is not known")
	d.want(second, "is not known")
	d.want(third, "ci")
	if _, _, err := d.Rotate(t.Context(), "ci", tokens.MaxGrace+1, state.Any); err == nil {
		t.Error("an endless grace is accepted")
	}
}

func TestBadSpecs(t *testing.T) {
	t.Parallel()
	d := open(t, memory.New())
	d.add("ci")
	for name, test := range map[string]struct {
		spec tokens.Spec
		want string
	}{
		"no name":                    {tokens.Spec{}, "the name is not valid"},
		"a token in place of a name": {tokens.Spec{Name: "tsv_zqzqzq"}, "begins with tsv_"},
		"a name that the log uses":   {tokens.Spec{Name: "token-17"}, "which is what the log calls tokens without a name"},
		"a slash":                    {tokens.Spec{Name: "ci/zqzq"}, "the name is not valid"},
		"a long name":                {tokens.Spec{Name: strings.Repeat("zqzq", 17)}, "the name is not valid"},
		"a control letter":           {tokens.Spec{Name: "zqzq\x1b[0m"}, "the name is not valid"},
		"taken":                      {tokens.Spec{Name: "ci"}, "exists already"},
		"an unknown role":            {tokens.Spec{Name: "x", Scopes: []string{"zqzq:write"}}, "is no such role"},
		"too long":                   {tokens.Spec{Name: "x", Lifetime: tokens.MaxLifetime + 1}, "lasts at most 1825 days"},
		"a negative time":            {tokens.Spec{Name: "x", Lifetime: -2}, "lasts at most"},
		"no network":                 {tokens.Spec{Name: "x", Networks: []netip.Prefix{{}}}, "network 1 of 1"},
		"IPv4 in IPv6":               {tokens.Spec{Name: "x", Networks: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}}, "network 1 of 1"},
	} {
		_, _, err := d.Add(t.Context(), test.spec)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "zqzq") {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	if _, _, err := open(t, nil).Add(t.Context(), tokens.Spec{Name: "x"}); err == nil || !strings.Contains(err.Error(), "state.directory") {
		t.Errorf("without a state: %v", err)
	}
}

// TestKept checks that the state does not contain the secrets, which are shown only once.
// Proves: Secrets stay secret
func TestKept(t *testing.T) {
	t.Parallel()
	store := memory.New()
	d := open(t, store)
	secret := d.add("ci", "*")
	second, _, err := d.Rotate(t.Context(), "ci", time.Hour, state.Any)
	if err != nil {
		t.Fatal(err)
	}
	space := store.Space(tokens.Space)
	keys, _, err := space.List(t.Context(), "", "", 0)
	if err != nil || len(keys) < 2 {
		t.Fatal(keys, err)
	}
	for _, key := range keys {
		e, _, err := space.Get(t.Context(), key, state.MaxValue)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{secret, second} {
			if strings.Contains(string(e.Value)+key, s[15:35]) {
				t.Errorf("%s: the state has the secret: %s", key, e.Value)
			}
		}
	}
}

// TestForeignRecords has a state with records that this version can't read: they are not changed, and let nobody in.
func TestForeignRecords(t *testing.T) {
	t.Parallel()
	store := memory.New()
	space := store.Space(tokens.Space)
	for key, value := range map[string]string{"name/new": "\x09{}", "name/bad": "\x01{", "name/empty": "", "name/odd": "\x01{\"id\":\"\"}", "name/role": "\x01{\"id\":\"aaaaaaaaaa\",\"scopes\":[\"admin:all\"]}",
		"name/ci/x": "\x01{\"id\":\"aaaaaaaaab\",\"scopes\":[\"*\"]}", "used/a": "\x01[]", "other": "x"} {
		if _, err := space.Set(t.Context(), key, []byte(value), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, store)
	d.want("", "refused")
	all, err := d.List()
	if err != nil || len(all) != 6 {
		t.Errorf("got %v, %v", all, err)
	}
	for _, token := range all {
		if !strings.HasPrefix(token.State, "refused: ") {
			t.Errorf("got %+v", token)
		}
	}
	if _, _, err := d.Rotate(t.Context(), "new", 0, state.Any); err == nil {
		t.Error("a record of a newer version is changed")
	}
	if e, ok, err := space.Get(t.Context(), "name/new", 10); err != nil || !ok || string(e.Value) != "\x09{}" {
		t.Errorf("got %q, %t, %v", e.Value, ok, err)
	}
	if _, err := d.Revoke(t.Context(), "new", state.Any); err != nil {
		t.Errorf("an unreadable token can't be revoked: %v", err)
	}
}
