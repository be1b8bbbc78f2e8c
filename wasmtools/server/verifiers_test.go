package server_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// A badge is a verifier of an embedding program: a header names the caller, who may call only one tool.
type badge struct {
	open    atomic.Bool
	version atomic.Uint64

	mu   sync.Mutex // guards what follows
	told map[int]func()
	last int
}

func (b *badge) Verify(r *http.Request) (*wasmtools.Principal, error) {
	if name, ok := strings.CutPrefix(r.Header.Get("X-Badge"), "valid "); ok {
		return wasmtools.NewPrincipal(name, "badge", "shop/echo")
	}
	return nil, nil
}

func (b *badge) Scheme() auth.Scheme {
	return auth.Scheme{Name: "badge", Description: json.RawMessage(`{"type":"apiKey","in":"header","name":"X-Badge"}`), Challenge: `Badge realm="tools"`}
}

func (b *badge) Open() bool { return b.open.Load() }

func (b *badge) Version() uint64 { return b.version.Load() }

func (b *badge) Subscribe(changed func()) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	n := b.last
	if b.told == nil {
		b.told = map[int]func(){}
	}
	b.told[n] = changed
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.told, n)
	}
}

// set sets whether the badge is open, and calls its subscribers.
func (b *badge) set(open bool) {
	b.open.Store(open)
	b.version.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.told {
		f()
	}
}

// TestVerifiers adds a program's verifier to the tokens of the configuration: either is enough, over reloads and for each door, and both are in
// documents, challenges and the log.
// Proves: A caller reaches its own tools only
func TestVerifiers(t *testing.T) {
	t.Parallel()
	b, first := &badge{}, settings(t)
	r := &running{tb: t, log: &testkit.Log{}, done: make(chan error, 1)}
	var err error
	if r.of, r.Server, err = open(t, first, core.Options{Logger: slog.New(slog.NewJSONHandler(r.log, nil))}, server.Options{Verifiers: []auth.Verifier{b}}); err != nil {
		t.Fatal(err)
	}
	run(t, r).log.Wait(t, `"msg":"ready"`)

	get := func(path string, headers ...string) (*http.Response, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			q.Header.Set(headers[i], headers[i+1])
		}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a, string(text)
	}
	withTokens := func(required bool, tokens ...string) *config.Config {
		return changed(first, func(c *config.Config) { c.Auth.Tokens, c.Auth.Required = tokens, required })
	}
	const refused = "401"
	for _, test := range []struct {
		name        string
		config      *config.Config // nil: as before
		open        bool
		token, none string // how many tools are listed with the token, and without
		challenges  string
		detail      string
		security    string
		logged      string
	}{
		{"a badge alone", nil, false, refused, refused, `Badge realm="tools"`, "Invalid or missing credentials", `[{"badge":[]}]`, `"msg":"auth is on","schemes":["badge"],"tokens":0}`},
		{"a token, too", withTokens(false, "sesame"), false, "10", refused, `Bearer, Badge realm="tools"`, "Invalid or missing credentials", `[{"bearer":[]},{"badge":[]}]`, `"msg":"auth is on","schemes":["bearer","badge"],"tokens":1}`},
		{"tokens are required, and there is none", withTokens(true), false, refused, refused, `Bearer, Badge realm="tools"`, "Invalid or missing credentials", `[{"bearer":[]},{"badge":[]}]`, `"msg":"auth is on","schemes":["bearer","badge"],"tokens":0}`},
		{"only tokens are accepted, and there is none", withTokens(true), true, refused, refused, "Bearer", "Invalid or missing bearer token", `[{"bearer":[]}]`, `"msg":"auth.required is set and there is no token`},
		{"nobody has to show anything", withTokens(false), true, "10", "10", "", "", "", `"msg":"auth is off`},
	} {
		b.set(test.open)
		before := len(r.log.String())
		if test.config != nil {
			if err := r.Reload(test.config); err != nil {
				t.Fatal(err)
			}
		} else {
			before = 0
		}
		if log := r.log.String()[before:]; !strings.Contains(log, test.logged) {
			t.Errorf("%s: the log lacks %s:\n%s", test.name, test.logged, log)
		}
		for _, as := range []struct{ header, value, want string }{
			{"Authorization", "Bearer sesame", test.token},
			{"X-Other", "x", test.none},
			{"X-Badge", "forged", test.none},
			{"X-Badge", "valid ann", "1"},
		} {
			a, text := get("/tools", as.header, as.value)
			if as.want == refused {
				if got := strings.Join(a.Header["Www-Authenticate"], ", "); a.StatusCode != 401 || got != test.challenges || text != `{"detail":"`+test.detail+`","code":"unauthorized"}` {
					t.Errorf("%s, %s: got %d %s with the challenges %s", test.name, as.value, a.StatusCode, text, got)
				}
				continue
			}
			var tools []json.RawMessage
			if err := json.Unmarshal([]byte(text), &tools); err != nil || a.StatusCode != 200 || as.want != strconv.Itoa(len(tools)) {
				t.Errorf("%s, %s: got %d and %d tools, want %s (%v)", test.name, as.value, a.StatusCode, len(tools), as.want, err)
			}
		}
		_, text := get("/openapi.json", "X-Badge", "valid ann")
		var document struct{ Security json.RawMessage }
		if err := json.Unmarshal([]byte(text), &document); err != nil || string(document.Security) != test.security {
			t.Errorf("%s: the document requires %s, want %s (%v)", test.name, document.Security, test.security, err)
		}
		if a := r.ask("/mcp", "tools/list", "", "", "X-Badge", "valid ann"); a.StatusCode != 200 {
			t.Errorf("%s: over MCP, a badge is answered with %d", test.name, a.StatusCode)
		}
	}
	b.set(false) // no reload
	if _, text := get("/openapi.json", "X-Badge", "valid ann"); !strings.Contains(text, `"security":[{"badge":[]}]`) {
		t.Errorf("the document does not change with the verifier: %.200s", text)
	}
}
