// Command reach is the Go guest with a tool for each function that needs a grant, which passes on what it is given and what it
// gets. Tests of the host build it, and its twins in other languages: testdata/abi/README.md says what its tools do.
package main

import (
	"encoding/json"
	"io/fs"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/files"
	"github.com/toolsrv/toolsrv/sdk/go/http"
	"github.com/toolsrv/toolsrv/sdk/go/kv"
	"github.com/toolsrv/toolsrv/sdk/go/secrets"
	"github.com/toolsrv/toolsrv/sdk/go/settings"
	"github.com/toolsrv/toolsrv/sdk/go/tools"
)

type nothing struct{}

type request struct {
	Method  string     `json:"method" default:"GET"`
	URL     string     `json:"url"`
	Headers [][]string `json:"headers" default:"[]"`
	Body    string     `json:"body" default:""`
	Timeout int64      `json:"timeout" default:"0" description:"Milliseconds."`
	Manual  bool       `json:"manual" default:"false"`
}

type answer struct {
	Status int         `json:"status"`
	URL    string      `json:"url"`
	Header http.Header `json:"headers"`
	Body   string      `json:"body"`
}

type key struct {
	Key string `json:"key"`
}

type entry struct {
	Found   bool   `json:"found"`
	Value   string `json:"value"`
	Version uint64 `json:"version"`
	Expires int64  `json:"expires"`
}

type write struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	TTL    int64  `json:"ttl" default:"0" description:"Milliseconds."`
	Expect int64  `json:"expect" default:"-1"`
}

type removal struct {
	Key    string `json:"key"`
	Expect int64  `json:"expect" default:"-1"`
}

type listing struct {
	Prefix string `json:"prefix" default:""`
	After  string `json:"after" default:""`
	Limit  int    `json:"limit" default:"0"`
}

type keys struct {
	Keys []string `json:"keys"`
	More bool     `json:"more"`
}

type name struct {
	Name string `json:"name"`
}

type call struct {
	Path      string          `json:"path"`
	Arguments json.RawMessage `json:"arguments" default:"{}"`
}

type file struct {
	Folder string `json:"folder"`
	Path   string `json:"path"`
}

type Settings struct {
	Units string `json:"units" enum:"metric,imperial" default:"metric"`
	Limit int64  `json:"limit"`
}

var loaded = settings.Load[Settings]()

var _ = toolsrv.Export(toolsrv.Module{
	Namespace: "reach",
	Version:   "1.0.0",
	Needs:     toolsrv.Needs{Settings: Settings{}},
	Tools: []toolsrv.Tool{
		toolsrv.Func("http_send", "Send a request.", send).With(toolsrv.Options{Needs: toolsrv.Needs{HTTP: []string{"https://api.example.com/v1/"}}}),
		toolsrv.Func("kv_get", "Get what is under a key.", get).With(store),
		toolsrv.Func("kv_set", "Put a value under a key.", set).With(store),
		toolsrv.Func("kv_delete", "Remove a key.", remove).With(store),
		toolsrv.Func("kv_list", "List keys.", list).With(store),
		toolsrv.Func("secret_read", "Read a secret.", func(c *toolsrv.Call, in name) (string, error) {
			value, err := secrets.Read(c, in.Name)
			return string(value), err
		}).With(toolsrv.Options{Needs: toolsrv.Needs{Secrets: []string{"stripe_key"}}}),
		toolsrv.Func("settings_read", "Read the settings.", func(c *toolsrv.Call, _ nothing) (Settings, error) { return loaded.Get(c) }),
		toolsrv.Func("tool_call", "Call another tool.", func(c *toolsrv.Call, in call) (json.RawMessage, error) {
			return tools.Call[json.RawMessage](c, in.Path, in.Arguments)
		}).With(toolsrv.Options{Needs: toolsrv.Needs{Tools: []string{"units/convert"}}}),
		toolsrv.Func("file_read", "Read a file.", func(c *toolsrv.Call, in file) (string, error) {
			text, err := fs.ReadFile(files.Dir(c, in.Folder), in.Path)
			return string(text), err
		}).With(toolsrv.Options{Needs: toolsrv.Needs{Files: []string{"geo"}}}),
	},
})

var store = toolsrv.Options{Needs: toolsrv.Needs{KV: true}}

func main() {}

func send(c *toolsrv.Call, in request) (answer, error) {
	header := http.Header{}
	for _, field := range in.Headers {
		header.Add(field[0], field[1])
	}
	got, err := http.Do(c, http.Request{
		Method: in.Method, URL: in.URL, Header: header, Body: []byte(in.Body),
		Timeout: time.Duration(in.Timeout) * time.Millisecond, NoRedirects: in.Manual,
	})
	if err != nil {
		return answer{}, err
	}
	return answer{got.Status, got.URL, got.Header, string(got.Body)}, nil
}

func get(c *toolsrv.Call, in key) (entry, error) {
	e, found, err := kv.Get(c, in.Key)
	out := entry{Found: found, Value: string(e.Value), Version: e.Version}
	if !e.Expires.IsZero() {
		out.Expires = e.Expires.UnixMilli()
	}
	return out, err
}

func set(c *toolsrv.Call, in write) (uint64, error) {
	ttl := time.Duration(in.TTL) * time.Millisecond
	switch in.Expect {
	case -1:
		return kv.Set(c, in.Key, []byte(in.Value), ttl)
	case 0:
		return kv.Create(c, in.Key, []byte(in.Value), ttl)
	}
	return kv.Update(c, in.Key, []byte(in.Value), ttl, uint64(in.Expect))
}

func remove(c *toolsrv.Call, in removal) (bool, error) {
	if in.Expect == -1 {
		return kv.Delete(c, in.Key)
	}
	return kv.DeleteVersion(c, in.Key, uint64(in.Expect))
}

func list(c *toolsrv.Call, in listing) (keys, error) {
	found, more, err := kv.List(c, in.Prefix, in.After, in.Limit)
	return keys{found, more}, err
}
