package prometheus_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A board has the queries of the dashboard.
type board struct {
	Panels []struct {
		Title, Type string
		Targets     []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Annotations struct{ List []struct{ Expr string } }
}

// TestDashboard makes every query of the dashboard to a Prometheus that has scraped a server after all kinds of use. Each query finds something.
func TestDashboard(t *testing.T) {
	t.Parallel()
	need(t, "prometheus", "promtool")
	var b board
	if err := json.Unmarshal(testkit.Read(t, dashboard), &b); err != nil {
		t.Fatal(err)
	}
	m := watch(t)
	s := reaches(t)
	s.tables += "[state]\ndirectory = 'state'\n"
	s.tools = "disabled = ['shop/reject']"
	r := serve(t, s)
	m.add(t, r.address)
	m.awaits(t, `up{instance="%s"} == 1`, r.address)
	// use uses the server in every way that a query measures. It replaces a file only once the server answers with the present one, since a
	// file that changes all the time is not read.
	n := 0
	use := func() {
		if answered, _ := r.post(fmt.Sprintf("/late%03d/echo", n), "{}"); n == 0 || answered == http.StatusOK {
			n++
			late := bytes.Replace(guest(t, fmt.Sprintf("late%03d", n)), []byte("waiting"), fmt.Appendf(nil, "wait%03d", n), 1)
			testkit.Put(t, filepath.Join(r.folder, "tools"), "late.wasm", late)
		}
		r.call("/shop/echo", "{}", http.StatusOK)
		r.call("/shop/trap", "{}", http.StatusInternalServerError)
		r.call("/shop/reject", "{}", http.StatusServiceUnavailable)
		r.call("/a/once", `{"id":"shop-echo","args":{}}`, http.StatusOK)
		if got, text := r.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"); got != http.StatusOK {
			t.Fatalf("MCP: got %d %s", got, text)
		}
		r.call("/admin/v1/disable", `{"names":["shop/silent"]}`, http.StatusOK)
		r.signal(syscall.SIGHUP)
	}
	replaced := strings.NewReplacer("$__rate_interval", "5m", `"$job"`, `".*"`, `"$instance"`, `"`+r.address+`"`, `"$tool"`, `".*"`)
	asked := 0
	finds := func(where, expression string) {
		t.Helper()
		expression = replaced.Replace(expression)
		if strings.Contains(expression, "$") {
			t.Errorf("%s: an unknown variable: %s", where, expression)
			return
		}
		asked++
		until(t, where+": "+expression, func() bool {
			for _, one := range m.query(t, expression) {
				if one.Value[1] != "NaN" {
					return true
				}
			}
			use()
			return false
		})
	}
	for _, p := range b.Panels {
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("the panel %q has %d queries", p.Title, len(p.Targets))
		}
		for _, target := range p.Targets {
			finds(p.Title, target.Expr)
		}
	}
	for _, v := range b.Templating.List {
		if v.Type != "query" {
			continue
		}
		query, _ := v.Query.(map[string]any)["query"].(string)
		of := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(query)
		if of == nil {
			t.Errorf("the variable %s is %q", v.Name, query)
			continue
		}
		finds("the variable "+v.Name, "count by ("+of[2]+") ("+of[1]+")")
	}
	if asked < 60 {
		t.Errorf("only %d queries were made", asked)
	}
	for _, a := range b.Annotations.List { // this may no longer be true
		_ = m.query(t, replaced.Replace(a.Expr))
	}
}
