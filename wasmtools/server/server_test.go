package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	public "github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// patience is the longest wait for an event.
const patience = 30 * time.Second

// settings returns a configuration with a free port and a directory with the guest, in the namespace "shop".
func settings(tb testing.TB) *config.Config {
	tb.Helper()
	c := config.Default()
	c.Server.Addresses = []string{"127.0.0.1:0"}
	c.Server.Hosts = []string{"x", "y"} // the host of requests that tests write by hand
	c.Tools.Directory = tb.TempDir()
	c.Tools.CacheDir = tb.TempDir()
	testkit.Put(tb, c.Tools.Directory, "shop.wasm", guest(tb, "shop"))
	return c
}

// guest returns the guest's module for a namespace.
func guest(tb testing.TB, namespace string) []byte {
	tb.Helper()
	var tools []string
	for _, name := range []string{"echo", "refuse", "reject", "trap", "spin", "recurse", "grow", "garble", "silent", "wait"} {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"Does %s.","parameters":{"type":"object"}}`, name, name))
	}
	manifest := fmt.Sprintf(`{"abi":1,"namespace":%q,"tools":[%s]}`, namespace, strings.Join(tools, ","))
	return sandboxtest.WithManifest(tb, testkit.Fixture(tb, "e2e/guest"), manifest)
}

// A running server.
type running struct {
	*server.Server
	of   *core.Service
	tb   testing.TB
	url  string
	log  *testkit.Log
	stop context.CancelFunc
	done chan error // what Run returned
}

// Reload calls the server's Reload with a configuration that has all fields.
func (r *running) Reload(c *config.Config) error {
	return r.Server.Reload((*public.Config)(c.Handle()))
}

// start makes a server, runs it until the test ends, and waits until it is ready.
func start(tb testing.TB, c *config.Config) *running {
	tb.Helper()
	r := run(tb, build(tb, c))
	r.log.Wait(tb, `"msg":"ready"`)
	return r
}

func build(tb testing.TB, c *config.Config, tools ...*wasmtools.Tool) *running {
	tb.Helper()
	r := &running{tb: tb, log: &testkit.Log{}, done: make(chan error, 1)}
	var err error
	r.of, r.Server, err = open(tb, c, core.Options{Tools: tools, Logger: slog.New(slog.NewJSONHandler(r.log, nil))}, server.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// open opens a service and a server for it, or neither.
func open(tb testing.TB, c *config.Config, o core.Options, with server.Options) (*core.Service, *server.Server, error) {
	of, err := core.Open(tb.Context(), c, o)
	if err != nil {
		return nil, nil, err
	}
	s, err := server.New(tb.Context(), (*service.Service)(of.Handle()), with)
	if err != nil {
		return nil, nil, errors.Join(err, of.Close())
	}
	return of, s, nil
}

func run(tb testing.TB, r *running) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.url = cancel, "http://"+r.Addr().String()
	ended := make(chan struct{})
	go func() {
		r.done <- errors.Join(r.Run(ctx), r.of.Close())
		close(ended)
	}()
	tb.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

// result waits for Run.
func (r *running) result() error {
	r.tb.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		r.tb.Fatalf("Run goes on after %s", patience)
		return nil
	}
}

// call posts {} to a tool and returns status and body.
func (r *running) call(path, token string) (int, string, error) {
	q, err := http.NewRequest(http.MethodPost, r.url+path, strings.NewReader("{}"))
	if err != nil {
		return 0, "", err
	}
	q.Header.Set("Content-Type", "application/json")
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	a, err := client.Do(q)
	if err != nil {
		return 0, "", err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	return a.StatusCode, string(body), err
}

// status calls a tool, for tests that need only the status.
func (r *running) status(path, token string) int {
	r.tb.Helper()
	status, _, err := r.call(path, token)
	if err != nil {
		r.tb.Fatal(err)
	}
	return status
}

func TestRun(t *testing.T) {
	t.Parallel()
	r := start(t, settings(t))
	if status, body, err := r.call("/shop/echo", ""); status != http.StatusOK || body != "{}" {
		t.Errorf("POST /shop/echo: %d %s %v, want 200 {}", status, body, err)
	}
	r.log.Wait(t, `"msg":"listening","address":"`+r.Addr().String()+`"`)
	r.log.Wait(t, `"msg":"ready","tools":10,"refused":0,"took":"`)
	r.log.Wait(t, "anybody")
	r.stop()
	if err := r.result(); err != nil {
		t.Errorf("Run: %v, want nil", err)
	}
	if _, _, err := r.call("/shop/echo", ""); err == nil {
		t.Error("the server answers after Run")
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close after Run: %v", err)
	}
}

