package server_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/admin"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// An office is a model in which administrators make the requests.
type office struct {
	*model
	orders []order
}

// An order has the decisions of one configuration about administrators.
type order struct {
	roles  map[string]string // by token; a missing one is no longer let in
	upload bool
	off    bool // the door is
	class  int  // the tools whose number has this remainder are disabled
}

const (
	classes     = 7
	officeTools = 70
)

// status returns the status of a request for an operation under an order. changes is whether the operation changes something.
func (o *order) status(token string, changes, uploads bool) int {
	role := o.roles[token]
	switch {
	case role == "":
		return http.StatusUnauthorized
	case o.off:
		return http.StatusNotFound
	case role == "*", changes && role != wasmtools.RoleAdmin, uploads && !o.upload:
		return http.StatusForbidden
	}
	return http.StatusOK
}

func newOrder() (o order) {
	o = order{roles: map[string]string{}, upload: rand.IntN(3) > 0, off: rand.IntN(8) == 0, class: rand.IntN(classes)}
	for _, token := range []string{"one", "two"} {
		if role := []string{wasmtools.RoleAdmin, wasmtools.RoleAdmin, wasmtools.RoleAdminRead, "*", ""}[rand.IntN(5)]; role != "" {
			o.roles[token] = role
		}
	}
	return o
}

func (m *office) config(o *order) *config.Config {
	c := *m.base
	c.Admin.Enabled, c.Admin.Disabled, c.Admin.Upload = !o.off, o.off, o.upload
	c.Auth.Declared = []config.Token{{Name: "always", SHA256: sha256.Sum256([]byte("always")), Scopes: []string{"*"}}}
	for _, token := range []string{"one", "two"} {
		if role := o.roles[token]; role != "" {
			c.Auth.Declared = append(c.Auth.Declared, config.Token{Name: token, SHA256: sha256.Sum256([]byte(token)), Scopes: []string{role}})
		}
	}
	c.Tools.Disabled = nil
	for n := o.class; n < officeTools; n += classes {
		c.Tools.Disabled = append(c.Tools.Disabled, fmt.Sprint("all/t", n))
	}
	return &c
}

// ask makes a request for an operation, and returns the answer's status and text. If half is set, it sends half of the request before a
// reload, and the rest after it. Status and text must be possible under one order that was in force during the request. A request that was
// let in must be allowed by an order in force since its end was sent, but a refusal may be due to the head alone.
func (m *office) ask(name, token, body string, half bool, fits func(o *order, text string) bool, query ...string) (status int, text string) {
	o := admin.Find(name)
	path, headers := "/admin/v1"+o.Path(), []string{}
	uploads := o.Takes() > 0
	if uploads {
		headers = append(headers, "Content-Type: "+admin.TakenType)
	}
	if len(query) > 0 {
		path += "?" + query[0]
	}
	answer, text, during, err := m.exchange(path, token, body, half, headers...)
	if err != nil {
		m.t.Errorf("%s: %v", name, err)
		return 0, ""
	}
	m.asked.Add(1)
	n, _ := m.results.LoadOrStore(fmt.Sprint(name, " ", answer.StatusCode), new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	m.advance()
	first := during.first
	if answer.StatusCode != http.StatusOK {
		first = during.head
	}
	tried := ""
	for at := first; at <= during.last; at++ {
		by := &m.orders[at]
		if by.status(token, o.Changes() || uploads, uploads) == answer.StatusCode && (answer.StatusCode != http.StatusOK || fits == nil || fits(by, text)) {
			return answer.StatusCode, text
		}
		tried += fmt.Sprintf("\n%d %+v", at, *by)
	}
	m.t.Errorf("%s as %q: got %d %.1000s, which no order has:%s", name, token, answer.StatusCode, text, tried)
	return answer.StatusCode, text
}

// states returns the state of each tool in a list of tools.
func (m *office) states(text string) map[string]string {
	var list admin.Tools
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		m.t.Errorf("%.1000s: %v", text, err)
	}
	states := map[string]string{}
	for _, t := range list.Tools {
		states[t.Path] = t.State
	}
	return states
}

// isOf reports whether a list of tools is exactly what one order says, and mixes in nothing from another order.
func (m *office) isOf(o *order, text string) bool {
	states := m.states(text)
	for n := range officeTools {
		want := "enabled"
		if n%classes == o.class {
			want = "disabled"
		}
		if states[fmt.Sprint("/all/t", n)] != want {
			return false
		}
	}
	return true
}

// list lists the tools, and returns what the list says about all/switched, or "".
func (m *office) list(token string) string {
	status, text := m.ask("tools", token, "", false, m.isOf, "all=true")
	if status != http.StatusOK {
		return ""
	}
	return m.states(text)["/all/switched"]
}

