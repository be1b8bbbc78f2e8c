package server_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/door"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// staff is a verifier with three tokens: ann may change things, bob may only look, and eve may call tools.
type staff struct{ open bool }

func (staff) Verify(r *http.Request) (*wasmtools.Principal, error) {
	name, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	roles := map[string][]string{"ann": {wasmtools.RoleAdmin}, "bob": {wasmtools.RoleAdminRead}, "eve": nil, "max": {"metrics", "administrator"}}
	role, known := roles[name]
	if !known {
		return nil, nil
	}
	p, err := wasmtools.NewPrincipal(name, "staff", "*")
	if err != nil {
		return nil, err
	}
	return p.WithRoles(role...)
}

func (staff) Scheme() auth.Scheme {
	return auth.Scheme{Name: "staff", Description: json.RawMessage(`{"type":"http","scheme":"bearer"}`), Challenge: "Bearer"}
}
func (s staff) Open() bool            { return s.open }
func (staff) Version() uint64         { return 0 }
func (staff) Subscribe(func()) func() { return func() {} }

// administered starts a server that staff administers.
func administered(t *testing.T, c *config.Config, who staff) *running {
	t.Helper()
	r := &running{tb: t, log: &testkit.Log{}, done: make(chan error, 1)}
	var err error
	if r.of, r.Server, err = open(t, c, core.Options{Logger: slog.New(slog.NewJSONHandler(r.log, nil))}, server.Options{Verifiers: []auth.Verifier{who}}); err != nil {
		t.Fatal(err)
	}
	run(t, r).log.Wait(t, `"msg":"ready"`)
	return r
}

// An attempt is a request for an operation.
type attempt struct {
	token   string
	headers map[string]string
	host    string
	method  string // in place of the operation's method
	typ     string // the type of the body, in place of JSON
}

// try makes an attempt with arguments that are never valid. Only callers who are let in may be told that the arguments are not valid.
func try(t *testing.T, r *running, o *admin.Operation, a attempt) (status int, body string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), o.Method, r.url+door.Path+o.Path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.Changes() {
		q.Body = io.NopCloser(strings.NewReader(`{"no such argument": 1}`))
		q.Header.Set("Content-Type", "application/json")
		if o.Takes() > 0 {
			q.Header.Set("Content-Type", admin.TakenType)
			q.URL.RawQuery = "no_such_argument=1"
		}
		if a.typ != "" {
			q.Header.Set("Content-Type", a.typ)
		}
	} else {
		q.URL.RawQuery = "no_such_argument=1"
	}
	if a.method != "" {
		q.Method = a.method
	}
	if a.token != "" {
		q.Header.Set("Authorization", "Bearer "+a.token)
	}
	for name, value := range a.headers {
		q.Header.Set(name, value)
	}
	q.Host = a.host
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%s: a page of another origin may read the answer", o.Name)
	}
	return answer.StatusCode, string(text)
}

