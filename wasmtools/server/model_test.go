package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/mcp/session"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// A plan has the decisions of one configuration in the model.
type plan struct {
	tokens   []string // if there are none, everybody is let in
	disabled []string
	calls    bool // a/thrice was granted to call units/convert
	sends    bool // reach/http_send was granted to send requests
	origin   int  // the origin that the key is sent to
	key      int
}

func (p *plan) admits(token string) bool {
	return token == "stdio" || len(p.tokens) == 0 || slices.Contains(p.tokens, token)
}

func (p *plan) enables(tool string) bool { return !slices.Contains(p.disabled, tool) }

// The kinds of requests.
const (
	kindSend  = "send"  // reach/http_send asks origin 0, which redirects once, after some reloads
	kindCalls = "calls" // a/thrice calls units/convert three times, which waits for a reload
	kindList  = "list"
)

// answer returns the right answer to a request under a plan.
func (p *plan) answer(kind, token string) string {
	switch {
	case !p.admits(token):
		return "unauthorized"
	case kind == kindList:
		var list []string
		if p.calls && p.enables("a/thrice") {
			list = append(list, "a-thrice")
		}
		if p.sends && p.enables("reach/http_send") {
			list = append(list, "reach-http_send")
		}
		if p.enables("units/convert") {
			list = append(list, "units-convert")
		}
		return fmt.Sprint(list)
	case kind == kindSend && !p.enables("reach/http_send"), kind == kindCalls && !p.enables("a/thrice"):
		return "disabled"
	case kind == kindSend && !p.sends, kind == kindCalls && !p.calls:
		return "not granted"
	case kind == kindSend && p.origin == 0:
		return fmt.Sprint("key ", p.key)
	case kind == kindSend:
		return "key 0"
	case !p.enables("units/convert"):
		return "inner disabled"
	}
	return "7"
}

// A model is a server with the plans of its configurations.
type model struct {
	*running
	t        *testing.T
	base     *config.Config
	lasts    time.Duration
	origins  [2]string
	keys     string // the folder with the keys
	plans    []*plan
	began    atomic.Int64 // the last plan that a reload began to apply
	applied  atomic.Int64 // the last plan that a reload has applied
	mu       sync.Mutex   // guards what follows
	next     chan struct{}
	seen     map[string]string  // the keys that the origins got in both requests of a redirect, by request id
	inner    map[string][]inner // by request id
	progress chan struct{}      // has a value when a request is answered, or waits for a reload
	ended    chan struct{}
	asked    atomic.Int64
	results  sync.Map // counts of answers
}

// An inner is a call of units/convert that was made inside another call.
type inner struct {
	arrived int64 // the last plan that a reload had begun to apply when the call arrived
	left    int64 // the last plan that was applied when it ended
}

// reloaded waits for the next reload to end.
func (m *model) reloaded() {
	m.mu.Lock()
	next := m.next
	m.mu.Unlock()
	m.advance()
	select {
	case <-next:
	case <-m.ended:
	}
}

func (m *model) advance() {
	select {
	case m.progress <- struct{}{}:
	default:
	}
}

// config returns the configuration of a plan.
func (m *model) config(p *plan) *config.Config {
	testkit.Put(m.t, m.keys, strconv.Itoa(p.key), fmt.Sprintf("the-key-of-plan-%d-is-this", p.key))
	c := *m.base
	c.Auth.Tokens, c.Tools.Disabled = p.tokens, p.disabled
	c.Secrets.Files = map[string]string{"key": filepath.Join(m.keys, strconv.Itoa(p.key))}
	c.Grants = nil
	if p.sends {
		c.Grants = append(c.Grants, config.Grant{
			Match: "reach", Rules: capability.Rules{"http": &httpcap.Rule{
				Granted: m.origins[:], Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Redirects: 1, Timeout: time.Minute,
				Headers: map[string]map[string]string{m.origins[p.origin]: {"X-Key": "${secret:key}"}},
			}},
		})
	}
	if p.calls {
		c.Grants = append(c.Grants, config.Grant{Match: "a", Rules: capability.Rules{"tools": &tools.Rule{Tools: []string{"units/convert"}}}})
	}
	return &c
}

