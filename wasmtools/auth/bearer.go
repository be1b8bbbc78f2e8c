package auth

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A Bearer is a dependency that requires a valid token of each request. It is safe for concurrent use.
type Bearer struct {
	auth *BearerTokenAuth
}

// Dependency returns the dependency that requires a token of a. It panics if a is nil.
func Dependency(a *BearerTokenAuth) *Bearer {
	if a == nil {
		panic("auth.Dependency(nil): make a BearerTokenAuth with NewBearerTokenAuth")
	}
	return &Bearer{auth: a}
}

// Check returns nil, or a *wasmtools.Error with CodeUnauthorized that does not say what was wrong with the token.
func (b *Bearer) Check(r *http.Request) error {
	_, err := b.Principal(r, wasmtools.Everybody())
	return err
}

// Principal returns the principal of the request's token, or current while no token is required. It fails as Check does.
func (b *Bearer) Principal(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error) {
	if p := b.auth.principal(bearerToken(r.Header["Authorization"]), current); p != nil {
		return p, nil
	}
	return nil, &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Message: "Invalid or missing bearer token"}
}

// SecurityScheme returns the name and the OpenAPI description of the dependency.
func (b *Bearer) SecurityScheme() (name string, scheme json.RawMessage) {
	return "bearer", json.RawMessage(`{"type":"http","scheme":"bearer"}`)
}

// Required reports whether a request must show a token at the moment.
func (b *Bearer) Required() bool { return !b.auth.Open() }

// Version returns a number that changes with the tokens: after a change a request may have another principal, or none.
func (b *Bearer) Version() uint64 { return b.auth.state.Load().version }

// Subscribe has changed called after each change of what Required returns, as [BearerTokenAuth.Subscribe] does.
func (b *Bearer) Subscribe(changed func()) (unsubscribe func()) { return b.auth.Subscribe(changed) }

// bearerToken returns the token of a request's Authorization headers, or "" if there is none. Two headers count as none:
// a proxy in front may have looked at the other one.
func bearerToken(headers []string) string {
	if len(headers) != 1 {
		return ""
	}
	scheme, token, ok := strings.Cut(headers[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ") // RFC 9110, section 11.4: one or more blanks
}
