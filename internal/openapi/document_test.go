package openapi_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// order is a schema with definitions, including recursive ones, and examples.
func order() *wasmtools.Tool {
	t := echo("shop/eu/order")
	t.Title, t.Description = "Order <things>", "Order <things> & more.\nThe second line."
	t.Annotations = wasmtools.Annotations{ReadOnly: new(false), Destructive: new(true), Idempotent: new(false), OpenWorld: new(true)}
	t.Icons = []wasmtools.Icon{
		{Src: "https://shop.example/order.svg", MIMEType: "image/svg+xml", Sizes: []string{"any"}, Theme: "dark"},
		{Src: "data:image/png;base64,iVBORw0KGgo="},
	}
	t.Parameters = schema.MustCompile(`{"type":"object",
  "properties": {"items": {"type":"array","items":{"$ref":"#/$defs/Item"}}, "root": {"$ref":"#/$defs/Node"}},
  "required": ["items"],
  "$defs": {"Item": {"type":"object","properties":{"price":{"type":"number","minimum":0}}}, "result.Item": {"type":"string"},
    "Node": {"type":"object","properties":{"next":{"$ref":"#/$defs/Node"},"odd":{"$ref":"#/$defs/result.Item"}}}}}`)
	result, err := schema.Compile(json.RawMessage(`{"$ref":"#/$defs/Item","$defs":{"Item":{"type":"object","properties":{"again":{"$ref":"#/$defs/Item"}}}}}`))
	if err != nil {
		panic(err)
	}
	t.Result = result
	t.Examples = []wasmtools.Example{
		{Arguments: json.RawMessage(`{"items": [{"price": 1.50}]}`)},
		{Arguments: json.RawMessage(`{"items": []}`), Result: json.RawMessage(`{"items": []}`)},
	}
	return t
}

func indented(tb testing.TB, text string) string {
	tb.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), "", "  "); err != nil {
		tb.Fatalf("%v: %s", err, text)
	}
	return out.String()
}

func options(tb testing.TB) openapi.Options {
	return openapi.Options{Title: "The <tools>", Version: "3", Description: "Of the shop.", Dependencies: []openapi.Dependency{bearer(tb, "sesame")}}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		tools   []*wasmtools.Tool
		options openapi.Options
	}{
		{"empty", nil, openapi.Options{}},
		{"plain", []*wasmtools.Tool{add(), echo("echo")}, openapi.Options{}},
		{"full", []*wasmtools.Tool{order(), add(), echo("math/off")}, options(t)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			table := tableOf(t, tt.tools...)
			if tt.name == "full" {
				if err := table.Disable("/math/off", "not in the lists"); err != nil {
					t.Fatal(err)
				}
			}
			app := appOf(t, table, tt.options)
			document := bodyOf(t, serve(app, get("/openapi.json", "Authorization", "Bearer sesame")))
			golden(t, "tools-"+tt.name+".json", indented(t, bodyOf(t, serve(app, get("/tools", "Authorization", "Bearer sesame")))))
			golden(t, "openapi-"+tt.name+".json", indented(t, document))
			validate(t, document)
		})
	}
}

// validate checks a document against the official schema, every schema in it against its draft, and every
// reference.
func validate(t *testing.T, document string) {
	t.Helper()
	var parsed any
	if err := json.Unmarshal([]byte(document), &parsed); err != nil {
		t.Fatal(err)
	}
	draft, err := jsonschema.Compile("https://json-schema.org/draft/2020-12/schema")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				path, local := strings.CutPrefix(ref, "#/components/")
				kind, name, _ := strings.Cut(path, "/")
				components := parsed.(map[string]any)["components"].(map[string]any)
				group, _ := components[kind].(map[string]any)
				if _, exists := group[name]; !local || !exists {
					t.Errorf("%s: the reference %s leads nowhere", at, ref)
				}
			}
			if s, ok := v["schema"]; ok {
				checked++
				if err := draft.Validate(s); err != nil {
					t.Errorf("%s: not a schema: %v", at, err)
				}
			}
			for name, child := range v {
				walk(at+"/"+name, child)
			}
		case []any:
			for _, child := range v {
				walk(at, child)
			}
		}
	}
	walk("", parsed)
	for name, s := range parsed.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
		checked++
		if err := draft.Validate(s); err != nil {
			t.Errorf("component %s: not a schema: %v", name, err)
		}
	}
	if checked < 5 {
		t.Errorf("found only %d schemas: does the test still look in the right places?", checked)
	}
	t.Run("official schema", func(t *testing.T) {
		if err := officialSchema(t).Validate(parsed); err != nil {
			t.Errorf("not valid: %#v", err)
		}
	})
}

