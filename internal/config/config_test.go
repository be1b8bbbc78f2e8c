package config_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/internal/textfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

func parse(t testing.TB, text string) *config.Config {
	t.Helper()
	c, err := config.Parse([]byte(text), "dir")
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return c
}

func TestEmptyFileIsDefault(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "comment": "# nothing", "empty tables": "[server]\n[tools]\n[auth]\n[mcp]\n[limits]\n"} {
		c, err := config.Parse([]byte(text), "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want := config.Default(); !reflect.DeepEqual(c, want) {
			t.Errorf("%s: got %+v, want %+v", name, c, want)
		}
	}
}

func TestDefaultIsTheCallersOwn(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Title, c.Limits.Queue = "changed", 1
	if d := config.Default(); d.Title != "Tools" || d.Limits.Queue != 64 {
		t.Errorf("got %+v, want the defaults untouched", d)
	}
}

func TestEveryKey(t *testing.T) {
	t.Parallel()
	c := parse(t, `
title = "My tools"
version = "2.0"
description = """
Two
lines."""
[server]
address = "[::1]:0"
trusted_proxies = ["10.0.0.0/8", "::1/128"]
proxy_header = "forwarded"
[tools]
directory = "sub/../wasm"
modules = 20_000
mode = "allowlist"
enabled = ["web", "/math/div"]
disabled = ["a/b/c"]
cache_directory = "/var/cache/x/"
[auth]
tokens = ["one", "two"]
tokens_file = "secret/tokens"
required = true
[mcp]
enabled = false
search = "always"
[events]
enabled = false

[metrics]
enabled = true
address = "127.0.0.1:9090"
tools = 7
principals = true
[console]
enabled = false
[otlp]
endpoint = "https://collector.example:4318/base"
headers = {X-Key = "a ${secret:collector} b"}
sample = 0.25
metrics = true
timeout = "2s"
service = "our tools"
[limits]
timeout = "1m30s"
fuel = 1_000_000
memory = "1GiB"
stack = 65536
input = "2MB"
output = "3kB"
log_lines = 7
concurrency = 3
queue = 9
[[override]]
match = "math/*"
timeout = "200ms"
[[override]]
match = "/web"
queue = 0
log_lines = 0
fuel = 0
`)
	want := &config.Config{
		Title: "My tools", Version: "2.0", Description: "Two\nlines.",
		Server: config.Server{Addresses: []string{"[::1]:0"}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}, ProxyHeader: "Forwarded"},
		Tools: config.Tools{
			Directory: filepath.Join("dir", "wasm"), Modules: 20_000, Allowlist: true,
			Enabled: []string{"web", "math/div"}, Disabled: []string{"a/b/c"}, Lines: []int{15, 15}, CacheDir: "/var/cache/x",
		},
		Auth:    config.Auth{Tokens: []string{"one", "two"}, TokensFile: filepath.Join("dir", "secret", "tokens"), Required: true, OIDC: config.OIDC{Name: "sub"}},
		MCP:     config.MCP{Enabled: false, Search: "always"},
		Metrics: config.Metrics{Enabled: true, Address: "127.0.0.1:9090", Tools: 7, Principals: true},
		Events:  config.Events{Enabled: false},
		OTLP: config.OTLP{Endpoint: "https://collector.example:4318/base", Headers: map[string]string{"X-Key": "a ${secret:collector} b"}, Sample: 0.25, Metrics: true, Timeout: 2 * time.Second,
			Service: "our tools"},
		State: config.State{Versions: 1 << 30, Prefix: "toolsrv"},
		Limits: limits.Limits{
			Timeout: 90 * time.Second, Fuel: 1_000_000, Memory: 1 << 30, Stack: 65536,
			Input: 2_000_000, Output: 3_000, LogLines: 7, Concurrency: 3, Queue: 9,
		},
		Overrides: []config.Override{
			{Match: "math/*", Limits: limits.Limits{Timeout: 200 * time.Millisecond}},
			{Match: "/web", Limits: limits.Limits{Queue: -1, LogLines: -1, Fuel: -1}},
		},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	limit := func(f func(*limits.Limits)) func(*config.Config) {
		return func(c *config.Config) { f(&c.Limits) }
	}
	tests := map[string]func(*config.Config){
		`limits.timeout = "1ms"`:            limit(func(l *limits.Limits) { l.Timeout = time.Millisecond }),
		`limits.timeout = "1h"`:             limit(func(l *limits.Limits) { l.Timeout = time.Hour }),
		`limits.timeout = "1.5s"`:           limit(func(l *limits.Limits) { l.Timeout = 1500 * time.Millisecond }),
		`limits.memory = "64KiB"`:           limit(func(l *limits.Limits) { l.Memory = 65536 }),
		`limits.memory = 65536`:             limit(func(l *limits.Limits) { l.Memory = 65536 }),
		`limits.memory = "65536"`:           limit(func(l *limits.Limits) { l.Memory = 65536 }),
		`limits.memory = "4GiB"`:            limit(func(l *limits.Limits) { l.Memory = 4 << 30 }),
		`limits.memory = "4GB"`:             limit(func(l *limits.Limits) { l.Memory = 4_000_000_000 }),
		`limits.memory = 0x10000`:           limit(func(l *limits.Limits) { l.Memory = 65536 }),
		`limits.input = "1B"`:               limit(func(l *limits.Limits) { l.Input = 1 }),
		`limits.input = 1`:                  limit(func(l *limits.Limits) { l.Input = 1 }),
		`limits.output = "512MB"`:           limit(func(l *limits.Limits) { l.Output = 512_000_000 }),
		`limits.queue = 0`:                  limit(func(l *limits.Limits) { l.Queue = -1 }),
		`limits.log_lines = 0`:              limit(func(l *limits.Limits) { l.LogLines = -1 }),
		`limits.concurrency = 0`:            limit(func(l *limits.Limits) { l.Concurrency = 0 }), // the needs of a tool decide
		`limits.fuel = 0`:                   limit(func(l *limits.Limits) { l.Fuel = 0 }),
		`limits.fuel = 9223372036854775807`: limit(func(l *limits.Limits) { l.Fuel = 1<<63 - 1 }),
		`limits = {queue = 1, log_lines=2}`: limit(func(l *limits.Limits) { l.Queue, l.LogLines = 1, 2 }),
		`server.address = ":8000"`:          func(c *config.Config) { c.Server.Addresses = []string{":8000"} },
		`server.address = ["[::1]:8000", "unix:run/http.sock", "unix:/run/http.sock"]`: func(c *config.Config) {
			c.Server.Addresses = []string{"[::1]:8000", "unix:" + filepath.Join("dir", "run", "http.sock"), "unix:/run/http.sock"}
		},
		`server.tls = {certificate = "c.pem", key = "/k.pem", client_ca = "ca.pem"}`: func(c *config.Config) {
			c.Server.TLS = config.TLS{Certificate: filepath.Join("dir", "c.pem"), Key: "/k.pem", ClientCA: filepath.Join("dir", "ca.pem")}
		},
		`server.address = "example.com:0"`:               func(c *config.Config) { c.Server.Addresses = []string{"example.com:0"} },
		`server.address = "[fe80::1%eth0]:1"`:            func(c *config.Config) { c.Server.Addresses = []string{"[fe80::1%eth0]:1"} },
		`server.public_url = "http://[::1]:80/a"`:        func(c *config.Config) { c.Server.PublicURL = "http://[::1]:80/a" },
		`server.public_url = "/a/b/"`:                    func(c *config.Config) { c.Server.PublicURL = "/a/b/" },
		`server.hosts = ["*", "*.Example.com", "[::2]"]`: func(c *config.Config) { c.Server.Hosts = []string{"*", "*.example.com", "::2"} },
		`server.cors_origins = ["*", "https://App.example:443", "http://localhost:3000"]`: func(c *config.Config) {
			c.Server.CORSOrigins = []string{"*", "https://app.example", "http://localhost:3000"}
		},
		`otlp = {endpoint = "http://[::1]:4318", sample = 0}`: func(c *config.Config) { c.OTLP.Endpoint, c.OTLP.Sample = "http://[::1]:4318", 0 },
		`otlp = {endpoint = "http://LOCALHOST:1"}`:            func(c *config.Config) { c.OTLP.Endpoint = "http://LOCALHOST:1" },
		`otlp = {endpoint = "http://collector:4318", insecure = true, sample = 1}`: func(c *config.Config) {
			c.OTLP.Endpoint, c.OTLP.Insecure = "http://collector:4318", true
		},
		`tools.describe_fuel = 5`:                  func(c *config.Config) { c.Tools.DescribeFuel = 5 },
		`tools.modules = 0`:                        func(c *config.Config) { c.Tools.Modules = 10_000 },
		`tools.modules = 100000`:                   func(c *config.Config) { c.Tools.Modules = 100_000 },
		`tools.disabled = []`:                      func(c *config.Config) {},
		`tools.enabled = []`:                       func(c *config.Config) {},
		`tools.mode = "denylist"`:                  func(c *config.Config) {},
		`tools.mode = "allowlist"`:                 func(c *config.Config) { c.Tools.Allowlist = true },
		`tools = {mode="denylist", enabled=["a"]}`: func(c *config.Config) { c.Tools.Enabled = []string{"a"} },
		`tools.cache_directory = ""`:               func(c *config.Config) {},
		`tools.cache_directory = "c"`:              func(c *config.Config) { c.Tools.CacheDir = filepath.Join("dir", "c") },
		`auth.tokens_file = ""`:                    func(c *config.Config) {},
		`auth.tokens = ["a-._~+/="]`:               func(c *config.Config) { c.Auth.Tokens = []string{"a-._~+/="} },
		`override = []`:                            func(c *config.Config) { c.Overrides = []config.Override{} },
		`override = [{match="a"}]`:                 func(c *config.Config) { c.Overrides = []config.Override{{Match: "a"}} },
		`"title" = 'x'`:                            func(c *config.Config) { c.Title = "x" },
		`description = ""`:                         func(c *config.Config) {},
	}
	for text, change := range tests {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			want := config.Default()
			want.Tools.Directory = filepath.Join("dir", "tools")
			change(want)
			if got := parse(t, text); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// TestLargestFile shows that the bounds on keys and elements leave room for all that a valid file can hold.
func TestLargestFile(t *testing.T) {
	t.Parallel()
	override := "[[override]]\nmatch='math/*'\ntimeout='1s'\nfuel=1\nmemory='1MiB'\nstack='1MiB'\ninput='1MiB'\noutput='1MiB'\nlog_lines=1\nconcurrency=1\nqueue=1\n"
	c := parse(t, "[tools]\ndisabled=["+strings.Repeat("'a/b',", 99_000)+"]\n"+strings.Repeat(override, 1000))
	if len(c.Overrides) != 1000 || len(c.Tools.Disabled) != 99_000 {
		t.Errorf("got %d overrides and %d entries", len(c.Overrides), len(c.Tools.Disabled))
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tokens"), "two\nthree\n")
	file := filepath.Join(dir, "toolsrv.toml")
	write(t, file, "\ufefftools.directory = 'wasm'\r\n[auth]\r\ntokens = ['one']\r\ntokens_file = 'tokens'\r\n")
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Auth.Tokens, []string{"one", "two", "three"}; !reflect.DeepEqual(got, want) {
		t.Errorf("tokens: got %q, want %q", got, want)
	}
	if got, want := c.Tools.Directory, filepath.Join(dir, "wasm"); got != want {
		t.Errorf("directory: got %q, want %q", got, want)
	}
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "empty"), "\n # no token\n")
	tests := map[string]struct {
		text string
		want []string
	}{
		"unknown key":         {"[server]\nport = 1\n", []string{"toolsrv.toml:2:1: unknown key in [server]"}},
		"no tokens file":      {"[auth]\n\n  tokens_file = 'none'", []string{"toolsrv.toml:3:3: auth.tokens_file: ", "no such file"}},
		"tokens file, folder": {"auth.tokens_file = '.'", []string{"toolsrv.toml:1:1: auth.tokens_file: ", "it is a folder: name a file"}},
		"empty tokens file":   {"auth.tokens_file = 'empty'", []string{"toolsrv.toml:1:1: auth.tokens_file: ", "has no token"}},
		"UTF-16":              {"\xff\xfea\x00=\x001\x00", []string{"toolsrv.toml:1:4: ", "save it as UTF-8"}},
		"binary":              {"\x00asm\x01\x00\x00\x00", []string{"toolsrv.toml:1:1: ", "save it as UTF-8"}},
		"too large":           {strings.Repeat("# 345678\n", textfile.Max/9+1), []string{"toolsrv.toml", "larger than 1 MiB"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := filepath.Join(t.TempDir(), "toolsrv.toml")
			write(t, sub, strings.NewReplacer("'none'", "'"+filepath.Join(dir, "none")+"'", "'.'", "'"+dir+"'", "'empty'", "'"+filepath.Join(dir, "empty")+"'").Replace(tt.text))
			c, err := config.Load(sub)
			if err == nil {
				t.Fatalf("got %+v, want an error", c)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
	for _, path := range []string{filepath.Join(dir, "none.toml"), dir} {
		if _, err := config.Load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Load(%s): got %v, want an error with the path", path, err)
		}
	}
}

// TestParseOpensNothing shows that Parse is safe for untrusted text.
func TestParseOpensNothing(t *testing.T) {
	t.Parallel()
	if c := parse(t, `auth.tokens_file = "/nonexistent"`); c.Auth.Tokens != nil {
		t.Errorf("tokens: got %q, want none", c.Auth.Tokens)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkParse(b *testing.B) {
	text := []byte(`title = "x"
[tools]
disabled = ["web", "math/div"]
[limits]
timeout = "1s"
[[override]]
match = "math/*"
memory = "1MiB"
`)
	for b.Loop() {
		if _, err := config.Parse(text, ""); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNeedRestart checks that each key either takes effect at a reload or is reported to need a restart.
func TestNeedRestart(t *testing.T) {
	t.Parallel()
	c := config.Default()
	started := config.Default()
	var change func(v reflect.Value)
	change = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				change(v.Field(i))
			}
		case reflect.String:
			v.SetString("changed")
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Float64:
			v.SetFloat(v.Float() + 1)
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		}
	}
	change(reflect.ValueOf(c).Elem())
	got := configured.NeedRestart(started, c)
	reloads := []string{"server.hosts", "server.cors_origins", "server.trusted_proxies", "server.proxy_header", "tools.mode", "tools.enabled", "tools.disabled", "auth.tokens", "auth.tokens_file", "auth.required", "auth.oidc.issuer", "auth.oidc.audience", "auth.oidc.name",
		"secrets.directory", "secrets.files", "secrets.environment", "admin.enabled", "admin.upload", "state.versions", "audit.strict", "events.enabled", "rates.default", "rates.anonymous"}
	for _, key := range knownKeys(t) {
		if want := !slices.Contains(reloads, key) && !strings.HasPrefix(key, "limits."); slices.Contains(got, key) != want {
			t.Errorf("%s: needs a restart: %v, want %v", key, !want, want)
		}
	}
	if keys := configured.NeedRestart(config.Default(), started); keys != nil {
		t.Errorf("nothing changed: got %q", keys)
	}
}
