package web_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// teller is a door that answers with the caller's principal.
type teller struct{}

func (teller) Serve(x *web.Exchange) {
	p := x.Call().Principal
	body, err := json.Marshal(p.String() + " by " + p.Origin() + " may " + strings.Join(p.Scopes(), ","))
	if err != nil {
		panic(err)
	}
	x.Send(http.StatusOK, body)
}

// sayer is a dependency that identifies the caller.
type sayer func(current *wasmtools.Principal) (*wasmtools.Principal, error)

func (sayer) Check(*http.Request) error { return nil }

func (s sayer) Principal(_ *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error) {
	return s(current)
}

// strict is an Authenticator with a stricter Check.
type strict struct{ *auth.Authenticator }

func (s strict) Check(r *http.Request) error {
	if r.Header.Get("X-Strict") == "" {
		return &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Message: "not strict"}
	}
	return s.Authenticator.Check(r)
}

// plain is a dependency that only checks.
type plain struct{ err error }

func (p plain) Check(*http.Request) error { return p.err }

// lenient is an Authenticator with a more lenient Check and no Principal method of its own.
type lenient struct{ *auth.Authenticator }

func (lenient) Check(*http.Request) error { return nil }

func bearer(t *testing.T, tokens ...string) *auth.Authenticator {
	t.Helper()
	a, err := auth.NewBearerTokenAuth(tokens)
	if err != nil {
		t.Fatal(err)
	}
	return auth.Dependency(a)
}

// Proves: A caller reaches its own tools only
// Proves: Secrets stay secret
func TestPrincipalOfRequest(t *testing.T) {
	t.Parallel()
	renamed := sayer(func(current *wasmtools.Principal) (*wasmtools.Principal, error) {
		return wasmtools.NewPrincipal("behind "+current.String(), "proxy", "math")
	})
	keeps := sayer(func(current *wasmtools.Principal) (*wasmtools.Principal, error) { return current, nil })
	none := sayer(func(*wasmtools.Principal) (*wasmtools.Principal, error) { return nil, nil })
	fails := sayer(func(*wasmtools.Principal) (*wasmtools.Principal, error) {
		return wasmtools.Everybody(), errors.New("no connection to the directory of users")
	})
	breaks := sayer(func(*wasmtools.Principal) (*wasmtools.Principal, error) { panic("odd") })
	const good, other = "Authorization: Bearer first-secret", "Authorization: Bearer second-secret"
	for _, test := range []struct {
		name         string
		dependencies []web.Dependency
		headers      []string
		want         string // the expected answer, or the code of the error
		logged       string
	}{
		{"nobody asks", nil, nil, `"everybody by open may *"`, ""},
		{"no token is set", []web.Dependency{bearer(t)}, []string{good}, `"everybody by open may *"`, ""},
		{"the first token", []web.Dependency{bearer(t, "first-secret", "second-secret")}, []string{good}, `"token-1 by token may *"`, "principal=token-1"},
		{"the second token", []web.Dependency{bearer(t, "first-secret", "second-secret")}, []string{other}, `"token-2 by token may *"`, "principal=token-2"},
		{"a condition between", []web.Dependency{bearer(t, "first-secret"), plain{}}, []string{good}, `"token-1 by token may *"`, "principal=token-1"},
		{"replaced", []web.Dependency{bearer(t, "first-secret"), renamed}, []string{good}, `"behind token-1 by proxy may math"`, `principal="behind token-1"`},
		{"kept", []web.Dependency{renamed, keeps}, nil, `"behind everybody by proxy may math"`, `principal="behind everybody"`},
		{"no token is shown", []web.Dependency{bearer(t, "first-secret"), renamed}, nil, `{"detail":"Invalid or missing bearer token","code":"unauthorized"}`, ""},
		{"no principal", []web.Dependency{none}, nil, "internal", "returned neither a principal nor an error"},
		{"no principal, and then one", []web.Dependency{none, renamed}, nil, "internal", "returned neither a principal nor an error"},
		{"a principal and an error", []web.Dependency{fails}, nil, "internal", "no connection to the directory of users"},
		{"a panic", []web.Dependency{breaks}, nil, "internal", "panic: odd"},
		{"an error before", []web.Dependency{plain{errors.New("closed")}, renamed}, nil, "internal", "closed"},
		{"a stricter Check refuses", []web.Dependency{strict{bearer(t, "first-secret")}}, []string{good}, `{"detail":"not strict","code":"unauthorized"}`, ""},
		{"a more lenient Check lets nobody in", []web.Dependency{lenient{bearer(t, "first-secret")}}, nil, `{"detail":"Invalid or missing bearer token","code":"unauthorized"}`, ""},
		{"a stricter Check agrees", []web.Dependency{strict{bearer(t, "first-secret")}}, []string{good, "X-Strict: yes"}, `"token-1 by token may *"`, "principal=token-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			mux := web.NewMux(web.Options{Dependencies: test.dependencies, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			defer mux.Close()
			mux.Mount("/", teller{})
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			for _, header := range test.headers {
				name, value, _ := strings.Cut(header, ": ")
				r.Header.Set(name, value)
			}
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, r)
			if got := answer.Body.String(); got != test.want && !strings.Contains(got, `"code":"`+test.want+`"`) {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := log.String(); !strings.Contains(got, test.logged) || test.logged == "" && strings.Contains(got, "principal") {
				t.Errorf("logged %s, want %q", got, test.logged)
			}
			if strings.Contains(log.String(), "secret") {
				t.Errorf("the token is logged: %s", log.String())
			}
		})
	}
}
