package command_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// needy is a manifest with two tools, one of which needs more than the other.
const needy = `{"abi":1,"namespace":"weather","needs":{"kv":true,"settings":{"type":"object","required":["units"],"properties":{"units":{"enum":["metric","imperial"]}}}},"tools":[
	{"name":"now","description":"Now.","needs":{"http":["https://api.example.com"],"secrets":["key"]},"parameters":{"type":"object"}},
	{"name":"then","description":"Then.","parameters":{"type":"object"}}]}`

// TestInspectNeeds pastes the grant that inspect prints into a configuration, in which check then finds nothing missing.
func TestInspectNeeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := testkit.Put(t, dir, "tools/weather.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), needy))
	_, stdout, _ := run("inspect", file)
	for _, want := range []string{`needs +all tools +kv\n`, `needs +all tools +settings\n`, `needs +/weather/now +http https://api.example.com\n`, `needs +/weather/now +secrets key\n`} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("no %s in\n%s", want, stdout)
		}
	}
	_, pasted, ok := strings.Cut(stdout, "with your own values:\n\n")
	want := `[[grant]]
match = "weather/*"
kv = "16MiB"
settings = {"units" = "metric"}

[[grant]]
match = "weather/now"
http = ["https://api.example.com"]
secrets = ["key"]
`
	if !ok || pasted != want {
		t.Fatalf("got the grants\n%s\nwant\n%s", pasted, want)
	}
	testkit.Put(t, dir, "secrets/key", []byte("a key of some length"))
	settings := testkit.Put(t, dir, "toolsrv.toml", []byte("[tools]\ndirectory = \"tools\"\n[state]\ndirectory = \"state\"\n[secrets]\nfiles = {key = \"secrets/key\"}\n"+pasted))
	if code, stdout, stderr := run("check", "--config", settings, "--strict"); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "state*")); left != nil {
		t.Errorf("check made %q", left)
	}
	if _, stdout, _ := run("inspect", testkit.Put(t, dir, "plain.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifestOf("shop", "echo")))); strings.Contains(stdout, "[[grant]]") {
		t.Errorf("a grant for a tool without needs:\n%s", stdout)
	}
}

// TestCheckGrants checks that missing grants are found, and grants that no tool needs.
func TestCheckGrants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.Put(t, dir, "tools/weather.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), needy))
	for _, test := range []struct {
		name, text string
		code       int
		says       []string
	}{
		{"nothing granted", "", 0, []string{
			"tool /weather/now: it can't be called, because the configuration does not grant it http https://api.example.com, kv, secrets key, settings (units: Field required) (ungranted)\n",
			"tool /weather/then: it can't be called, because the configuration does not grant it kv, settings (units: Field required) (ungranted)\n"}},
		{"a misspelt URL", "[[grant]]\nmatch = 'weather/*'\nhttp = ['https://api.exmaple.com']\n", 1, []string{
			"wrong    " + dir + "/x.toml:1: grant[0].http[0]: https://api.exmaple.com is granted, but none of the tools that the grant matches needs it: remove it (grant)\n"}},
		{"settings that do not fit", "[[grant]]\nmatch = 'weather/*'\nsettings = {units = 'stone'}\n", 0, []string{"settings (of the grant to weather/*: units: "}},
		{"state without a directory", "[[grant]]\nmatch = 'weather/*'\nkv = '1MiB'\n", 0, []string{"does not grant it settings (units: Field required) (ungranted)\n"}},
		{"everybody", "[state]\ndirectory = 's'\n[[grant]]\nmatch = '*'\nkv = '1MiB'\n", 0, []string{"warning  " + dir + `/x.toml:3: grant[0].match: "*" grants this to every tool`}},
		{"no such tool", "[[grant]]\nmatch = 'wether/*'\nkv = '1MiB'\n[state]\ndirectory = 's'\n", 0, []string{`grant[0].match: "wether/*" matches no tool: did you mean "weather"? (unmatched)`}},
	} {
		settings := testkit.Put(t, dir, "x.toml", []byte(test.text+"[tools]\ndirectory = \"tools\"\n"))
		code, stdout, stderr := run("check", "--config", settings)
		if code != test.code {
			t.Errorf("%s: exit code %d, want %d: %s", test.name, code, test.code, stderr)
		}
		for _, want := range test.says {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %q in\n%s", test.name, want, stdout)
			}
		}
	}
	testkit.Put(t, dir, "x.toml", []byte("[[grant]]\nmatch = '*'\nsettings = {units = 'metric'}\nhttp = ['https://b.example']\n[tools]\ndirectory = \"tools\"\n"))
	_, stdout, _ := run("check", "--config", filepath.Join(dir, "x.toml"), "--json")
	for _, want := range []string{`"ungranted": [`, `"tool": "/weather/then"`, `"missing": [`, `"key": "grant[0].http[0]"`, `"warning": true`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("--json: no %s in\n%s", want, stdout)
		}
	}
}
