package prometheus_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// A fault is the trouble that one alert reports.
type fault struct {
	// site returns the site that the server is started on.
	site func(t *testing.T) site
	// once, which may be nil, causes the fault. again is repeated until the alert fires.
	once, again func(t *testing.T, m *monitor, r *served)
}

func shop(t *testing.T) site { return site{files: map[string][]byte{"shop.wasm": guest(t, "shop")}} }

// with returns a function that makes a site with further tables.
func with(tables string) func(t *testing.T) site {
	return func(t *testing.T) site {
		s := shop(t)
		s.tables = tables
		return s
	}
}

// posts returns a function that makes a request several times.
func posts(times int, path, body string, fields ...string) func(t *testing.T, m *monitor, r *served) {
	return func(_ *testing.T, _ *monitor, r *served) {
		for range times {
			r.post(path, body, fields...)
		}
	}
}

// held returns a function that keeps that many calls of a tool running until the test ends.
func held(calls int, path string) func(t *testing.T, m *monitor, r *served) {
	return func(t *testing.T, _ *monitor, r *served) {
		over := make(chan struct{})
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
						r.post(path, "{}")
					}
				}
			})
		}
		t.Cleanup(all.Wait)
		t.Cleanup(func() { close(over); r.kill() })
	}
}

// inNATS starts NATS until the test ends, and makes the server keep its state there.
func inNATS(t *testing.T) site {
	t.Helper()
	program := filepath.Join(programs, "nats-server")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../nats", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	address := free(t)
	_, port, _ := net.SplitHostPort(address)
	var log testkit.Log
	cmd := exec.Command(program, "-a", "127.0.0.1", "-p", port, "-js", "-sd", t.TempDir())
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	away := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		away()
		if t.Failed() {
			t.Logf("NATS says:\n%s", log.String())
		}
	})
	s := with(fmt.Sprintf("[state]\nurl = 'nats://%s'\n", address))(t)
	s.away = away
	return s
}

// crowd makes two calls of a tool that run until their time limit, so that one of them is refused.
func crowd(t *testing.T, _ *monitor, r *served) {
	var all sync.WaitGroup
	var refused atomic.Int32
	for range 2 {
		all.Go(func() {
			if status, _ := r.post("/shop/spin", "{}"); status == http.StatusServiceUnavailable {
				refused.Add(1)
			}
		})
	}
	all.Wait()
	if n := refused.Load(); n != 1 {
		t.Fatalf("%d calls are refused, want 1", n)
	}
}

// reaches lets a tool call another one.
func reaches(t *testing.T) site {
	s := with("[[grant]]\nmatch = 'a/once'\ntools = ['shop/echo']\n")(t)
	s.files["a.wasm"] = caller(t)
	return s
}

// faults has the fault of each alert, by the alert's name.
func faults() map[string]fault {
	return map[string]fault{
		"ToolsrvDown": {site: shop, once: func(_ *testing.T, _ *monitor, r *served) { r.kill() }},
		"ToolsrvNotReady": {site: func(t *testing.T) site {
			return site{files: map[string][]byte{"slow.wasm": testkit.Fixture(t, "wat/hostile/describe_spin")}, tools: "describe_fuel = 1000000000000", unread: true}
		}},
		"ToolsrvRestarts": {site: shop, once: func(t *testing.T, m *monitor, r *served) {
			for n := range 4 {
				if n > 0 {
					r.kill()
					r.start()
				}
				m.awaits(t, `changes(toolsrv_start_timestamp_seconds{instance="%s"}[5m]) >= %d`, r.address, n)
			}
		}},
		"ToolsrvFilesRefused": {site: func(t *testing.T) site {
			s := shop(t)
			s.files["broken.wasm"] = []byte("This is not a module.")
			return s
		}},
		"ToolsrvToolsNotGranted": {site: func(t *testing.T) site { return site{files: map[string][]byte{"a.wasm": caller(t)}} }},
		"ToolsrvReloadFailed": {site: shop, once: func(t *testing.T, _ *monitor, r *served) {
			testkit.Put(t, r.folder, "toolsrv.toml", "[server\n")
			r.signal(syscall.SIGHUP)
		}},
		"ToolsrvStateLost": {site: with("[state]\ndirectory = 'state'\n"), once: lose},
		"ToolsrvStateCutOff": {site: inNATS, once: func(t *testing.T, m *monitor, r *served) {
			m.awaits(t, `toolsrv_state_cut_off{instance="%s"} == 0`, r.address)
			r.away()
		}},
		"ToolsrvAuditLost": {site: with("[state]\ndirectory = 'state'\n"), once: lose, again: posts(1, "/admin/v1/reset", `{"pattern":"shop/echo"}`, "Authorization", "Bearer wrong")},
		"ToolsrvChangesRefused": {site: with("[state]\ndirectory = 'state'\n"),
			again: posts(12, "/admin/v1/disable", `{"pattern":"shop/echo"}`, "Authorization", "Bearer wrong")},
		"ToolsrvToolFails":       {site: shop, again: posts(5, "/shop/trap", "{}")},
		"ToolsrvCapabilityFails": {site: reaches, again: posts(5, "/a/once", `{"id":"shop-trap","args":{}}`)},
		"ToolsrvReachRefused":    {site: reaches, once: posts(1, "/a/once", `{"id":"shop-trap","args":{}}`)},
		"ToolsrvCallsWait":       {site: with("[limits]\nconcurrency = 1\n"), once: held(3, "/shop/wait")},
		"ToolsrvOverloaded":      {site: with("[limits]\nconcurrency = 1\nqueue = 0\ntimeout = '3s'\n"), once: crowd},
		"ToolsrvRateLimited":     {site: with("[rates.default]\nrate = '1/h'\n"), again: posts(400, "/shop/echo", "{}")},
		"ToolsrvResourceShort": {site: func(t *testing.T) site {
			return site{server: "memory = '16MiB'", tables: "[limits]\nconcurrency = 16\n", files: map[string][]byte{"shop.wasm": large(t)}}
		}, once: held(8, "/shop/wait")},
		"ToolsrvCodeCrowded":     {site: crowded, again: inTurn},
		"ToolsrvConnectionsFull": {site: func(t *testing.T) site { s := shop(t); s.under = "ulimit -n 128;"; return s }, once: connect},
	}
}

