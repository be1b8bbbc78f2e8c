package auth_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// A badge is a verifier that takes the caller's name from a header.
type badge struct {
	name    string
	open    bool
	err     error // returned for every badge that is shown
	version uint64
	tell    func()
}

func (b *badge) Verify(r *http.Request) (*wasmtools.Principal, error) {
	shown := r.Header.Get("X-" + b.name)
	switch {
	case shown == "":
		return nil, nil
	case b.err != nil:
		return wasmtools.Everybody(), b.err // the principal that comes with an error is ignored
	case shown != "valid":
		return nil, nil
	}
	return wasmtools.NewPrincipal("a "+b.name, "badge", "math")
}

func (b *badge) Scheme() auth.Scheme {
	return auth.Scheme{Name: b.name, Description: json.RawMessage(`{"type":"apiKey","in":"header","name":"X-` + b.name + `"}`), Challenge: b.name + ` realm="tools"`}
}
func (b *badge) Open() bool      { return b.open }
func (b *badge) Version() uint64 { return b.version }
func (b *badge) Subscribe(changed func()) func() {
	b.tell = changed
	return func() { b.tell = nil }
}

// TestAlternatives has several verifiers: a caller that one of them identifies is let in, and an open verifier does not admit callers that another
// one would refuse.
// Proves: A caller reaches its own tools only
func TestAlternatives(t *testing.T) {
	t.Parallel()
	away := &wasmtools.Error{Code: wasmtools.CodeNotReady, Message: "the issuer is away"}
	revoked := &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Message: "the badge was revoked"}
	const token = "Authorization: Bearer s3cret"
	for _, test := range []struct {
		name      string
		tokens    []string
		red, blue badge
		headers   string
		want      string
	}{
		{"a token", []string{"s3cret"}, badge{}, badge{}, token, "token-1"},
		{"the first badge", []string{"s3cret"}, badge{}, badge{}, "X-Red: valid", "a Red"},
		{"the second badge", []string{"s3cret"}, badge{}, badge{}, "X-Blue: valid", "a Blue"},
		{"several: the first verifier decides", []string{"s3cret"}, badge{}, badge{}, token + "; X-Red: valid", "token-1"},
		{"a wrong token and a badge", []string{"s3cret"}, badge{}, badge{}, "Authorization: Bearer bad; X-Blue: valid", "a Blue"},
		{"nothing", []string{"s3cret"}, badge{}, badge{}, "", "Invalid or missing credentials"},
		{"a wrong token", []string{"s3cret"}, badge{}, badge{}, "Authorization: Bearer bad", "Invalid or missing credentials"},
		{"a wrong badge", []string{"s3cret"}, badge{}, badge{}, "X-Red: forged", "Invalid or missing credentials"},
		{"no tokens are set, but badges are asked for", nil, badge{}, badge{}, "", "Invalid or missing credentials"},
		{"no tokens are set, and some token is shown", nil, badge{}, badge{}, token, "Invalid or missing credentials"},
		{"one of three is closed", nil, badge{open: true}, badge{}, "", "Invalid or missing credentials"},
		{"only tokens are accepted", []string{"s3cret"}, badge{open: true}, badge{open: true}, "", "Invalid or missing bearer token"},
		{"all are open", nil, badge{open: true}, badge{open: true}, "", "everybody"},
		{"all are open, and a badge is shown", nil, badge{open: true}, badge{open: true}, "X-Red: valid", "a Red"},
		{"all are open, and one fails", nil, badge{open: true, err: away}, badge{open: true}, "X-Red: valid", "everybody"},
		{"a badge can't be checked", []string{"s3cret"}, badge{err: away}, badge{}, "X-Red: valid", "the issuer is away"},
		{"one can't be checked, another is valid", []string{"s3cret"}, badge{err: away}, badge{}, "X-Red: valid; X-Blue: valid", "a Blue"},
		{"a badge was revoked", []string{"s3cret"}, badge{}, badge{err: revoked}, "X-Blue: valid", "the badge was revoked"},
		{"both fail: the first error counts", []string{"s3cret"}, badge{err: away}, badge{err: revoked}, "X-Red: valid; X-Blue: valid", "the issuer is away"},
	} {
		test.red.name, test.blue.name = "Red", "Blue"
		a := auth.Dependency(newAuth(t, test.tokens...), &test.red, &test.blue)
		r := &http.Request{Header: http.Header{}}
		for header := range strings.SplitSeq(test.headers, "; ") {
			if name, value, ok := strings.Cut(header, ": "); ok {
				r.Header.Set(name, value)
			}
		}
		p, err := a.Principal(r, wasmtools.Everybody())
		got := p.String()
		if failed, ok := errors.AsType[*wasmtools.Error](err); ok {
			got = failed.Message
		}
		if got != test.want || (p == nil) == (err == nil) || (a.Check(r) == nil) != (err == nil) {
			t.Errorf("%s: got %q, %v, want %q", test.name, p, err, test.want)
		}
	}
}

// TestSchemes checks the list of schemes with which a request is let in at the moment.
func TestSchemes(t *testing.T) {
	t.Parallel()
	tokens, red := newAuth(t), &badge{name: "Red", open: true}
	a := auth.Dependency(tokens, red)
	told := 0
	end := a.Subscribe(func() { told++ })
	check := func(want string, times int) {
		t.Helper()
		var names []string
		for _, s := range a.Schemes() {
			names = append(names, s.Name+" by "+s.Challenge)
		}
		if got := strings.Join(names, ", "); got != want || told != times || a.Open() != (want == "") {
			t.Errorf("got %q, %d notices of changes, open: %t; want %q and %d", got, told, a.Open(), want, times)
		}
	}
	check("", 0)
	_ = tokens.AddToken("s3cret")
	check("bearer by Bearer", 1)
	red.open = false
	red.tell()
	check(`bearer by Bearer, Red by Red realm="tools"`, 2)
	before := a.Version()
	red.version++
	if after := a.Version(); after != before+1 {
		t.Errorf("the version went from %d to %d", before, after)
	}
	end()
	if _ = tokens.SetTokens(nil); red.tell != nil || told != 2 {
		t.Error("the subscriber is called after its end")
	}
}

func TestBadSchemes(t *testing.T) {
	t.Parallel()
	for _, verifiers := range [][]auth.Verifier{{}, {nil}, {newAuth(t), nil}, {&badge{name: ""}}, {&badge{name: "a/b"}}, {&badge{name: `"`}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v does not panic", verifiers)
				}
			}()
			auth.Dependency(verifiers...)
		}()
	}
}

// TestMoment moves a token from one verifier to the other and back: a client whose token is always valid at one of them is always let in.
func TestMoment(t *testing.T) {
	t.Parallel()
	tokens := newAuth(t, "s3cret")
	a := auth.Dependency(tokens)
	r := &http.Request{Header: http.Header{"Authorization": {"Bearer s3cret"}}}
	done := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := a.Check(r); err != nil {
				t.Error("a token that is always valid is refused")
				return
			}
		}
	})
	for i := range 20_000 {
		tokens.SetEnabled(i%2 == 1) // while it is off, everybody is let in
	}
	close(done)
	work.Wait()
}

func TestAlternativesAllocateNothing(t *testing.T) {
	a := auth.Dependency(&badge{name: "Red"}, newAuth(t, "s3cret"))
	r := &http.Request{Header: http.Header{"Authorization": {"Bearer s3cret"}}}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := a.Principal(r, wasmtools.Everybody()); err != nil {
			t.Error(err)
		}
	}); n > 1 { // the badge's own: "X-" with its name
		t.Errorf("got %v allocations", n)
	}
}