// newPlan returns a plan with the number n.
func newPlan(n int, before *plan) *plan {
	p := &plan{key: n, origin: rand.IntN(4) / 3, calls: rand.IntN(4) > 0, sends: rand.IntN(4) > 0}
	for _, token := range []string{"one", "two"} {
		if rand.IntN(3) > 0 {
			p.tokens = append(p.tokens, token)
		}
	}
	for _, tool := range []string{"a/thrice", "reach/http_send", "units/convert"} {
		if rand.IntN(3) == 0 {
			p.disabled = append(p.disabled, tool)
		}
	}
	if before != nil && rand.IntN(2) == 0 {
		p.key = before.key
	}
	return p
}

// newModel starts the server with a first plan and with that many further tools. Each has three overrides, so that reloads take long.
func newModel(t *testing.T, further int, lasts time.Duration) *model {
	m := &model{t: t, keys: t.TempDir(), lasts: lasts, next: make(chan struct{}), progress: make(chan struct{}, 1), ended: make(chan struct{}),
		seen: map[string]string{}, inner: map[string][]inner{}}
	for n := range 30 + int(2000*lasts/time.Second) {
		var before *plan
		if n > 0 {
			before = m.plans[n-1]
		}
		p := newPlan(n+1, before)
		m.plans = append(m.plans, p)
	}
	for i := range m.origins {
		s := httptest.NewServer(http.HandlerFunc(m.serveOrigin))
		t.Cleanup(s.Close)
		m.origins[i] = s.URL
	}
	m.base = config.Default()
	m.base.Server.Addresses = []string{"127.0.0.1:0"}
	m.base.MCP.Search = "never"
	m.base.Limits.Timeout = 2 * time.Minute // calls wait for reloads, which are slow on a busy machine
	m.base.Tools.Directory, m.base.Tools.CacheDir = t.TempDir(), t.TempDir()
	reach := fmt.Sprintf(`{"abi":1,"namespace":"reach","tools":[{"name":"http_send","description":"Sends.","parameters":{"type":"object"},"needs":{"http":[%q,%q]}}]}`, m.origins[0], m.origins[1])
	testkit.Put(t, m.base.Tools.Directory, "reach.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "capability/reach"), reach))
	var callers []string
	for _, name := range []string{"once", "loops", "thrice"} {
		callers = append(callers, fmt.Sprintf(`{"name":%q,"description":"Calls.","parameters":{"type":"object"},"needs":{"tools":["units/convert"]}}`, name))
	}
	testkit.Put(t, m.base.Tools.Directory, "a.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/caller"), `{"abi":1,"namespace":"a","tools":[`+strings.Join(callers, ",")+`]}`))
	all := []*wasmtools.Tool{gotool.New("units/convert", "Converts.", func(_ context.Context, in struct {
		ID string `json:"id"`
	}) (int, error) {
		i := inner{arrived: m.began.Load()}
		m.reloaded()
		m.mu.Lock()
		defer m.mu.Unlock()
		i.left = m.applied.Load()
		m.inner[in.ID] = append(m.inner[in.ID], i)
		return 7, nil
	})}
	for n := range further {
		name := fmt.Sprint("further/t", n)
		all = append(all, gotool.New(name, "Is there.", func(context.Context, struct{}) (int, error) { return n, nil }))
		for queue := range 3 {
			m.base.Overrides = append(m.base.Overrides, config.Override{Match: name, Limits: limits.Limits{Queue: 1 + queue}})
		}
	}
	r := build(t, m.config(m.plans[0]), all...)
	m.running = run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	return m
}

var keyOf = regexp.MustCompile(`the-key-of-plan-(\d+)-is-this`)

// serveOrigin records the key of a request, and redirects the first time, after some reloads.
func (m *model) serveOrigin(w http.ResponseWriter, r *http.Request) {
	key := "0"
	if found := keyOf.FindStringSubmatch(r.Header.Get("X-Key")); found != nil {
		key = found[1]
	}
	id := r.URL.Query().Get("id")
	m.mu.Lock()
	m.seen[id] += key + " "
	m.mu.Unlock()
	if r.URL.Path == "/first" {
		for range 1 + rand.IntN(3) {
			m.reloaded()
		}
		http.Redirect(w, r, "/second?id="+id, http.StatusFound)
	}
}