// lose removes the state's file.
func lose(t *testing.T, m *monitor, r *served) {
	m.awaits(t, `toolsrv_state_broken{instance="%s"} == 0`, r.address)
	if err := os.Remove(filepath.Join(r.folder, "state", "state.db")); err != nil {
		t.Fatal(err)
	}
}

// variants is the number of modules. There are so many that their code does not fit into memory together.
const variants = 24

// crowded makes modules with different code: copies of an example, each with different data.
func crowded(t *testing.T) site {
	t.Helper()
	s := site{server: "code_memory = '16MiB'", files: map[string][]byte{}}
	module := testkit.Read(t, "../../examples/json/json.wasm")
	word := []byte("slice index starts at ")
	if !bytes.Contains(module, word) {
		t.Fatal("the example no longer has the expected data")
	}
	for n := range variants {
		other := bytes.Replace(module, word, fmt.Appendf(nil, "slice index starts %03d", n), 1)
		tools := []map[string]any{{"name": "run", "description": "Runs.", "parameters": map[string]any{"type": "object"}}}
		s.files[fmt.Sprintf("v%d.wasm", n)] = sandboxtest.WithManifest(t, other, manifest(t, fmt.Sprintf("v%d", n), tools))
	}
	return s
}

// inTurn calls each of these modules, one after another.
func inTurn(_ *testing.T, _ *monitor, r *served) {
	for n := range variants {
		r.post(fmt.Sprintf("/v%d/run", n), "{}")
	}
}

// connect connects idle clients until nearly all connections are taken.
func connect(t *testing.T, m *monitor, r *served) {
	limit := fmt.Sprintf(`toolsrv_connections_limit{instance="%s"}`, r.address)
	m.awaits(t, "%s", limit)
	most, err := strconv.Atoi(fmt.Sprint(m.query(t, limit)[0].Value[1]))
	if err != nil {
		t.Fatal(err)
	}
	for range most * 95 / 100 {
		conn, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", r.address)
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBursts lets promtool evaluate the rules with series that begin with a count above zero.
func TestBursts(t *testing.T) {
	t.Parallel()
	need(t, "promtool")
	if out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", "testdata/bursts.yaml").CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// TestAlerts makes each alert fire by causing its fault. A server without a fault has no alerts.
func TestAlerts(t *testing.T) {
	t.Parallel()
	need(t, "prometheus", "promtool")
	text := string(testkit.Read(t, rules))
	page := anchors(string(testkit.Read(t, "../../docs/generated/alerts.md")))
	all := faults()
	parts := strings.Split(text, "- alert: ")[1:]
	if len(parts) != len(all) {
		t.Errorf("there are %d alerts, and faults for %d", len(parts), len(all))
	}
	for _, part := range parts {
		name, of, _ := strings.Cut(part, "\n")
		if _, ok := all[name]; !ok {
			t.Errorf("no fault makes %s fire", name)
		}
		for _, key := range []string{"for: ", "severity: ", "summary: ", "description: "} {
			if !regexp.MustCompile(key + `\S`).MatchString(of) {
				t.Errorf("%s has no %s", name, key)
			}
		}
		runbook := regexp.MustCompile(`runbook_url: https://github.com/toolsrv/toolsrv/blob/main/docs/generated/alerts.md#(\S+)`).FindStringSubmatch(of)
		if runbook == nil || !page[runbook[1]] {
			t.Errorf("%s leads to no section of docs/generated/alerts.md: %q", name, runbook)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", rules).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	m := watch(t)
	healthy := serve(t, shop(t))
	m.add(t, healthy.address)
	t.Run("each", func(t *testing.T) {
		for name, f := range all {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				of := f.site(t)
				r := serve(t, of)
				m.add(t, r.address)
				if !of.unread {
					m.awaits(t, `up{instance="%s"} == 1`, r.address)
				}
				if f.once != nil {
					f.once(t, m, r)
				}
				until(t, name+" fires", func() bool {
					if f.again != nil {
						f.again(t, m, r)
					}
					a, ok := m.firing(t, r.address)[name]
					if ok && (a.Annotations["summary"] == "" || !regexp.MustCompile(`\d`).MatchString(a.Annotations["description"])) {
						t.Errorf("it says %v", a.Annotations)
					}
					return ok
				})
			})
		}
	})
	healthy.call("/shop/echo", "{}", http.StatusOK)
	if got := m.query(t, fmt.Sprintf(`max_over_time(ALERTS{instance="%s"}[1h])`, healthy.address)); len(got) > 0 {
		t.Errorf("a server without a fault had the alerts %v", got)
	}
}
