package server_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// lastReload returns the log's last line about a reload.
func lastReload(t *testing.T, text string) (line map[string]any) {
	t.Helper()
	for l := range strings.Lines(text) {
		if strings.Contains(l, `"msg":"configuration reloaded"`) {
			line = nil
			if err := json.Unmarshal([]byte(l), &line); err != nil {
				t.Fatal(err)
			}
		}
	}
	return line
}

// TestReloadTellsWhatChanged checks the log line about what a reload has switched, granted and limited. The line shows no
// token.
func TestReloadTellsWhatChanged(t *testing.T) {
	t.Parallel()
	first := settings(t)
	first.Auth.Tokens = []string{"hunter-one", "hunter-two"}
	r := start(t, first)
	second := changed(first, func(c *config.Config) {
		c.Auth.Tokens = []string{"hunter-two", "hunter-three", "hunter-four"}
		c.Tools.Disabled = []string{"shop/spin", "shop/trap"}
		c.Limits.Timeout = time.Minute
		c.Overrides = []config.Override{{Match: "shop/*", Limits: limits.Limits{Queue: 7}}}
		c.Grants = []config.Grant{{Match: "shop/*", Rules: capability.Rules{"http": &httpcap.Rule{Granted: []string{"https://api.example.com"}}}}}
		c.Server.Hosts = append(slices.Clone(c.Server.Hosts), "tools.example.com")
	})
	for _, test := range []struct {
		name string
		c    *config.Config
		want map[string]any
	}{
		{"nothing", first, nil},
		{"much", second, map[string]any{
			"tokens_added": []any{"token-3", "token-4"}, "tokens_removed": []any{"token-1"}, "disabled": []any{"/shop/spin", "/shop/trap"},
			"granted": []any{"+shop/*: http: +https://api.example.com"}, "limited": []any{"timeout: 5s → 1m", "+shop/*: queue: none → 7"},
			"settings": []any{"server.hosts: +tools.example.com", "tools.disabled: +shop/spin +shop/trap"}}},
		{"nothing again", second, nil},
		{"back", first, map[string]any{
			"tokens_added": []any{"token-5"}, "tokens_removed": []any{"token-3", "token-4"}, "enabled": []any{"/shop/spin", "/shop/trap"},
			"granted": []any{"-shop/*"}, "limited": []any{"timeout: 1m → 5s", "-shop/*"},
			"settings": []any{"server.hosts: -tools.example.com", "tools.disabled: -shop/spin -shop/trap"}}},
	} {
		if err := r.Reload(test.c); err != nil {
			t.Fatal(err)
		}
		line := lastReload(t, r.log.String())
		for _, key := range []string{"tokens_added", "tokens_removed", "enabled", "disabled", "granted", "limited", "settings"} {
			if !reflect.DeepEqual(line[key], test.want[key]) {
				t.Errorf("%s: %s is %v, want %v", test.name, key, line[key], test.want[key])
			}
		}
	}
	if text := r.log.String(); strings.Contains(text, "hunter") {
		t.Errorf("a token is in the log: %s", text)
	}
}

// TestReloadTellsLittle checks that a reload that changes thousands of things logs only a few of them.
func TestReloadTellsLittle(t *testing.T) {
	t.Parallel()
	first := settings(t)
	r := start(t, first)
	err := r.Reload(changed(first, func(c *config.Config) {
		for n := range 1000 {
			c.Auth.Tokens = append(c.Auth.Tokens, fmt.Sprint("hunter-", n))
			c.Overrides = append(c.Overrides, config.Override{Match: fmt.Sprint("none/", n), Limits: limits.Limits{Queue: 7}})
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	line := lastReload(t, r.log.String())
	tokens, _ := line["tokens_added"].([]any)
	limited, _ := line["limited"].([]any)
	if len(tokens) != 21 || tokens[9] != "token-10" || tokens[20] != "and 980 more" || len(limited) != 21 || limited[20] != "and 980 more" {
		t.Errorf("got %d tokens and %d limits: %v", len(tokens), len(limited), line)
	}
}