// reload applies one configuration after another, each after some more requests, for the given time. It applies at least a few
// configurations.
func (m *model) reload(most int, config func(n int) *config.Config) {
	defer close(m.ended)
	begun := time.Now()
	for n := 1; n < most && (n < 30 || time.Since(begun) < m.lasts); n++ {
		m.pause()
		next := config(n)
		m.began.Store(int64(n))
		if err := m.Reload(next); err != nil {
			m.t.Error(err)
			return
		}
		m.applied.Store(int64(n))
		m.mu.Lock()
		close(m.next)
		m.next = make(chan struct{})
		m.mu.Unlock()
	}
}

// pause waits until a request is answered, or waits for a reload.
func (m *model) pause() {
	select {
	case <-m.progress:
	case <-time.After(5 * time.Millisecond): // all requests may be waiting for the reload
	}
}

// plan returns the configuration of a plan after more requests. For some, it first asks what other configurations would change.
func (m *model) plan(n int) *config.Config {
	m.pause()
	for range rand.IntN(3) {
		if err := m.Look(m.config(newPlan(len(m.plans)+n, nil))); err != nil {
			m.t.Error(err)
		}
	}
	return m.config(m.plans[n])
}

// check compares the answer to a request with the plans. A refusal may be due to the head alone.
func (m *model) check(door, kind, token, got string, keys []string, calls []inner, during span) {
	first, last := during.first, during.last
	if slices.Contains([]string{"unauthorized", "disabled", "not granted"}, got) {
		first = during.head
	}
	m.asked.Add(1)
	n, _ := m.results.LoadOrStore(kind+" "+strings.TrimRight(got, "0123456789"), new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	if got == "no session" { // by now the request has another caller
		return
	}
	for at := first; at <= last; at++ {
		want := m.plans[at].answer(kind, token)
		switch {
		case want == got && got != "7" && got != "sent":
			return
		case kind == kindCalls && want == got && m.admitted(token, calls):
			return
		case kind == kindSend && got == "sent" && strings.HasPrefix(want, "key ") && m.explains(keys, at, last):
			return
		// If a right is withdrawn while a call runs, the calls inside it no longer have it.
		case kind == kindCalls && want == "7" && got == "inner disabled":
			if slices.ContainsFunc(m.plans[at:last+1], func(p *plan) bool { return !p.enables("units/convert") }) {
				return
			}
		case kind == kindCalls && (want == "7" || want == "inner disabled") && got == "inner unauthorized":
			// If the caller was let in again since then, it is a new principal, or everybody.
			if slices.ContainsFunc(m.plans[at:last+1], func(p *plan) bool { return !p.admits(token) || (len(p.tokens) == 0) != (len(m.plans[at].tokens) == 0) }) {
				return
			}
		}
	}
	text := fmt.Sprintf("%s %s as %q: got %s %v %v, which no plan allows:", door, kind, token, got, keys, calls)
	for at := first; at <= last; at++ {
		text += fmt.Sprintf("\n%d %+v: %s", at, *m.plans[at], m.plans[at].answer(kind, token))
	}
	m.t.Error(text)
}

// admitted reports whether each of a tool's successive inner calls may have begun while the caller was let in and the called tool was
// enabled.
func (m *model) admitted(token string, calls []inner) bool {
	for i, call := range calls {
		if i > 0 && !slices.ContainsFunc(m.plans[calls[i-1].left:call.arrived+1], func(p *plan) bool { return p.admits(token) && p.enables("units/convert") }) {
			return false
		}
	}
	return len(calls) == 3
}

// explains reports whether a call that began with a plan may have sent these keys, the first of them at once. The call gets newer keys only as long
// as the same grant stands.
func (m *model) explains(keys []string, at, last int64) bool {
	for i, key := range keys {
		found := false
		for now := at; now <= last && m.plans[now].sends && m.plans[now].origin == m.plans[at].origin; now++ {
			want := "0"
			if m.plans[now].origin == 0 {
				want = strconv.Itoa(m.plans[now].key)
			}
			found = found || want == key
		}
		if !found || i > 1 {
			return false
		}
	}
	return len(keys) > 0
}

// message returns an MCP message.
func message(kind, id, url, meta string) string {
	method, params := "tools/call", ""
	switch kind {
	case kindSend:
		params = `"name":"reach-http_send","arguments":` + arguments(kind, id, url)
	case kindCalls:
		params = `"name":"a-thrice","arguments":` + arguments(kind, id, url)
	case kindList:
		method = "tools/list"
	}
	if meta != "" && params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, meta)
}

