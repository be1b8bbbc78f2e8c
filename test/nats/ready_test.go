package nats_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// TestReady asks a server that is cut off from NATS: it answers calls and is ready, and says in /readyz and in its metrics that it is cut off.
func TestReady(t *testing.T) {
	c := start(t, 1, nil)
	gate := newGate(t, c)
	o := config.Default()
	o.Server.Addresses, o.Metrics.Enabled = []string{"127.0.0.1:0"}, true
	o.Tools.Directory, o.Tools.CacheDir, o.State.URL = t.TempDir(), t.TempDir(), gate.url()
	add := gotool.New("math/add", "Adds.", func(_ context.Context, args struct{ A, B int }) (int, error) { return args.A + args.B, nil })
	of, err := service.Open(t.Context(), o, service.Options{Tools: []*wasmtools.Tool{add}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), of, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := of.Close(); err != nil {
			t.Error(err)
		}
	}()
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(text)
	}
	eventually(t, "the server is ready", func() bool {
		code, text := ask(http.MethodGet, "/readyz", "")
		return code == 200 && !strings.Contains(text, "cut off")
	})
	gate.shut()
	eventually(t, "the server says that it is cut off", func() bool {
		code, text := ask(http.MethodGet, "/readyz", "")
		return code == 200 && strings.Contains(text, `"state":"cut off"`)
	})
	if _, text := ask(http.MethodGet, "/metrics", ""); !strings.Contains(text, "\ntoolsrv_state_cut_off 1\n") {
		t.Errorf("the metrics don't say that the server is cut off")
	}
	if code, text := ask(http.MethodPost, "/math/add", `{"A": 40, "B": 2}`); code != 200 || strings.TrimSpace(text) != "42" {
		t.Errorf("a call got %d %s", code, text)
	}
	gate.open()
	eventually(t, "the server is not cut off any more", func() bool { _, text := ask(http.MethodGet, "/readyz", ""); return !strings.Contains(text, "cut off") })
}