// TestAdminIsNeverOpen tries each operation without the right to it: without a token, with one for tools, with one that may only look, from pages of
// other origins, and with a wrong host.
// Proves: A caller reaches its own tools only
func TestAdminIsNeverOpen(t *testing.T) {
	t.Parallel()
	closed, open := settings(t), settings(t)
	closed.Admin.Enabled, open.Admin.Enabled = true, true
	closed.Server.CORSOrigins = []string{"https://listed.example"}
	every := changed(closed, func(c *config.Config) { c.Server.CORSOrigins = []string{"*"} })
	off := changed(closed, func(c *config.Config) { c.Admin.Enabled = false })
	page := func(origin, site string) map[string]string {
		h := map[string]string{"Sec-Fetch-Site": site}
		if origin != "" {
			h["Origin"] = origin
		}
		return h
	}
	for _, of := range []struct {
		name   string
		config *config.Config
		who    staff
		tries  map[string]attempt
		want   map[string]int // 200 means that the caller's arguments are checked
	}{
		{"closed", closed, staff{}, map[string]attempt{
			"nothing":                        {},
			"a wrong token":                  {token: "mallory"},
			"a token of tools":               {token: "eve"},
			"other roles":                    {token: "max"},
			"looks":                          {token: "bob"},
			"changes":                        {token: "ann"},
			"a page of another origin":       {token: "ann", headers: page("https://evil.example", "cross-site")},
			"a page of a listed origin":      {token: "ann", headers: page("https://listed.example", "cross-site")},
			"a page that hides its origin":   {token: "ann", headers: page("null", "cross-site")},
			"a link of another site":         {token: "ann", headers: page("", "cross-site")},
			"a page of the same site":        {token: "ann", headers: page("", "same-site")},
			"a question before the request":  {token: "ann", method: "OPTIONS", headers: map[string]string{"Origin": "https://listed.example", "Access-Control-Request-Method": "POST"}},
			"rebinding":                      {token: "ann", host: "evil.example"},
			"rebinding, the page's own":      {token: "ann", host: "evil.example", headers: page("http://evil.example", "same-origin")},
			"rebinding without a token":      {host: "evil.example"},
			"a token in a proxy's header":    {headers: map[string]string{"X-Forwarded-Authorization": "Bearer ann", "X-Remote-User": "ann"}},
			"another method":                 {token: "ann", method: "DELETE"},
			"another method without a token": {method: "DELETE"},
			"a method in a header":           {token: "bob", headers: map[string]string{"X-HTTP-Method-Override": "POST"}},
		}, map[string]int{
			"nothing": 401, "a wrong token": 401, "a token of tools": 403, "other roles": 403, "looks": 200, "changes": 200,
			"a page of another origin": 403, "a page of a listed origin": 403, "a page that hides its origin": 403, "a link of another site": 403,
			"a page of the same site": 403, "a question before the request": 403, "rebinding": 421, "rebinding, the page's own": 421, "rebinding without a token": 421,
			"a token in a proxy's header": 401, "another method": 405, "another method without a token": 401, "a method in a header": 200,
		}},
		{"pages of every origin", every, staff{}, map[string]attempt{
			"a page of another origin": {token: "ann", headers: page("https://evil.example", "cross-site")},
			"a link of another site":   {token: "ann", headers: page("", "cross-site")},
			"nothing":                  {},
		}, map[string]int{"a page of another origin": 403, "a link of another site": 403, "nothing": 401}},
		{"no credentials are needed", open, staff{open: true}, map[string]attempt{
			"nothing": {}, "a wrong token": {token: "mallory"}, "a token of tools": {token: "eve"}, "changes": {token: "ann"},
		}, map[string]int{"nothing": 401, "a wrong token": 401, "a token of tools": 403, "changes": 200}},
		{"switched off", off, staff{}, map[string]attempt{
			"nothing": {}, "a token of tools": {token: "eve"}, "changes": {token: "ann"},
		}, map[string]int{"nothing": 401, "a token of tools": 404, "changes": 404}},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			r := administered(t, of.config, of.who)
			for _, o := range admin.Operations() {
				for name, a := range of.tries {
					want := of.want[name]
					switch {
					case o.Role == "" && want == 403 && (a.token == "eve" || a.token == "max"): // this operation is for all identified callers
						want = 200
					case o.Changes() && o.Role != "" && a.token == "bob", o.Local && want == 200:
						want = 403
					}
					if want == 200 {
						want = 422 // the arguments don't fit
					}
					if status, body := try(t, r, &o, a); status != want {
						t.Errorf("%s, %s: got %d %s, want %d", o.Name, name, status, body, want)
					}
				}
				if !o.Changes() {
					continue
				}
				for _, typ := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} { // the types that a form can send
					if status, body := try(t, r, &o, attempt{token: "ann", typ: typ}); status != 415 && status != 404 {
						t.Errorf("%s, a body of type %s: got %d %s", o.Name, typ, status, body)
					}
				}
			}
		})
	}
}

// TestAdminReload switches the door on and off with the configuration, without a restart.
func TestAdminReload(t *testing.T) {
	t.Parallel()
	first := settings(t)
	r := administered(t, first, staff{})
	o := admin.Find("tools")
	for _, enabled := range []bool{false, true, false, true} {
		if err := r.Reload(changed(first, func(c *config.Config) { c.Admin.Enabled = enabled })); err != nil {
			t.Fatal(err)
		}
		want := 404
		if enabled {
			want = 422
		}
		if status, body := try(t, r, o, attempt{token: "ann"}); status != want {
			t.Errorf("enabled is %v: got %d %s, want %d", enabled, status, body, want)
		}
	}
}