// TestDrain checks that a running call is answered, and that meanwhile the server says that it is not ready.
func TestDrain(t *testing.T) {
	t.Parallel()
	r := start(t, settings(t))
	answer := make(chan string, 1)
	go func() {
		status, body, err := r.call("/shop/wait", "")
		answer <- fmt.Sprint(status, " ", body, " ", err)
	}()
	r.log.Wait(t, `"msg":"waiting"`)
	r.stop()
	r.log.Wait(t, "draining")
	for path, want := range map[string]int{"/readyz": http.StatusServiceUnavailable, "/healthz": http.StatusOK} {
		a, err := http.Get(r.url + path)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != want || !a.Close {
			t.Errorf("%s during the drain: %d, connection closed %t; want %d, true", path, a.StatusCode, a.Close, want)
		}
	}
	if status, body, err := r.call("/shop/echo", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, `"not_ready"`) {
		t.Errorf("a new call during the drain: %d %s %v, want 503 not_ready", status, body, err)
	}
	if got, want := <-answer, `200 "waited" <nil>`; got != want {
		t.Errorf("the running call got %s, want %s", got, want)
	}
	if err := r.result(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestDrainLimit checks that calls that take too long to finish are cut off, and that their clients are told so.
func TestDrainLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	c := settings(t)
	c.Limits.Timeout = time.Minute
	r := build(t, c)
	r.SetDrain(time.Millisecond)
	run(t, r)
	r.log.Wait(t, `"msg":"ready"`)
	answers := make(chan string, 2) // empty if the connection is cut before the refusal is written
	go func() {
		_, body, _ := r.call("/shop/spin", "")
		answers <- body
	}()
	conn := r.dial()
	defer conn.Close()
	if _, err := io.WriteString(conn, mcpCall("shop-spin")); err != nil {
		t.Fatal(err)
	}
	go func() {
		answer, _ := io.ReadAll(conn)
		answers <- string(answer)
	}()
	if status := r.status("/shop/wait", ""); status != http.StatusOK { // once this is done, spin is surely running
		t.Fatalf("POST /shop/wait: %d", status)
	}
	r.stop()
	if err := r.result(); err != nil {
		t.Errorf("Run: %v, want nil", err)
	}
	for range 2 {
		if got := <-answers; got != "" && !strings.Contains(got, "The server shut down before the call was done; try again.") {
			t.Errorf("an endless call was answered with %s", got)
		}
	}
	r.log.Wait(t, `"msg":"cutting off the calls that are still running","after":"1ms","calls":2`)
	r.log.Wait(t, `"msg":"calls cut off","path":"/mcp","calls":1`)
	r.log.Wait(t, `"msg":"calls cut off","path":"/shop/spin","calls":1`)
}

func TestNewFails(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for _, c := range []struct {
		name   string
		change func(*config.Config)
		says   []string
	}{
		{"address in use", func(c *config.Config) { c.Server.Addresses = []string{taken.Addr().String()} },
			[]string{taken.Addr().String(), "another program listens there", "--address"}},
		{"an address of another machine", func(c *config.Config) { c.Server.Addresses = []string{"192.0.2.1:80"} }, []string{"192.0.2.1:80", "--address"}},
		{"no port", func(c *config.Config) { c.Server.Addresses = []string{"localhost"} }, []string{"localhost", "host:port"}},
		{"no directory", func(c *config.Config) { c.Tools.Directory = filepath.Join(c.Tools.Directory, "nowhere") }, []string{"nowhere"}},
		{"a file in place of a directory", func(c *config.Config) { c.Tools.Directory = filepath.Join(c.Tools.Directory, "shop.wasm") }, []string{"shop.wasm"}},
		{"bad token", func(c *config.Config) { c.Auth.Tokens = []string{"good", "not good"} }, []string{"token"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := settings(t)
			c.change(settings)
			of, s, err := open(t, settings, core.Options{}, server.Options{})
			if err == nil {
				t.Fatal(errors.Join(errors.New("New accepts it"), s.Close(), of.Close()))
			}
			for _, word := range c.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the error does not say %q: %v", word, err)
				}
			}
			if strings.Contains(err.Error(), "not good") {
				t.Errorf("the error shows a token: %v", err)
			}
		})
	}
}

// TestNewReleases checks that the address is free again after New has failed.
func TestNewReleases(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := settings(t)
	c.Server.Addresses = []string{free.Addr().String()}
	free.Close()
	c.Auth.Tokens = []string{"not good"}
	if of, s, err := open(t, c, core.Options{}, server.Options{}); err == nil {
		t.Fatal(errors.Join(errors.New("New accepts a bad token"), s.Close(), of.Close()))
	}
	c.Auth.Tokens = nil
	of, s, err := open(t, c, core.Options{}, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(s.Close(), of.Close()); err != nil {
			t.Errorf("Close of a server that never ran: %v", err)
		}
	}
}

// TestLimits checks that a client can't prolong anything without end, and that no timeout cuts off a call that is within its limit.
func TestLimits(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Overrides = []config.Override{{Match: "shop/wait", Limits: limits.Limits{Timeout: 10 * time.Minute}}}
	r := start(t, c)
	h := r.HTTP()
	for name, got := range map[string]time.Duration{
		"ReadHeaderTimeout": h.ReadHeaderTimeout, "ReadTimeout": h.ReadTimeout, "WriteTimeout": h.WriteTimeout, "IdleTimeout": h.IdleTimeout,
	} {
		if got <= 0 {
			t.Errorf("%s is %s: off", name, got)
		}
	}
	if least := h.ReadTimeout + 10*time.Minute; h.WriteTimeout <= least {
		t.Errorf("WriteTimeout is %s, not longer than %s", h.WriteTimeout, least)
	}

	q, err := http.NewRequest(http.MethodGet, r.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Large", strings.Repeat("x", 64<<10))
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 64 KiB: %d, want 431", a.StatusCode)
	}
}

func BenchmarkCall(b *testing.B) {
	r := start(b, settings(b))
	client := &http.Client{}
	defer client.CloseIdleConnections()
	for b.Loop() {
		a, err := client.Post(r.url+"/shop/echo", "application/json", strings.NewReader("{}"))
		if err != nil {
			b.Fatal(err)
		}
		if err := json.NewDecoder(a.Body).Decode(&struct{}{}); err != nil || a.StatusCode != http.StatusOK {
			b.Fatal(a.Status, err)
		}
		a.Body.Close()
	}
}