// officialSchema returns the OpenAPI Initiative's schema of documents, which a module embeds. The tests of clients require that
// module; for users of ours it would be too heavy.
func officialSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/pb33f/libopenapi")
	list.Dir = filepath.Join("..", "..", "test", "clients")
	dir, err := list.Output()
	if err != nil || len(bytes.TrimSpace(dir)) == 0 {
		t.Skipf("the official schema of OpenAPI is not at hand (make suite fetches it): %v", err)
	}
	text, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(dir)), "datamodel", "schemas", "oas31-schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	official, err := jsonschema.CompileString("https://spec.openapis.org/oas/3.1/schema/2022-10-07", string(text))
	if err != nil {
		t.Fatal(err)
	}
	return official
}

// Descriptions and examples may be any text. Invalid JSON is left out.
func TestOddTools(t *testing.T) {
	t.Parallel()
	odd := echo("odd")
	odd.Description = "wrong UTF-8: \xff"
	odd.Examples = []wasmtools.Example{{Arguments: json.RawMessage("\xff"), Result: json.RawMessage("}")}}
	app := appOf(t, tableOf(t, odd, add()), openapi.Options{})
	validate(t, bodyOf(t, serve(app, get("/openapi.json"))))
	if !json.Valid([]byte(bodyOf(t, serve(app, get("/tools"))))) {
		t.Error("/tools is not JSON")
	}
}

// TestDescribedInLittleTime checks that describing tools skips checks that may take long, since all changes of the table wait for it.
func TestDescribedInLittleTime(t *testing.T) {
	t.Parallel()
	described := func(path, text string) *wasmtools.Tool {
		one := echo(path)
		one.Parameters = schema.MustCompile(text)
		return one
	}
	app := appOf(t, tableOf(t, described("none", anyObject), described("some", addSchema), described("long", `{"type":"object","properties":{"a":{"default":"`+strings.Repeat("x", 20<<10)+`"}}}`)), openapi.Options{})
	var got struct {
		Paths map[string]struct {
			Post struct{ RequestBody struct{ Required bool } }
		}
	}
	if err := json.Unmarshal([]byte(bodyOf(t, serve(app, get("/openapi.json")))), &got); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/none": false, "/some": true, "/long": true} {
		if required := got.Paths[path].Post.RequestBody.Required; required != want {
			t.Errorf("%s: its body is required: %t", path, required)
		}
	}
}

var strongTag = regexp.MustCompile(`^"[A-Za-z0-9_-]{24}"$`)

// An ETag depends only on the content.
func TestETags(t *testing.T) {
	t.Parallel()
	tags := func(o openapi.Options, tools ...*wasmtools.Tool) [2]string {
		app := appOf(t, tableOf(t, tools...), o)
		return [2]string{serve(app, get("/tools")).Header.Get("ETag"), serve(app, get("/openapi.json")).Header.Get("ETag")}
	}
	first := tags(openapi.Options{}, add(), order())
	for _, tag := range first {
		if !strongTag.MatchString(tag) {
			t.Errorf("got ETag %s, want a strong one", tag)
		}
	}
	if again := tags(openapi.Options{}, order(), add()); again != first {
		t.Errorf("another replica has %v, this one %v", again, first)
	}
	if titled := tags(openapi.Options{Title: "x"}, add(), order()); titled[0] != first[0] || titled[1] == first[1] {
		t.Errorf("with a title: got %v, without %v", titled, first)
	}
	if fewer := tags(openapi.Options{}, add()); fewer[0] == first[0] || fewer[1] == first[1] {
		t.Errorf("with fewer tools: got %v, with more %v", fewer, first)
	}

	table := tableOf(t, add(), order())
	app := appOf(t, table, openapi.Options{})
	for _, path := range []string{"/tools", "/openapi.json"} {
		before := serve(app, get(path)).Header.Get("ETag")
		if err := table.Disable("/math", ""); err != nil {
			t.Fatal(err)
		}
		changed := serve(app, get(path, "If-None-Match", before))
		if text := bodyOf(t, changed); changed.StatusCode != 200 || strings.Contains(text, "math") {
			t.Errorf("%s after a switch: got %d %s", path, changed.StatusCode, text)
		}
		if err := table.Enable("/math"); err != nil {
			t.Fatal(err)
		}
		if got := serve(app, get(path, "If-None-Match", before)); got.StatusCode != 304 {
			t.Errorf("%s switched back: got %d, want 304", path, got.StatusCode)
		}
	}
}
