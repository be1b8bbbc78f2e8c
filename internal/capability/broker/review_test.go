package broker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/wasmtools"
)

var (
	everything = wasmtools.Needs{
		"http": {Words: []string{"https://api.example.com/v1/", "https://*.example.org"}}, "kv": {}, "secrets": {Words: []string{"stripe.key"}}, "files": {Words: []string{"geo"}}, "tools": {Words: []string{"units/convert"}},
		"settings": {Object: []byte(`{"type":"object","required":["units","most","on","list","\u202e\"=","sub","odd"],"properties":{
			"units":{"enum":["metric","imperial"]},"most":{"type":"integer"},"on":{"type":"boolean"},"list":{"type":"array"},"\u202e\"=":{"type":"string"},"sub":{"type":"object"}}}`)},
	}
	tools = []*wasmtools.Tool{{Namespace: "weather", Name: "now", Needs: everything}, {Namespace: "weather", Name: "plain"}, {Name: "plain"}}
)

// TestReview finds grants that no matching tool needs, and grants for every tool.
// Proves: Nothing without a grant
func TestReview(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "geo"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, text string
		want       string // keys and messages, one per line; "~" marks a warning
	}{
		{"all is needed", "[state]\ndirectory='s'\n[[grant]]\nmatch='weather/*'\nhttp=['https://api.example.com','https://a.example.org/x/']\nkv='1MiB'\nsettings={}\nfiles={geo='geo'}\ntools=['units/*']\nsecrets=['stripe.key']", ""},
		{"nothing is", "[state]\ndirectory='s'\n[[grant]]\nmatch='weather/plain'\nhttp=['https://api.example.com']\nkv='1MiB'\nsettings={a=1}\nfiles={geo='geo'}\ntools=['units/*']\nsecrets=['stripe.key']",
			"grant[0].http[0] https://api.example.com is granted\ngrant[0].kv kv is granted\ngrant[0].secrets[0] a secret is granted\ngrant[0].settings settings is granted\ngrant[0].tools[0] a tool is granted\ngrant[0].files.geo a folder is granted"},
		{"some is", "[[grant]]\nmatch='weather/*'\nhttp=['https://api.example.com','https://b.example.com']\nfiles={geo='geo'}\ntools=['units/convert','x']\nsecrets=['other']",
			"grant[0].http[1] https://b.example.com is granted\ngrant[0].secrets[0] a secret is granted\ngrant[0].tools[1] a tool is granted"},
		{"it matches no tool", "[[grant]]\nmatch='wether/*'\nhttp=['https://b.example.com']", ""},
		{"no state", "[[grant]]\nmatch='weather/*'\nkv='1MiB'", "grant[0].kv set directory in [state]"},
		{"no directory", "[[grant]]\nmatch='weather/*'\nfiles={geo='gone'}", "grant[0].files.geo no such file"},
		{"all files", "[[grant]]\nmatch='weather/*'\nfiles={geo='/'}", "~grant[0].files.geo all files on the machine"},
		{"all files by another name", "[[grant]]\nmatch='weather/*'\nfiles={geo='/usr/..//'}", "~grant[0].files.geo all files on the machine"},
		{"a key in the open", "[[grant]]\nmatch='weather/*'\nhttp=['https://api.example.com/']\nheaders={'https://api.example.com/'={Authorization='Bearer hunter2',X-Api-Key='${secret:a}',Accept='x'}}",
			"~grant[0].headers the value of Authorization stands here"},
		{"each caller's own", "[state]\ndirectory='s'\n[[auth.token]]\nname='ann'\nfile='x'\n[[grant]]\nmatch='weather/*'\nkv={size='1MiB',by='principal'}\nhttp=['https://api.example.com/']\nheaders={'https://api.example.com/'={Authorization='Bearer ${secret:a@principal}'}}", ""},
		{"grant of callers' own, for callers without names", "[auth]\ntokens=['x']\n[state]\ndirectory='s'\n[[grant]]\nmatch='weather/*'\nkv={size='1MiB',by='principal'}\nhttp=['https://api.example.com/']\nheaders={'https://api.example.com/'={Authorization='Bearer ${secret:a@principal}'}}",
			"~grant[0].headers can have nothing of their own\n~grant[0].kv can have nothing of their own"},
		{"to everybody", "[[grant]]\nmatch='weather/*'\ntools=['units/convert']\n[[grant]]\nmatch='*'\ntools=['units/convert']\n[[grant]]\nmatch='**'\ntools=['units/convert']",
			"~grant[1].match every tool\n~grant[2].match every tool"},
	} {
		c, err := config.Parse([]byte(test.text), dir)
		if err != nil {
			t.Fatal(err)
		}
		findings := broker.Review(c, tools)
		var want []string
		if test.want != "" {
			want = strings.Split(test.want, "\n")
		}
		if len(findings) != len(want) {
			t.Errorf("%s: got %v, want %q", test.name, findings, want)
			continue
		}
		for i, f := range findings {
			key, says, _ := strings.Cut(want[i], " ")
			if f.Warning != strings.HasPrefix(key, "~") || f.Key != strings.TrimPrefix(key, "~") || !strings.Contains(f.Message, says) {
				t.Errorf("%s: got %+v, want %s", test.name, f, want[i])
			}
		}
	}
}