func arguments(kind, id, url string) string {
	if kind == kindSend {
		return fmt.Sprintf(`{"method":"GET","url":"%s/first?id=%s"}`, url, id)
	}
	return fmt.Sprintf(`{"id":"units/convert","args":{"id":%q}}`, id)
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// ask makes one request to a door and checks the answer. If half is true, it sends half of the request before a reload, and the rest after it.
func (m *model) request(id, door, kind, token string, half bool) error {
	body, headers, path := "", []string{}, "/mcp"
	switch door {
	case "openapi":
		path = "/openapi.json"
	case "rest":
		path = map[string]string{kindSend: "/reach/http_send", kindCalls: "/a/thrice", kindList: "/tools"}[kind]
		if kind != kindList {
			body = arguments(kind, id, m.origins[0])
		}
	case "modern":
		body = message(kind, id, m.origins[0], modernMeta)
		method := "tools/list"
		if kind != kindList {
			method = "tools/call"
			headers = append(headers, "Mcp-Name: "+map[string]string{kindSend: "reach-http_send", kindCalls: "a-thrice"}[kind])
		}
		headers = append(headers, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: "+method)
	case "session":
		body = message(kind, id, m.origins[0], "")
		answer, text, _, err := m.exchange(path, token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"model","version":"1"}}}`, false)
		if err != nil {
			return err
		}
		if answer.StatusCode == http.StatusUnauthorized {
			return nil // the other doors check when a refusal is right
		} else if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("initialize: %d %s", answer.StatusCode, text)
		}
		headers = append(headers, "Mcp-Session-Id: "+answer.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version: 2025-11-25")
	}
	answer, text, during, err := m.exchange(path, token, body, half, headers...)
	if err != nil {
		return err
	}
	m.judge(door, kind, token, id, answer.StatusCode, text, during)
	if door == "session" { // a reload checks all sessions
		_, _, _, err = m.exchange(path, token, "", false, headers...)
	}
	return err
}

// judge reads an answer and checks it.
func (m *model) judge(door, kind, token, id string, status int, text string, during span) {
	m.mu.Lock()
	keys, calls := strings.Fields(m.seen[id]), m.inner[id]
	m.mu.Unlock()
	got := fmt.Sprint(status, " ", text)
	switch {
	case status == http.StatusUnauthorized:
		got = "unauthorized"
	case status == http.StatusNotFound && door == "session":
		got = "no session"
	case kind == kindList:
		var list []string
		for _, name := range []string{"a-thrice", "reach-http_send", "units-convert"} {
			for _, key := range []string{"name", "operation_id", "operationId"} {
				if strings.Contains(text, `"`+key+`":"`+name+`"`) {
					list = append(list, name)
				}
			}
		}
		got = fmt.Sprint(list)
	case strings.Contains(text, "Tool /units/convert is disabled"):
		got = "inner disabled"
	case strings.Contains(text, "no longer accepted"), strings.Contains(text, "identity has changed"):
		got = "inner unauthorized"
	case strings.Contains(text, "was not granted what it needs"):
		got = "not granted"
	case strings.Contains(text, " is disabled"):
		got = "disabled"
	case kind == kindSend && len(keys) == 2:
		got = "sent"
	case kind == kindCalls && (strings.Contains(text, `"result":7`) || strings.Contains(text, `\"result\":7`)):
		got = "7"
	}
	m.check(door, kind, token, got, keys, calls, during)
}

// A span says which plans may have been in force during a request.
type span struct {
	head  int64 // the plans when the head was sent
	first int64 // the plans when the end of the body was sent
	last  int64
}

