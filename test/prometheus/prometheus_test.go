package prometheus_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// Files that a release contains.
const (
	rules     = "../../deploy/helm/toolsrv/files/rules.yaml"
	dashboard = "../../deploy/helm/toolsrv/files/dashboard.json"
)

// need skips a test if a program is missing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a minute: not with -short")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s: make setup-prometheus installs it (%v)", program, err)
		}
	}
}

// A monitor is a running Prometheus, which scrapes every second.
type monitor struct {
	url     string
	folder  string
	mu      sync.Mutex
	targets []string
}

// watch starts Prometheus with the rules. Here alerts fire as soon as their expressions are true, although in the file they wait for minutes.
func watch(t *testing.T) *monitor {
	t.Helper()
	m := &monitor{folder: t.TempDir()}
	soon := regexp.MustCompile(`(?m)^( +for:) .*$`).ReplaceAll(testkit.Read(t, rules), []byte("$1 0s"))
	testkit.Put(t, m.folder, "rules.yaml", soon)
	testkit.Put(t, m.folder, "token", secret)
	testkit.Put(t, m.folder, "targets.json", "[]")
	testkit.Put(t, m.folder, "prometheus.yml", `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
  - job_name: toolsrv
    authorization: {credentials_file: token}
    file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
`)
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "config", filepath.Join(m.folder, "prometheus.yml")).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	address := free(t)
	m.url = "http://" + address
	var log testkit.Log
	cmd := exec.Command("prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address="+address)
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.folder, &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", log.String())
		}
	})
	until(t, "Prometheus is ready", func() bool { return status(m.url+"/-/ready") == http.StatusOK })
	return m
}

// free returns an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// status returns the status of a GET, or 0.
func status(url string) int {
	answer, err := http.Get(url)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// add makes Prometheus scrape a server from now on.
func (m *monitor) add(t *testing.T, address string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.targets = append(m.targets, address)
	text, err := json.Marshal([]map[string]any{{"targets": m.targets}})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Put(t, m.folder, "targets.new", text)
	if err := os.Rename(filepath.Join(m.folder, "targets.new"), filepath.Join(m.folder, "targets.json")); err != nil {
		t.Fatal(err)
	}
}

// ask decodes the data of an answer of the API.
func (m *monitor) ask(path string, values url.Values, into any) error {
	answer, err := http.Get(m.url + path + "?" + values.Encode())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	var said struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(text, &said); err != nil || said.Status != "success" {
		return fmt.Errorf("%s: %d %s (%v)", path, answer.StatusCode, text, err)
	}
	return json.Unmarshal(said.Data, into)
}

// until waits until a condition is true. It checks only five times a second, since all tests use the same Prometheus.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	end := time.Now().Add(2 * testkit.Patience)
	for look := time.Tick(200 * time.Millisecond); !done(); <-look {
		if time.Now().After(end) {
			t.Fatal("waited in vain for ", what)
		}
	}
}

// A series is one series in the result of a query.
type series struct {
	Metric map[string]string
	Value  [2]any
}

// query returns the present value of an expression.
func (m *monitor) query(t *testing.T, expression string) []series {
	t.Helper()
	var found struct{ Result []series }
	if err := m.ask("/api/v1/query", url.Values{"query": {expression}}, &found); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return found.Result
}

// awaits waits until an expression has a value.
func (m *monitor) awaits(t *testing.T, format string, arguments ...any) {
	t.Helper()
	expression := fmt.Sprintf(format, arguments...)
	until(t, expression, func() bool { return len(m.query(t, expression)) > 0 })
}

// An alert is an alert that is pending or firing.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// firing returns the firing alerts of a server, by their names.
func (m *monitor) firing(t *testing.T, address string) map[string]alert {
	t.Helper()
	var found struct{ Alerts []alert }
	if err := m.ask("/api/v1/alerts", nil, &found); err != nil {
		t.Fatal(err)
	}
	all := map[string]alert{}
	for _, a := range found.Alerts {
		if a.State == "firing" && a.Labels["instance"] == address {
			all[a.Labels["alertname"]] = a
		}
	}
	return all
}

// anchors returns the anchors of the headings of a page.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		all[strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")] = true
	}
	return all
}
