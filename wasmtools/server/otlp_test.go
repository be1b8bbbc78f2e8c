package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/otlptest"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

// The traceparents of a caller who records the trace, and of one who doesn't.
const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
	recorded     = "00-" + callersTrace + "-" + callersSpan + "-01"
	unrecorded   = "00-" + callersTrace + "-" + callersSpan + "-00"
)

// traced returns settings with a collector.
func traced(t *testing.T, c *config.Config) *otlptest.Collector {
	t.Helper()
	o := otlptest.Serve(t)
	c.OTLP.Endpoint = o.URL
	return o
}

// named returns the one span with a name.
func named(t *testing.T, o *otlptest.Collector, name string) otlptest.Span {
	t.Helper()
	var found []otlptest.Span
	for _, s := range o.Spans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans are called %s: %+v", len(found), name, o.Spans())
	}
	return found[0]
}

// end stops the server, after which all spans have been sent.
func end(r *running) {
	r.tb.Helper()
	r.stop()
	if err := r.result(); err != nil {
		r.tb.Fatal(err)
	}
	r.done <- nil
}

// TestTraceOfREST follows the trace from a caller's span to an outside service. The called tool calls another tool, which sends the service a
// request.
// Proves: Secrets stay secret
func TestTraceOfREST(t *testing.T) {
	t.Parallel()
	o := own(t)
	c := traced(t, o.config)
	o.config.Grants[0].Rules["http"].(*httpcap.Rule).Traceparent = true
	o.start(t)
	ann := who{"issued", "", "ann"}
	const secret = "own-secret-of-ann-Zx7q"
	if err := o.bring(t, ann, secret); err != nil {
		t.Fatal(err)
	}
	q, _ := http.NewRequest(http.MethodPost, o.url+"/own/through?q=in-the-query", strings.NewReader(fmt.Sprintf(`{"method":"GET","url":%q}`, o.service.URL+"/in-the-path")))
	for key, value := range map[string]string{"Content-Type": "application/json", "X-Who": ann.header(), "Traceparent": recorded, "Tracestate": "vendor=value"} {
		q.Header.Set(key, value)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if body, err := io.ReadAll(a.Body); a.StatusCode != http.StatusOK || err != nil {
		t.Fatalf("got %d %s %v", a.StatusCode, body, err)
	}
	end(o.running)

	tree := c.Tree(callersTrace)
	for _, part := range []string{"compile", "prepare", "wait", "reset"} { // this span is optional
		for strings.Contains(tree, " "+part+" (internal)\n") {
			before, after, _ := strings.Cut(tree, " "+part+" (internal)\n")
			tree = strings.TrimRight(before, " ") + after
		}
	}
	want := `POST /own/through (server)
  execute_tool own-through (internal)
    validate (internal)
    run (internal)
      execute_tool own-send (internal)
        validate (internal)
        run (internal)
          GET (client)
`
	if tree != want {
		t.Errorf("got\n%s\nwant\n%s", tree, want)
	}
	top, call, sent := named(t, c, "POST /own/through"), named(t, c, "execute_tool own-send"), named(t, c, "GET")
	if top.Parent != callersSpan || top.State != "vendor=value" {
		t.Errorf("the request's span is inside %s with %q", top.Parent, top.State)
	}
	for key, value := range map[string]string{"http.request.method": "POST", "http.route": "/own/through", "url.path": "/own/through", "url.scheme": "http", "http.response.status_code": "200",
		"network.protocol.version": "1.1", "client.address": "127.0.0.1", "toolsrv.request.id": a.Header.Get("X-Request-Id"), "resource.service.name": "toolsrv"} {
		if top.Of[key] != value {
			t.Errorf("%s: got %q, want %q", key, top.Of[key], value)
		}
	}
	if port := top.Of["server.port"]; top.Of["server.address"] != "127.0.0.1" || !strings.HasSuffix(o.url, ":"+port) || top.Of["client.port"] == "" || top.Of["client.port"] == port {
		t.Errorf("the request came from %v", top.Of)
	}
	for key, value := range map[string]string{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "own-send", "gen_ai.tool.type": "function", "toolsrv.tool": "/own/send", "error.type": ""} {
		if call.Of[key] != value {
			t.Errorf("%s: got %q, want %q", key, call.Of[key], value)
		}
	}
	if sent.Of["server.address"] != "127.0.0.1" || sent.Of["http.request.method"] != "GET" || sent.Of["http.response.status_code"] != "200" || sent.Of["server.port"] == "" {
		t.Errorf("the request of the tool: %v", sent.Of)
	}
	if got := o.service.got("/in-the-path", "Traceparent"); got != "00-"+callersTrace+"-"+sent.ID+"-01" || o.service.got("/in-the-path", "Tracestate") != "vendor=value" {
		t.Errorf("the service got the headers %q and %q, want the span %s", got, o.service.got("/in-the-path", "Tracestate"), sent.ID)
	}
	for _, s := range c.Spans() {
		for _, word := range []string{secret, sharedSecret, "in-the-query", "in-the-path", "ann"} {
			if strings.Contains(s.Raw, word) {
				t.Errorf("%s tells %s: %s", s.Name, word, s.Raw)
			}
		}
		if s.Ended.Before(s.Began) || s.Began.Before(top.Began.Add(-time.Millisecond)) || s.Ended.After(top.Ended.Add(time.Millisecond)) {
			t.Errorf("%s was from %s to %s, and the request from %s to %s", s.Name, s.Began, s.Ended, top.Began, top.Ended)
		}
	}
	if n := o.log.Count(`"trace_id":"`+callersTrace+`"`, `"span_id":"`+top.ID+`"`, `"msg":"request"`); n != 1 {
		t.Errorf("%d lines of the log have the trace: %s", n, o.log)
	}
}

// TestTraceStaysInside lets a tool send a request to a service whose grant does not pass on traces.
func TestTraceStaysInside(t *testing.T) {
	t.Parallel()
	o := own(t)
	traced(t, o.config)
	o.start(t)
	ann := who{"issued", "", "ann"}
	if err := o.bring(t, ann, secretOf(1)); err != nil {
		t.Fatal(err)
	}
	if status, body := o.send("send", "/x", ann); status != http.StatusOK || o.service.got("/x", "Traceparent") != "" {
		t.Errorf("got %d %s and %q", status, body, o.service.got("/x", "Traceparent"))
	}
}

// TestTraceOfMCP calls tools over MCP: in the version without sessions, in one with them, and over standard input.
func TestTraceOfMCP(t *testing.T) {
	t.Parallel()
	const meta = `"traceparent":"` + recorded + `","tracestate":"vendor=value",`
	c := settings(t)
	o := traced(t, c)
	r := start(t, c)
	answer := func(a *http.Response) string {
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	call := func(tool, meta, version, session string, id int) *http.Response {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"call-%d","method":"tools/call","params":{"name":%q,"arguments":{"a":"an-argument"},"_meta":{%s"io.modelcontextprotocol/clientCapabilities":{}}}}`, id, tool, meta)
		q, _ := http.NewRequest(http.MethodPost, r.url+"/mcp", strings.NewReader(body))
		q.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {version}}
		if session != "" {
			q.Header.Set("Mcp-Session-Id", session)
		} else {
			q.Header["Mcp-Method"], q.Header["Mcp-Name"] = []string{"tools/call"}, []string{tool}
		}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Body.Close() })
		return a
	}
	modern := meta + `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`
	if got := answer(call("shop-echo", modern, "2026-07-28", "", 1)); !strings.Contains(got, "an-argument") {
		t.Fatal(got)
	}
	if got := answer(call("shop-trap", modern, "2026-07-28", "", 2)); !strings.Contains(got, "tool_trapped") {
		t.Fatal(got)
	}
	if got := answer(call("no-such-tool", modern, "2026-07-28", "", 3)); !strings.Contains(got, "-32602") {
		t.Fatal(got)
	}
	for id, hostile := range []string{`"traceparent":7,`, `"traceparent":"x","traceparent":"y",`, `"traceparent":"` + strings.Repeat("0", 5000) + `",`, `"traceparent":{"a":[]},"tracestate":[],`, `"traceparent":"` + strings.ToUpper(recorded) + `",`} {
		if got := answer(call("shop-echo", hostile+`"io.modelcontextprotocol/protocolVersion":"2026-07-28",`, "2026-07-28", "", 10+id)); !strings.Contains(got, "an-argument") {
			t.Errorf("%.60s: got %s", hostile, got)
		}
	}
	begin, _ := http.NewRequest(http.MethodPost, r.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
	begin.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	begun, err := http.DefaultClient.Do(begin)
	if err != nil {
		t.Fatal(err)
	}
	begun.Body.Close()
	session := begun.Header.Get("Mcp-Session-Id")
	if got := answer(call("shop-echo", "", "2025-11-25", session, 4)); !strings.Contains(got, "an-argument") {
		t.Fatal(got)
	}
	end(r)

	ofMessage := func(id string) otlptest.Span {
		for _, s := range o.Spans() {
			if s.Of["jsonrpc.request.id"] == id {
				return s
			}
		}
		t.Fatalf("no span of %s: %+v", id, o.Spans())
		return otlptest.Span{}
	}
	echo, trap, none, old := ofMessage("call-1"), ofMessage("call-2"), ofMessage("call-3"), ofMessage("call-4")
	for _, test := range []struct {
		of         otlptest.Span
		attributes map[string]string
	}{
		{echo, map[string]string{"mcp.method.name": "tools/call", "gen_ai.tool.name": "shop-echo", "gen_ai.operation.name": "execute_tool", "mcp.protocol.version": "2026-07-28", "mcp.session.id": "",
			"network.transport": "tcp", "network.protocol.name": "http", "client.address": "127.0.0.1", "error.type": "", "rpc.response.status_code": ""}},
		{trap, map[string]string{"gen_ai.tool.name": "shop-trap", "error.type": "tool_error", "toolsrv.code": "tool_trapped"}},
		{none, map[string]string{"gen_ai.tool.name": "", "error.type": "-32602", "rpc.response.status_code": "-32602"}},
		{old, map[string]string{"gen_ai.tool.name": "shop-echo", "mcp.protocol.version": "2025-11-25"}},
	} {
		if test.of.Kind != "server" {
			t.Errorf("%s has the kind %s", test.of.Name, test.of.Kind)
		}
		for key, value := range test.attributes {
			if test.of.Of[key] != value {
				t.Errorf("%s: %s: got %q, want %q", test.of.Name, key, test.of.Of[key], value)
			}
		}
	}
	if echo.Name != "tools/call shop-echo" || none.Name != "tools/call" || trap.Status != "error" || none.Status != "error" || echo.Of["client.port"] == "" {
		t.Errorf("got %q, %q, %s, %s", echo.Name, none.Name, trap.Status, none.Status)
	}
	if echo.Trace != callersTrace || echo.Parent != callersSpan || len(echo.Links) != 1 {
		t.Errorf("the message's span is inside %s in the trace %s, and names %v", echo.Parent, echo.Trace, echo.Links)
	}
	if i := slices.IndexFunc(o.Spans(), func(s otlptest.Span) bool { return s.ID == echo.Links[0] && s.Name == "POST /mcp" }); i < 0 {
		t.Errorf("the span does not name the request: %+v", o.Spans())
	}
	if old.Of["mcp.session.id"] == "" || strings.Contains(session, old.Of["mcp.session.id"]) {
		t.Errorf("the span has the session %q, and the client has %s", old.Of["mcp.session.id"], session)
	}
	for _, s := range o.Spans() {
		if strings.Contains(s.Raw, "an-argument") || strings.Contains(s.Raw, session) {
			t.Errorf("a span contains too much: %s", s.Raw)
		}
	}
}

// TestTraceOfStdio serves clients over standard input: one that records its calls, and one that does not.
func TestTraceOfStdio(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.OTLP.Sample = 0
	o := traced(t, c)
	log := &testkit.Log{}
	call := func(id int, tool, parent string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"traceparent":%q,%s}}}`+"\n", id, tool, parent, strings.TrimSuffix(strings.TrimPrefix(stateless, `"_meta":{`), "}"))
	}
	got := serveStdio(t, c, core.Options{Logger: slog.New(slog.NewJSONHandler(log, nil))}, call(1, "shop-echo", recorded)+call(2, "shop-refuse", unrecorded)+call(3, "shop-silent", "nonsense"))
	if strings.Count(got, `"result"`) != 3 {
		t.Fatal(got)
	}
	if all := o.Tree(callersTrace); !strings.HasPrefix(all, "tools/call shop-echo (server)\n") || len(o.Spans()) != strings.Count(all, "\n") {
		t.Errorf("got %s of %+v", all, o.Spans())
	}
	if s := named(t, o, "tools/call shop-echo"); s.Parent != callersSpan || s.Of["network.transport"] != "pipe" || s.Of["jsonrpc.request.id"] != "1" || s.Of["toolsrv.request.id"] == "" {
		t.Errorf("got %+v", s)
	}
	if n := log.Count(`"trace_id":"`+callersTrace+`"`, `"msg":"request"`); n != 1 {
		t.Errorf("%d lines have the trace: %s", n, log)
	}
}