// exchange sends a request; if half is true, it sends the end of the body after the next reload. A request without a body asks for a list, or ends a
// session.
func (m *model) exchange(path, token, body string, half bool, headers ...string) (answer *http.Response, text string, during span, err error) {
	conn, err := net.Dial("tcp", m.Addr().String())
	if err != nil {
		return nil, "", during, err
	}
	defer conn.Close()
	if !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Content-Type: ") }) {
		headers = append(headers, "Content-Type: application/json")
	}
	headers = append(headers, "Host: "+m.Addr().String(), "Accept: application/json, text/event-stream", "Connection: close",
		fmt.Sprint("Content-Length: ", len(body)))
	if token != "" {
		headers = append(headers, "Authorization: Bearer "+token)
	}
	method, begun := "GET", ""
	switch {
	case body != "":
		method, begun = "POST", body[:len(body)-1]
	case path == "/mcp":
		method = "DELETE"
	}
	during.head = m.applied.Load()
	during.first = during.head
	if _, err := io.WriteString(conn, method+" "+path+" HTTP/1.1\r\n"+strings.Join(headers, "\r\n")+"\r\n\r\n"+begun); err != nil {
		return nil, "", during, err
	}
	if body != "" {
		if half {
			m.reloaded()
		}
		during.first = m.applied.Load()
		_, _ = io.WriteString(conn, body[len(begun):]) // the request may have been refused already
	}
	if answer, err = http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		return nil, "", during, err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	during.last = m.began.Load()
	return answer, string(all), during, err
}

// TestModelOfReloads makes random reloads and random requests of all doors at the same time. Some requests come in two halves, and some calls run
// while configurations change. Each answer must come from one configuration that was in force during the request. A number in TOOLSRV_MODEL makes it
// last that many times as long.
// Proves: Nothing without a grant
func TestModelOfReloads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	lasts := 2500 * time.Millisecond
	if n, err := strconv.Atoi(os.Getenv("TOOLSRV_MODEL")); err == nil {
		lasts *= time.Duration(n)
	}
	for _, further := range []int{0, 300} {
		t.Run(fmt.Sprint(further), func(t *testing.T) {
			t.Parallel()
			m := newModel(t, further, lasts)
			var work sync.WaitGroup
			work.Go(func() { m.reload(len(m.plans), m.plan) })
			for client := range 8 {
				work.Go(func() { m.requests(client) })
			}
			work.Go(m.stdio)
			work.Wait()
			counts := map[string]int64{}
			m.results.Range(func(key, n any) bool { counts[key.(string)] = n.(*atomic.Int64).Load(); return true })
			t.Logf("%d requests, %d reloads: %v", m.asked.Load(), m.applied.Load(), counts)
			if m.asked.Load() == 0 {
				t.Error("no request was answered")
			}
			for _, result := range []string{"send sent", "send disabled", "send not granted", "calls ", "calls inner disabled", "calls inner unauthorized", "list unauthorized"} {
				if m.applied.Load() > 300 && counts[result] == 0 {
					t.Errorf("no request ended as %q", result)
				}
			}
		})
	}
}

// requests makes one request after another.
func (m *model) requests(client int) {
	for n := 0; ; n++ {
		select {
		case <-m.ended:
			return
		default:
		}
		door := []string{"rest", "modern", "session"}[rand.IntN(3)]
		kind, token := []string{kindSend, kindCalls, kindList}[rand.IntN(3)], []string{"one", "two", "three"}[rand.IntN(3)]
		if kind == kindList && rand.IntN(4) == 0 {
			door = "openapi"
		}
		id := fmt.Sprintf("%d-%d", client, n)
		if err := m.request(id, door, kind, token, rand.IntN(2) == 0); err != nil {
			m.t.Errorf("%s %s: %v", door, kind, err)
			return
		}
		m.advance()
	}
}

// stdio makes requests over two pipes.
func (m *model) stdio() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- session.Stdio(ctx, m.Toolset(), in, out, session.StdioOptions{}) }()
	lines := bufio.NewReader(answers)
	for n := 0; ; n++ {
		select {
		case <-m.ended:
			_ = requests.Close()
			if err := <-ended; err != nil {
				m.t.Error(err)
			}
			return
		default:
		}
		kind, id := []string{kindSend, kindCalls, kindList}[n%3], fmt.Sprint("stdio-", n)
		first := m.applied.Load()
		if _, err := io.WriteString(requests, message(kind, id, m.origins[0], modernMeta)+"\n"); err != nil {
			m.t.Error(err)
			return
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			m.t.Error(err)
			return
		}
		m.judge("stdio", kind, "stdio", id, http.StatusOK, line, span{first, first, m.began.Load()})
		m.advance()
	}
}
