package auth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/credential"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// check reports whether a request with these Authorization headers is let in.
func check(a *auth.BearerTokenAuth, headers ...string) bool {
	return auth.Dependency(a).Check(&http.Request{Header: http.Header{"Authorization": headers}}) == nil
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	a := newAuth(t, "s3cret", "Bearer", "a=b,c")
	tests := []struct {
		name    string
		headers []string
		want    bool
	}{
		{"good", []string{"Bearer s3cret"}, true},
		{"lower case", []string{"bearer s3cret"}, true},
		{"mixed case", []string{"bEaReR s3cret"}, true},
		{"several blanks", []string{"Bearer    s3cret"}, true},
		{"token like the scheme", []string{"Bearer Bearer"}, true},
		{"odd characters", []string{"Bearer a=b,c"}, true},
		{"no header", nil, false},
		{"empty header", []string{""}, false},
		{"scheme only", []string{"Bearer"}, false},
		{"scheme and blank", []string{"Bearer "}, false},
		{"scheme and blanks", []string{"Bearer      "}, false},
		{"blank first", []string{" Bearer s3cret"}, false},
		{"tab", []string{"Bearer\ts3cret"}, false},
		{"blank and tab", []string{"Bearer \ts3cret"}, false},
		{"token only", []string{"s3cret"}, false},
		{"no blank", []string{"Bearers3cret"}, false},
		{"other scheme", []string{"Basic s3cret"}, false},
		{"longer scheme", []string{"BearerX s3cret"}, false},
		{"letter that folds to another", []string{"Bearer \u017f3cret"}, false},
		{"scheme with a letter that folds", []string{"\u0042ear\u0065r s3cret"}, true},
		{"colon", []string{"Bearer: s3cret"}, false},
		{"quotes", []string{`Bearer "s3cret"`}, false},
		{"wrong case", []string{"Bearer S3CRET"}, false},
		{"shorter", []string{"Bearer s3cre"}, false},
		{"longer", []string{"Bearer s3crett"}, false},
		{"parameter", []string{"Bearer s3cret, realm=x"}, false},
		{"two tokens", []string{"Bearer s3cret s3cret"}, false},
		{"null", []string{"Bearer s3cret\x00"}, false},
		{"very long", []string{"Bearer " + strings.Repeat("s3cret", 1<<18)}, false},
		{"many blanks", []string{"Bearer" + strings.Repeat(" ", 1<<20) + "s3cret"}, true},
		{"two good headers", []string{"Bearer s3cret", "Bearer s3cret"}, false},
		{"bad and good", []string{"Bearer bad", "Bearer s3cret"}, false},
		{"good and empty", []string{"Bearer s3cret", ""}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := check(a, tt.headers...); got != tt.want {
				t.Errorf("let in: got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestCheckError(t *testing.T) {
	t.Parallel()
	b := auth.Dependency(newAuth(t, "s3cret"))
	for _, header := range []string{"", "Bearer bad", "Bearer \x00", "Basic x"} {
		err := b.Check(&http.Request{Header: http.Header{"Authorization": {header}}})
		var e *wasmtools.Error
		if !errors.As(err, &e) || e.Code != wasmtools.CodeUnauthorized || e.Message != "Invalid or missing bearer token" || e.Err != nil {
			t.Errorf("header %q: got %#v, want the same error for all", header, err)
		}
	}
	if err := b.Check(&http.Request{}); err == nil {
		t.Error("a request without any header is let in")
	}
}

func TestSecurityScheme(t *testing.T) {
	t.Parallel()
	s := newAuth(t).Scheme()
	var got map[string]string
	if err := json.Unmarshal(s.Description, &got); err != nil || s.Name != "bearer" || len(got) != 2 || got["type"] != "http" || got["scheme"] != "bearer" || s.Challenge != "Bearer" {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestDependencyOfNothing(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("Dependency(nil) did not panic")
		}
	}()
	auth.Dependency(nil)
}

func TestGoodTokenAllocatesNothing(t *testing.T) {
	b := auth.Dependency(newAuth(t, "s3cret", strings.Repeat("x", credential.Max)))
	for _, token := range []string{"s3cret", strings.Repeat("x", credential.Max)} {
		r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}
		if n := testing.AllocsPerRun(100, func() {
			if b.Check(r) != nil {
				t.Error("refused")
			}
		}); n != 0 {
			t.Errorf("a token of %d bytes: got %v allocations, want none", len(token), n)
		}
	}
}

// FuzzCheck looks for a header that panics, or that lets somebody in without one of the tokens at its end.
func FuzzCheck(f *testing.F) {
	for _, header := range []string{"", "Bearer s3cret", "bearer  s3cret", "Bearer", "Bearer \x00", "Basic s3cret"} {
		f.Add(header)
	}
	a, err := auth.NewBearerTokenAuth([]string{"s3cret"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if check(a, header) && !strings.HasSuffix(header, " s3cret") {
			t.Errorf("%q is let in", header)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		tokens := make([]string, n)
		for i := range tokens {
			tokens[i] = fmt.Sprintf("6f1d8e0a5b6c4a7f9e3d2c1b0a%06d", i)
		}
		d := auth.Dependency(newAuth(b, tokens...))
		for name, token := range map[string]string{"good": tokens[n/2], "bad": "6f1d8e0a5b6c4a7f9e3d2c1b0axxxxxx"} {
			r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}
			b.Run(fmt.Sprintf("tokens=%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if (d.Check(r) == nil) != (name == "good") {
						b.Fatal("wrong answer")
					}
				}
			})
		}
	}
}

// nameOf returns the name of a token's principal.
func nameOf(t *testing.T, b *auth.Authenticator, token string) string {
	t.Helper()
	p, err := b.Principal(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}, wasmtools.Everybody())
	if err != nil {
		return "refused"
	}
	if p.Origin() != wasmtools.OriginToken && p != wasmtools.Everybody() || !p.May("/math/add") {
		t.Errorf("%s: got %s of %s with %q", token, p, p.Origin(), p.Scopes())
	}
	return p.String()
}

// TestTokensKeepTheirNames changes the set of tokens, and checks that no token gets a name that another one had.
// Proves: Secrets stay secret
func TestTokensKeepTheirNames(t *testing.T) {
	t.Parallel()
	a := newAuth(t, "one", "two", "one", "three")
	b := auth.Dependency(a)
	for _, step := range []struct {
		change func()
		want   string // the names of one, two, three and four
	}{
		{func() {}, "token-1 token-2 token-3 refused"},
		{func() { _ = a.AddToken("one") }, "token-1 token-2 token-3 refused"},
		{func() { _ = a.SetTokens([]string{"four", "three", "two"}) }, "refused token-2 token-3 token-4"},
		{func() { a.RemoveToken("two") }, "refused refused token-3 token-4"},
		{func() { _ = a.AddToken("one") }, "token-5 refused token-3 token-4"},
		{func() { _ = a.SetTokens([]string{"two", "bad token"}) }, "token-5 refused token-3 token-4"},
		{func() { a.SetEnabled(false) }, "everybody everybody everybody everybody"},
	} {
		step.change()
		var got []string
		for _, token := range []string{"one", "two", "three", "four"} {
			got = append(got, nameOf(t, b, token))
		}
		if got := strings.Join(got, " "); got != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
	}
}
