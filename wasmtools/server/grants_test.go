package server_test

import (
	"net/http"
	"strings"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	settingscap "github.com/toolsrv/toolsrv/internal/capability/settings"
	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// configured is a manifest with two tools that return their settings; the first returns the settings that it had at its start.
const configured = `{"abi":1,"namespace":"set","needs":{"settings":{"type":"object","required":["units"],"properties":{"units":{"enum":["metric","imperial"]}}}},
	"tools":[{"name":"start","description":"Those of the start.","parameters":{"type":"object"}},
		{"name":"call","description":"Those of the call.","parameters":{"type":"object"}}]}`

// TestGrants adds, changes and removes grants while the server runs. A tool without the grants that it needs is in no list, and its error says what
// is missing. A reload that changes nothing for a tool leaves it alone.
// Proves: Nothing without a grant
func TestGrants(t *testing.T) {
	t.Parallel()
	first := settings(t)
	testkit.Put(t, first.Tools.Directory, "set.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/configured"), configured))
	r := start(t, first)
	listed := func() bool {
		a, err := http.Get(r.url + "/tools")
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body := new(strings.Builder)
		if err := a.Write(body); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(body.String(), "/set/call")
	}
	grant := func(match, granted string) func(c *config.Config) {
		return func(c *config.Config) {
			c.Grants = append(c.Grants[:len(c.Grants):len(c.Grants)], config.Grant{Match: match, Rules: capability.Rules{"settings": &settingscap.Rule{Settings: []byte(granted)}}})
		}
	}
	const missing = `{"detail":"Tool /set/call was not granted what it needs: settings (units: Field required)","code":"tool_not_granted"}`
	metric, both := grant("set/*", `{"units":"metric"}`), grant("set/start", `{"units":"imperial"}`)
	for _, test := range []struct {
		name           string
		change         func(c *config.Config)
		status         int
		call, start    string
		same, sameCall bool // the tools are the same as in the step before
	}{
		{"nothing granted", func(*config.Config) {}, 503, missing, "", true, true},
		{"to another", grant("other/*", `{"units":"metric"}`), 503, missing, "", true, true},
		{"granted", metric, 200, `{"units":"metric"}`, `{"units":"metric"}`, false, false},
		{"granted again", metric, 200, `{"units":"metric"}`, `{"units":"metric"}`, true, true},
		{"another grant for one of them", func(c *config.Config) { metric(c); both(c) }, 200, `{"units":"metric"}`, `{"units":"imperial"}`, false, true},
		{"settings that do not fit", grant("set/*", `{"units":"stone"}`), 503, "settings (of the grant to set/*: units: ", "", false, false},
		{"the other settings", grant("set/*", `{"units":"imperial"}`), 200, `{"units":"imperial"}`, `{"units":"imperial"}`, false, false},
		{"switched off, too", func(c *config.Config) { c.Tools.Disabled = []string{"set"} }, 503, `"code":"tool_disabled"`, "", false, false},
		{"nothing any more", func(*config.Config) {}, 503, missing, "", true, true},
	} {
		before := r.Table().Current()
		if err := r.Reload(changed(first, test.change)); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		for path, want := range map[string]string{"/set/call": test.call, "/set/start": test.start} {
			status, body, err := r.call(path, "")
			if err != nil || status != test.status || !strings.Contains(body, want) {
				t.Errorf("%s: %s answers %d %s (%v), want %d %s", test.name, path, status, body, err, test.status, want)
			}
			old, _ := before.Lookup(path)
			now, _ := r.Table().Lookup(path)
			if same := old.Tool == now.Tool; same != (test.same || test.sameCall && path == "/set/call") {
				t.Errorf("%s: %s is the same tool as before: %t", test.name, path, same)
			}
		}
		if listed() != (test.status == 200) {
			t.Errorf("%s: listed: %t", test.name, listed())
		}
		if got := r.status("/shop/echo", ""); got != 200 {
			t.Errorf("%s: a tool that needs nothing answers %d", test.name, got)
		}
	}
	if got := r.log.Count(`"level":"WARN","msg":"a tool lacks a grant`, `"path":"/set/call"`, `"missing":"settings (units: Field required)"`); got != 2 {
		t.Errorf("%d warnings about missing grants, want one at the start and one at the end:\n%s", got, r.log.String())
	}
	if r.log.Count(`"a tool now has the grants that it needs"`, `"path":"/set/call"`) != 2 {
		t.Errorf("the log does not say that the tool has what it needs:\n%s", r.log.String())
	}
}

// TestGrantsAreReviewed checks that the log names useless grants and grants to every tool, and that impossible grants prevent a start and a reload.
// Proves: Nothing without a grant
func TestGrantsAreReviewed(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Grants = []config.Grant{{Match: "shop/*", Rules: capability.Rules{"http": &httpcap.Rule{Granted: []string{"https://b.example"}}}}, {Match: "**", Rules: capability.Rules{"tools": &tools.Rule{Tools: []string{"x"}}}}, {Match: "shp/*"}}
	r := start(t, c)
	for _, want := range []string{
		`"level":"ERROR","msg":"a grant: https://b.example is granted, but none of the tools that the grant matches needs it: remove it","key":"grant[0].http[0]"`,
		`"level":"WARN","msg":"a grant: \"**\" grants this to every tool`,
		`"level":"WARN","msg":"an entry of the configuration matches no tool that is served","key":"grant[2].match","entry":"shp/*","did_you_mean":"shop"`,
	} {
		r.log.Wait(t, want)
	}
	wrong := changed(c, func(c *config.Config) { c.Secrets.Files = map[string]string{"key": c.Tools.Directory + "/none"} })
	if err := r.Reload(wrong); err == nil || !strings.Contains(err.Error(), "apply the grants: ") {
		t.Errorf("got %v, want a secret that does not exist refused", err)
	}
	if got := r.status("/shop/echo", ""); got != 200 {
		t.Errorf("a refused reload: %d", got)
	}
}
