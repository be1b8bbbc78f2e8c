package server_test

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	naming "github.com/prometheus/common/model"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools/server"
)

var update = flag.Bool("update", false, "write docs/generated/metrics.md again")

// scraped returns the status of /metrics for a token, and its body.
func scraped(t *testing.T, url, token string, fields ...string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "Host" {
			q.Host = fields[i+1]
		} else {
			q.Header.Set(fields[i], fields[i+1])
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	answer, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// TestMetricsAreForTheirRole requests /metrics as callers with and without the right to see them.
func TestMetricsAreForTheirRole(t *testing.T) {
	t.Parallel()
	if status, _ := scraped(t, start(t, settings(t)).url, ""); status != http.StatusNotFound {
		t.Errorf("while metrics are off: got %d", status)
	}
	c := settings(t)
	c.State.Directory = t.TempDir()
	c.Metrics.Enabled = true
	c.Auth.Tokens = []string{"plain-token"}
	r := start(t, c)
	metrics := issue(r, "prometheus", "metrics")
	for _, test := range []struct {
		name, token string
		fields      []string
		want        int
	}{
		{"nobody", "", nil, http.StatusUnauthorized},
		{"a wrong token", "nothing", nil, http.StatusUnauthorized},
		{"a token from the file", "plain-token", nil, http.StatusForbidden},
		{"a token for all tools", issue(r, "tools", "*"), nil, http.StatusForbidden},
		{"a token of an administrator who may look", issue(r, "reader", "admin:read"), nil, http.StatusForbidden},
		{"a page of another site", metrics, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"another host", metrics, []string{"Host", "evil.example"}, http.StatusMisdirectedRequest},
		{"the role", metrics, nil, http.StatusOK},
		{"an administrator", issue(r, "admin", "admin"), nil, http.StatusOK},
	} {
		if status, body := scraped(t, r.url, test.token, test.fields...); status != test.want {
			t.Errorf("%s: got %d %.200s, want %d", test.name, status, body, test.want)
		}
	}
	if status := r.status("/shop/echo", metrics); status != http.StatusNotFound {
		t.Errorf("the role alone lets a token call a tool: %d", status)
	}
	if status := r.status("/metrics", metrics); status != http.StatusMethodNotAllowed {
		t.Errorf("POST: got %d", status)
	}
}

// TestMetrics makes calls, and reads their metrics.
func TestMetrics(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Metrics.Enabled, c.Metrics.Principals = true, true
	c.State.Directory = t.TempDir()
	c.Tools.Disabled = []string{"shop/reject"}
	r := slowShop(t, c, 0)
	if err := r.Reload(changed(c, func(c *config.Config) { c.Auth.Tokens = []string{"two words"} })); err == nil {
		t.Fatal("a wrong token is accepted")
	}
	if err := r.Reload(changed(c, func(c *config.Config) { c.Tools.Disabled = append(c.Tools.Disabled, "shop/garble") })); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/shop/echo": http.StatusOK, "/shop/trap": http.StatusInternalServerError, "/shop/nothing": http.StatusNotFound, "/shop/reject": http.StatusServiceUnavailable} {
		if got := r.status(path, ""); got != want {
			t.Fatalf("%s: got %d", path, got)
		}
	}
	if got := post(t.Context(), r.url+"/a/once", `{"id":"units-convert","args":{}}`); !strings.Contains(got, "7") {
		t.Fatal(got)
	}
	if got := post(t.Context(), r.url+"/a/once", `{"id":"shop-echo","args":{}}`); !strings.Contains(got, "not_granted") {
		t.Fatal(got)
	}
	testkit.Put(t, c.Tools.Directory, "late.wasm", guest(t, "late"))
	r.log.Wait(t, `"path":"/late/echo"`)
	if status, _ := scraped(t, r.url, ""); status != http.StatusOK { // reading the metrics is a request, too
		t.Fatalf("got %d", status)
	}
	r.ask("/mcp", "tools/list", "", "").Body.Close()
	_, text := scraped(t, r.url, "")
	parser := expfmt.NewTextParser(naming.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`toolsrv_calls_total{outcome="ok",tool="/shop/echo"} 1`,
		`toolsrv_calls_total{outcome="tool_trapped",tool="/shop/trap"} 1`,
		`toolsrv_call_duration_seconds_count{outcome="ok",tool="/shop/echo"} 1`,
		`toolsrv_call_arguments_bytes_total{outcome="ok",tool="/shop/echo"} 2`,
		`toolsrv_calls_refused_total{reason="tool_disabled",tool="/shop/reject"} 1`,
		`toolsrv_tools{state="disabled"} 2`,
		`toolsrv_capability_uses_total{capability="tools",tool="/a/once"} 2`,
		`toolsrv_call_phase_seconds_total{phase="run",tool="/shop/trap"} `,
		`toolsrv_principal_calls_total{origin="open",principal="everybody",realm=""} `,
		`toolsrv_requests_total{door="/",operation="",status="404",version=""} 1`,
		`toolsrv_requests_total{door="/metrics",operation="metrics",status="200",version=""} 1`,
		`toolsrv_requests_total{door="/mcp",operation="tools/list",status="200",version="2026-07-28"} 1`,
		`toolsrv_tools{state="enabled"} 20`,
		`toolsrv_files{source="` + c.Tools.Directory + `",state="served"} 3`,
		`toolsrv_files{source="` + c.Tools.Directory + `",state="refused"} 0`,
		`toolsrv_source_problems{source="` + c.Tools.Directory + `"} 0`,
		`toolsrv_file_served_seconds_count{source="` + c.Tools.Directory + `"} 1`,
		`toolsrv_compile_seconds_count `,
		`toolsrv_compile_failed_total 0`,
		`toolsrv_code_load_seconds_count `,
		`toolsrv_code_dropped_total{reason="room"} 0`,
		`toolsrv_reloads_total{outcome="ok"} 1`,
		`toolsrv_reloads_total{outcome="failed"} 1`,
		`toolsrv_reload_failed 0`,
		`toolsrv_changes_total{action="reload",outcome="ok"} 1`,
		`toolsrv_changes_refused_total 1`,
		`toolsrv_audit_lost_total 0`,
		`toolsrv_state_write_seconds_count `,
		`toolsrv_state_writes_failed_total 0`,
		`toolsrv_state_bytes `,
		`toolsrv_reload_timestamp_seconds `,
		`toolsrv_engine_info{engine="python",version="cpython `,
		`toolsrv_resource_limit_bytes{resource="bodies"} `,
		`toolsrv_call_fuel_total{outcome="ok",tool="/shop/echo"} `,
		`toolsrv_capability_uses_refused_total{capability="tools",tool="/a/once"} 1`,
		`toolsrv_ready 1`,
		`toolsrv_tools_listed 1`,
		`toolsrv_calls_in_progress 0`,
		`toolsrv_calls_running{tool="/shop/echo"} 0`,
		`toolsrv_queue_places{tool="/shop/echo"} 64`,
		`toolsrv_code_cache_bytes `,
		`toolsrv_code_cache_limit_bytes 2.147483648e+09`,
		`toolsrv_state_broken 0`,
		`toolsrv_resource_held_bytes{resource="memory"} `, `toolsrv_mappings `, `toolsrv_resource_waiting{resource="mappings"} 0`,
		`toolsrv_mcp_sessions 0`,
		`go_goroutines `,
		`process_open_fds `,
		`process_max_fds `,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("%s is missing", line)
		}
	}
	for name, least := range map[string]float64{"toolsrv_call_fuel_total": 10, "toolsrv_compile_seconds": 1, "toolsrv_state_write_seconds": 1, "toolsrv_state_bytes": 4096} {
		m := families[name].GetMetric()[0]
		if got := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()); got < least {
			t.Errorf("%s is %v, want %v at least", name, got, least)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	checkMetricsPage(t, families)
}

// checkMetricsPage compares the page about metrics with the metrics that the server has.
func checkMetricsPage(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Metrics\n\nWhat [/metrics](../operations.md#metrics) tells of toolsrv. It tells of Go's runtime and of the process, too. Written by `go test ./wasmtools/server -run TestMetrics$ -update`.\n\n| name | kind | labels | what |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f := families[name]
		if !strings.HasPrefix(name, "toolsrv_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	const page = "../../docs/generated/metrics.md"
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != b.String() {
		t.Error("docs/generated/metrics.md is not what the server tells: go test ./wasmtools/server -run TestMetrics$ -update writes it")
	}
}

// TestMetricsAddress serves metrics at a separate address, which answers nothing else, and refuses pages that reach it by another name.
func TestMetricsAddress(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Metrics = config.Metrics{Enabled: true, Address: "127.0.0.1:0", Tools: 10}
	c.Auth.Tokens = []string{"plain-token"}
	r := start(t, c)
	r.log.Wait(t, `"msg":"metrics","address":"`)
	_, address, _ := strings.Cut(r.log.String(), `"msg":"metrics","address":"`)
	address, _, _ = strings.Cut(address, `"`)
	url := "http://" + address
	if status, body := scraped(t, url, ""); status != http.StatusOK || !strings.Contains(body, "toolsrv_ready 1") {
		t.Errorf("got %d %.100s", status, body)
	}
	if status, _ := scraped(t, url, "", "Host", "evil.example"); status != http.StatusMisdirectedRequest {
		t.Errorf("another host: got %d", status)
	}
	for _, path := range []string{"/shop/echo", "/tools", "/mcp", "/admin/v1/status", "/openapi.json"} {
		answer, err := http.Post(url+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d", path, answer.StatusCode)
		}
	}
	if status, _ := scraped(t, r.url, "plain-token"); status != http.StatusNotFound {
		t.Errorf("at the server's own address: got %d", status)
	}

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c = settings(t)
	c.Metrics = config.Metrics{Enabled: true, Address: taken.Addr().String(), Tools: 10}
	if _, _, err := open(t, c, core.Options{}, server.Options{}); err == nil || !strings.Contains(err.Error(), "metrics.address") {
		t.Errorf("an address in use: got %v", err)
	}
}
