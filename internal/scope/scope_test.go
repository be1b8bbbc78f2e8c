package scope_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/internal/scope"
)

func parse(t *testing.T, scopes ...string) scope.Set {
	t.Helper()
	s, err := scope.Parse(scopes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBadScopes(t *testing.T) {
	t.Parallel()
	many := make([]string, scope.Max+1)
	for i := range many {
		many[i] = "math"
	}
	for name, test := range map[string]struct {
		scopes []string
		want   string
	}{
		"an unknown role":             {[]string{"math", "admin:write"}, "scope 2 of 2: there is no such role: use admin, admin:read or metrics"},
		"an address":                  {[]string{"https://zqzq.example"}, "there is no such role"},
		"empty":                       {[]string{""}, "scope 1 of 1: the pattern is empty"},
		"blanks":                      {[]string{"zqzq zq"}, "it has a character that is not allowed in a name"},
		"asterisks beside a letter":   {[]string{"zqzq**"}, "it has ** next to other characters"},
		"a token in place of a scope": {[]string{"tsv_" + strings.Repeat("zqzq", 20)}, "it has 84 bytes; a name has at most 64"},
		"a pattern's fingerprint":     {[]string{"zqzq/*@" + one}, "a pattern with * can't have one"},
		"everything's fingerprint":    {[]string{"*@" + one}, "a pattern with * can't have one"},
		"no tool's fingerprint":       {[]string{"@" + one}, "there is no tool's path before the @"},
		"half a fingerprint":          {[]string{"zqzq@" + one[:63]}, "what follows the @ is not a fingerprint"},
		"a capital fingerprint":       {[]string{"zqzq@" + strings.ToUpper(one)}, "what follows the @ is not a fingerprint"},
		"two fingerprints":            {[]string{"zqzq@" + one + "@" + one}, "what follows the @ is not a fingerprint"},
		"a fingerprint of a digest":   {[]string{"zqzq@sha256:" + one}, "what follows the @ is not a fingerprint"},
		"an empty name":               {[]string{"zqzq//add@" + one}, "it has an empty part"},
		"a role's fingerprint":        {[]string{"admin:read@" + one}, "it has a character that is not allowed"},
		"with and without":            {[]string{"zqzq/add@" + one, "zqzq/add"}, "scope 1 of 2 has a fingerprint, but another scope names the same tool without one"},
		"with, and all":               {[]string{"*", "zqzq/add@" + one}, "scope 2 of 2 has a fingerprint, but another"},
		"a fingerprint, and its namespace without one": {[]string{"zqzq", "/zqzq/add@" + one}, "scope 2 of 2 has a fingerprint, but another"},
		"too many": {many, "there are 65 scopes; at most 64 are allowed"},
	} {
		s, err := scope.Parse(test.scopes)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "zqzq") || len(s.Scopes()) > 0 {
			t.Errorf("%s: got %v, %v, want %q and no scope in it", name, s, err, test.want)
		}
	}
}

// one and two are fingerprints.
var one, two = strings.Repeat("1a", 32), strings.Repeat("2b", 32)

func TestPrincipal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		scopes, may, mayNot, roles string
	}{
		{"", "", "/math/add", ""},
		{"*", "/math/add /x", "", ""},
		{"math/* metrics", "/math/add", "/web/get /metrics", "metrics"},
		{"admin", "", "/math/add /admin", "admin admin:read metrics"},
		{"admin:read admin:read", "", "/math/add", "admin:read"},
		{"Admin", "/Admin/x", "/math/add", ""},
		{"admin metrics", "", "/x", "admin admin:read metrics"},
	} {
		p, err := parse(t, strings.Fields(test.scopes)...).Principal("ci", "token")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range strings.Fields(test.may) {
			if !p.May(path) {
				t.Errorf("%q may not call %s", test.scopes, path)
			}
		}
		for _, path := range strings.Fields(test.mayNot) {
			if p.May(path) {
				t.Errorf("%q may call %s", test.scopes, path)
			}
		}
		if got := strings.Join(p.Roles(), " "); got != test.roles {
			t.Errorf("%q has the roles %q, want %q", test.scopes, got, test.roles)
		}
	}
}

