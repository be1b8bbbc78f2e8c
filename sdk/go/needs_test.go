package toolsrv_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

type settings struct {
	Units string `json:"units" enum:"metric,imperial" default:"metric"`
}

// TestNeeds checks the needs in the manifest, for a module and for a tool.
func TestNeeds(t *testing.T) {
	t.Parallel()
	needs := toolsrv.Needs{
		HTTP: []string{"https://api.example.com", "https://*.example.com/v2/"}, KV: true, Secrets: []string{"stripe_key", "a.b"},
		Settings: settings{}, Tools: []string{"units/convert", "a/b/c", "one"}, Files: []string{"geo"},
	}
	options := toolsrv.Options{Needs: toolsrv.Needs{Secrets: []string{"own"}}}
	tool := toolsrv.Func("add", "Add two numbers.", add).With(options)
	options.Needs.Secrets[0] = "changed"
	text, err := toolsrv.Module{Needs: needs, Tools: []toolsrv.Tool{tool}}.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Needs json.RawMessage
		Tools []struct{ Needs json.RawMessage }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	const want = `{"http":["https://api.example.com","https://*.example.com/v2/"],"kv":true,"secrets":["stripe_key","a.b"],` +
		`"settings":{"type":"object","properties":{"units":{"type":"string","enum":["metric","imperial"],"default":"metric"}},"additionalProperties":false},` +
		`"tools":["units/convert","a/b/c","one"],"files":["geo"]}`
	if string(got.Needs) != want {
		t.Errorf("the module needs %s\nwant %s", got.Needs, want)
	}
	if want := `{"secrets":["own"]}`; string(got.Tools[0].Needs) != want {
		t.Errorf("the tool needs %s, want %s", got.Tools[0].Needs, want)
	}
}

func TestNeedsRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		needs toolsrv.Needs
		want  string
	}{
		{"a long URL", toolsrv.Needs{HTTP: []string{"https://example.com/" + strings.Repeat("a", 2000)}}, "is not the address"},
		{"many", toolsrv.Needs{HTTP: make([]string, 101)}, "101 are too many; at most 100"},
		{"settings that are no struct", toolsrv.Needs{Settings: 1}, "Settings is a value of a struct"},
		{"settings that have no JSON", toolsrv.Needs{Settings: struct{ F func() }{}}, "settings: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tool := toolsrv.Func("add", "Add two numbers.", add)
			_, err := toolsrv.Module{Needs: test.needs, Tools: []toolsrv.Tool{tool}}.Manifest()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
			_, err = toolsrv.Module{Tools: []toolsrv.Tool{tool.With(toolsrv.Options{Needs: test.needs})}}.Manifest()
			if err == nil || !strings.Contains(err.Error(), `tool "add"`) {
				t.Errorf("as a tool's: got %v, want an error that names the tool", err)
			}
		})
	}
}

// The server and all SDKs accept and refuse the same: see testdata/abi/README.md.
func TestNeedsAsTheServer(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/abi/needs.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Accepted, Refused []struct {
			Name  string
			Needs toolsrv.Needs
		}
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all.Accepted) < 5 || len(all.Refused) < 15 {
		t.Fatal(len(all.Accepted), len(all.Refused), err)
	}
	for i, c := range append(all.Accepted, all.Refused...) {
		_, err := toolsrv.Module{Tools: []toolsrv.Tool{toolsrv.Func("add", "Add two numbers.", add).With(toolsrv.Options{Needs: c.Needs})}}.Manifest()
		if (err == nil) != (i < len(all.Accepted)) {
			t.Errorf("%s: got %v", c.Name, err)
		}
	}
}

// TestFailure: clients get a failure with its code.
func TestFailure(t *testing.T) {
	t.Parallel()
	f := &toolsrv.Failure{Code: "timeout", Message: "The server took too long."}
	if got := toolsrv.AsError(f); got.Code != "timeout" || got.Message != f.Message || got.Status != 502 {
		t.Errorf("got %+v, want the failure's code and message with status 502", got)
	}
	if got := (&toolsrv.Failure{Code: "limit"}).Error(); got != "limit" {
		t.Errorf("got %q, want the code", got)
	}
	if got := (*toolsrv.Failure)(nil).Error(); got == "" {
		t.Error("a nil failure says nothing")
	}
}
