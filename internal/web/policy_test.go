package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// badges is a verifier that reads the principal's name, scopes and roles from a header.
type badges struct{}

func (badges) Verify(r *http.Request) (*wasmtools.Principal, error) {
	name, rest, ok := strings.Cut(r.Header.Get("X-Badge"), ":")
	if !ok {
		return nil, nil
	}
	scope, role, hasRole := strings.Cut(rest, ":")
	p, err := wasmtools.NewPrincipal(name, "badge", scope)
	if err != nil || !hasRole {
		return p, err
	}
	return p.WithRoles(role)
}

func (badges) Scheme() auth.Scheme {
	return auth.Scheme{Name: "badge", Description: json.RawMessage(`{"type":"apiKey","in":"header","name":"X-Badge"}`), Challenge: `Badge realm="tools"`}
}
func (badges) Open() bool              { return false }
func (badges) Version() uint64         { return 0 }
func (badges) Subscribe(func()) func() { return func() {} }

// A guarded door answers with its caller's principal.
type guarded struct{ policied }

func (guarded) Serve(x *web.Exchange) {
	p := x.Call().Principal
	body, _ := json.Marshal(p.String() + " may " + strings.Join(p.Scopes(), ",") + " as " + strings.Join(p.Roles(), ","))
	x.Send(http.StatusOK, body)
}

// TestPolicies tries doors with different policies.
// Proves: A caller reaches its own tools only
func TestPolicies(t *testing.T) {
	t.Parallel()
	tokens, err := auth.NewBearerTokenAuth([]string{"s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	none, err := auth.NewBearerTokenAuth(nil)
	if err != nil {
		t.Fatal(err)
	}
	closed, open := auth.Dependency(tokens, badges{}), auth.Dependency(none)
	const token = "Authorization: Bearer s3cret"
	for _, test := range []struct {
		name   string
		who    *auth.Authenticator
		policy web.Policy
		header string
		status int
		want   string
	}{
		{"a token", closed, web.Policy{}, token, 200, `"token-1 may * as "`},
		{"nothing", closed, web.Policy{}, "", 401, "unauthorized"},
		{"no credentials required", open, web.Policy{}, "", 200, `"everybody may * as "`},
		{"open: a token", closed, web.Policy{Open: true}, token, 200, `"token-1 may * as "`},
		{"open: nothing", closed, web.Policy{Open: true}, "", 200, `"nobody may  as "`},
		{"open: a wrong token", closed, web.Policy{Open: true}, "Authorization: Bearer bad", 200, `"nobody may  as "`},
		{"open, where no credentials are required", open, web.Policy{Open: true}, "", 200, `"everybody may * as "`},
		{"admin: every tool is not the role", closed, web.Policy{Role: wasmtools.RoleAdmin}, token, 403, "forbidden"},
		{"admin: a scope of that name is not the role", closed, web.Policy{Role: wasmtools.RoleAdmin}, "X-Badge: ann:admin", 403, "forbidden"},
		{"admin: another role", closed, web.Policy{Role: wasmtools.RoleAdmin}, "X-Badge: ann:*:admin:read", 403, "forbidden"},
		{"admin", closed, web.Policy{Role: wasmtools.RoleAdmin}, "X-Badge: ann:math:admin", 200, `"ann may math as admin"`},
		{"admin: nothing", closed, web.Policy{Role: wasmtools.RoleAdmin}, "", 401, "unauthorized"},
		{"admin without required credentials", open, web.Policy{Role: wasmtools.RoleAdmin}, "", 401, "unauthorized"},
		{"admin where any token counts as everybody", open, web.Policy{Role: wasmtools.RoleAdmin}, token, 401, "unauthorized"},
	} {
		mux := web.NewMux(web.Options{Dependencies: []web.Dependency{test.who}})
		mux.Mount("/admin", guarded{policied{test.policy}})
		r, w := httptest.NewRequest("GET", "/admin/tools", nil), httptest.NewRecorder()
		if name, value, ok := strings.Cut(test.header, ": "); ok {
			r.Header.Set(name, value)
		}
		mux.ServeHTTP(w, r)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s: got %d %s, want %d %s", test.name, w.Code, w.Body, test.status, test.want)
		}
		challenges := ""
		if test.status == 401 {
			challenges = "Bearer"
			if test.who == closed {
				challenges = `Bearer, Badge realm="tools"`
			}
		}
		if got := strings.Join(w.Header()["Www-Authenticate"], ", "); got != challenges {
			t.Errorf("%s: got the challenges %s, want %s", test.name, got, challenges)
		}
	}
	if !panics(func() {
		web.NewMux(web.Options{}).Mount("/admin", guarded{policied{web.Policy{Open: true, Role: "admin"}}})
	}) {
		t.Error("Mount accepts a door that is open and asks for a role")
	}
}

// TestNoMadeUpChallenge has a dependency that refuses requests without saying which credentials it wants. The answer must not tell clients to get
// a token.
func TestNoMadeUpChallenge(t *testing.T) {
	t.Parallel()
	mux := web.NewMux(web.Options{Dependencies: []web.Dependency{plain{&wasmtools.Error{Code: wasmtools.CodeUnauthorized, Message: "no badge"}}}})
	mux.Mount("/toy.api", newToy())
	w := httptest.NewRecorder()
	if mux.ServeHTTP(w, httptest.NewRequest("GET", "/toy.api", nil)); w.Code != http.StatusUnauthorized || len(w.Header()["Www-Authenticate"]) > 0 {
		t.Errorf("got %d with the challenges %q", w.Code, w.Header()["Www-Authenticate"])
	}
}

// TestRoleIsAskedAgain takes a role away while the body of a request comes.
func TestRoleIsAskedAgain(t *testing.T) {
	t.Parallel()
	role := wasmtools.RoleAdmin
	who := sayer(func(*wasmtools.Principal) (*wasmtools.Principal, error) {
		p, err := wasmtools.NewPrincipal("ann", "test", "*")
		if err != nil {
			return nil, err
		}
		return p.WithRoles(role)
	})
	mux := web.NewMux(web.Options{Dependencies: []web.Dependency{who}})
	mux.Mount("/admin", struct {
		doorFunc
		policied
	}{func(x *web.Exchange) {
		role = "none"
		if _, err := x.Identify(); err == nil {
			t.Error("a caller that has lost the role is let in")
		} else {
			x.Fail(err)
		}
	}, policied{web.Policy{Role: wasmtools.RoleAdmin}}})
	w := httptest.NewRecorder()
	if mux.ServeHTTP(w, httptest.NewRequest("POST", "/admin/x", nil)); w.Code != http.StatusForbidden {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestSecurity has conditions that a request must all meet, some of them in one of several ways.
func TestSecurity(t *testing.T) {
	t.Parallel()
	tokens, err := auth.NewBearerTokenAuth(nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := web.NewMux(web.Options{Dependencies: []web.Dependency{auth.Dependency(tokens, badges{}), plain{}, auth.Dependency(badges{})}})
	for _, want := range []string{`[["badge","badge"]]`, `[["bearer","badge"],["badge","badge"]]`} {
		s := mux.Security(nil)
		if got, _ := json.Marshal(s.Alternatives); string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if _ = tokens.AddToken("s3cret"); len(s.Schemes["badge"]) == 0 {
			t.Errorf("got %s", s.Schemes)
		}
	}
	if s := web.NewMux(web.Options{}).Security(nil); len(s.Alternatives)+len(s.Schemes) > 0 {
		t.Errorf("where no credentials are needed: got %+v", s)
	}
}