// module returns a module that a server accepts.
func (m *office) module() string {
	var tools []string
	for _, name := range []string{"once", "loops", "thrice"} {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"Calls.","parameters":{"type":"object"},"needs":{"tools":["all/switched"]}}`, name))
	}
	return string(sandboxtest.WithManifest(m.t, testkit.Fixture(m.t, "wat/good/caller"), `{"abi":1,"namespace":"new","tools":[`+strings.Join(tools, ",")+`]}`))
}

// work lets administrators make requests until the reloads have ended. Only the first administrator switches tools, so that it knows which answers to
// expect.
func (m *office) work(client int) {
	module := m.module()
	for n := 0; ; n++ {
		select {
		case <-m.ended:
			return
		default:
		}
		token, half := []string{"one", "two", "three"}[rand.IntN(3)], rand.IntN(2) == 0
		switch kind := rand.IntN(4); {
		case kind == 0 && client == 0:
			operation := []string{"disable", "enable"}[rand.IntN(2)]
			if status, _ := m.ask(operation, token, `{"names":["all/switched"]}`, half, nil); status == http.StatusOK {
				if got := m.list(token); got != "" && got != operation+"d" {
					m.t.Errorf("after %s, the tool is %s", operation, got)
				}
			}
		case kind == 1:
			m.ask("put", token, module, half, nil, url.Values{"name": {fmt.Sprintf("new/put%d.wasm", client)}, "dry_run": {"true"}}.Encode())
		case kind == 2 && client == 1:
			m.tokens(token, n, half)
		default:
			m.list(token)
		}
	}
}

// tokens makes a token. The new token is accepted with its own scopes, whatever happens to the token that made it. Once the new token is
// revoked, it is no longer let in, even if only the end of a request is missing.
func (m *office) tokens(maker string, n int, half bool) {
	name := fmt.Sprint("made", n)
	status, text := m.ask("tokens add", maker, fmt.Sprintf(`{"name":%q,"scopes":["admin"]}`, name), half, nil)
	if status != http.StatusOK {
		return
	}
	var made admin.TokenMade
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		m.t.Error(err)
		return
	}
	ask := func(want ...int) {
		answer, text, during, err := m.exchange("/admin/v1/tools?all=true", made.Secret, "", false)
		if err != nil {
			m.t.Error(err)
			return
		}
		for at := during.first; at <= during.last; at++ {
			if o := &m.orders[at]; answer.StatusCode == want[0] && (want[0] != http.StatusOK || !o.off && m.isOf(o, text)) || len(want) > 1 && o.off && answer.StatusCode == want[1] {
				return
			}
		}
		m.t.Errorf("a token that was made: got %d, want %v: %.1000s", answer.StatusCode, want, text)
	}
	ask(http.StatusOK, http.StatusNotFound)
	revoked := make(chan struct{})
	go func() {
		defer close(revoked)
		m.reloaded()
		if _, err := m.of.Tokens.Revoke(context.Background(), name, state.Any); err != nil {
			m.t.Error(err)
		}
	}()
	// The second half is sent after a reload, which may be before the token ends. So the request may succeed or be refused, but must neither fail
	// in another way nor hang.
	answer, text, _, err := m.exchange("/admin/v1/put?dry_run=true&name=new/late.wasm", made.Secret, m.module(), true, "Content-Type: "+admin.TakenType)
	<-revoked
	if err != nil || !strings.Contains("200 401 403 404", strconv.Itoa(answer.StatusCode)) {
		m.t.Errorf("a token that ends meanwhile: got %v %.1000s, %v", answer, text, err)
	}
	ask(http.StatusUnauthorized)
}

// TestModelOfAdministrators makes random reloads and random requests of administrators at the same time. Some requests come in two halves. Each
// answer must come from one configuration that was in force during the request: who may look and change, whether files are accepted, and the states
// of all tools.
// Proves: A caller reaches its own tools only
func TestModelOfAdministrators(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	lasts := 2500 * time.Millisecond
	if n, err := strconv.Atoi(os.Getenv("TOOLSRV_MODEL")); err == nil {
		lasts *= time.Duration(n)
	}
	m := &office{model: &model{t: t, lasts: lasts, next: make(chan struct{}), progress: make(chan struct{}, 1), ended: make(chan struct{})}}
	for range 30 + int(2000*lasts/time.Second) {
		m.orders = append(m.orders, newOrder())
	}
	m.base = config.Default()
	m.base.Server.Addresses = []string{"127.0.0.1:0"}
	m.base.Tools.Directory, m.base.Tools.CacheDir, m.base.State.Directory = t.TempDir(), t.TempDir(), t.TempDir()
	var all []*wasmtools.Tool
	for n := range officeTools + 1 {
		name := fmt.Sprint("all/t", n)
		if n == officeTools {
			name = "all/switched"
		}
		all = append(all, gotool.New(name, "Is there.", func(context.Context, struct{}) (int, error) { return n, nil }))
	}
	m.running = run(t, build(t, m.config(&m.orders[0]), all...))
	m.log.Wait(t, `"msg":"ready"`)
	var work sync.WaitGroup
	work.Go(func() {
		m.reload(len(m.orders), func(n int) *config.Config { return m.config(&m.orders[n]) })
	})
	for client := range 4 {
		work.Go(func() { m.work(client) })
	}
	work.Wait()
	counts := map[string]int64{}
	m.results.Range(func(key, n any) bool { counts[key.(string)] = n.(*atomic.Int64).Load(); return true })
	t.Logf("%d requests, %d reloads: %v", m.asked.Load(), m.applied.Load(), counts)
	for _, result := range []string{"tools 200", "tools 401", "tools 403", "tools 404", "put 200", "put 403", "disable 200", "tokens add 200"} {
		if m.applied.Load() > 300 && counts[result] == 0 {
			t.Errorf("no request ended as %q", result)
		}
	}
}
