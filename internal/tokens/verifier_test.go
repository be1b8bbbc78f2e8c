package tokens_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// TestForm finds tokens in texts, as scanners do.
func TestForm(t *testing.T) {
	t.Parallel()
	d := open(t, memory.New())
	secret, made, err := d.Add(t.Context(), tokens.Spec{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	expression := regexp.MustCompile(tokens.Expression)
	text := "export TOKEN='" + secret + "' # ours"
	if got := expression.FindString(text); got != secret {
		t.Errorf("in %s: got %q", text, got)
	}
	if !strings.HasPrefix(secret, made.ID+"_") || expression.MatchString(made.ID) {
		t.Errorf("the id is %s", made.ID)
	}
}

// TestExpiry waits until tokens expire. Subscribers are called.
// Proves: A caller reaches its own tools only
func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		var told atomic.Int64
		d := open(t, store)
		defer d.Close()
		d.Subscribe(func() { told.Add(1) })
		d.declare([]config.Token{{Name: "declared", SHA256: sha256.Sum256([]byte("s3cret")), Expires: time.Now().Add(2 * time.Hour)}}, nil)
		usual := d.add("usual")
		short, _, err := d.Add(t.Context(), tokens.Spec{Name: "short", Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		forever, _, err := d.Add(t.Context(), tokens.Spec{Name: "forever", Lifetime: tokens.Forever})
		if err != nil {
			t.Fatal(err)
		}
		p := d.principal(short)
		child, _, err := d.Attenuate(t.Context(), p, tokens.Spec{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		version := d.auth.Version()
		time.Sleep(time.Hour - time.Nanosecond)
		synctest.Wait()
		d.want(short, "short")
		before := told.Load()
		if got := d.auth.Version(); got != version {
			t.Errorf("the version went from %d to %d", version, got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		d.want(short, "the token of short has expired")
		d.want(child, "the token of short/x has expired")
		if d.auth.Version() == version || told.Load() == before || !d.verifier.Ended(p) {
			t.Error("nobody is told that a token has expired")
		}
		if _, _, err := d.Attenuate(t.Context(), p, tokens.Spec{Name: "y"}); err == nil {
			t.Error("a token that has expired makes another")
		}
		if got := by1(d, "short"); got.State != "expired" {
			t.Errorf("got %+v", got)
		}
		d.want("s3cret", "declared")
		time.Sleep(time.Hour)
		d.want("s3cret", "the token of declared has expired")
		revived, now, err := d.Rotate(t.Context(), "short", time.Hour, state.Any)
		if err != nil || time.Until(now.Expires) != time.Hour {
			t.Errorf("got %+v, %v", now, err)
		}
		d.want(short, "is not known") // a grace does not make an expired token valid again
		d.want(revived, "short")
		d.want(child, "has expired") // the narrower token still ends with its maker's first hour
		time.Sleep(89 * 24 * time.Hour)
		d.want(usual, "usual")
		time.Sleep(24 * time.Hour)
		d.want(usual, "has expired")
		time.Sleep(30 * 24 * time.Hour)
		d.want(forever, "forever")
		if _, _, err := store.Space(tokens.Space).List(t.Context(), "", "", 0); err != nil { // the store forgets expired entries
			t.Error(err)
		}
		synctest.Wait()
		d.want(usual, "is not known")
		if all, err := d.List(); err != nil || len(all) != 1 {
			t.Errorf("got %v, %v", all, err)
		}
		if d.verifier.Open() {
			t.Error("everybody is let in")
		}
	})
}

// TestGrace checks that the old secret expires.
func TestGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := open(t, memory.New())
		defer d.Close()
		first := d.add("ci")
		second, _, err := d.Rotate(t.Context(), "ci", time.Minute, state.Any)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		d.want(first, "refused")
		d.want(second, "ci")
	})
}

// TestUse checks that the last use of a token is recorded, and written now and then.
func TestUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: memory.New()}
		d := open(t, store)
		secret := d.add("ci")
		d.add("idle")
		written := store.sets.Load()
		for range 10_000 {
			d.want(secret, "ci")
			time.Sleep(18 * time.Millisecond) // three minutes in total
		}
		synctest.Wait()
		if got := store.sets.Load() - written; got < 1 || got > 4 {
			t.Errorf("10,000 uses in three minutes were %d writes", got)
		}
		want := time.Now().Add(-18 * time.Millisecond).Truncate(time.Minute)
		if got := by1(d, "ci").Used; !got.Equal(want) {
			t.Errorf("got %s, want %s", got, want)
		}
		_ = d.Close()
		later := open(t, store)
		defer later.Close()
		if got := by1(later, "ci").Used; !got.Equal(want) || !by1(later, "idle").Used.IsZero() {
			t.Errorf("later: got %s, want %s", got, want)
		}
	})
}

