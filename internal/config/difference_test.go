package config_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// TestDifference checks how a reload's changes are described, and that no value is shown that may be a secret.
func TestDifference(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, before, now        string
		settings, limits, grants []string
	}{
		{name: "nothing", before: "[limits]\ntimeout = '5s'"},
		{name: "hosts", before: "[server]\nhosts = ['a.example', 'b.example']", now: "[server]\nhosts = ['b.example', 'c.example']",
			settings: []string{"server.hosts: +c.example -a.example"}},
		{name: "origins", now: "[server]\ncors_origins = ['https://app.example']", settings: []string{"server.cors_origins: +https://app.example"}},
		{name: "proxies", now: "[server]\ntrusted_proxies = ['10.0.0.0/8']\nproxy_header = 'Forwarded'",
			settings: []string{"server.trusted_proxies: +10.0.0.0/8", "server.proxy_header: X-Forwarded-For → Forwarded"}},
		{name: "mode", now: "[tools]\nmode = 'allowlist'\nenabled = ['math/add']", settings: []string{"tools.mode: denylist → allowlist", "tools.enabled: +math/add"}},
		{name: "disabled", now: "[tools]\ndisabled = ['web', {tool = 'math/div', reason = 'broken'}]",
			settings: []string{"tools.disabled: +web +math/div", "tools.disabled: other reasons"}},
		{name: "auth", before: "[auth]\ntokens = ['hunter2']", now: "[auth]\ntokens = ['hunter3']\ntokens_file = 'hunter4'\nrequired = true",
			settings: []string{"auth.required: false → true", "auth.tokens_file"}},
		{name: "secrets", now: "[secrets]\ndirectory = 'hunter2'\nfiles = {key = 'hunter2'}\nenvironment = {other = 'HUNTER2'}",
			settings: []string{"secrets.directory", "secrets.files", "secrets.environment"}},
		{name: "limits", now: "[limits]\ntimeout = '1m'\nfuel = 100\nmemory = '1GiB'\nstack = '16KiB'\ninput = 5\noutput = 7\nlog_lines = 0\nconcurrency = 3\nqueue = 0",
			limits: []string{"timeout: 5s → 1m", "fuel: 0 → 100", "memory: 64MiB → 1GiB", "stack: 32MiB → 16KiB", "input: 1MiB → 5B", "output: 4MiB → 7B",
				"log_lines: 100 → 0", "concurrency: 0 → 3", "queue: 64 → 0"}},
		{name: "an override is new", now: "[[override]]\nmatch = 'math/*'\ntimeout = '1m'\nqueue = 0", limits: []string{"+math/*: timeout: none → 1m, queue: none → 0"}},
		{name: "an override changes", before: "[[override]]\nmatch = 'math/*'\ntimeout = '1m'", now: "[[override]]\nmatch = 'math/*'\ntimeout = '2m'",
			limits: []string{"math/*: timeout: 1m → 2m"}},
		{name: "an override goes", before: "[[override]]\nmatch = 'math/*'\ntimeout = '1m'", limits: []string{"-math/*"}},
		{name: "overrides change places", before: "[[override]]\nmatch = 'math/*'\ntimeout = '1m'\n[[override]]\nmatch = '**'\ntimeout = '2m'",
			now: "[[override]]\nmatch = '**'\ntimeout = '2m'\n[[override]]\nmatch = 'math/*'\ntimeout = '1m'", limits: []string{"another order"}},
		{name: "a grant is new", now: "[[grant]]\nmatch = 'a/*'\nhttp = ['https://api.example.com']\nheaders = {'https://api.example.com' = {Authorization = 'Bearer hunter2'}}\nkv = '1MiB'\nsettings = {key = 'hunter2'}\nfiles = {geo = '/hunter2'}\ntools = ['b/c']\nsecrets = ['stripe']\nprivate = ['10.0.0.0/8']",
			grants: []string{"+a/*: http: +https://api.example.com, private: +10.0.0.0/8, headers, kv: 0B → 1MiB, secrets: +stripe, settings, tools: +b/c, files"}},
		{name: "a grant changes", before: "[[grant]]\nmatch = 'a/*'\nhttp = ['https://api.example.com']\nhttp_timeout = '1s'\nsettings = {key = 'hunter2'}",
			now:    "[[grant]]\nmatch = 'a/*'\nhttp = ['https://other.example.com']\nhttp_timeout = '2s'\nhttp_requests = 7\nredirects = 1\nkv_entries = 9\nhttp_request_bytes = 1\nhttp_response_bytes = 2\nca = 'hunter2'\nsettings = {key = 'hunter3'}",
			grants: []string{"a/*: http: +https://other.example.com -https://api.example.com, redirects: 0 → 1, http_requests: 0 → 7, http_request_bytes: 0B → 1B, http_response_bytes: 0B → 2B, http_timeout: 1s → 2s, ca, kv_entries: 0 → 9, settings"}},
		{name: "a grant goes", before: "[[grant]]\nmatch = 'a/*'\nkv = '1MiB'\n[[grant]]\nmatch = 'b'\nkv = '1MiB'", now: "[[grant]]\nmatch = 'b'\nkv = '1MiB'", grants: []string{"-a/*"}},
		{name: "a header goes to another origin", before: "[[grant]]\nmatch = 'a'\nhttp = ['https://a.example', 'https://b.example']\nheaders = {'https://a.example' = {X = '${secret:k}'}}",
			now: "[[grant]]\nmatch = 'a'\nhttp = ['https://a.example', 'https://b.example']\nheaders = {'https://b.example' = {X = '${secret:k}'}}", grants: []string{"a: headers"}},
		{name: "a grant of nothing", now: "[[grant]]\nmatch = 'a'", grants: []string{"+a"}},
	} {
		before, now := parse(t, test.before), parse(t, test.now)
		got := configured.DifferenceOf(before, now)
		if !slices.Equal(got.Settings, test.settings) || !slices.Equal(got.Limits, test.limits) || !slices.Equal(got.Grants, test.grants) {
			t.Errorf("%s: got %q, want %q, %q, %q", test.name, got, test.settings, test.limits, test.grants)
		}
		if none := configured.DifferenceOf(now, now); len(none.Settings)+len(none.Limits)+len(none.Grants) > 0 {
			t.Errorf("%s: compared with itself: got %q", test.name, none)
		}
	}
}