// TestAdminDisabled checks that the configuration can close the door over HTTP for all tokens. The socket has a key of its own.
// Proves: A caller reaches its own tools only
func TestAdminDisabled(t *testing.T) {
	t.Parallel()
	if os.Getuid() < 0 {
		t.Skip("this system doesn't say which user connects to a socket")
	}
	const token = "declared-by-the-operator"
	declared := fmt.Sprintf("[[auth.token]]\nname = \"declared\"\nsha256 = \"%x\"\nscopes = [\"admin\"]\n", sha256.Sum256([]byte(token)))
	for _, test := range []struct {
		name, keys     string
		open, byTokens bool // whether the door is open, without tokens with names and with them
		socket         bool
	}{
		{"nothing is said", "", false, true, true},
		{"off", "enabled = false\n", false, false, true},
		{"on", "enabled = true\n", true, true, true},
		{"no way in", "enabled = false\nsocket = \"none\"\n", false, false, false},
		{"over HTTP only", "socket = \"none\"\n", false, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := settings(t)
			with := func(tokens string) *config.Config {
				parsed, err := config.Parse([]byte("[admin]\n"+test.keys+tokens), "")
				if err != nil {
					t.Fatal(err)
				}
				return changed(c, func(c *config.Config) { c.Admin, c.Auth = parsed.Admin, parsed.Auth })
			}
			c.State.Directory = filepath.Join(shortDir(t), "kept")
			r := administered(t, with(""), staff{})
			door := func(when, token string, open bool) {
				t.Helper()
				all := admin.Operations()
				for i := range all {
					status, body := try(t, r, &all[i], attempt{token: token})
					if isOpen := status != 404; isOpen != open {
						t.Errorf("%s, %s: got %d %s, want open: %t", when, all[i].Name, status, body, open)
					}
				}
			}
			door("without tokens that have names", "ann", test.open)
			issued := issue(r, "issued", "admin")
			door("with a token in the state", issued, test.byTokens)
			if err := r.Reload(with(declared)); err != nil {
				t.Fatal(err)
			}
			door("with a declared token", token, test.byTokens)
			over, err := client.OverSocket(filepath.Join(c.State.Directory, socket.Name))
			if err != nil {
				t.Fatal(err)
			}
			defer over.Close()
			if _, err := over.Do(t.Context(), "status", struct{}{}, ""); (err == nil) != test.socket {
				t.Errorf("over the socket: got %v, want open: %t", err, test.socket)
			}
		})
	}
}

// TestAdminDocument checks that the document has all operations, and only callers who may use them get it.
func TestAdminDocument(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Admin.Enabled = true
	r := administered(t, c, staff{})
	document := admin.Operation{Name: "openapi.json", Method: "GET"}
	for token, want := range map[string]int{"": 401, "eve": 403, "bob": 200, "ann": 200} {
		status, body := try(t, r, &document, attempt{token: token})
		if status != want {
			t.Errorf("with the token %q: got %d %s, want %d", token, status, body, want)
		}
		if status != 200 {
			continue
		}
		var d struct {
			Paths map[string]map[string]struct {
				OperationID string
			}
		}
		if err := json.Unmarshal([]byte(body), &d); err != nil {
			t.Fatal(err)
		}
		for _, o := range admin.Operations() {
			if got := d.Paths[door.Path+o.Path()][strings.ToLower(o.Method)].OperationID; got != o.ID() {
				t.Errorf("the document lacks %s", o.Name)
			}
		}
	}
}

// TestAdminSocket checks that a server makes its socket for its user alone, and leaves none behind.
func TestAdminSocket(t *testing.T) {
	t.Parallel()
	if os.Getuid() < 0 {
		t.Skip("this system doesn't say who opens a socket")
	}
	for name, test := range map[string]struct {
		before func(path string) error
		named  bool // the configuration names the socket
		served bool
		want   string // a text in the log or in the error
	}{
		"nothing is there": {func(string) error { return nil }, false, true, "administered over a socket"},
		"a socket that a server has left behind": {func(path string) error {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
			if err == nil {
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		}, false, true, "administered over a socket"},
		"a file":                        {func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) }, false, false, "is not a socket"},
		"a file with the socket's name": {func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) }, true, false, "is not a socket"},
		"a link":                        {func(path string) error { return os.Symlink("/dev/null", path) }, false, false, "is not a socket"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := settings(t)
			c.State.Directory = filepath.Join(shortDir(t), "kept")
			if err := os.Mkdir(c.State.Directory, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(c.State.Directory, socket.Name)
			if test.named {
				c.Admin.Socket = path
			}
			if err := test.before(path); err != nil {
				t.Fatal(err)
			}
			if test.named && !test.served {
				if _, _, err := open(t, c, core.Options{}, server.Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want an error with %s", err, test.want)
				}
				return
			}
			r := start(t, c)
			if log := r.log.String(); !strings.Contains(log, test.want) {
				t.Errorf("the log lacks %q:\n%s", test.want, log)
			}
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if isSocket := info.Mode().Type() == os.ModeSocket; isSocket != test.served || isSocket && info.Mode().Perm() != 0o600 {
				t.Errorf("got a file of mode %v", info.Mode())
			}
			r.stop()
			if err := r.result(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(path); err == nil && test.served {
				t.Error("the socket is still there")
			}
		})
	}
}

// shortDir returns a folder whose path leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tsv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
