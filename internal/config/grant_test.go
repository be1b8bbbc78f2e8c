package config_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/capability/files"
	"github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/capability/kv"
	"github.com/toolsrv/toolsrv/internal/capability/secrets"
	"github.com/toolsrv/toolsrv/internal/capability/settings"
	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

func TestGrants(t *testing.T) {
	t.Parallel()
	c := parse(t, `
[[grant]]
match = "weather/*"
http = ["https://api.example.com", "https://*.example.com/v2/"]
private = ["10.0.0.0/8", "fd00::/8"]
redirects = 3
headers = {"https://api.example.com" = {Authorization = "Bearer ${secret:key}", X-Other = ""}}
http_requests = 5
http_request_bytes = "1KiB"
http_response_bytes = 4096
http_timeout = "1m"
ca = "ca.pem"
kv = "16MiB"
kv_entries = 5
settings = {units = "metric", nested = {b = [1, 2.5, true], a = "<x>"}, empty = {}}
files = {geo = "geo", abs = "/srv/geo"}
tools = ["units/convert", "text/*"]
secrets = ["stripe.key"]
[[grant]]
match = "/notes"
kv = 4096
[grant.files]
x = "/x"
[secrets]
directory = "secrets"
files = {key = "/etc/key"}
environment = {"stripe.key" = "STRIPE_KEY"}
[state]
directory = "/var/lib/toolsrv"
`)
	want := []config.Grant{
		{
			Match: "weather/*", Line: 2, Rules: capability.Rules{
				"http": &http.Rule{
					Granted:   []string{"https://api.example.com", "https://*.example.com/v2/"},
					Private:   []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
					Redirects: 3, Headers: map[string]map[string]string{"https://api.example.com": {"Authorization": "Bearer ${secret:key}", "X-Other": ""}},
					Requests: 5, RequestBytes: 1024, ResponseBytes: 4096, Timeout: time.Minute,
					CA: filepath.Join("dir", "ca.pem"),
				},
				"kv":       &kv.Rule{Bytes: 16 << 20, Entries: 5},
				"settings": &settings.Rule{Settings: json.RawMessage(`{"empty":{},"nested":{"a":"<x>","b":[1,2.5,true]},"units":"metric"}`)},
				"files":    &files.Rule{Directories: map[string]string{"geo": filepath.Join("dir", "geo"), "abs": "/srv/geo"}},
				"tools":    &tools.Rule{Tools: []string{"units/convert", "text/*"}},
				"secrets":  &secrets.Rule{Visible: []string{"stripe.key"}},
			},
		},
		{Match: "/notes", Line: 19, Rules: capability.Rules{
			"kv": &kv.Rule{Bytes: 4096}, "files": &files.Rule{Directories: map[string]string{"x": "/x"}},
		}},
	}
	if !reflect.DeepEqual(c.Grants, want) {
		t.Errorf("got  %+v\nwant %+v", c.Grants, want)
	}
	sources := config.Secrets{
		Directory: filepath.Join("dir", "secrets"), Files: map[string]string{"key": "/etc/key"}, Environment: map[string]string{"stripe.key": "STRIPE_KEY"},
		Lines: map[string]int{"key": 26, "stripe.key": 27},
	}
	if !reflect.DeepEqual(c.Secrets, sources) || c.State.Directory != "/var/lib/toolsrv" {
		t.Errorf("got %+v and %+v", c.Secrets, c.State)
	}
}

func TestGrantErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"a table", "[grant]\nmatch='a'", "configuration:1:2: grant: each grant is a table of its own: write [[grant]] above its keys"},
		{"an element that is not a table", "grant = [1]", "grant[0]: each grant is a table of its own"},
		{"no match", "[[grant]]\nkv = '1MiB'", `grant[0]: match is missing: name the tools, as in match = "math/*"`},
		{"another match", "[[grant]]\nmatch='***'", `grant[0].match: has **`},
		{"unknown", "[[grant]]\nmatch='a'\nhtpp = []", `configuration:3:1: unknown key "htpp" in [[grant]]: did you mean "http"?`},
		{"no service", "[[grant]]\nmatch='a'\nhttp = ['https://a.example', 'b.example']", `configuration:3:30: grant[0].http[1]: is not the address of a service`},
		{"a range of all addresses", "[[grant]]\nmatch='a'\nprivate = ['::/0']", `configuration:3:12: grant[0].private[0]: covers all addresses`},
		{"a range in the form of IPv6", "[[grant]]\nmatch='a'\nprivate = ['::ffff:10.0.0.0/104']", `is an IPv4 range in IPv6 form`},
		{"a user", "[[grant]]\nmatch='a'\nhttp = ['https://a@b.example']", `is not the address of a service`},
		{"no range", "[[grant]]\nmatch='a'\nprivate = ['here']", `grant[0].private[0]: is not a range of addresses`},
		{"one address", "[[grant]]\nmatch='a'\nprivate = ['fd00::1']", `grant[0].private[0]: is one address: write "fd00::1/128" for this one alone`},
		{"kv without a size", "[[grant]]\nmatch='a'\nkv = {by = 'principal'}", `grant[0].kv.size: is missing: say how much may be kept`},
		{"kv by an unknown kind", "[[grant]]\nmatch='a'\nkv = {size = '1MiB', by = 'user'}", `grant[0].kv.by: is not known: use "principal"`},
		{"kv for nobody", "[[grant]]\nmatch='a'\nkv = {size = '1MiB', by = 'principal', principals = 0}", `grant[0].kv.principals: is out of range: 1 to 100000 is allowed`},
		{"kv with an unknown key", "[[grant]]\nmatch='a'\nkv = {size = '1MiB', hunter2 = 1}", `grant[0].kv: has a key that is not known: the keys are by, principals, size`},
		{"bits beyond", "[[grant]]\nmatch='a'\nprivate = ['10.0.0.1/8']", `has bits beyond its prefix: write "10.0.0.0/8"`},
		{"many redirects", "[[grant]]\nmatch='a'\nredirects = 11", "grant[0].redirects: is out of range: 0 to 10 is allowed"},
		{"small quota", "[[grant]]\nmatch='a'\nkv = '1KiB'", `grant[0].kv: is out of range: 4KiB to 1024GiB is allowed`},
		{"no entries", "[[grant]]\nmatch='a'\nkv_entries = 0", "grant[0].kv_entries: is out of range"},
		{"headers for a service that the grant does not have", "[[grant]]\nmatch='a'\nhttp=['https://a']\nheaders = {'https://b' = {X = 'y'}}", `configuration:4:12: grant[0].headers: it is not in the grant's http: repeat one`},
		{"no header", "[[grant]]\nmatch='a'\nhttp=['https://a']\nheaders = {'https://a' = {'X Y' = 'y'}}", `configuration:4:27: grant[0].headers: is not the name of a header`},
		{"a line break in a header", "[[grant]]\nmatch='a'\nhttp=['https://a']\nheaders = {'https://a' = {X = \"y\\r\\nZ: hunter2\"}}", `grant[0].headers: is not a valid value for a header`},
		{"headers as a list", "[[grant]]\nmatch='a'\nheaders = []", "grant[0].headers: must be a table such as"},
		{"a header as a number", "[[grant]]\nmatch='a'\nhttp=['https://a']\nheaders = {'https://a' = {X = 1}}", "must be a string, not a whole number"},
		{"settings as a string", "[[grant]]\nmatch='a'\nsettings = 'x'", "grant[0].settings: must be a table such as"},
		{"a date in settings", "[[grant]]\nmatch='a'\nsettings = {a = [1, {b = 2026-01-02}]}", `configuration:3:22: grant[0].settings: must not be a date or time: write it as a string`},
		{"NaN in settings", "[[grant]]\nmatch='a'\nsettings = {a = nan}", "grant[0].settings: is not a number in JSON"},
		{"large settings", "[[grant]]\nmatch='a'\nsettings = {a = '" + strings.Repeat("x", 65<<10) + "'}", "as JSON; at most 65536 are allowed"},
		{"a path as a name", "[[grant]]\nmatch='a'\nfiles = {'../x' = '/x'}", `grant[0].files: is not a valid name`},
		{"no path", "[[grant]]\nmatch='a'\nfiles = {x = ''}", "grant[0].files: must not be empty"},
		{"no tool", "[[grant]]\nmatch='a'\ntools = ['']", "grant[0].tools[0]: the pattern is empty"},
		{"no secret", "[[grant]]\nmatch='a'\nsecrets = ['.x']", `grant[0].secrets[0]: is not a valid name`},
		{"a secret as a path", "[secrets]\nfiles = {'a/b' = '/x'}", `secrets.files: is not a valid name`},
		{"no variable", "[secrets]\nenvironment = {a = 'A=B'}", `secrets.environment: is not the name of an environment variable`},
		{"unknown of secrets", "[secrets]\nvault = 1", `unknown key in [secrets]: remove it, or update toolsrv if a newer one has it: the keys are directory, environment, files`},
		{"too many", strings.Repeat("[[grant]]\nmatch='a'\n", 1001), "there are 1001 grants; at most 1000 are allowed"},
	} {
		_, err := config.Parse([]byte(test.text), "")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the value: %v", test.name, err)
		}
	}
}

