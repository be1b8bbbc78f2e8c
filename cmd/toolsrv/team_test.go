//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/pagetest"
)

// teamHost is the name that docs/team.md gives the service.
const teamHost = "tools.example.com"

// TestTeam runs the service of docs/team.md behind each of the page's proxies that is installed. It uses the page's own configurations, with only
// paths and ports changed. Calls need a token, MCP streams come through as they are written, and the log has the client's address.
func TestTeam(t *testing.T) {
	t.Parallel()
	blocks := map[string][]string{}
	for _, b := range pagetest.Blocks(string(testkit.Read(t, "../../docs/team.md"))) {
		blocks[b.Language] = append(blocks[b.Language], b.Text)
	}
	for language, n := range map[string]int{"toml": 3, "nginx": 2, "caddyfile": 1} {
		if len(blocks[language]) != n {
			t.Fatalf("docs/team.md has %d blocks of %s, want %d", len(blocks[language]), language, n)
		}
	}
	for name, proxy := range map[string]func(t *testing.T, upstream string) (address string){
		"nginx": func(t *testing.T, upstream string) string {
			return startNginx(t, strings.NewReplacer("127.0.0.1:8000", upstream).Replace(blocks["nginx"][0]))
		},
		"nginx before three": func(t *testing.T, upstream string) string { // the proxy's other two servers are down
			three := regexp.MustCompile(`10\.0\.0\.11:8000`).ReplaceAllString(blocks["nginx"][1], upstream)
			three = regexp.MustCompile(`10\.0\.0\.1[23]:8000`).ReplaceAllString(three, "127.0.0.1:1")
			_, rest, _ := strings.Cut(blocks["nginx"][0], "}\n")
			limit, _, _ := strings.Cut(blocks["nginx"][0], "upstream")
			return startNginx(t, limit+three+rest)
		},
		"caddy": func(t *testing.T, upstream string) string {
			return startCaddy(t, strings.ReplaceAll(blocks["caddyfile"][0], "127.0.0.1:8000", upstream))
		},
		"traefik": func(t *testing.T, upstream string) string {
			return startTraefik(t, strings.ReplaceAll(string(testkit.Read(t, "../../deploy/proxies/traefik.yaml")), "127.0.0.1:8000", upstream))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, _, _ := strings.Cut(name, " ")
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("there is no %s to be a proxy: make setup-proxies installs it", program)
			}
			s := startTeam(t, blocks["toml"])
			checkTeam(t, s, proxy(t, strings.TrimPrefix(s.url, "http://")))
		})
	}
}

// startTeam starts the service of the page with the guest as a tool, and two tokens.
func startTeam(t *testing.T, config []string) *service {
	t.Helper()
	dir := site(t, "", map[string][]byte{"math.wasm": guest(t, "math", "1.0.0", guestTools...)})
	put(t, filepath.Join(dir, "tokens"), []byte("# ci\n"+token+"\n# Ada\nother\n"))
	put(t, filepath.Join(dir, "meteo.key"), []byte("0123456789abcdef0123456789abcdef"))
	text := strings.NewReplacer("/etc/toolsrv", dir, "/var/cache/toolsrv", filepath.Join(dir, "cache"), "/var/lib/toolsrv", dir).Replace(config[0] + "\n" + config[1])
	put(t, filepath.Join(dir, "toolsrv.toml"), []byte(text))
	return start(t, dir)
}

