package server_test

import (
	"bufio"
	"crypto/sha256"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/tokens"
)

// issue makes a token of the state, and returns its secret.
func issue(r *running, name string, scopes ...string) string {
	r.tb.Helper()
	secret, _, err := r.of.Tokens.Add(r.tb.Context(), tokens.Spec{Name: name, Scopes: scopes})
	if err != nil {
		r.tb.Fatal(err)
	}
	return secret
}

// within fails a test if something takes longer than allowed.
func within(t *testing.T, limit time.Duration, what string, f func()) {
	t.Helper()
	begun := time.Now()
	f()
	if took := time.Since(begun); took > limit {
		t.Errorf("%s took %s", what, took)
	}
}

// TestNamedTokens makes, declares and revokes tokens in addition to those of auth.tokens.
// Proves: A caller reaches its own tools only
func TestNamedTokens(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = t.TempDir()
	r := start(t, c)
	if got := r.status("/shop/echo", ""); got != http.StatusOK {
		t.Fatalf("before the first token: got %d", got)
	}
	version := document(r)
	secret, other := issue(r, "ci", "shop/echo"), issue(r, "other", "web/*", "admin")
	for token, want := range map[string]int{secret: 200, other: 404, "": 401, secret[:len(secret)-1]: 401} {
		if got := r.status("/shop/echo", token); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	if got := r.status("/shop/trap", secret); got != http.StatusNotFound {
		t.Errorf("out of scope: got %d", got)
	}
	if after := document(r, secret); strings.Contains(version, `"securitySchemes"`) || !strings.Contains(after, `"securitySchemes":{"bearer":`) || strings.Contains(after, "/shop/trap") {
		t.Errorf("the document is %s", after)
	}
	r.log.Wait(t, "its checksum does not fit")

	next := *c
	next.Auth.Tokens = []string{"plain"}
	next.Auth.Declared = []config.Token{{Name: "declared", SHA256: sha256.Sum256([]byte("s3cret")), Scopes: []string{"shop/echo"}}}
	if err := r.Reload(&next); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{secret: 200, "plain": 200, "s3cret": 200, "": 401} {
		if got := r.status("/shop/echo", token); got != want {
			t.Errorf("after the reload: got %d, want %d", got, want)
		}
	}
	if _, err := r.of.Tokens.Revoke(t.Context(), "ci", state.Any); err != nil {
		t.Fatal(err)
	}
	if got := r.status("/shop/echo", secret); got != http.StatusUnauthorized {
		t.Errorf("revoked: got %d", got)
	}
	r.log.Wait(t, "it was revoked")
	if strings.Contains(r.log.String(), secret[15:40]) {
		t.Error("the log has a secret")
	}
}

// document returns the OpenAPI document.
func document(r *running, token ...string) string {
	r.tb.Helper()
	q, _ := http.NewRequestWithContext(r.tb.Context(), http.MethodGet, r.url+"/openapi.json", nil)
	q.Header.Set("Authorization", "Bearer "+strings.Join(token, ""))
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		r.tb.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.tb.Fatal(err)
	}
	return string(text)
}

