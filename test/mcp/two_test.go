package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// TestTwoServers does the same as TestTypeScript with two servers that share a state in NATS, behind a balancer that sends successive requests to
// different servers.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, sdk, era string }{
		{"v1", "v1", "legacy"},
		{"v2 as an older client", "v2", "legacy"},
		{"v2 negotiates", "v2", "auto"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := prepare(t, disabled, withToken, fmt.Sprintf("[state]\nurl = %q\n", startNATS(t)))
			other := s
			other.config = filepath.Join(t.TempDir(), "toolsrv.toml")
			text, err := os.ReadFile(s.config)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(other.config, text, 0o600); err != nil {
				t.Fatal(err)
			}
			argument, err := json.Marshal(map[string]any{"sdk": test.sdk, "era": test.era, "servers": 2,
				"from": filepath.Join(setting(t, "TOOLS"), "math.wasm"), "to": filepath.Join(s.tools, "math.wasm"), "appears": "math-add",
				"url": balance(t, s.start(t, nil), other.start(t, nil)), "token": token})
			if err != nil {
				t.Fatal(err)
			}
			stdout, stderr, err := run(t, clientLimit, nil, node(t), "client.mjs", string(argument))
			report(t, stdout, checks+2)
			if err != nil || t.Failed() {
				t.Errorf("client.mjs: %v\n%s", err, clip(stderr))
			}
		})
	}
}

// startNATS runs a server of NATS until the test ends, and returns its address.
func startNATS(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	free.Close()
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(setting(t, "NATS"), "--jetstream", "--store_dir", t.TempDir(), "--addr", "127.0.0.1", "--port", port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	for end := time.Now().Add(startLimit); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			conn.Close()
			return "nats://" + at
		}
		if time.Now().After(end) {
			t.Fatalf("NATS does not listen: %v", err)
		}
	}
}

// balance returns the address of a balancer that sends each request to the next server.
func balance(t *testing.T, servers ...string) string {
	t.Helper()
	var turn atomic.Uint64
	b := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			to, err := url.Parse(servers[turn.Add(1)%uint64(len(servers))])
			if err != nil {
				t.Error(err)
			}
			r.SetURL(to)
			// Go's proxy closes the connection if the server answers before the whole body was read.
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				t.Error(err)
			}
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				t.Errorf("%s %s: %v", r.Method, r.URL, err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	})
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b.URL
}