// TestStrangersTraces lets callers claim that their traces are recorded. Only identified callers are believed.
func TestStrangersTraces(t *testing.T) {
	t.Parallel()
	send := func(r *running, token, parent string) {
		t.Helper()
		q, _ := http.NewRequest(http.MethodPost, r.url+"/shop/echo", strings.NewReader("{}"))
		q.Header = http.Header{"Content-Type": {"application/json"}, "Traceparent": {parent}}
		if token != "" {
			q.Header.Set("Authorization", "Bearer "+token)
		}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
	}
	for _, test := range []struct {
		name, token, shown, parent string
		sample                     float64
		want                       bool
	}{
		{"a stranger, with a share of 0", "", "", recorded, 0, false},
		{"a stranger, with a share of 1", "", "", unrecorded, 1, true},
		{"a wrong token", "right-token", "wrong-token", recorded, 0, false},
		{"a caller, with a share of 0", "right-token", "right-token", recorded, 0, true},
		{"a caller who does not record", "right-token", "right-token", unrecorded, 1, false},
		{"a caller who says nothing", "right-token", "right-token", "", 1, true},
		{"a caller who says nothing, with a share of 0", "right-token", "right-token", "", 0, false},
	} {
		c := settings(t)
		o := traced(t, c)
		c.OTLP.Sample = test.sample
		if test.token != "" {
			c.Auth.Tokens = []string{test.token}
		}
		r := start(t, c)
		send(r, test.shown, test.parent)
		end(r)
		if got := len(o.Spans()) > 0; got != test.want {
			t.Errorf("%s: got %t: %+v", test.name, got, o.Spans())
		}
		for _, s := range o.Spans() {
			if inside := s.Trace == callersTrace; inside != (test.parent != "") {
				t.Errorf("%s: %s is part of %s", test.name, s.Name, s.Trace)
			}
		}
	}
}