// A counted is a state that counts its writes.
type counted struct {
	state.Store
	sets atomic.Int64
}

func (c *counted) Space(name string) state.Space { return countedSpace{c.Store.Space(name), c} }

type countedSpace struct {
	state.Space
	of *counted
}

func (c countedSpace) Set(ctx context.Context, key string, value []byte, expect int64, o state.SetOptions) (uint64, error) {
	c.of.sets.Add(1)
	return c.Space.Set(ctx, key, value, expect, o)
}

// TestNetworks sends requests from many addresses.
func TestNetworks(t *testing.T) {
	t.Parallel()
	digest := sha256.Sum256([]byte("s3cret"))
	d := open(t, nil, config.Token{Name: "office", SHA256: digest, Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}})
	for from, want := range map[string]string{
		"192.0.2.9": "office", "2001:db8::1": "office",
		"192.0.3.9": "which is not in its networks", "2001:db9::1": "which is not in its networks", "": "which is not in its networks", "@": "which is not in its networks", "127.0.0.1": "which is not",
	} {
		r := request("s3cret")
		r.RemoteAddr = from
		if got := d.who(r); !strings.Contains(got, want) {
			t.Errorf("from %q: got %q, want %q", from, got, want)
		}
	}
}

// TestDeclared puts one configuration after another in force.
func TestDeclared(t *testing.T) {
	t.Parallel()
	token := func(name, secret string, scopes ...string) config.Token {
		return config.Token{Name: name, SHA256: sha256.Sum256([]byte(secret)), Scopes: scopes}
	}
	d := open(t, nil)
	if !d.verifier.Open() || d.who(request("x")) != "everybody" {
		t.Error("without tokens, somebody is refused")
	}
	d.declare([]config.Token{token("ci", "one", "math"), token("web", "two", "web", "metrics")}, d.verifier)
	ci, web := d.principal("one"), d.principal("two")
	if d.verifier.Open() || !web.Has("metrics") || ci.Has("metrics") || !ci.May("/math/add") || web.May("/math/add") {
		t.Error("the scopes are not those that were declared")
	}
	d.want("three", "refused")
	before := d.verifier
	d.declare([]config.Token{token("ci", "three", "math"), token("web", "two", "web")}, before)
	d.want("one", "refused")
	if d.principal("three") != ci || d.principal("two") == web || d.principal("two").Has("metrics") {
		t.Error("principals did not stay as they were declared")
	}
	if d.verifier.Ended(ci) || d.verifier.Ended(web) {
		t.Error("one has ended")
	}
	d.declare([]config.Token{token("web", "two", "web")}, d.verifier)
	if !d.verifier.Ended(ci) || d.verifier.Ended(web) || d.verifier.Ended(wasmtools.Everybody()) {
		t.Error("Ended does not tell which tokens have ended")
	}
	for name, declared := range map[string][]config.Token{
		"two tokens with one name":   {token("ci", "one"), token("ci", "two")},
		"two tokens with one secret": {token("ci", "one"), token("web", "one")},
		"an unknown role":            {token("ci", "one", "admin:all")},
		"no name":                    {token("", "one")},
	} {
		if v, err := tokens.NewVerifier(d.Store, declared, peer, nil); err == nil {
			t.Errorf("%s: got %v", name, v)
		}
	}
}

