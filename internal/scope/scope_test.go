package scope_test

import (
	"slices"
	"strings"
	"testing"

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
		"an unknown role":           {[]string{"math", "admin:write"}, "scope 2 of 2: it is not a role that there is: use admin, admin:read or metrics"},
		"an address":                {[]string{"https://zqzq.example"}, "it is not a role"},
		"empty":                     {[]string{""}, "scope 1 of 1: the pattern is empty"},
		"blanks":                    {[]string{"zqzq zq"}, "it has a character that is not allowed in a name"},
		"asterisks beside a letter": {[]string{"zqzq**"}, "it has ** beside other characters"},
		"a token in its place":      {[]string{"tsv_" + strings.Repeat("zqzq", 20)}, "it has 84 bytes; a name has at most 64"},
		"too many":                  {many, "there are 65 scopes; at most 64 are allowed"},
	} {
		s, err := scope.Parse(test.scopes)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "zqzq") || len(s.Scopes()) > 0 {
			t.Errorf("%s: got %v, %v, want %q and no scope in it", name, s, err, test.want)
		}
	}
}

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

// TestWithin asks for more in every way.
// Proves: A caller reaches its own tools only
func TestWithin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ of, s, want, clipped string }{
		{"math/*", "math/add", "", "math/add"},
		{"math/*", "", "", ""},
		{"", "math", `the scope "math" is more than the token has: it matches /math, too`, ""},
		{"math/*", "*", `it matches /a, too`, ""},
		{"math/* web", "math/add we", `it matches /we, too`, "math/add"},
		{"*", "admin", `the scope "admin" is more than the token has`, ""},
		{"*", "metrics", `the scope "metrics" is more`, ""},
		{"admin", "*", `it matches /a, too`, ""},
		{"admin", "admin:read metrics", "", "admin:read metrics"},
		{"admin:read", "admin", `the scope "admin" is more`, ""},
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