// TestLoadGrants reads a file with only grants, which are added to the existing ones.
func TestLoadGrants(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "grant.toml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := parse(t, "[[grant]]\nmatch='a'\nkv=4096\n[secrets]\ndirectory='/s'\n")
	write("[[grant]]\nfiles = {geo = 'geo'}\n[[grant]]\nmatch = 'b'\n[state]\ndirectory = 'state'\n")
	if err := c.LoadGrants(file, "here"); err != nil {
		t.Fatal(err)
	}
	want := []config.Grant{
		{Match: "a", Line: 1, Rules: capability.Rules{"kv": &kv.Rule{Bytes: 4096}}},
		{Match: "**", Line: 1, Rules: capability.Rules{"files": &files.Rule{Directories: map[string]string{"geo": filepath.Join("here", "geo")}}}},
		{Match: "b", Line: 3},
	}
	if !reflect.DeepEqual(c.Grants, want) || c.Secrets.Directory != "/s" || c.State.Directory != filepath.Join("here", "state") {
		t.Errorf("got %+v, %+v, %+v", c.Grants, c.Secrets, c.State)
	}
	for text, says := range map[string]string{
		"[limits]\nmemory = '1MiB'": file + `:1:2: unknown key: remove it, or update toolsrv if a newer one has it: the keys are grant, secrets, state`,
		"[[grant]]\nkv = 1":         file + ":2:1: grant[0].kv: is out of range",
		"x":                         file + ":1",
	} {
		write(text)
		if err := c.LoadGrants(file, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", text, err, says)
		}
	}
	if err := c.LoadGrants(filepath.Join(t.TempDir(), "missing"), ""); err == nil || !strings.Contains(err.Error(), "read the grants:") {
		t.Errorf("got %v", err)
	}
	if !reflect.DeepEqual(c.Grants, want) {
		t.Errorf("after errors there are %+v", c.Grants)
	}
}

func TestForEveryTool(t *testing.T) {
	t.Parallel()
	for match, want := range map[string]bool{"*": true, "**": true, "/**/*": true, "*/*": true, "a/*": false, "**/a": false, "a*": false, "a": false} {
		if got := configured.ForEveryTool(&config.Grant{Match: match}); got != want {
			t.Errorf("%s: got %t", match, got)
		}
	}
}