// TestLost checks that only declared tokens let anybody in while the state can't be read, since it may have tokens.
func TestLost(t *testing.T) {
	t.Parallel()
	lost := local.Lost(errors.New("the disk is on fire"), local.Options{})
	defer lost.Close()
	d := open(t, lost, config.Token{Name: "declared", SHA256: sha256.Sum256([]byte("s3cret"))})
	d.want("s3cret", "declared")
	d.want(made(t), "the disk is on fire")
	d.want("", "refused")
	d.declare(nil, nil)
	if d.verifier.Open() {
		t.Error("everybody is let in")
	}
	if _, err := d.List(); err == nil {
		t.Error("List returns no error")
	}
	if _, _, err := d.Add(t.Context(), tokens.Spec{Name: "x"}); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// TestMark checks that once a token was made, nobody is let in without one, whatever happens to the state. Before that, a state that can't be read
// shuts nobody out.
func TestMark(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "tokens.made")
	opened := func(store state.Store, mark string) bool {
		t.Helper()
		s := tokens.Open(store, tokens.Options{Mark: mark})
		defer s.Close()
		v, err := tokens.NewVerifier(s, nil, peer, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v.Open()
	}
	lost := local.Lost(errors.New("the disk is on fire"), local.Options{})
	defer lost.Close()
	if !opened(memory.New(), mark) || !opened(lost, mark) || !opened(lost, filepath.Join(testkit.Put(t, t.TempDir(), "file", ""), "tokens.made")) {
		t.Error("before a token was made, somebody is shut out")
	}
	store := memory.New()
	s := tokens.Open(store, tokens.Options{Mark: mark})
	if _, _, err := s.Add(t.Context(), tokens.Spec{Name: "ci"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]state.Store{"the same": store, "another": memory.New(), "an unreadable state": lost} {
		if opened(store, mark) {
			t.Errorf("everybody is let in with this state: %s", name)
		}
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	if opened(store, mark) { // the state itself records that tokens were made, so a copy of it does, too
		t.Error("everybody is let in by a state with tokens and no mark")
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("the mark is not made again: %v", err)
	}
}

// TestUnmarked checks that tokens are made without the mark only if Unmarked is set: then the state is elsewhere, and has a record of its own.
func TestUnmarked(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(testkit.Put(t, t.TempDir(), "file", ""), "tokens.made")
	for _, unmarked := range []bool{false, true} {
		store := memory.New()
		var log testkit.Log
		s := tokens.Open(store, tokens.Options{Mark: mark, Unmarked: unmarked, Logger: log.Logger(slog.LevelInfo)})
		if _, _, err := s.Add(t.Context(), tokens.Spec{Name: "ci"}); (err == nil) != unmarked {
			t.Errorf("unmarked %t: got %v", unmarked, err)
		}
		if unmarked { // when the later token is known, so are all tokens made here; each of those could have caused another warning
			open(t, store).add("later", "*")
			testkit.Until(t, "the later token is known", func() bool { return s.Len() == 2 })
			if n := log.Count("the file that records that tokens were made can't be written"); n != 1 {
				t.Errorf("got %d warnings, want 1:\n%s", n, &log)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		again := tokens.Open(store, tokens.Options{Mark: mark, Unmarked: unmarked})
		v, err := tokens.NewVerifier(again, nil, peer, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v.Open() {
			t.Errorf("unmarked %t: after a restart, everybody is let in", unmarked)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSubscribe checks that subscribers are called when the required credentials change.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	d := open(t, memory.New())
	told := 0
	end := d.verifier.Subscribe(func() { told++ })
	if d.verifier.Open() != true {
		t.Error("it is not open")
	}
	d.add("ci")
	if told == 0 || d.verifier.Open() {
		t.Errorf("told %d times", told)
	}
	end()
	before := told
	d.add("web")
	if told != before {
		t.Error("a subscriber is called after its subscription has ended")
	}
}

func TestVerifyAllocatesNothing(t *testing.T) {
	d := open(t, memory.New(), config.Token{Name: "declared", SHA256: sha256.Sum256([]byte("s3cret")), Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	for _, secret := range []string{d.add("ci", "math"), "s3cret"} {
		r := request(secret)
		if n := testing.AllocsPerRun(100, func() {
			if d.auth.Check(r) != nil {
				t.Error("refused")
			}
		}); n != 0 {
			t.Errorf("got %v allocations, want none", n)
		}
	}
}

// FuzzVerify looks for a header that panics, or lets somebody in without the token.
func FuzzVerify(f *testing.F) {
	d := open(f, memory.New())
	good := d.add("ci")
	for _, header := range []string{"", "Bearer " + good, "Bearer tsv_", "Bearer tsv_aaaaaaaaaa_", "Bearer " + good[:len(good)-1], "Bearer tsv_" + strings.Repeat("_", 70)} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		r := request("")
		r.Header["Authorization"] = []string{header}
		if d.auth.Check(r) == nil && !strings.HasSuffix(header, " "+good) {
			t.Errorf("%q is let in", header)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		store := memory.New()
		space := store.Space(tokens.Space)
		d := open(b, store)
		good := d.add("ci", "math/*")
		_ = d.Close()
		e, _, err := space.Get(b.Context(), "name/ci", state.MaxValue)
		if err != nil {
			b.Fatal(err)
		}
		text := string(e.Value)
		store = memory.New() // its Set counts all tokens
		for i := range n {
			id := fmt.Sprintf("%010d", i)
			other := strings.Replace(strings.Replace(text, `"id":"`, `"id":"`+id+`","was":"`, 1), `"sha256":"`, `"sha256":"`+fmt.Sprintf("%064d", i)+`","old":"`, 1)
			if i == 0 {
				other = text
			}
			if _, err := store.Space(tokens.Space).Set(b.Context(), fmt.Sprintf("name/ci%d", i), []byte(other), state.Any, state.SetOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		d = open(b, store)
		for name, secret := range map[string]string{"good": good, "unknown": good[:15] + "", "other": "6f1d8e0a5b6c4a7f9e3d2c1b0axxxxxx"} {
			r := request(secret)
			b.Run(fmt.Sprintf("tokens=%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if (d.auth.Check(r) == nil) != (name == "good") {
						b.Fatal("wrong answer")
					}
				}
			})
		}
	}
}

var _ auth.Verifier = (*tokens.Verifier)(nil)

// TestChangedWhileAsking changes a token while a request with it is answered: the request uses the same token, with its present rights.
func TestChangedWhileAsking(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(d *door) error
		scopes string // the token's scopes by then; empty if it is another token
	}{
		"a reload": {func(d *door) error { d.declare([]config.Token{{Name: "other"}}, d.verifier); return nil }, "[math/* web/*]"},
		"another rate": {func(d *door) error {
			_, err := d.SetRate(t.Context(), "ci", wasmtools.Rate{Concurrent: 5}, state.Any)
			return err
		}, "[math/* web/*]"},
		"fewer scopes": {func(d *door) error {
			_, err := d.SetScopes(t.Context(), "ci", []string{"web/*"}, state.Any)
			return err
		}, "[web/*]"},
		"more scopes":    {func(d *door) error { _, err := d.SetScopes(t.Context(), "ci", []string{"*"}, state.Any); return err }, "[*]"},
		"another secret": {func(d *door) error { _, _, err := d.Rotate(t.Context(), "ci", 0, state.Any); return err }, "[math/* web/*]"},
		"another token": {func(d *door) error {
			_, err := d.Revoke(t.Context(), "ci", state.Any)
			d.add("ci", "*")
			return err
		}, ""},
		"revoked": {func(d *door) error { _, err := d.Revoke(t.Context(), "ci", state.Any); return err }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, memory.New())
			by := d.principal(d.add("ci", "math/*", "web/*"))
			if err := c.change(d); err != nil {
				t.Fatal(err)
			}
			own, ok := d.Of(by)
			if got := list(own.Scopes); ok != (c.scopes != "") || ok && got != c.scopes {
				t.Errorf("the token is %+v, %t; want scopes %s", own, ok, c.scopes)
			}
			for _, scope := range []string{"math/add", "web/get", "files/read"} {
				_, _, err := d.Attenuate(t.Context(), by, tokens.Spec{Name: strings.ReplaceAll(scope, "/", "-"), Scopes: []string{scope}})
				namespace, _, _ := strings.Cut(scope, "/")
				if may := strings.Contains(c.scopes, namespace) || c.scopes == "[*]"; (err == nil) != may {
					t.Errorf("a narrower token for %s: got %v, want one: %t", scope, err, may)
				}
			}
		})
	}
}
