package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// owning is the manifest of a guest that acts for its caller.
const owning = `{"abi":1,"namespace":"own","tools":[
	{"name":"send","description":"Sends a request.","parameters":{"type":"object"},"needs":{"http":["URL"]}},
	{"name":"keep","description":"Keeps a value.","parameters":{"type":"object"},"needs":{"kv":true}},
	{"name":"kept","description":"Tells it.","parameters":{"type":"object"},"needs":{"kv":true}},
	{"name":"through","description":"Has another send.","parameters":{"type":"object"},"needs":{"tools":["own/send"]}}]}`

// A who is a caller in the form of a header: origin, realm and name.
type who [3]string

func (w who) header() string { text, _ := json.Marshal(w); return string(text) }

func (w who) principal() (*wasmtools.Principal, error) {
	p, err := wasmtools.NewPrincipal(w[2], w[0], "*")
	if err != nil {
		return nil, err
	}
	return p.WithRealm(w[1])
}

func (w who) id(t *testing.T) personal.ID {
	t.Helper()
	p, err := w.principal()
	if err != nil {
		t.Fatal(err)
	}
	id, err := personal.Of(p)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// headed is a verifier that takes the caller from the header X-Who.
type headed struct{ badge }

func (*headed) Verify(r *http.Request) (*wasmtools.Principal, error) {
	var w who
	if json.Unmarshal([]byte(r.Header.Get("X-Who")), &w) != nil {
		return nil, nil
	}
	return w.principal()
}

// A service for tools: it answers with the secret that it got, and at /all with all secrets that it ever got.
type confessor struct {
	*httptest.Server
	mu   sync.Mutex
	sent map[string]http.Header // by path
}

func confess(t *testing.T) *confessor {
	t.Helper()
	c := &confessor{sent: map[string]http.Header{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent[r.URL.Path] = r.Header.Clone()
		w.Header().Set("ETag", `"`+r.Header.Get("Authorization")+`"`)
		if r.URL.Path == "/all" {
			_ = json.NewEncoder(w).Encode(c.sent)
			return
		}
		_ = json.NewEncoder(w).Encode(r.Header)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *confessor) got(path, header string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent[path].Get(header)
}

// An owned is a server with tools that act for their callers.
type owned struct {
	*running
	service *confessor
	secrets string // the directory
	config  *config.Config
}

// SHARED is a secret that no caller must ever get.
const sharedSecret = "SHARED-secret-of-everybody-0"

func own(t *testing.T) *owned {
	t.Helper()
	o := &owned{service: confess(t), secrets: t.TempDir(), config: settings(t)}
	c := o.config
	c.State.Directory = t.TempDir()
	c.Secrets.Directory = o.secrets
	testkit.Put(t, o.secrets, "github", sharedSecret)
	testkit.Put(t, c.Tools.Directory, "own.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "capability/own"), strings.Replace(owning, "URL", o.service.URL, 1)))
	c.Grants = []config.Grant{{Match: "own/*", Rules: capability.Rules{
		"http": &httpcap.Rule{Granted: []string{o.service.URL}, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Headers: map[string]map[string]string{o.service.URL: {"Authorization": "Bearer ${secret:github@principal}", "X-Caller": "<${principal}>"}}},
		"tools": &tools.Rule{Tools: []string{"own/send"}},
		"kv":    &kv.Rule{Bytes: 4 << 10, Own: true, Principals: 24},
	}}}
	return o
}

func (o *owned) start(t *testing.T) *owned {
	t.Helper()
	r := &running{tb: t, log: &testkit.Log{}, done: make(chan error, 1)}
	var err error
	if r.of, r.Server, err = open(t, o.config, core.Options{Logger: slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, server.Options{Verifiers: []auth.Verifier{&headed{}}}); err != nil {
		t.Fatal(err)
	}
	o.running = run(t, r)
	o.log.Wait(t, `"msg":"ready"`)
	return o
}

// ask calls a tool for a caller.
func (o *owned) ask(tool, arguments string, w who) (status int, body string) {
	q, err := http.NewRequest(http.MethodPost, o.url+"/own/"+tool, strings.NewReader(arguments))
	if err != nil {
		return 0, err.Error()
	}
	q.Header.Set("Content-Type", "application/json")
	if w[0] == "bearer" {
		q.Header.Set("Authorization", "Bearer "+w[2])
	} else if w != (who{}) {
		q.Header.Set("X-Who", w.header())
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, err.Error()
	}
	return a.StatusCode, string(text)
}

// send has a caller's tool request a path of the service.
func (o *owned) send(tool, path string, w who) (status int, body string) {
	return o.ask(tool, fmt.Sprintf(`{"method":"GET","url":%q}`, o.service.URL+path), w)
}

// bring sets a caller's own secret.
func (o *owned) bring(t *testing.T, w who, value string) error {
	_, err := o.of.Brought.Set(t.Context(), w.id(t), w.id(t), "github", value, "test", state.Any, nil)
	return err
}

// callers are callers whose names were made up to be confused with each other.
func callers() []who {
	return []who{
		{"issued", "", "ann"}, {"declared", "", "ann"}, {"oidc", "https://a.example", "ann"}, {"oidc", "https://b.example", "ann"}, {"certificate", "dns", "ann"}, {"certificate", "email", "ann"},
		{"issued", "", "Ann"}, {"issued", "", "ann/agent"}, {"oidc", "", "issued+ann"}, {"oidc", "", "../issued+ann"}, {"oidc", "", "ann/../../issued+ann"}, {"oidc", "", "."}, {"oidc", "", ".."},
		{"oidc", "", "\u00e9"}, {"oidc", "", "e\u0301"}, {"oidc", "", "\u0430nn"}, {"oidc", "", "\u212a"}, {"oidc", "", "k"}, {"oidc", "", "principal"}, {"oidc", "", "github@principal"}, {"oidc", "", strings.Repeat("x", 128)}, {"oidc", "", strings.Repeat("X", 128)},
	}
}

func secretOf(i int) string { return fmt.Sprintf("own-secret-%03d-Zx7q", i) }

// TestOwnSecrets lets these callers call one tool, directly and through another one: each uses its own secret, or none.
// Proves: Callers keep apart
func TestOwnSecrets(t *testing.T) {
	t.Parallel()
	o := own(t)
	all := callers()
	for i, w := range all { // the operator sets the secrets of every second caller
		if i%2 == 0 {
			testkit.Put(t, o.secrets, filepath.Join("principals", string(w.id(t)), "github"), secretOf(i))
		}
	}
	for _, folder := range []string{"issued+ANN", "ann", "issued", "issued+ann+", "oidc+a%2Fb", "..", ".hidden", "issued+%61nn"} {
		if err := os.MkdirAll(filepath.Join(o.secrets, "principals", folder, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Put(t, o.secrets, "principals/issued+ANN/github", "of-a-folder-in-capitals-1")
	testkit.Put(t, o.secrets, "principals/a-file", "which-is-not-a-folder-1")
	testkit.Put(t, o.secrets, "principals/oidc+in/..data/github", "own-secret-by-a-link-1")
	if err := os.Mkdir(filepath.Join(o.secrets, "principals/oidc+out"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"oidc+loop": "oidc+loop", "oidc+up": "..", "oidc+gone": "nowhere", "oidc+other": string(all[0].id(t)), "oidc+out/github": "../../github", "oidc+in/github": "..data/github", "oidc+out/other": filepath.Join(o.secrets, "github")} {
		if err := os.Symlink(to, filepath.Join(o.secrets, "principals", link)); err != nil {
			t.Fatal(err)
		}
	}
	o.config.Auth.Tokens = []string{"numbered"}
	o.start(t)
	for i, w := range all {
		if i%2 == 1 {
			if err := o.bring(t, w, secretOf(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, w := range all {
		for _, tool := range []string{"send", "through"} {
			path := fmt.Sprintf("/%s/%d", tool, i)
			status, body := o.send(tool, path, w)
			if got, want := o.service.got(path, "Authorization"), "Bearer "+secretOf(i); status != 200 || got != want || !strings.Contains(body, "Bearer [secret]") {
				t.Errorf("%q, %s: the service got %q, want %q; the caller got %d %s", w, tool, got, want, status, body)
			}
			if got, want := o.service.got(path, "X-Caller"), "<"+string(w.id(t))+">"; got != want {
				t.Errorf("%q, %s: the service was told that the caller is %s, want %s", w, tool, got, want)
			}
			if strings.Contains(body, "own-secret-") {
				t.Errorf("%q, %s: the caller got %s", w, tool, body)
			}
		}
	}
	for i, w := range all { // the service tells each caller what all have sent
		for _, tool := range []string{"send", "through"} {
			if status, body := o.send(tool, "/all", w); status != 200 || strings.Contains(body, secretOf(i)) {
				t.Errorf("%d: %q is told %d %s", i, w, status, body)
			}
		}
	}
	if status, body := o.send("send", "/link", who{"oidc", "", "in"}); status != 200 || o.service.got("/link", "Authorization") != "Bearer own-secret-by-a-link-1" {
		t.Errorf("a link in the folder: got %d %s", status, body)
	}
	nobody := []who{{}, {"bearer", "", "numbered"}, {"bearer", "", "wrong"}, {"open", "", "everybody"}, {"token", "", "token-1"}}
	for i, w := range append(nobody, who{"issued", "", "bob"}, who{"issued", "", "ann "}, who{"issued", "", "ANN"}, who{"x", "", "ann"}, who{"oidc", "https://c.example", "ann"}, who{"oidc", "", "loop"}, who{"oidc", "", "up"}, who{"oidc", "", "other"}, who{"oidc", "", "out"}, who{"issued", "", "a"}) {
		for _, tool := range []string{"send", "through"} {
			path := fmt.Sprintf("/none/%s/%d", tool, i)
			status, body := o.send(tool, path, w)
			if o.service.got(path, "Authorization") != "" || status == 200 && tool == "send" {
				t.Errorf("%q, who has no secret: the service got %q, and the caller %d %s", w, o.service.got(path, "Authorization"), status, body)
			}
			if (w == nobody[1] || i >= len(nobody)) && !strings.Contains(body, `"no_secret"`) {
				t.Errorf("%q, %s: got %d %s, want no_secret", w, tool, status, body)
			}
		}
	}
	if o.log.Count(`"msg":"a caller has not set its own secret"`, `"principal":"bob"`, `"origin":"issued"`, `"secret":"github"`) == 0 {
		t.Error("the log does not tell who has no secret")
	}
	for _, hidden := range []string{"own-secret-", sharedSecret} {
		if strings.Contains(o.log.String(), hidden) {
			t.Errorf("the log has %s", hidden)
		}
	}
	if n := o.log.Count(`is not used for a caller's secrets`); n < 6 {
		t.Errorf("%d warnings about folders that belong to no caller:\n%s", n, o.log.String())
	}
}

// TestOwnSecretsOfWords lets a caller choose words from other callers' answers as its own secrets, and an operator put such a word into a
// caller's folder. That changes the answers to this caller, but neither those to others nor the log.
// Proves: Callers keep apart
func TestOwnSecretsOfWords(t *testing.T) {
	t.Parallel()
	o := own(t)
	const commit = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
	ann, mallory, given := who{"issued", "", "ann"}, who{"issued", "", "mallory"}, who{"issued", "", "given"}
	testkit.Put(t, o.secrets, filepath.Join("principals", string(given.id(t)), "github"), "/own/send")
	o.start(t)
	for w, value := range map[who]string{mallory: commit, ann: secretOf(1)} {
		if err := o.bring(t, w, value); err != nil {
			t.Fatal(err)
		}
	}
	if status, body := o.send("send", "/"+commit, mallory); status != 200 { // the secret's source
		t.Fatalf("got %d %s", status, body)
	}
	for w, want := range map[who]bool{ann: true, given: true, mallory: false} {
		for _, tool := range []string{"send", "through"} {
			if status, body := o.send(tool, "/all", w); status != 200 || strings.Contains(body, "/"+commit) != want {
				t.Errorf("%q, %s: got %d %s, want the commit in it: %t", w, tool, status, body, want)
			}
		}
	}
	if o.log.Count(`"msg":"request"`, `"path":"/own/send"`) == 0 {
		t.Errorf("the log lacks the path of a tool:\n%s", o.log.String())
	}
}

// TestOwnSecretsRace lets callers call one tool at once while the configuration is read again and secrets change. Each request has a secret of its
// caller, and no answer has any secret.
// Proves: Callers keep apart
func TestOwnSecretsRace(t *testing.T) {
	t.Parallel()
	o := own(t)
	const given, changing, each = 4, 4, 100
	caller := func(i int) who { return who{"issued", "", fmt.Sprintf("caller-%d", i)} }
	for i := range given {
		testkit.Put(t, o.secrets, filepath.Join("principals", string(caller(i).id(t)), "github"), secretOf(i))
	}
	o.start(t)
	var working, beside sync.WaitGroup
	done := make(chan struct{})
	beside.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			next := *o.config
			next.Grants = slices.Clone(o.config.Grants)
			if err := o.Reload(&next); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range given + changing {
		working.Go(func() {
			w := caller(i)
			for n := range each {
				mine := secretOf(i)
				if i >= given {
					mine = secretOf(1000*i + n)
					if err := o.bring(t, w, mine); err != nil {
						if n > 16 && strings.Contains(err.Error(), "too many") {
							return
						}
						t.Error(err)
					}
				}
				tool := []string{"send", "through"}[n%2]
				path := fmt.Sprintf("/%d/%d", i, n)
				status, body := o.send(tool, path, w)
				if got := o.service.got(path, "Authorization"); status != 200 || got != "Bearer "+mine || strings.Contains(body, "own-secret-") {
					t.Errorf("caller %d, call %d: the service got %q, want %q; the caller got %d %s", i, n, got, mine, status, body)
					return
				}
				if n%8 != 0 { // the answer of the service grows
					continue
				}
				if status, body := o.send(tool, "/all", w); status != 200 || strings.Contains(body, mine) {
					t.Errorf("caller %d gets %d %s", i, status, body)
					return
				}
			}
		})
	}
	working.Wait()
	close(done)
	beside.Wait()
	if strings.Contains(o.log.String(), "own-secret-") {
		t.Error("the log has a secret")
	}
}

// TestOwnSecretsWithdrawn removes secrets. After a restart, removed secrets are still gone, and the others
// are still there.
func TestOwnSecretsWithdrawn(t *testing.T) {
	t.Parallel()
	o := own(t).start(t)
	ann, bob := who{"issued", "", "ann"}, who{"issued", "", "bob"}
	for i, w := range []who{ann, bob} {
		if err := o.bring(t, w, secretOf(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := o.of.Brought.Remove(t.Context(), ann.id(t), "github", state.Any, nil); !ok || err != nil {
		t.Fatalf("got %t, %v", ok, err)
	}
	if status, body := o.send("send", "/removed", ann); status == 200 || !strings.Contains(body, "no_secret") || strings.Contains(body, sharedSecret) {
		t.Errorf("a removed secret: got %d %s", status, body)
	}
	if status, body := o.send("send", "/all", ann); status == 200 || strings.Contains(body, "own-secret-") {
		t.Errorf("got %d %s", status, body)
	}
	o.stop()
	if err := o.result(); err != nil {
		t.Fatal(err)
	}
	again := &owned{service: o.service, secrets: o.secrets, config: o.config}
	again.start(t)
	if status, _ := again.send("send", "/again", bob); status != 200 || again.service.got("/again", "Authorization") != "Bearer "+secretOf(1) {
		t.Errorf("after a restart: got %d, %q", status, again.service.got("/again", "Authorization"))
	}
	if status, _ := again.send("send", "/again", ann); status == 200 {
		t.Errorf("a removed secret after a restart: got %d", status)
	}
	entries, err := os.ReadDir(o.config.State.Directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if !bytes.Contains(testkit.Read(t, o.config.State.Directory, "state.db"), []byte(secretOf(1))) {
		t.Error("the state does not contain the secret, although the docs say that it does")
	}
}

// TestOwnValues lets these callers keep values with one tool: each finds its own, and only the allowed number of callers can keep values. Values that
// an operator erases are gone for that caller only.
// Proves: Callers keep apart
func TestOwnValues(t *testing.T) {
	t.Parallel()
	o := own(t)
	o.config.Auth.Tokens = []string{"numbered"}
	o.start(t)
	all := callers()
	value := func(i int) string { return fmt.Sprintf(`{"of":%d}`, i) }
	var working sync.WaitGroup
	for i, w := range all {
		working.Go(func() {
			for range 10 {
				if status, body := o.ask("keep", value(i), w); status != 200 {
					t.Errorf("%q keeps: got %d %s", w, status, body)
				}
				if status, body := o.ask("kept", "{}", w); status != 200 || body != value(i) {
					t.Errorf("%q, who keeps %s, finds %d %s", w, value(i), status, body)
				}
			}
		})
	}
	working.Wait()
	for _, w := range []who{{}, {"bearer", "", "numbered"}, {"open", "", "everybody"}, {"token", "", "token-1"}} {
		for _, tool := range []string{"keep", "kept"} {
			if status, body := o.ask(tool, `{"of":"nobody"}`, w); status == 200 || strings.Contains(body, `"of"`) {
				t.Errorf("%s for %q: got %d %s", tool, w, status, body)
			}
		}
	}
	if status, body := o.ask("kept", "{}", who{"issued", "", "new"}); status != 200 || body != "null" {
		t.Errorf("somebody new finds %d %s", status, body)
	}
	if status, body := o.ask("keep", `{"of":"`+strings.Repeat("x", 5000)+`"}`, all[0]); status == 200 || !strings.Contains(body, `"quota"`) {
		t.Errorf("above the size: got %d %s", status, body)
	}
	for i := range 24 - len(all) {
		if status, body := o.ask("keep", "{}", who{"oidc", "", fmt.Sprintf("more-%d", i)}); status != 200 {
			t.Errorf("got %d %s", status, body)
		}
	}
	if status, body := o.ask("keep", "{}", who{"oidc", "", "one-too-many"}); status == 200 || !strings.Contains(body, `"quota"`) {
		t.Errorf("one more caller than allowed: got %d %s", status, body)
	}
	if status, body := o.ask("keep", value(0), all[0]); status != 200 {
		t.Errorf("a caller who already has values: got %d %s", status, body)
	}
	store := o.of.State.Store()
	kept, more, err := kv.List(t.Context(), store, "", 0)
	if err != nil || len(kept) != 24 || more != "" {
		t.Errorf("the list has %d callers, %q, %v", len(kept), more, err)
	}
	first, more, err := kv.List(t.Context(), store, "", 10)
	rest, end, err2 := kv.List(t.Context(), store, more, 0)
	if err != nil || err2 != nil || end != "" || !slices.Equal(append(first, rest...), kept) {
		t.Errorf("in pages: got %d and %d, %v, %v", len(first), len(rest), err, err2)
	}
	erased, err := kv.Erase(t.Context(), store, all[0].id(t))
	if err != nil || len(erased) != 1 || erased[0].Of != all[0].id(t) || erased[0].Namespace != "own" || erased[0].Usage.Entries != 1 {
		t.Errorf("erased: got %v, %v", erased, err)
	}
	for i, w := range all {
		want := value(i)
		if i == 0 {
			want = "null"
		}
		if status, body := o.ask("kept", "{}", w); status != 200 || body != want {
			t.Errorf("after %q was erased, %q finds %d %s", all[0], w, status, body)
		}
	}
	if status, body := o.ask("keep", "{}", who{"oidc", "", "one-too-many"}); status != 200 {
		t.Errorf("a caller in the erased one's place: got %d %s", status, body)
	}
	if usage, err := store.Space("kv/own").Usage(t.Context()); err != nil || usage.Entries != 0 {
		t.Errorf("the shared values are %v, %v", usage, err)
	}
}

// TestOwnValuesOfMade lets a token make so many other tokens that together they could take all places for values. They get a quarter of the places, and
// erasing values frees places again.
func TestOwnValuesOfMade(t *testing.T) {
	t.Parallel()
	o := own(t).start(t)
	made := func(i int) who { return who{"issued", "", fmt.Sprintf("mal/%s%d", strings.Repeat("X", 60), i)} } // an ID with a hash
	for i := range 30 {
		status, body := o.ask("keep", "{}", made(i))
		if may := i < 6; may != (status == 200) || !may && !strings.Contains(body, `"quota"`) {
			t.Errorf("token %d: got %d %s", i, status, body)
		}
	}
	for _, w := range []who{{"issued", "", "mal"}, {"issued", "", "ann"}, {"issued", "", "ann/agent"}, {"oidc", "", "mal/other"}, made(0)} {
		if status, body := o.ask("keep", "{}", w); status != 200 {
			t.Errorf("%q at the same time: got %d %s", w, status, body)
		}
	}
	for i := range 2 {
		if erased, err := kv.Erase(t.Context(), o.of.State.Store(), made(i).id(t)); err != nil || len(erased) != 1 {
			t.Errorf("erased: got %v, %v", erased, err)
		}
	}
	for i := 20; i < 24; i++ {
		if status, body := o.ask("keep", "{}", made(i)); (i < 22) != (status == 200) {
			t.Errorf("token %d in a freed place: got %d %s", i, status, body)
		}
	}
}
