package server_test

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/admin/client"
	"github.com/toolsrv/toolsrv/internal/admin/socket"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// lines returns the lines of the log about requests for a tool.
func lines(t *testing.T, r *running, tool string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(r.log.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		if one["msg"] == "request" && (one["path"] == tool || one["tool"] == tool) {
			all = append(all, one)
		}
	}
	return all
}

// TestWhere checks that the log lines of calls through all doors have the caller, the address and the version that answered. Lines of slow calls also
// say where the time went.
func TestWhere(t *testing.T) {
	t.Parallel()
	c := settings(t)
	testkit.Put(t, c.Tools.Directory, "shop.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), `{"abi":1,"namespace":"shop","version":"1.2.3","tools":[`+
		`{"name":"echo","description":"Echoes.","parameters":{"type":"object"}},{"name":"a","description":"A.","parameters":{"type":"object"}},`+
		`{"name":"b","description":"B.","parameters":{"type":"object"}},{"name":"c","description":"C.","parameters":{"type":"object"}},`+
		`{"name":"spin","description":"Spins.","parameters":{"type":"object"}}]}`))
	c.Auth.Tokens = []string{"a-token-of-this-test"}
	const timeout = 700 * time.Millisecond
	c.Overrides = append(c.Overrides, config.Override{Match: "shop/spin", Limits: limits.Limits{Timeout: timeout, Concurrency: 1, Fuel: -1}})
	r := start(t, c)
	const token = "Bearer a-token-of-this-test"
	post := func(path, body string, headers ...string) *http.Response {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", token)
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(headers); i += 2 {
			q.Header.Set(headers[i], headers[i+1])
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer
	}
	post("/shop/echo", `{"a":1}`)
	if answer := r.ask("/mcp", "tools/call", "shop-echo", `"name":"shop-echo","arguments":{"a":1}`, "Authorization", token); answer.StatusCode != http.StatusOK {
		t.Errorf("got %d", answer.StatusCode)
	}
	session := post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`).Header.Get("Mcp-Session-Id")
	post("/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shop-echo","arguments":{"a":1}}}`, "Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-11-25")
	var both sync.WaitGroup
	for range 2 { // one call runs, and the other waits
		both.Go(func() { post("/shop/spin", `{}`) })
	}
	both.Wait()
	var digest string
	for _, route := range r.Table().Tools() {
		digest = route.Tool.Digest[:12]
	}
	for tool, want := range map[string]int{"/shop/echo": 3, "/shop/spin": 2} {
		all := lines(t, r, tool)
		if len(all) != want {
			t.Fatalf("%s: got %d lines, want %d:\n%s", tool, len(all), want, r.log)
		}
		for _, line := range all {
			if line["client"] != "127.0.0.1" || line["principal"] != "token-1" || line["digest"] != digest || line["version"] != "1.2.3" || line["request_id"] == "" {
				t.Errorf("the line lacks something: %v", line)
			}
			if _, told := line["run"]; told && tool == "/shop/echo" {
				t.Errorf("a fast call: got %v", line)
			}
		}
	}
	phases := map[string]float64{}
	for _, line := range lines(t, r, "/shop/spin") {
		for _, name := range []string{"wait", "run"} {
			took, _ := line[name].(float64)
			phases[name] = max(phases[name], took)
		}
	}
	for name, took := range phases {
		if d := time.Duration(took); d < timeout/2 {
			t.Errorf("%s took %v:\n%s", name, d, r.log)
		}
	}
}

// TestNamesakes has callers named ann of two issuers and with a token of this server. The log tells them apart, also in refusals, and so do the list
// of slow calls and the audit.
// Proves: Callers keep apart
func TestNamesakes(t *testing.T) {
	t.Parallel()
	o := own(t)
	o.config.Admin.Enabled = true
	o.start(t)
	ids := map[string]who{}
	for _, w := range []who{{"oidc", "https://a.example", "ann"}, {"oidc", "https://b.example", "ann"}, {"issued", "", "ann"}} {
		if err := o.bring(t, w, secretOf(len(ids))); err != nil {
			t.Fatal(err)
		}
		id := string(w.id(t))
		if w[0] == "issued" {
			id = "" // asking by name finds all callers of that name
		}
		ids[id] = w
		for range 2 {
			if status, body := o.send("send", "/", w); status != 200 {
				t.Errorf("%q: got %d %s", w, status, body)
			}
			if status, body := o.ask("missing", "{}", w); status != 404 {
				t.Errorf("%q: got %d %s", w, status, body)
			}
		}
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.url+"/admin/v1/reload", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("X-Who", w.header())
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	over, err := client.OverSocket(socket.Of(o.config))
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	list := func(operation string, arguments, to any) {
		t.Helper()
		answer, err := over.Do(t.Context(), operation, arguments, "")
		if err == nil {
			err = answer.Into(to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for id, w := range ids {
		var lines admin.Logs
		list("logs", admin.LogsArguments{Principal: cmp.Or(id, "ann"), Limit: 1000}, &lines)
		codes := map[any]int{}
		for _, line := range lines.Lines {
			var attributes map[string]any
			if err := json.Unmarshal(line.Attributes, &attributes); err != nil {
				t.Fatal(err)
			}
			if line.Message != "request" || line.Level != "INFO" {
				continue
			}
			if caller, _ := attributes["caller"].(string); caller == id {
				codes[attributes["code"]]++
			} else if id != "" {
				t.Errorf("asked for %s, got a line about %q", id, caller)
			}
		}
		if codes[nil] != 2 || codes["not_found"] != 1 { // the second line has the level debug
			t.Errorf("%q has lines with the codes %v, want two lines without a code, and one with not_found", w, codes)
		}
	}
	var calls admin.Slowest
	list("slow", admin.SlowArguments{Limit: 100}, &calls)
	var audit admin.Audit
	list("audit", admin.AuditArguments{}, &audit)
	slow, tried := map[string]int{}, map[string]int{}
	for _, c := range calls.Calls {
		slow[c.Caller]++
	}
	for _, e := range audit.Entries {
		if e.Who == "ann" && e.Refused != "" {
			tried[e.Caller]++
		}
	}
	for id, w := range ids {
		if slow[id] == 0 || tried[id] != 1 {
			t.Errorf("%q: %d calls are listed, and %d attempts", w, slow[id], tried[id])
		}
	}
}
