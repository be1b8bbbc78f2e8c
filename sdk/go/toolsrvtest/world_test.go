package toolsrvtest_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/files"
	"github.com/toolsrv/toolsrv/sdk/go/secrets"
	"github.com/toolsrv/toolsrv/sdk/go/settings"
	"github.com/toolsrv/toolsrv/sdk/go/tools"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

type Settings struct {
	Units string `json:"units" enum:"metric,imperial" default:"metric"`
	Limit int    `json:"limit"`
}

var loaded = settings.Load[Settings]()

type named struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments" default:"{}"`
}

// reaching is a module whose arguments say what it uses.
var reaching = toolsrv.Module{
	Needs: toolsrv.Needs{Settings: Settings{}, Secrets: []string{"key", "other"}},
	Tools: []toolsrv.Tool{
		toolsrv.Func("secret", "Return a secret.", func(c *toolsrv.Call, in named) (string, error) {
			value, err := secrets.Read(c, in.Name)
			return string(value), err
		}),
		toolsrv.Func("settings", "Return the settings.", func(c *toolsrv.Call, _ struct{}) (Settings, error) { return loaded.Get(c) }),
		toolsrv.Func("call", "Call a tool.", func(c *toolsrv.Call, in named) (json.RawMessage, error) {
			return tools.Call[json.RawMessage](c, in.Name, in.Arguments)
		}).With(toolsrv.Options{Needs: toolsrv.Needs{Tools: []string{"units/convert", "units/broken", "units/busy", "units/none"}}}),
		toolsrv.Func("number", "Call a tool that returns a number.", func(c *toolsrv.Call, in named) (float64, error) {
			return tools.Call[float64](c, in.Name, in)
		}).With(toolsrv.Options{Needs: toolsrv.Needs{Tools: []string{"units/convert"}}}),
		toolsrv.Func("file", "Return a file.", func(c *toolsrv.Call, in named) (string, error) {
			text, err := fs.ReadFile(files.Dir(c, "geo"), in.Name)
			return string(text), err
		}).With(toolsrv.Options{Needs: toolsrv.Needs{Files: []string{"geo"}}}),
		toolsrv.Func("other_file", "Return a file of an undeclared folder.", func(c *toolsrv.Call, in named) (string, error) {
			text, err := fs.ReadFile(files.Dir(c, "geo"), in.Name)
			return string(text), err
		}),
	},
}

// TestWorld: tools reach exactly what a test gives them.
func TestWorld(t *testing.T) {
	t.Parallel()
	world := &toolsrvtest.World{
		Secrets:  map[string]string{"key": "s3cr3t", "undeclared": "x"},
		Settings: `{"limit": 3}`,
		Tools: map[string]func(string) (string, error){
			"units/convert": func(arguments string) (string, error) { return arguments, nil },
			"units/broken": func(string) (string, error) {
				return "", &toolsrv.Error{Code: "no_unit", Message: "No such unit.", Data: []int{1}}
			},
			"units/busy": func(string) (string, error) {
				return "", &toolsrv.Failure{Code: "overloaded", Message: "Try later."}
			},
			"units/undeclared": func(string) (string, error) { return "1", nil },
		},
		Files: map[string]fs.FS{"geo": fstest.MapFS{"a.csv": {Data: []byte("a,b")}}},
	}
	tests := []struct{ name, tool, arguments, want, code string }{
		{"secret", "secret", `{"name": "key"}`, `"s3cr3t"`, ""},
		{"secret that the test has not", "secret", `{"name": "other"}`, "", "not_granted"},
		{"secret that is not declared", "secret", `{"name": "undeclared"}`, "", "not_granted"},
		{"settings", "settings", ``, `{"units":"metric","limit":3}`, ""},
		{"tool", "call", `{"name": "units/convert", "arguments": {"a": 1}}`, `{"a":1}`, ""},
		{"tool that fails", "call", `{"name": "units/broken"}`, "", "tool_error"},
		{"tool that is busy", "call", `{"name": "units/busy"}`, "", "overloaded"},
		{"tool that the test has not", "call", `{"name": "units/none"}`, "", "not_granted"},
		{"tool that is not declared", "call", `{"name": "units/undeclared"}`, "", "not_granted"},
		{"tool that returns something else", "number", `{"name": "units/convert"}`, "", "invalid"},
		{"file", "file", `{"name": "a.csv"}`, `"a,b"`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := world.Call(t, reaching, test.tool, test.arguments)
			if test.code == "" {
				if got != test.want || err != nil {
					t.Errorf("got %s, %v, want %s", got, err, test.want)
				}
				return
			}
			if f, ok := toolsrv.AsType[*toolsrv.Failure](err); !ok || f.Code != test.code {
				t.Errorf("got %s, %v, want a failure with the code %s", got, err, test.code)
			}
		})
	}
	if _, err := world.Call(t, reaching, "call", `{"name": "units/broken"}`); err != nil {
		f, ok := toolsrv.AsType[*toolsrv.Failure](err)
		if !ok || f.ToolCode != "no_unit" || string(f.Data) != "[1]" || f.Message != "No such unit." {
			t.Errorf("got %+v, want what the tool says of its error", err)
		}
	}
	if _, err := world.Call(t, reaching, "file", `{"name": "none.csv"}`); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
	if _, err := world.Call(t, reaching, "other_file", `{"name": "a.csv"}`); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a folder that is not declared: got %v", err)
	}
	for _, tool := range []string{"settings", "secret", "file"} {
		if got, err := toolsrvtest.Call(t, reaching, tool, `{"name": "key"}`); err == nil {
			t.Errorf("%s: got %s without a world", tool, got)
		}
	}
}
