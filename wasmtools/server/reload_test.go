package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// changed returns a copy of c with a change.
func changed(c *config.Config, change func(*config.Config)) *config.Config {
	next := *c
	change(&next)
	return &next
}

func TestReload(t *testing.T) {
	t.Parallel()
	first := settings(t)
	first.Auth.Tokens = []string{"one"}
	r := start(t, first)
	for _, c := range []struct {
		name          string
		change        func(*config.Config)
		token         string
		echo, stopped int // the statuses of /shop/echo and of /shop/spin
	}{
		{"nothing", func(*config.Config) {}, "one", 200, 0},
		{"another token", func(c *config.Config) { c.Auth.Tokens = []string{"two"} }, "one", 401, 0},
		{"the other token", func(c *config.Config) { c.Auth.Tokens = []string{"two"} }, "two", 200, 0},
		{"no token", func(c *config.Config) { c.Auth.Tokens = nil }, "", 200, 0},
		{"no token, but one is required", func(c *config.Config) { c.Auth.Tokens, c.Auth.Required = nil, true }, "", 401, 0},
		{"denylist", func(c *config.Config) { c.Tools.Disabled = []string{"shop/echo"} }, "one", 503, 0},
		{"allowlist", func(c *config.Config) { c.Tools.Allowlist, c.Tools.Enabled = true, []string{"shop/echo"} }, "one", 200, 503},
		{"limits", func(c *config.Config) { c.Limits.Timeout = 50 * time.Millisecond }, "one", 200, 504},
		{"override", func(c *config.Config) {
			c.Overrides = []config.Override{{Match: "shop/spin", Limits: limits.Limits{Timeout: 50 * time.Millisecond}}}
		}, "one", 200, 504},
		{"longer time-outs", func(c *config.Config) { c.Limits.Timeout = time.Hour }, "one", 200, 0},
	} {
		if err := r.Reload(changed(first, c.change)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := r.status("/shop/echo", c.token); got != c.echo {
			t.Errorf("%s: /shop/echo answers %d, want %d", c.name, got, c.echo)
		}
		if c.stopped == 0 {
			continue
		}
		if got := r.status("/shop/spin", c.token); got != c.stopped {
			t.Errorf("%s: /shop/spin answers %d, want %d", c.name, got, c.stopped)
		}
	}
}

// TestReloadIsOneStep makes reloads that require a token and switch a tool on, and back: at no moment is only half of a configuration in force.
func TestReloadIsOneStep(t *testing.T) {
	t.Parallel()
	first := settings(t)
	first.Tools.Disabled = []string{"shop/echo"}
	r := start(t, first)
	var between []int
	unsubscribe := r.Table().Subscribe(func(*wasmtools.Generation) { between = append(between, r.status("/shop/echo", "")) })
	defer unsubscribe()
	for _, step := range []struct {
		to   *config.Config
		want int
	}{
		{changed(first, func(c *config.Config) { c.Tools.Disabled, c.Auth.Tokens = nil, []string{"one"} }), http.StatusUnauthorized},
		{first, http.StatusServiceUnavailable},
	} {
		between = nil
		if err := r.Reload(step.to); err != nil {
			t.Fatal(err)
		}
		if len(between) != 1 || between[0] != step.want {
			t.Errorf("the generation of the reload: got %v, want an answer with %d", between, step.want)
		}
	}
}

// TestReloadRefuses checks that a refused reload changes nothing.
func TestReloadRefuses(t *testing.T) {
	t.Parallel()
	first := settings(t)
	first.Auth.Tokens = []string{"one"}
	r := start(t, first)
	err := r.Reload(changed(first, func(c *config.Config) {
		c.Auth.Tokens, c.Tools.Disabled = []string{"two words"}, []string{"shop"}
	}))
	if err == nil || strings.Contains(err.Error(), "two words") {
		t.Errorf("a bad token: error %v, want one that does not show it", err)
	}
	if got := r.status("/shop/echo", "one"); got != http.StatusOK {
		t.Errorf("after the refused reload: %d, want 200", got)
	}
}

// TestReloadTellsInTheDocument checks that the OpenAPI document requires a token as soon as there is one, and has the configured address.
func TestReloadTellsInTheDocument(t *testing.T) {
	t.Parallel()
	first := settings(t)
	first.Server.PublicURL = "https://example.com/tools/"
	r := start(t, first)
	for _, tokens := range [][]string{nil, {"one"}, nil} {
		if err := r.Reload(changed(first, func(c *config.Config) { c.Auth.Tokens = tokens })); err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequest(http.MethodGet, "http://"+r.Addr().String()+"/openapi.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer one")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var document struct {
			Servers  []struct{ URL string }
			Security []any
		}
		if err := json.NewDecoder(answer.Body).Decode(&document); err != nil {
			t.Fatal(err)
		}
		if got := len(document.Security) > 0; got != (tokens != nil) {
			t.Errorf("with the tokens %q the document requires a token: %t", tokens, got)
		}
		if len(document.Servers) != 1 || document.Servers[0].URL != "https://example.com/tools" {
			t.Errorf("the document has the servers %v", document.Servers)
		}
	}
}

// TestReloadWarns checks that every reload names the settings that need a restart, until these have their values from
// the start again.
func TestReloadWarns(t *testing.T) {
	t.Parallel()
	first := settings(t)
	r := start(t, first)
	for _, c := range []struct {
		key    string
		change func(*config.Config)
	}{
		{"title", func(c *config.Config) { c.Title = "Other" }},
		{"server.address", func(c *config.Config) { c.Server.Addresses = []string{"127.0.0.1:1"} }},
		{"server.public_url", func(c *config.Config) { c.Server.PublicURL = "/tools" }},
		{"server.code_memory", func(c *config.Config) { c.Server.CodeMemory = 64 << 20 }},
		{"server.memory", func(c *config.Config) { c.Server.Memory = 64 << 20 }},
		{"tools.describe_fuel", func(c *config.Config) { c.Tools.DescribeFuel = 1 }},
		{"tools.directory", func(c *config.Config) { c.Tools.Directory = filepath.Join(c.Tools.Directory, "nowhere") }},
	} {
		next := changed(first, c.change)
		for times := 1; times <= 2; times++ {
			if err := r.Reload(next); err != nil {
				t.Fatal(err)
			}
			text := r.log.String()
			if got := strings.Count(text, `"level":"WARN","msg":"a changed setting needs a restart","key":"`+c.key+`"`); got != times {
				t.Errorf("%d warnings about %s after %d reloads", got, c.key, times)
			}
		}
	}
	if err := r.Reload(first); err != nil {
		t.Fatal(err)
	}
	if n := r.log.Count(`"level":"INFO","msg":"a setting is back at its value from the start, so it needs no restart","key":"tools.directory"`); n != 1 {
		t.Errorf("the log says %d times that tools.directory is back, want once", n)
	}
	if got := r.status("/shop/echo", ""); got != http.StatusOK {
		t.Errorf("after these reloads: %d, want 200", got)
	}
}

// TestReloadUnderLoad checks that no call fails because of a reload that does not concern it.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	first := settings(t)
	first.Auth.Tokens = []string{"one"}
	r := start(t, first)
	others := []*config.Config{
		changed(first, func(c *config.Config) { c.Auth.Tokens = []string{"two", "one"} }),
		changed(first, func(c *config.Config) { c.Auth.Required = true }),
		changed(first, func(c *config.Config) { c.Tools.Disabled = []string{"shop/spin", "web"} }),
		changed(first, func(c *config.Config) { c.Limits.Timeout = time.Minute }),
	}
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 25 {
				if status, body, err := r.call("/shop/echo", "one"); status != http.StatusOK || err != nil {
					t.Errorf("with the token that is always there: %d %s %v", status, body, err)
				}
				if status, body, err := r.call("/shop/echo", "none"); status != http.StatusUnauthorized || err != nil {
					t.Errorf("with a token that is never there: %d %s %v", status, body, err)
				}
			}
		})
	}
	for range 2 {
		work.Go(func() {
			for i := range 20 {
				if err := r.Reload(others[i%len(others)]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
}

// TestReloadOfMany reloads tokens and limits of servers with few tools and with many: each further tool costs no more than a route in a new table. It
// is not parallel, since it counts the allocations of the whole process.
func TestReloadOfMany(t *testing.T) {
	took := map[int]uint64{}
	for _, many := range []int{100, 5000} {
		var tools []*wasmtools.Tool
		for n := range many {
			tools = append(tools, gotool.New(fmt.Sprintf("many%d/t%d", n%50, n), "Is there.", func(context.Context, struct{}) (int, error) { return n, nil }))
		}
		first := settings(t)
		r := run(t, build(t, first, tools...))
		r.log.Wait(t, `"msg":"ready"`)
		took[many] = math.MaxUint64
		for n := range 8 {
			next := changed(first, func(c *config.Config) {
				c.Auth.Tokens = []string{fmt.Sprint("token", n)}
				c.Overrides = []config.Override{{Match: "shop/echo", Limits: limits.Limits{Queue: 1 + n}}}
			})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := r.Reload(next); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			took[many] = min(took[many], after.TotalAlloc-before.TotalAlloc)
		}
	}
	each := (int64(took[5000]) - int64(took[100])) / 4900
	t.Logf("with 100 tools a reload allocates %d bytes, and %d for each further one", took[100], each)
	if each > 600 {
		t.Errorf("for each further tool a reload allocates %d bytes, want a route", each)
	}
}
