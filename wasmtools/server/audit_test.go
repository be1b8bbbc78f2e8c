package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/door"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// audited calls an operation about a server's audit as bob, who may look, and returns the answer.
func audited[Out any](t *testing.T, r *running, name string) (out Out) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+door.Path+admin.Find(name).Path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer bob")
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(body, &out) != nil {
		t.Fatalf("%s: got %d %s, %v", name, answer.StatusCode, body, err)
	}
	return out
}

// TestAudit checks that the audit has the changes of reloads, and refused attempts to change something, wherever they were refused.
func TestAudit(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Admin.Enabled, c.State.Directory = true, filepath.Join(t.TempDir(), "state")
	r := administered(t, c, staff{})
	const token = "a-token-that-nobody-must-see-0123456789"
	granted := changed(c, func(c *config.Config) {
		c.Grants = []config.Grant{{Match: "a/*", Rules: capability.Rules{"kv": &kv.Rule{Bytes: 1 << 20}}}}
		c.Auth.Tokens = []string{token}
		c.Server.Hosts = []string{"tools.example.com", "127.0.0.1"}
	})
	for range 2 { // the second reload changes nothing
		if err := r.Reload(granted); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Reload(changed(granted, func(c *config.Config) { c.Server.Hosts = []string{"a b"} })); err == nil {
		t.Error("a wrong configuration is put in force")
	}
	many := changed(granted, func(c *config.Config) {
		for i := range 1000 {
			c.Tools.Disabled = append(c.Tools.Disabled, fmt.Sprintf("n%d/%s", i, strings.Repeat("<", 60)))
		}
	})
	if err := r.Reload(many); err != nil {
		t.Fatal(err)
	}
	add := admin.Operation{Name: "no such", Method: http.MethodPost}
	for _, a := range []attempt{{}, {token: "eve"}, {token: "max"}, {token: token}, {token: "ann", host: "elsewhere.example"}, {token: "ann", headers: map[string]string{"Origin": "https://evil.example"}}} {
		if status, body := try(t, r, &add, a); status < 400 {
			t.Errorf("%+v: got %d %s", a, status, body)
		}
	}
	try(t, r, &add, attempt{token: "ann"})                                 // no such operation exists, so this is not an attempt
	try(t, r, &admin.Operation{Name: "no such", Method: "GET"}, attempt{}) // reading is not an attempt to change something, either

	all := audited[admin.Audit](t, r, "audit")
	want := []string{ // the beginning of each entry
		`reload||process||{"granted":["+a/*: kv: 0B → 1MiB"],"settings":["server.hosts: +tools.example.com +127.0.0.1 -x -y"],"tokens_added":["token-1"]}|`,
		`reload||process|||`,
		`reload||process||{"settings":["tools.disabled: +n0/`,
		`no.such|||127.0.0.1||unauthorized: `,
		`no.such|eve|staff|127.0.0.1||forbidden: `,
		`no.such|max|staff|127.0.0.1||forbidden: `,
		`no.such|token-1|token|127.0.0.1||forbidden: `,
		`no.such|||127.0.0.1||host_not_allowed: `,
		`no.such|||127.0.0.1||origin_not_allowed: `,
	}
	for i, e := range all.Entries {
		line := strings.Join([]string{e.Action, e.Who, e.Origin, e.From, string(e.After), e.Refused}, "|")
		if i >= len(want) || !strings.HasPrefix(line, want[i]) {
			t.Errorf("entry %d is\n%s\nwant %q", e.Number, line, want[i:min(len(want), i+1)])
		}
		if e.Action == "no.such" && e.RequestID == "" {
			t.Errorf("entry %d has no request", e.Number)
		}
	}
	if len(all.Entries) != len(want) {
		t.Errorf("got %d entries, want %d", len(all.Entries), len(want))
	}
	if text, err := json.Marshal(all); err != nil || strings.Contains(string(text), token) {
		t.Errorf("the audit shows a token: %v", err)
	}
	if v := audited[admin.Verified](t, r, "audit verify"); !v.OK || v.Last != uint64(len(all.Entries)) || v.First != 1 || v.Hash != all.Entries[len(all.Entries)-1].Hash {
		t.Errorf("got %+v", v)
	}
}

// TestAuditIsNotFilled lets the holder of a token with hardly any rights make narrower tokens, again and again. Failures must not push out entries of
// changes, and attempts to get more rights are recorded.
func TestAuditIsNotFilled(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = filepath.Join(t.TempDir(), "state")
	r := administered(t, c, staff{})
	secret := issue(r, "ci", "shop/echo")
	attenuate := func(arguments string) (status int) {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+door.Path+admin.Find("tokens attenuate").Path(), strings.NewReader(arguments))
		if err != nil {
			t.Error(err)
			return 0
		}
		q.Header.Set("Authorization", "Bearer "+secret)
		q.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	const names, each = 20, 8
	var made atomic.Int64
	for i := range names {
		var all sync.WaitGroup
		for range each { // at once
			all.Go(func() {
				if attenuate(fmt.Sprintf(`{"name":"n%d","scopes":["shop/echo"]}`, i)) == http.StatusOK {
					made.Add(1)
				}
			})
		}
		all.Wait()
	}
	if n := len(audited[admin.Audit](t, r, "audit").Entries); made.Load() != names || n != names {
		t.Errorf("%d tokens were made, with %d entries; want %d of both", made.Load(), n, names)
	}
	token := secret
	secret = "tsv_nobody"
	for range 120 { // attempts of strangers don't hide those of others
		if status := attenuate(`{}`); status != http.StatusUnauthorized {
			t.Fatalf("a stranger got %d", status)
		}
	}
	secret = token
	more := []string{`{"name":"up","scopes":["admin"]}`, `{"name":"up","scopes":["shop/*"]}`, `{"name":"up","scopes":["shop/echo"],"expires":"never"}`}
	for _, arguments := range more {
		if status := attenuate(arguments); status != http.StatusForbidden {
			t.Errorf("%s: got %d", arguments, status)
		}
	}
	refused := slices.DeleteFunc(audited[admin.Audit](t, r, "audit").Entries[names:], func(e audit.Record) bool { return e.Who == "" })
	if len(refused) != len(more) {
		t.Fatalf("got %d entries, want %d", len(refused), len(more))
	}
	for i, e := range refused {
		if e.Action != "tokens.attenuate" || e.Who != "ci" || !strings.HasPrefix(e.Refused, "forbidden: ") {
			t.Errorf("%s: got %+v", more[i], e)
		}
	}
}

// TestAuditIsKept checks that no change is made without its entry if the audit is strict, and that otherwise the log has the entry.
func TestAuditIsKept(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprint("strict=", strict), func(t *testing.T) {
			t.Parallel()
			c := settings(t)
			c.State.Directory, c.State.Implied, c.Audit.Strict = filepath.Join(t.TempDir(), "state"), true, strict
			c.Metrics.Enabled = true
			if err := os.WriteFile(c.State.Directory, nil, 0o600); err != nil { // a file where the directory should be
				t.Fatal(err)
			}
			r := administered(t, c, staff{open: true})
			err := r.Reload(changed(c, func(c *config.Config) { c.Tools.Disabled = []string{"shop/echo"} }))
			if strict != (err != nil && strings.Contains(err.Error(), "[audit] strict = true nothing can be changed")) {
				t.Errorf("got %v", err)
			}
			if route, ok := r.Table().Current().Lookup("/shop/echo"); !ok || route.Enabled != strict {
				t.Errorf("the tool is enabled: %v", route.Enabled)
			}
			r.log.Wait(t, `"msg":"an entry of the audit could not be stored","audit":true,"action":"reload"`)
			ok, prevented := 1, 0
			if strict {
				ok, prevented = 0, 1
			}
			_, text := scraped(t, r.url, "")
			for _, line := range []string{fmt.Sprintf(`toolsrv_reloads_total{outcome="ok"} %d`, ok),
				fmt.Sprintf(`toolsrv_reloads_total{outcome="not_audited"} %d`, prevented), fmt.Sprint(`toolsrv_reload_failed `, prevented)} {
				if !strings.Contains(text, "\n"+line+"\n") {
					t.Errorf("the metrics lack %s", line)
				}
			}
		})
	}
}

