package manifest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/builtin"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// needing returns a manifest in which the tool and the manifest itself have needs.
func needing(all, tool string) string {
	return strings.Replace(one(`,"needs":`+tool), `"abi":1`, `"abi":1,"needs":`+all, 1)
}

// parse reads a manifest, which may need the capabilities of every server.
func parse(text []byte) (*manifest.Manifest, error) {
	return manifest.Parse(text, builtin.Needs()...)
}

func TestParseNeeds(t *testing.T) {
	t.Parallel()
	m, err := parse([]byte(needing(
		`{"http":["https://api.example.com","https://*.example.com/v2/","http://[::1]:8080"],"kv":true,"secrets":["stripe_key","a.b-c"],"settings":{"type": "object"},"tools":["units/convert","now"],"files":["geo"]}`,
		`{"http":["https://other.example"],"kv":false,"secrets":[]}`)))
	if err != nil {
		t.Fatal(err)
	}
	want := wasmtools.Needs{
		"http": {Words: []string{"https://api.example.com", "https://*.example.com/v2/", "http://[::1]:8080"}}, "kv": {}, "secrets": {Words: []string{"stripe_key", "a.b-c"}},
		"settings": {Object: json.RawMessage(`{"type": "object"}`)}, "tools": {Words: []string{"units/convert", "now"}}, "files": {Words: []string{"geo"}},
	}
	if !reflect.DeepEqual(m.Needs, want) {
		t.Errorf("got %+v, want %+v", m.Needs, want)
	}
	if want := (wasmtools.Needs{"http": {Words: []string{"https://other.example"}}}); !reflect.DeepEqual(m.Tools[0].Needs, want) {
		t.Errorf("got the tool's %+v, want %+v", m.Tools[0].Needs, want)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want["settings"] = wasmtools.Need{Object: json.RawMessage(`{"type":"object"}`)}
	if !reflect.DeepEqual(again.Needs, want) {
		t.Errorf("written and read again: %+v", again.Needs)
	}
	if text, _ := json.Marshal(manifest.Manifest{}); strings.Contains(string(text), "needs") {
		t.Errorf("a manifest without needs is written as %s", text)
	}
}

func TestParseNeedsRefuses(t *testing.T) {
	t.Parallel()
	many := strings.TrimSuffix(strings.Repeat(`"https://a.example",`, 101), ",")
	for needs, want := range map[string]string{
		`[]`:                                 "needs must be an object, not an array",
		`{"net":true}`:                       "needs.net: unknown member: remove it; the members are http, kv, secrets, settings, tools and files",
		`{"secret":[]}`:                      `did you mean "secrets"?`,
		`{"http":"https://a"}`:               "needs.http must be an array, not a string",
		`{"http":[1]}`:                       "needs.http[0] must be a string, not a number",
		`{"http":[` + many + `]}`:            "101 are too many; at most 100",
		`{"http":["https://a","https://a"]}`: `needs.http[1]: "https://a" appears twice`,
		`{"http":["https://a/` + strings.Repeat("x", 300) + `"]}`: "has 310 bytes; the limit is 300",
		`{"http":["ftp://a"]}`:                                   `needs.http[0]: "ftp://a" is not the address of a service`,
		`{"http":["api.example.com"]}`:                           "is not the address",
		`{"http":["https://"]}`:                                  "is not the address",
		`{"http":["https:///path"]}`:                             "is not the address",
		`{"http":["https://user@a.example"]}`:                    "is not the address",
		`{"http":["https://a.example/?q=1"]}`:                    "is not the address",
		`{"http":["https://a.example#x"]}`:                       "is not the address",
		`{"http":["https://a.exämple"]}`:                         "is not the address",
		`{"http":["https://a\\b"]}`:                              "is not the address",
		`{"http":["https://a\tb"]}`:                              "is not the address",
		`{"http":["https://` + strings.Repeat("a", 2000) + `"]}`: "is not the address",
		`{"kv":"16MiB"}`:                                         "needs.kv must be a boolean, not a string",
		`{"secrets":[""]}`:                                       `"" is not a valid name`,
		`{"secrets":[".."]}`:                                     `".." is not a valid name`,
		`{"secrets":["a/b"]}`:                                    `"a/b" is not a valid name`,
		`{"secrets":["a\u0000"]}`:                                "is not a valid name",
		`{"tools":["/units/convert"]}`:                           `"/units/convert" is not the path of a tool`,
		`{"tools":["units/*"]}`:                                  "is not the path of a tool",
		`{"tools":["units//x"]}`:                                 "is not the path of a tool",
		`{"tools":[""]}`:                                         "is not the path of a tool",
		`{"files":["../etc"]}`:                                   `"../etc" is not a valid name`,
		`{"files":["/srv"]}`:                                     "is not a valid name",
	} {
		for _, text := range []string{needing(needs, "{}"), needing("{}", needs)} {
			if m, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %+v, %v, want an error with %q", text, m, err, want)
			}
		}
	}
	if _, err := parse([]byte(needing(`{"settings":true}`, "{}"))); err == nil || !strings.Contains(err.Error(), "needs.settings must be an object, not a boolean") {
		t.Errorf("got %v, want a schema that is not an object refused", err)
	}
	if _, err := parse([]byte(needing("{}", `{"settings":{}}`))); err == nil || !strings.Contains(err.Error(), "tools[0].needs.settings: a single tool can't have it") {
		t.Errorf("got %v, want the settings of a tool refused", err)
	}
}

func TestNeedsAnd(t *testing.T) {
	t.Parallel()
	all := wasmtools.Needs{"http": {Words: []string{"https://a", "https://b"}}, "settings": {Object: json.RawMessage("{}")}, "files": {Words: []string{"geo"}}}
	one := wasmtools.Needs{"http": {Words: []string{"https://b", "https://c"}}, "kv": {}, "secrets": {Words: []string{"k"}}, "tools": {Words: []string{"x"}}}
	want := wasmtools.Needs{
		"http": {Words: []string{"https://a", "https://b", "https://c"}}, "kv": {}, "settings": {Object: json.RawMessage("{}")}, "files": {Words: []string{"geo"}}, "secrets": {Words: []string{"k"}}, "tools": {Words: []string{"x"}},
	}
	if got := manifest.Joined(all, one); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := manifest.Joined(all, wasmtools.Needs{}); fmt.Sprint(got) != fmt.Sprint(all) {
		t.Errorf("joined with no needs: got %+v, want %+v", got, all)
	}
	if got := manifest.Joined(wasmtools.Needs{}, one); fmt.Sprint(got) != fmt.Sprint(one) {
		t.Errorf("no needs joined with some: got %+v, want %+v", got, one)
	}
	if len(all["http"].Words) != 2 || len(one["http"].Words) != 2 || len(all) != 3 {
		t.Error("the parts have changed")
	}
}

// The server and the SDKs accept and refuse the same: see testdata/abi/README.md.
func TestParseManifestNeeds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/abi/needs.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Accepted, Refused []struct {
			Name  string
			Needs json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all.Accepted) < 5 || len(all.Refused) < 15 {
		t.Fatalf("%d and %d cases, %v", len(all.Accepted), len(all.Refused), err)
	}
	for i, c := range append(all.Accepted, all.Refused...) {
		for _, said := range []string{needing(string(c.Needs), "{}"), needing("{}", string(c.Needs))} {
			if _, err := parse([]byte(said)); (err == nil) != (i < len(all.Accepted)) {
				t.Errorf("%s: got %v", c.Name, err)
			}
		}
	}
}