// TestCollectorsHeaders sends the collector a secret, which a reload changes. Without the secret, neither a start nor a reload succeeds.
func TestCollectorsHeaders(t *testing.T) {
	t.Parallel()
	c := settings(t)
	o := traced(t, c)
	c.Secrets.Directory = t.TempDir()
	c.OTLP.Headers = map[string]string{"Authorization": "Bearer ${secret:collector}"}
	if _, _, err := open(t, c, core.Options{}, server.Options{}); err == nil || !strings.Contains(err.Error(), `there is no secret "collector"`) {
		t.Fatalf("got %v", err)
	}
	testkit.Put(t, c.Secrets.Directory, "collector", "secret-of-the-collector")
	r := start(t, c)
	testkit.Put(t, c.Secrets.Directory, "collector", "changed-secret-of-the-collector")
	next := *c
	if err := r.Reload(&next); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(c.Secrets.Directory, "collector")); err != nil {
		t.Fatal(err)
	}
	without := *c
	if err := r.Reload(&without); err == nil || !strings.Contains(err.Error(), "otlp.headers") {
		t.Errorf("a reload without the secret: got %v", err)
	}
	r.status("/shop/echo", "")
	end(r)
	if h := o.Headers(); len(h) == 0 || h[0].Get("Authorization") != "Bearer changed-secret-of-the-collector" {
		t.Errorf("got %v", h)
	}
	if n := r.log.Count("secret-of-the-collector"); n > 0 {
		t.Errorf("the log has the secret: %s", r.log)
	}
}