// TestSuggest pastes a suggestion into a configuration: it grants everything that could be known.
func TestSuggest(t *testing.T) {
	t.Parallel()
	suggested := suggest("weather/*", everything)
	missing := lacks(grants(t, suggested).For("/weather/now", everything))
	if got := missing; got != "secrets stripe.key (no source in [secrets] has it)" {
		t.Errorf("missing %s, with\n%s", got, suggested)
	}
	if got, want := suggest("a/b", wasmtools.Needs{"kv": {}}), "[[grant]]\nmatch = \"a/b\"\nkv = \"16MiB\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	optional := wasmtools.Needs{"settings": {Object: []byte(`{"type":"object","properties":{"b":{"type":"integer"},"a":{"enum":["x"]}}}`)}}
	if got, want := suggest("a", optional), "[[grant]]\nmatch = \"a\"\n# settings = {\"a\" = \"x\", \"b\" = 0}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for property, want := range map[string]string{
		`{"type":"integer","minimum":1}`:                           "1",
		`{"type":"number","minimum":0.5}`:                          "1",
		`{"type":"integer","minimum":1,"default":20}`:              "20",
		`{"type":"integer","examples":[7],"minimum":1}`:            "7",
		`{"type":"integer","default":1e400,"minimum":1e300}`:       "0",
		`{"type":"boolean","default":true}`:                        "true",
		`{"type":"string","default":"metric","enum":["imperial"]}`: `"metric"`,
	} {
		needs := wasmtools.Needs{"settings": {Object: []byte(`{"type":"object","required":["limit"],"properties":{"limit":` + property + `}}`)}}
		if got, want := suggest("a", needs), "[[grant]]\nmatch = \"a\"\nsettings = {\"limit\" = "+want+"}\n"; got != want {
			t.Errorf("%s: got %q, want %q", property, got, want)
		}
	}
	near := wasmtools.Needs{"http": {Words: []string{"http://127.0.0.1:9000", "http://localhost:8080/x", "https://[fd00::1]", "https://api.example.com", "https://1.1.1.1"}}}
	if got, want := suggest("a", near), `private = ["127.0.0.1/32", "::1/128", "fd00::1/128"]`+"\n"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %s in it", got, want)
	}
	grants(t, suggest("a", near))
	for _, schema := range []string{"true", `{"required":["a"],"properties":{"a":true}}`, `{"required":7}`, `{"type":"object","required":["a"],"properties":{"a":{"type":["string","null"]}}}`} {
		grants(t, suggest("a", wasmtools.Needs{"settings": {Object: []byte(schema)}})) // is TOML
	}
}
