package toolsrv_test

import (
	"encoding/json"
	"strings"
	"testing"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

type settings struct {
	Units string `json:"units" enum:"metric,imperial" default:"metric"`
}

// TestNeeds writes needs into the manifest, for a module and for a tool.
func TestNeeds(t *testing.T) {
	t.Parallel()
	needs := toolsrv.Needs{
		HTTP: []string{"https://api.example.com", "https://*.example.com/v2/"}, KV: true, Secrets: []string{"stripe_key", "a.b"},
		Config: settings{}, Tools: []string{"units/convert", "a/b/c", "one"}, Files: []string{"geo"},
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
		`"config":{"type":"object","properties":{"units":{"type":"string","enum":["metric","imperial"],"default":"metric"}},"additionalProperties":false},` +
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
		{"no URL", toolsrv.Needs{HTTP: []string{"api.example.com"}}, `http: "api.example.com" is not the address of a service`},
		{"another scheme", toolsrv.Needs{HTTP: []string{"ftp://example.com"}}, "is not the address"},
		{"no host", toolsrv.Needs{HTTP: []string{"https:///v1"}}, "is not the address"},
		{"a user", toolsrv.Needs{HTTP: []string{"https://a@example.com"}}, "is not the address"},
		{"a query", toolsrv.Needs{HTTP: []string{"https://example.com/?a"}}, "is not the address"},
		{"not ASCII", toolsrv.Needs{HTTP: []string{"https://exämple.com"}}, "is not the address"},
		{"a long URL", toolsrv.Needs{HTTP: []string{"https://example.com/" + strings.Repeat("a", 2000)}}, "is not the address"},
		{"twice", toolsrv.Needs{HTTP: []string{"https://a.com", "https://a.com"}}, "appears twice"},
		{"many", toolsrv.Needs{HTTP: make([]string, 101)}, "101 are more than the 100"},
		{"a secret without a name", toolsrv.Needs{Secrets: []string{""}}, "secrets: \"\" is not a valid name"},
		{"a hidden secret", toolsrv.Needs{Secrets: []string{".key"}}, "begin with another than a dot"},
		{"a secret's path", toolsrv.Needs{Secrets: []string{"../key"}}, "is not a valid name"},
		{"a tool's path from the root", toolsrv.Needs{Tools: []string{"/convert"}}, "tools: \"/convert\" is not the path of a tool"},
		{"a tool without a name", toolsrv.Needs{Tools: []string{"units/"}}, "is not the path of a tool"},
		{"a folder's path", toolsrv.Needs{Files: []string{"a/b"}}, "files: \"a/b\" is not a valid name"},
		{"settings that are no struct", toolsrv.Needs{Config: 1}, "Config is a value of a struct"},
		{"settings that have no JSON", toolsrv.Needs{Config: struct{ F func() }{}}, "config: "},
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

// TestFailure has a failure reach clients with its code.
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