// TestRevokedStreams revokes a token whose holder has a stream, a session, and a session with a stream: all end at once.
// Proves: A caller reaches its own tools only
func TestRevokedStreams(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = t.TempDir()
	r := start(t, c)
	secret, kept := issue(r, "ci", "*"), issue(r, "kept", "*")
	subscribe := func(token string) *bufio.Reader {
		stream := bufio.NewReader(r.ask("/mcp", "subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`, "Authorization", "Bearer "+token).Body)
		if line, err := stream.ReadString('\n'); line != "event: message\n" {
			t.Fatalf("got %q (%v)", line, err)
		}
		return stream
	}
	gone, stays := subscribe(secret), subscribe(kept)
	idle, _ := beginSession(r, secret, "")
	open, _ := beginSession(r, secret, "")
	_, events := beginSession(r, secret, open)
	news, scoped := listen(r, secret), listen(r, kept)

	if _, err := r.of.Tokens.Revoke(t.Context(), "ci", state.Any); err != nil {
		t.Fatal(err)
	}
	within(t, time.Second, "the end of the streams", func() {
		for _, stream := range []io.Reader{gone, events, news} {
			if _, err := io.ReadAll(stream); err != nil {
				t.Error(err)
			}
		}
	})
	again := issue(r, "ci", "*") // another token of the same name
	if got := inSession(r, again, idle); got != http.StatusNotFound {
		t.Errorf("the session of a token that was revoked: got %d", got)
	}
	// A change of scopes ends nothing, but listeners are told.
	if _, err := r.of.Tokens.SetScopes(t.Context(), "kept", []string{"shop/echo"}, state.Any); err != nil {
		t.Fatal(err)
	}
	within(t, time.Second, "the notice of a change", func() {
		if got := nextEvent(t, scoped); !strings.Contains(got, `"kind":"reset"`) {
			t.Errorf("events report a change of scopes by %s", got)
		}
		for {
			line, err := stays.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, "list_changed") {
				return
			}
		}
	})
}

// TestExpiredStreams lets declared tokens expire while their holders have streams and sessions: all end at once, also for a token that a reload has
// added, and without a state.
// Proves: A caller reaches its own tools only
func TestExpiredStreams(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = ""
	declared := func(name string, left time.Duration) config.Token {
		return config.Token{Name: name, SHA256: sha256.Sum256([]byte(name)), Scopes: []string{"*"}, Expires: time.Now().Add(left)}
	}
	c.Auth.Declared = []config.Token{declared("later", time.Hour), declared("soon", time.Second)}
	r := start(t, c)
	next := *c
	for _, name := range []string{"soon", "sooner"} {
		if name == "sooner" {
			next.Auth.Declared = append(next.Auth.Declared[:1:1], declared("sooner", time.Second))
			if err := r.Reload(&next); err != nil {
				t.Fatal(err)
			}
		}
		stream := bufio.NewReader(r.ask("/mcp", "subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`, "Authorization", "Bearer "+name).Body)
		open, _ := beginSession(r, name, "")
		_, events := beginSession(r, name, open)
		news := listen(r, name)
		within(t, 2*time.Second, "the end of the streams", func() {
			for _, stream := range []io.Reader{stream, events, news} {
				if _, err := io.ReadAll(stream); err != nil {
					t.Error(err)
				}
			}
		})
		if got := r.status("/shop/echo", name); got != http.StatusUnauthorized {
			t.Errorf("%s: got %d", name, got)
		}
		if got := r.status("/shop/echo", "later"); got != http.StatusOK {
			t.Errorf("later: got %d", got)
		}
	}
}

// beginSession begins a session, or opens the stream of the session with the given id.
func beginSession(r *running, token, id string) (begun string, body io.Reader) {
	r.tb.Helper()
	message, method := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, http.MethodPost
	if id != "" {
		message, method = "", http.MethodGet
	}
	q, _ := http.NewRequestWithContext(r.tb.Context(), method, r.url+"/mcp", strings.NewReader(message))
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	q.Header.Set("Authorization", "Bearer "+token)
	if id != "" {
		q.Header.Set("Mcp-Session-Id", id)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil || answer.StatusCode != http.StatusOK {
		r.tb.Fatal(answer, err)
	}
	r.tb.Cleanup(func() { answer.Body.Close() })
	return answer.Header.Get("Mcp-Session-Id"), answer.Body
}

// inSession makes a request of a session.
func inSession(r *running, token, id string) int {
	r.tb.Helper()
	q, _ := http.NewRequestWithContext(r.tb.Context(), http.MethodPost, r.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`))
	for key, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + token,
		"Mcp-Session-Id": id, "Mcp-Protocol-Version": "2025-11-25"} {
		q.Header.Set(key, value)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		r.tb.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// TestNetworksBehindProxies has a token that is only accepted from one network, and a proxy that names the client's address.
// Proves: A caller reaches its own tools only
func TestNetworksBehindProxies(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Server.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c.Auth.Declared = []config.Token{{Name: "office", SHA256: sha256.Sum256([]byte("s3cret")), Scopes: []string{"*"}, Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}
	r := start(t, c)
	for from, want := range map[string]int{"192.0.2.7": 200, "198.51.100.7, 192.0.2.7": 200, "192.0.2.7, 198.51.100.7": 401, "": 401, "nonsense": 401, "127.0.0.1": 401} {
		answer := r.ask("/mcp", "tools/list", "", "", "Authorization", "Bearer s3cret", "X-Forwarded-For", from)
		if answer.StatusCode != want {
			t.Errorf("for %q: got %d, want %d", from, answer.StatusCode, want)
		}
	}
}

// TestUselessDeclarations checks that a start logs which declared tokens are useless: one has expired, and the scopes of another match no
// tool.
func TestUselessDeclarations(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Auth.Declared = []config.Token{
		{Name: "old", SHA256: sha256.Sum256([]byte("old")), Scopes: []string{"*"}, Expires: time.Now().Add(-time.Hour)},
		{Name: "lost", SHA256: sha256.Sum256([]byte("lost")), Scopes: []string{"shpo/*"}},
	}
	r := start(t, c)
	r.log.Wait(t, `"level":"WARN","msg":"a declared token has expired, and is refused: remove its table [[auth.token]], or give it a later date","token":"old"`)
	r.log.Wait(t, `"level":"WARN","msg":"an entry of the configuration `+matchesNothing+`","key":"auth.token[1].scopes[0]"`)
	for token, want := range map[string]int{"old": 401, "lost": 404} {
		if got := r.status("/shop/echo", token); got != want {
			t.Errorf("%s: got %d, want %d", token, got, want)
		}
	}
}