// TestAuditOfWhatIsSoAlready makes each change twice: the audit has only the first one. The audit also says who has copied the state.
func TestAuditOfWhatIsSoAlready(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = shortDir(t)
	start(t, c)
	over, err := client.OverSocket(socket.Of(c))
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	do := func(name string, arguments any) string {
		t.Helper()
		answer, err := over.Do(t.Context(), name, arguments, "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return answer.Version
	}
	do("tokens add", admin.NewToken{Name: "ci", Scopes: []string{"shop/*"}})
	versions := map[string]string{}
	for range 2 {
		for _, change := range []struct {
			name      string
			arguments any
		}{
			{"tokens scopes", admin.TokenScopes{Name: "ci", Scopes: []string{"shop/echo"}}},
			{"disable", admin.Switched{Names: []string{"shop/echo"}, Reason: "it echoes"}},
			{"reset", admin.Reset{Names: []string{"shop/wait"}}}, // nobody has switched this tool
		} {
			version := do(change.name, change.arguments)
			if before, again := versions[change.name]; again && (before != version || version == "") {
				t.Errorf("%s has the version %q, and then %q", change.name, before, version)
			}
			versions[change.name] = version
		}
	}
	if _, err := over.Do(t.Context(), "disable", admin.Switched{Names: []string{"shop/echo"}, Reason: "it echoes"}, "999"); err == nil || !strings.Contains(err.Error(), "expected") {
		t.Errorf("a change that has already been made, with another version: %v", err)
	}
	if err := over.Copy(t.Context(), "state backup", io.Discard); err != nil {
		t.Fatal(err)
	}
	var all admin.Audit
	answer, err := over.Do(t.Context(), "audit", admin.AuditArguments{}, "")
	if err == nil {
		err = answer.Into(&all)
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all.Entries {
		got = append(got, e.Action+" "+e.Target)
	}
	if want := "tokens.add ci, tokens.scopes ci, disable /shop/echo, state.backup state"; strings.Join(got, ", ") != want {
		t.Errorf("the audit has %s, want %s", strings.Join(got, ", "), want)
	}
}
