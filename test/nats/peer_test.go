package nats_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/wasmtools"
	public "github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// A peer is a server over HTTP with a state in NATS.
type peer struct {
	service *core.Service
	url     string
	stop    func()
}

// newPeer starts a server, which stops when the test ends, if not before.
func newPeer(t *testing.T, natsURL string, more ...*wasmtools.Tool) *peer {
	t.Helper()
	c := config.Default()
	c.Server.Addresses = []string{"127.0.0.1:0"}
	c.Tools.Directory, c.Tools.CacheDir, c.State.URL, c.Metrics.Enabled = t.TempDir(), t.TempDir(), natsURL, true
	add := gotool.New("math/add", "Adds.", func(_ context.Context, args struct {
		A int `json:"a"`
		B int `json:"b"`
	}) (int, error) {
		return args.A + args.B, nil
	})
	of, err := service.Open(t.Context(), (*public.Config)(c.Handle()), service.Options{Tools: append(more, add)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), of, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	var stopped atomic.Bool
	r := &peer{service: (*core.Handle)(of).Service(), url: "http://" + s.Addr().String()}
	r.stop = func() {
		if stopped.Swap(true) {
			return
		}
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := of.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(r.stop)
	eventually(t, "the server is ready", func() bool {
		a, err := http.Get(r.url + "/readyz")
		if err == nil {
			a.Body.Close()
		}
		return err == nil && a.StatusCode == 200
	})
	return r
}

// ask sends a request to the server.
func (r *peer) ask(t *testing.T, method, path, body string) (status int, text string) {
	t.Helper()
	status, text, _ = send(t, method, r.url+path, body)
	return status, text
}

// send sends a request with some headers, given as names and values in turn.
func send(t *testing.T, method, url, body string, headers ...string) (status int, text string, answered http.Header) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	all, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(all), a.Header
}
