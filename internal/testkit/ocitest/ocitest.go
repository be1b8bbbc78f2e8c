// Package ocitest runs registries for tests.
package ocitest

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// A Server is a registry on loopback.
type Server struct {
	*httptest.Server
	// Host is the registry's name, with its port.
	Host string
	// Requests counts the requests.
	Requests atomic.Int64

	before atomic.Pointer[func(w http.ResponseWriter, q *http.Request) bool]
}

// Serve starts a registry, which stops when the test ends.
func Serve(t testing.TB) *Server { return serve(t, (*httptest.Server).Start) }

// ServeReferrers is Serve with the referrers API of newer registries.
func ServeReferrers(t testing.TB) *Server {
	return serve(t, (*httptest.Server).Start, registry.WithReferrersSupport(true))
}

// ServeTLS is Serve with a certificate for example.com and loopback, which no system trusts.
func ServeTLS(t testing.TB) *Server { return serve(t, (*httptest.Server).StartTLS) }

func serve(t testing.TB, start func(*httptest.Server), options ...registry.Option) *Server {
	t.Helper()
	s, real := &Server{}, registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.Requests.Add(1)
		if before := s.before.Load(); before == nil || !(*before)(w, q) {
			real.ServeHTTP(w, q)
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(s.Server)
	t.Cleanup(s.Close)
	s.Host = s.Listener.Addr().String()
	return s
}

// Before sets a function that is called first for each request, and reports whether it has answered the request. Nil removes it.
func (s *Server) Before(f func(w http.ResponseWriter, q *http.Request) bool) {
	if f == nil {
		s.before.Store(nil)
		return
	}
	s.before.Store(&f)
}

// Basic asks for a name and a password.
func Basic(user, password string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, q *http.Request) bool {
		if u, p, ok := q.BasicAuth(); ok && u == user && p == password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="tools"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

// Bearer asks for a token. The registry gives one at /token for a name and a password, with the scopes in the request.
func Bearer(user, password string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, q *http.Request) bool {
		if q.URL.Path == "/token" {
			if u, p, ok := q.BasicAuth(); !ok || u != user || p != password {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"token": "good for " + strings.Join(q.URL.Query()["scope"], " "), "expires_in": 300})
			return true
		}
		action := "pull"
		if q.Method != http.MethodGet && q.Method != http.MethodHead {
			action = "push"
		}
		if token, ok := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer good for "); ok && (strings.Contains(token, action) || strings.HasPrefix(q.URL.Path, "/v2/_catalog")) {
			return false
		}
		scope := "registry:catalog:*"
		if parts := strings.Split(strings.TrimPrefix(q.URL.Path, "/v2/"), "/"); len(parts) > 2 {
			scope = fmt.Sprintf("repository:%s:%s", strings.Join(parts[:len(parts)-2], "/"), map[string]string{"pull": "pull", "push": "pull,push"}[action])
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="tools",scope=%q`, q.Host, scope))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}