// TestDifferenceOfEachKey: every change of a key that takes effect at a reload has a line in the log.
func TestDifferenceOfEachKey(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"server.hosts": `["a.example"]`, "server.cors_origins": `["https://a.example"]`, "server.trusted_proxies": `["10.0.0.0/8"]`, "server.proxy_header": `"Forwarded"`,
		"tools.mode": `"allowlist"`, "tools.enabled": `["a"]`, "tools.disabled": `["a"]`, "auth.tokens": "", "auth.tokens_file": `"a"`, "auth.required": "true",
		"auth.oidc.issuer": `"https://a.example"`, "auth.oidc.audience": `["a"]`, "auth.oidc.name": `"email"`,
		"secrets.directory": `"a"`, "secrets.files": `{a = "b"}`, "secrets.environment": `{a = "B"}`,
		"admin.enabled": "true", "admin.upload": "true", "state.versions": `"2GiB"`, "audit.strict": "true", "events.enabled": "false", "rates.default": `{rate = "10/s"}`, "rates.anonymous": `{concurrent = 1}`,
	}
	restarts := tagged(reflect.TypeFor[config.Config]())
	for _, key := range knownKeys(t) {
		table, name, ok := strings.Cut(key, ".")
		value, listed := values[key]
		if strings.HasPrefix(key, "limits.") {
			value, listed = "1", true
			if name == "timeout" {
				value = `"1s"`
			} else if name == "memory" || name == "stack" {
				value = "65536"
			}
		}
		if !ok || value == "" && listed {
			continue // for tokens, the server logs the names of those that changed
		}
		if !listed { // the key needs a restart, or somebody has forgotten to list it
			if !slices.Contains(restarts, key) {
				t.Errorf("%s: a reload applies a change of this key, but does not log it", key)
			}
			continue
		}
		text := "[" + table + "]\n" + name + " = " + value
		if key == "tools.enabled" {
			text += "\nmode = 'allowlist'"
		}
		before := ""
		if strings.HasPrefix(key, "auth.oidc.") { // these keys need each other
			before = "auth.oidc = {issuer = 'https://b.example', audience = ['b'], name = 'b', rule = [{claim = 'a', value = 'b', scopes = ['*']}]}"
			was := map[string]string{"oidc.issuer": "'https://b.example'", "oidc.audience": "['b']", "oidc.name": "'b'"}[name]
			text = strings.Replace(before, strings.TrimPrefix(name, "oidc.")+" = "+was, strings.TrimPrefix(name, "oidc.")+" = "+value, 1)
		}
		got := configured.DifferenceOf(parse(t, before), parse(t, text))
		all := slices.Concat(got.Settings, got.Limits)
		if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, strings.TrimPrefix(key, "limits.")) }) {
			t.Errorf("%s: got %q", key, all)
		}
	}
}

// TestDifferenceIsBounded makes large changes of everything that can be changed.
func TestDifferenceIsBounded(t *testing.T) {
	t.Parallel()
	now := config.Default()
	for range 1000 {
		now.Server.Hosts = append(now.Server.Hosts, strings.Repeat("h", 200)+string(rune('a'+len(now.Server.Hosts)%26)))
		now.Grants = append(now.Grants, config.Grant{Match: strings.Repeat("m", 500), Rules: capability.Rules{"http": &http.Rule{Granted: now.Server.Hosts}}})
	}
	got := configured.DifferenceOf(config.Default(), now)
	for _, s := range slices.Concat(got.Settings, got.Grants) {
		if len(s) > 2000 {
			t.Errorf("got %d bytes, such as %.200s", len(s), s)
		}
	}
}

// tagged returns the keys that take effect only at a start.
func tagged(t reflect.Type) (keys []string) {
	for f := range t.Fields() {
		if key := f.Tag.Get("restart"); key != "" {
			keys = append(keys, key)
		} else if f.Type.Kind() == reflect.Struct {
			keys = append(keys, tagged(f.Type)...)
		}
	}
	return keys
}