// TestCollectorsSecretGoes removes the secret together with the headers that need it, although a change of headers needs a restart. The collector
// still gets spans, with the other headers, and the log says which header is missing.
func TestCollectorsSecretGoes(t *testing.T) {
	t.Parallel()
	c := settings(t)
	o := traced(t, c)
	c.Secrets.Directory = t.TempDir()
	c.OTLP.Headers = map[string]string{"Authorization": "Bearer ${secret:collector}", "X-Team": "tools"}
	testkit.Put(t, c.Secrets.Directory, "collector", "secret-of-the-collector")
	r := start(t, c)
	const line = "a header is not sent to the collector until a restart"
	next := *c
	next.OTLP.Headers = nil
	if err := r.Reload(&next); err != nil || r.log.Count(line) != 0 {
		t.Errorf("without the headers: got %v, %s", err, r.log)
	}
	if err := os.Remove(filepath.Join(c.Secrets.Directory, "collector")); err != nil {
		t.Fatal(err)
	}
	again := next
	if err := r.Reload(&again); err != nil || r.log.Count(line, "otlp.headers.Authorization", `"level":"WARN"`) != 1 || r.log.Count(line) != 1 {
		t.Errorf("without the secret: got %v, %s", err, r.log)
	}
	r.status("/shop/echo", "")
	end(r)
	h := o.Headers()
	if len(h) == 0 || len(o.Spans()) == 0 {
		t.Fatalf("the collector got nothing: %s", r.log)
	}
	for _, one := range h {
		if one.Get("X-Team") != "tools" || one.Get("Authorization") != "" {
			t.Errorf("got %v", one)
		}
	}
}

