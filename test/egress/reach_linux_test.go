package http_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/reach/reachtest"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// grants are the grants of the test's tools, by their names, besides the ones for the URLs of package reach.
var grants = map[string]string{
	"all":     `http = ["http://*"]`,
	"site":    `http = ["http://*.site.example"]`,
	"api":     `http = ["http://api.site.example/v2/"]`,
	"private": "http = [\"http://*\"]\nprivate = [\"10.0.0.0/8\", \"fd00::7/128\"]",
	"own":     "http = [\"http://*\"]\nprivate = [\"9.9.9.9/32\", \"2a00:1450::/64\"]",
	"follow":  "http = [\"http://*.site.example\"]\nredirects = 5",
	"none":    "",
}

// TestReach runs in the namespace.
func TestReach(t *testing.T) {
	dir := os.Getenv(inside)
	if dir == "" {
		t.Skip("this is not the namespace that TestNamespace makes")
	}
	w := build(t, t.TempDir())
	cases := reachtest.URLs(t)
	byGrant := map[string]string{}
	for _, c := range cases {
		if byGrant[c.Grant] == "" {
			byGrant[c.Grant] = fmt.Sprintf("corpus_%d", len(byGrant))
			grants[byGrant[c.Grant]] = fmt.Sprintf("http = [%q]", c.Grant)
		}
	}
	send := start(t, dir)

	t.Run("table", func(t *testing.T) {
		for _, test := range reaches {
			w.took()
			a := send(t, test.tool, test.url)
			hits, lookups := w.took()
			for i := range hits {
				hits[i] = strings.TrimSuffix(hits[i], ":80")
			}
			if got := strings.Join(hits, " "); got != test.hits {
				t.Errorf("the request %s of %s hit %q, want %q; the answer was %s", test.url, test.tool, got, test.hits, a)
			}
			if slices.ContainsFunc(lookups, func(s string) bool { return strings.HasSuffix(s, "search.example.") }) {
				t.Errorf("%s: looked up %v", test.url, lookups)
			}
		}
	})

	// The URLs of package reach: only allowed requests hit a server, which must be a public one.
	t.Run("corpus", func(t *testing.T) {
		hit := 0
		for _, c := range cases {
			w.took()
			a := send(t, byGrant[c.Grant], c.URL)
			hits, lookups := w.took()
			if c.Outcome != "allowed" && (len(hits) > 0 || len(lookups) > 0) {
				t.Errorf("%s: %q hit %v and looked up %v; the answer was %s", c.Where, c.URL, hits, lookups, a)
			}
			for _, h := range hits {
				if hit++; !strings.HasPrefix(h, "93.184.215.14:") && !strings.HasPrefix(h, "[2606:2800:21f:cb07::1]:") && !strings.HasPrefix(h, "8.8.8.8:") {
					t.Errorf("%s: %q hit %s", c.Where, c.URL, h)
				}
			}
		}
		if hit < 40 {
			t.Errorf("%d of the allowed URLs hit a server, want more than 40", hit)
		}
	})
}