// checkTeam calls a service through a proxy, like the clients on the page.
func checkTeam(t *testing.T, s *service, address string) {
	t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: teamHost}, //nolint:gosec // the certificate is the test's own
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	call := func(path, body, bearer string) *http.Response {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // until the proxy listens and has found the service
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+teamHost+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if bearer != "" {
				r.Header.Set("Authorization", "Bearer "+bearer)
			}
			if path == "/mcp" {
				r.Header.Set("Accept", "application/json, text/event-stream")
				r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
				r.Header.Set("Mcp-Method", "subscriptions/listen")
			}
			res, err := client.Do(r)
			if err == nil && res.Header.Get("X-Request-Id") != "" {
				return res
			}
			if err == nil {
				_ = res.Body.Close()
				err = fmt.Errorf("the proxy itself answers %s", res.Status)
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	for bearer, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, token: http.StatusOK, "other": http.StatusOK} {
		res := call("/math/echo", order, bearer)
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != want {
			t.Errorf("with the token %q: got %d %s (%v), want %d", bearer, res.StatusCode, body, err, want)
		}
	}
	res := call("/mcp", `{"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": true}, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}`, token)
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); ; {
		if !lines.Scan() {
			t.Fatalf("a stream of MCP: got %d and no message (%v)", res.StatusCode, lines.Err())
		}
		if strings.Contains(lines.Text(), "acknowledged") { // the stream is still open, so the proxy does not buffer it
			break
		}
	}
	s.waitLine("a request with the proxy's client", func(line map[string]any) bool {
		client, _ := line["client"].(string)
		return line["msg"] == "request" && line["principal"] == "token-1" && strings.HasPrefix(client, "127.0.0.1")
	})
}

// startNginx runs nginx with a part of its configuration, and returns its address.
func startNginx(t *testing.T, piece string) string {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	certificate(t, filepath.Join(dir, "a.pem"), filepath.Join(dir, "a.key"))
	piece = strings.NewReplacer("listen 443 ssl", "listen "+address+" ssl", "/etc/ssl/"+teamHost+".pem", filepath.Join(dir, "a.pem"),
		"/etc/ssl/"+teamHost+".key", filepath.Join(dir, "a.key")).Replace(piece)
	paths := ""
	for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		paths += fmt.Sprintf("%s_temp_path %s;\n", name, filepath.Join(dir, name))
	}
	put(t, filepath.Join(dir, "nginx.conf"), []byte("daemon off; master_process off; pid "+filepath.Join(dir, "pid")+";\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n"+paths+piece+"\n}\n"))
	runProxy(t, exec.Command("nginx", "-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf")))
	return address
}

// startCaddy runs Caddy with a site of its configuration, and returns its address.
func startCaddy(t *testing.T, site string) string {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	certificate(t, filepath.Join(dir, "a.pem"), filepath.Join(dir, "a.key"))
	site = strings.Replace(site, teamHost+" {", fmt.Sprintf("%s:%s {\n\tbind 127.0.0.1\n\ttls %s %s", teamHost, port, filepath.Join(dir, "a.pem"), filepath.Join(dir, "a.key")), 1)
	put(t, filepath.Join(dir, "Caddyfile"), []byte("{\n\tadmin off\n\tauto_https disable_redirects\n}\n"+site))
	cmd := exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", filepath.Join(dir, "Caddyfile"))
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	runProxy(t, cmd)
	return address
}

// startTraefik runs Traefik with a file of its dynamic configuration and one with the certificate, and returns its address.
func startTraefik(t *testing.T, routes string) string {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	certificate(t, filepath.Join(dir, "a.pem"), filepath.Join(dir, "a.key"))
	put(t, filepath.Join(dir, "dynamic", "toolsrv.yaml"), []byte(routes))
	put(t, filepath.Join(dir, "dynamic", "tls.yaml"), fmt.Appendf(nil, "tls:\n  certificates:\n    - certFile: %s\n      keyFile: %s\n",
		filepath.Join(dir, "a.pem"), filepath.Join(dir, "a.key")))
	runProxy(t, exec.Command("traefik", "--entryPoints.websecure.address="+address, "--providers.file.directory="+filepath.Join(dir, "dynamic"),
		"--global.checkNewVersion=false", "--global.sendAnonymousUsage=false"))
	return address
}

// runProxy runs a command until the test ends.
func runProxy(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s says:\n%s", cmd.Path, said.String())
		}
	})
}

// freeAddress returns an address of this machine at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// certificate writes a certificate for the page's host, and its key.
func certificate(t *testing.T, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{teamHost}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	put(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	put(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}