// TestPathsOfMistakes requests paths without a tool, into which somebody has put a secret. No span has these paths.
func TestPathsOfMistakes(t *testing.T) {
	t.Parallel()
	c := settings(t)
	o := traced(t, c)
	c.Auth.Tokens = []string{"sesame"}
	r := start(t, c)
	for _, path := range []string{"/secret-in-a-path", "/shop/secret-in-a-path", "/mcp/secret-in-a-path", "/docs/secret-in-a-path", "/console/secret-in-a-path", "/secret/in/a/path/secret-in-a-path"} {
		for _, token := range []string{"", "sesame"} {
			r.status(path, token)
		}
	}
	end(r)
	if len(o.Spans()) < 12 {
		t.Errorf("there are %d spans", len(o.Spans()))
	}
	for _, s := range o.Spans() {
		if strings.Contains(s.Raw, "secret-in-a-path") {
			t.Errorf("%s contains the path: %s", s.Name, s.Raw)
		}
	}
}

// TestMetricsForCollector sends metrics to a collector without the door for Prometheus: under the names of OpenTelemetry, and under the server's own.
func TestMetricsForCollector(t *testing.T) {
	t.Parallel()
	c := settings(t)
	o := traced(t, c)
	c.OTLP.Metrics, c.OTLP.Sample = true, 0
	r := start(t, c)
	for _, path := range []string{"/shop/echo", "/shop/echo", "/shop/trap"} {
		r.status(path, "")
	}
	_, _ = io.Copy(io.Discard, r.ask("/mcp", "tools/call", "shop-echo", `"name":"shop-echo","arguments":{}`).Body)
	_, _ = io.Copy(io.Discard, r.ask("/mcp", "tools/call", "shop-trap", `"name":"shop-trap","arguments":{}`).Body)
	_, _ = io.Copy(io.Discard, r.ask("/mcp", "tools/call", "shop-none", `"name":"shop-none","arguments":{}`).Body)
	_, _ = io.Copy(io.Discard, r.ask("/mcp", "tools/list", "", "").Body)
	if status, _ := scraped(t, r.url, ""); status != http.StatusNotFound {
		t.Errorf("/metrics answers %d", status)
	}
	end(r)
	for _, test := range []struct {
		name string
		of   map[string]string
		want float64
	}{
		{"gen_ai.execute_tool.duration", map[string]string{"gen_ai.tool.name": "shop-echo", "gen_ai.operation.name": "execute_tool", "error.type": ""}, 3},
		{"gen_ai.execute_tool.duration", map[string]string{"gen_ai.tool.name": "shop-trap", "error.type": "tool_trapped"}, 2},
		{"mcp.server.operation.duration", map[string]string{"mcp.method.name": "tools/call", "gen_ai.tool.name": "shop-echo", "mcp.protocol.version": "2026-07-28", "network.transport": "", "error.type": ""}, 1},
		{"mcp.server.operation.duration", map[string]string{"mcp.method.name": "tools/call", "gen_ai.tool.name": "shop-trap", "error.type": "tool_error"}, 1},
		{"mcp.server.operation.duration", map[string]string{"mcp.method.name": "tools/call", "gen_ai.tool.name": "", "error.type": "-32602"}, 1},
		{"mcp.server.operation.duration", map[string]string{"mcp.method.name": "tools/list", "gen_ai.tool.name": ""}, 1},
		{"toolsrv_calls_total", map[string]string{"tool": "/shop/echo", "outcome": "ok"}, 3},
		{"toolsrv_call_duration_seconds", map[string]string{"tool": "/shop/trap", "outcome": "tool_trapped"}, 2},
		{"toolsrv_files", map[string]string{"state": "served"}, 1},
	} {
		if got, ok := o.Last(test.name, test.of); !ok || got != test.want {
			t.Errorf("%s of %v: got %v %t, want %v", test.name, test.of, got, ok, test.want)
		}
	}
	if len(o.Spans()) > 0 {
		t.Errorf("there are spans: %+v", o.Spans())
	}
}