// reaches are requests with the servers that they hit, in order.
var reaches = []struct{ tool, url, hits string }{
	{"all", "http://api.site.example/", "93.184.215.14"},
	{"all", "http://93.184.215.14/", "93.184.215.14"},
	{"all", "http://[2606:2800:21f:cb07::1]/", "[2606:2800:21f:cb07::1]"},
	{"all", "http://six.site.example/", "[2606:2800:21f:cb07::1]"},
	{"all", "http://chain.site.example/", "93.184.215.14"},
	{"all", "http://api.site.example:8080/", ""},
	{"none", "http://api.site.example/", ""},
	{"site", "http://api.site.example/", "93.184.215.14"},
	{"site", "http://other.site.example/x", "93.184.215.15"},
	{"site", "http://93.184.215.14/", ""},
	{"site", "http://api.site.example:8080/", ""},
	{"site", "https://api.site.example/", ""},
	{"api", "http://api.site.example/v2/x", "93.184.215.14"},
	{"api", "http://api.site.example/v1/", ""},
	{"api", "http://api.site.example/v2/%2e%2e/x", ""},
	{"api", "http://other.site.example/v2/", ""},
	{"private", "http://private.site.example/", "10.0.0.7"},
	{"private", "http://10.0.0.7/", "10.0.0.7"},
	{"private", "http://ula.site.example/", "[fd00::7]"},
	{"private", "http://mapped.site.example/", "10.0.0.7"},
	{"private", "http://hosts.site.example/", "10.0.0.7"},
	{"private", "http://mixed.site.example/", "93.184.215.14"},
	{"private", "http://meta.site.example/", ""},
	{"private", "http://meta6.site.example/", ""},
	{"private", "http://loop.site.example/", ""},
	{"private", "http://nat64.site.example/", ""},
	{"private", "http://6to4.site.example/", ""},
	{"private", "http://compat.site.example/", ""},
	{"private", "http://192.168.1.1/", ""},
	{"private", "http://[::ffff:10.0.0.7]/", ""},
	{"all", "http://hosts.site.example/", ""},
	{"all", "http://localhost/", ""},
	{"all", "http://search/", ""},
	{"all", "http://api/", ""},
	{"all", "http://nowhere.site.example/", ""},
	{"all", "http://mixed.site.example/", ""},
	{"all", "http://mixed6.site.example/", ""},
	{"all", "http://rebind.site.example/", "93.184.215.14"},
	{"all", "http://rebound.site.example/", ""},
	{"all", "http://chaintoprivate.site.example/", ""},
	{"all", "http://chaintometa.site.example/", ""},
	{"all", "http://chaintwice.site.example/", ""},
	{"all", "http://[fe80::1%25lo]/", ""},
	{"all", "http://2130706433/", ""},
	{"all", "http://0x7f.1/", ""},
	{"all", "http://0/", ""},
	{"all", "http://0.0.0.0/", ""},
	{"all", "http://[::]/", ""},
	{"all", "http://9.9.9.9/", ""},
	{"all", "http://[2a00:1450::5]/", ""},
	{"all", "http://1.0.5.9/", ""},
	{"all", "http://1.0.5.10/", ""},
	{"all", "http://[2a00:1450::6]/", ""},
	{"all", "http://45.0.0.1/", ""},
	{"all", "http://45.1.2.3/", "45.1.2.3"},
	{"all", "http://own.site.example/", ""},
	{"all", "http://own6.site.example/", ""},
	{"all", "http://beside.site.example/", ""},
	{"all", "http://beside6.site.example/", ""},
	{"all", "http://mixedown.site.example/", ""},
	{"all", "http://mixedbeside.site.example/", ""},
	{"own", "http://own.site.example/", "9.9.9.9"},
	{"own", "http://own6.site.example/", "[2a00:1450::5]"},
	{"own", "http://beside6.site.example/", "[2a00:1450::6]"},
	{"own", "http://beside.site.example/", ""},
	{"own", "http://1.0.5.9/", ""},
	{"follow", "http://api.site.example/to?http://own.site.example/", "93.184.215.14"},
	{"follow", "http://api.site.example/to?/x", "93.184.215.14 93.184.215.14"},
	{"follow", "http://api.site.example/to?http://other.site.example/", "93.184.215.14 93.184.215.15"},
	{"follow", "http://api.site.example/to?http://other.site.example/to?http://private.site.example/", "93.184.215.14 93.184.215.15"},
	{"follow", "http://api.site.example/to?http://93.184.215.15/", "93.184.215.14"},
	{"follow", "http://api.site.example/to?http://169.254.169.254/latest/meta-data/", "93.184.215.14"},
	{"follow", "http://api.site.example/to?http://meta.site.example/", "93.184.215.14"},
	{"follow", "http://api.site.example/to?//other.site.example:8080/", "93.184.215.14"},
	{"follow", "http://api.site.example/to?https://other.site.example/", "93.184.215.14"},
	{"follow", "http://api.site.example/to?http://loop.site.example/", "93.184.215.14"},
	{"site", "http://api.site.example/to?http://other.site.example/", "93.184.215.14"},
}

// start starts the server, and returns a function that lets one of its tools send a request and returns the answer.
func start(t *testing.T, dir string) (send func(t *testing.T, tool, url string) string) {
	t.Helper()
	site := t.TempDir()
	if err := os.Mkdir(filepath.Join(site, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	type tool struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  map[string]any `json:"parameters"`
		Needs       map[string]any `json:"needs"`
	}
	var tools []tool
	var configuration strings.Builder
	for name, grant := range grants {
		needs := map[string]any{}
		if grant != "" {
			needs["http"] = []string{"http://*"}
			fmt.Fprintf(&configuration, "[[grant]]\nmatch = \"fetch/%s\"\n%s\n", name, grant)
		}
		if _, pattern, ok := strings.Cut(grant, "http = [\"https:"); ok {
			needs["http"] = []string{"https:" + pattern[:strings.IndexByte(pattern, '"')]}
		}
		tools = append(tools, tool{name, "Sends a request.", map[string]any{"type": "object"}, needs})
	}
	said, err := json.Marshal(map[string]any{"abi": manifest.ABI, "namespace": "fetch", "tools": tools})
	if err != nil {
		t.Fatal(err)
	}
	module, err := wasmbin.SetCustom(testkit.Read(t, testkit.Root(t), "testdata", "e2e", "fetch.wasm"), manifest.Section, said)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Put(t, filepath.Join(site, "tools"), "fetch.wasm", module)
	file := testkit.Put(t, site, "toolsrv.toml", configuration.String())
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "toolsrv"), "openapi", "--config", file, "--address", "127.0.0.1:8000")
	proxy := "http://10.0.0.7:8080" // no request may hit this one
	cmd.Env = append(os.Environ(), "HTTP_PROXY="+proxy, "http_proxy="+proxy, "HTTPS_PROXY="+proxy, "https_proxy="+proxy, "ALL_PROXY="+proxy, "all_proxy="+proxy)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	var seen strings.Builder
	for ready := false; !ready; {
		if !lines.Scan() {
			t.Fatalf("the server ended:\n%s", seen.String())
		}
		seen.WriteString(lines.Text() + "\n")
		ready = strings.Contains(lines.Text(), `"msg":"ready"`)
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	return func(t *testing.T, tool, url string) string {
		t.Helper()
		head, err := json.Marshal(map[string]any{"method": "GET", "url": url, "timeout": 5000})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.Post("http://127.0.0.1:8000/fetch/"+tool, "application/json", strings.NewReader(`{"head":`+string(head)+`}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %s", r.StatusCode, body)
	}
}