// TestWithin asks for more rights in every way.
// Proves: A caller reaches its own tools only
func TestWithin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ of, s, want, clipped string }{
		{"math/*", "math/add", "", "math/add"},
		{"math/*", "", "", ""},
		{"", "math", `the scope "math" is more than the token has: it also matches /math`, ""},
		{"math/*", "*", `it also matches /a`, ""},
		{"math/* web", "math/add we", `it also matches /we`, "math/add"},
		{"*", "admin", `the scope "admin" is more than the token has`, ""},
		{"*", "metrics", `the scope "metrics" is more`, ""},
		{"admin", "*", `it also matches /a`, ""},
		{"admin", "admin:read metrics", "", "admin:read metrics"},
		{"admin:read", "admin", `the scope "admin" is more`, ""},
		{"math/*", "math/add@" + one, "", "math/add@" + one},
		{"math/add@" + one, "/math/add@" + one, "", "math/add@" + one},
		{"math/add@" + one, "math/add@" + two, `@` + two + `" is more than the token has`, ""},
		{"math/add@" + one, "math/sub@" + one, `"math/sub@` + one + `" is more`, ""},
		{"math/add@" + one + " math/add@" + two, "math/add@" + two, "", "math/add@" + two},
		{"math/add@" + one, "math/add", `the scope "math/add" is more than the token has: it also matches /math/add`, ""},
		{"math/add@" + one, "math/add/x", "it also matches /math/add/x", ""},
		{"math/add@" + one, "math/add/x@" + one, "is more", ""},
		{"math/add@" + one + " web", "*", "it also matches /a", ""},
		{"math/add@" + one + " web", "web/get math/add@" + two, "is more", "web/get"},
		{"admin:read math", "metrics math/x", `the scope "metrics" is more`, "math/x"},
	} {
		s, of := parse(t, strings.Fields(test.s)...), parse(t, strings.Fields(test.of)...)
		if err := s.Within(of); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q within %q: got %v, want %q", test.s, test.of, err, test.want)
		}
		clipped := s.Clip(of).Scopes()
		slices.Sort(clipped)
		want := strings.Fields(test.clipped)
		slices.Sort(want)
		if !slices.Equal(clipped, want) {
			t.Errorf("%q clipped by %q: got %q, want %q", test.s, test.of, clipped, want)
		}
	}
}

// TestFingerprintsNeverWiden makes narrower tokens at random. A clipped set, or one that is within another, never allows more than either.
// Proves: A caller reaches its own tools only
func TestFingerprintsNeverWiden(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"a", "a/b", "a/*", "*", "b", "**/b", "a/b/c", "a/b@" + one, "a/b@" + two, "b@" + one, "a/b/c@" + two, "a@" + one}
	random := func() scope.Set {
		for {
			var all []string
			for range r.IntN(4) {
				all = append(all, words[r.IntN(len(words))])
			}
			if s, err := scope.Parse(all); err == nil {
				return s
			}
		}
	}
	allows := func(s scope.Set, path, print string) bool {
		return slices.ContainsFunc(s.Tools, func(p string) bool { return pattern.Match(p, path) }) || slices.Contains(s.Approved, path[1:]+"@"+print)
	}
	within, clipped := 0, 0
	for range 20_000 {
		s, of := random(), random()
		c, isWithin := s.Clip(of), s.Within(of) == nil
		for _, path := range []string{"/a", "/b", "/a/b", "/a/b/c", "/c/b", "/a/x"} {
			for _, print := range []string{one, two, strings.Repeat("3c", 32)} {
				may, mayOf, mayC := allows(s, path, print), allows(of, path, print), allows(c, path, print)
				if mayC && !(may && mayOf) {
					t.Fatalf("%q clipped by %q is %q, which may call %s of %.2s", s.Scopes(), of.Scopes(), c.Scopes(), path, print)
				}
				if isWithin && may && !mayOf {
					t.Fatalf("%q is said to be within %q, and may call %s of %.2s", s.Scopes(), of.Scopes(), path, print)
				}
				if isWithin && may && !mayC {
					t.Fatalf("%q is within %q, and clipped is %q", s.Scopes(), of.Scopes(), c.Scopes())
				}
			}
		}
		if isWithin && len(s.Approved) > 0 {
			within++
		}
		if len(c.Approved) > 0 {
			clipped++
		}
	}
	if within < 500 || clipped < 500 {
		t.Errorf("of the sets with fingerprints, %d were within others and %d were clipped", within, clipped)
	}
}