// TestSeriesAreBounded has strangers send versions of HTTP that don't exist, which get no series of their own.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	c := settings(t)
	o := traced(t, c)
	c.OTLP.Metrics = true
	r := start(t, c)
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for minor := range 10 {
		conn := r.dial()
		fmt.Fprintf(conn, "POST /mcp HTTP/1.%d\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\nContent-Length: %d\r\n\r\n%s", minor, len(body), body)
		if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "shop-echo") {
			t.Fatalf("HTTP/1.%d: got %s, %v", minor, answer, err)
		}
		conn.Close()
	}
	end(r)
	if n, ok := o.Last("mcp.server.operation.duration", map[string]string{"mcp.method.name": "tools/list"}); n != 10 {
		t.Errorf("the last series has %v messages, %t: want 10", n, ok)
	}
	for _, s := range o.Spans() {
		if v := s.Of["network.protocol.version"]; s.Kind == "server" && v != "1.0" && v != "1.1" && v != "" {
			t.Errorf("%s says HTTP/%s", s.Name, v)
		}
	}
}

// TestSilentCollector stops a server, and hands one over, while the collector reads requests and never answers. The next process gets the
// state before the server waits for the collector, and gets the listeners soon.
func TestSilentCollector(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]time.Duration{"stop": 5 * time.Second, "hand over": 4 * time.Second} { // including one second of leaveTime
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := settings(t)
			c.State.Directory = t.TempDir()
			free := make(chan error, 10)
			silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
				_, _ = io.Copy(io.Discard, q.Body)
				if q.URL.Path == "/v1/traces" {
					store, err := local.Open(c.State.Directory, local.Options{})
					if err == nil {
						err = store.Close()
					}
					free <- err
				}
				<-q.Context().Done()
			}))
			defer silent.Close()
			c.OTLP.Endpoint, c.OTLP.Metrics = silent.URL, true
			r := start(t, c)
			r.status("/shop/echo", "")
			if name == "hand over" {
				files, err := r.HandOver()
				if err != nil {
					t.Fatal(err)
				}
				defer files[0].Close()
			}
			begun := time.Now()
			end(r)
			if took := time.Since(begun); took > most {
				t.Errorf("the end took %s, want %s at most", took, most)
			}
			select {
			case err := <-free:
				if err != nil {
					t.Errorf("when the collector gets a request: %v", err)
				}
			default:
				if name == "stop" { // there was time to send them
					t.Error("the collector was sent no spans")
				}
			}
		})
	}
}

// TestHostileTraceHeaders sends invalid trace headers. Each request is answered as if it had no traceparent, or no tracestate.
func TestHostileTraceHeaders(t *testing.T) {
	t.Parallel()
	c := settings(t)
	o := traced(t, c)
	r := start(t, c)
	inside := map[string]bool{} // by request id
	for _, test := range []struct {
		name           string
		parents, state []string
		inside         bool
	}{
		{"twice", []string{recorded, recorded}, nil, false},
		{"nonsense", []string{"nonsense"}, []string{"vendor=value"}, false},
		{"zeros", []string{"00-00000000000000000000000000000000-0000000000000000-01"}, nil, false},
		{"long", []string{strings.Repeat("0", 10_000)}, nil, false},
		{"a tracestate without a traceparent", nil, []string{"vendor=value"}, false},
		{"a long tracestate", []string{recorded}, []string{"vendor=" + strings.Repeat("x", 10_000)}, true},
		{"many states", []string{recorded}, slices.Repeat([]string{"vendor=value"}, 50), true},
		{"an invalid tracestate", []string{recorded}, []string{"\"><script>=x,=,,"}, true},
		{"a tracestate with a bad key", []string{recorded}, []string{"UPPER=value"}, true},
	} {
		q, _ := http.NewRequest(http.MethodPost, r.url+"/shop/echo", strings.NewReader("{}"))
		q.Header = http.Header{"Content-Type": {"application/json"}, "Traceparent": test.parents, "Tracestate": test.state, "X-Request-Id": {strings.ReplaceAll(test.name, " ", "-")}}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d", test.name, a.StatusCode)
		}
		inside[q.Header.Get("X-Request-Id")] = test.inside
	}
	end(r)
	missing := maps.Clone(inside)
	for _, s := range o.Spans() {
		if s.State != "" {
			t.Errorf("%s has the tracestate %q", s.Name, s.State)
		}
		if id := s.Of["toolsrv.request.id"]; id != "" {
			delete(missing, id)
			if (s.Parent == callersSpan) != inside[id] || (s.Trace == callersTrace) != inside[id] {
				t.Errorf("%s is inside %q in the trace %s", id, s.Parent, s.Trace)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("no spans of %v", missing)
	}
}
