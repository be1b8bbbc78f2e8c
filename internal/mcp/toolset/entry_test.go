package toolset_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// elements returns the elements of a list by name.
func elements(t testing.TB, v *toolset.View, era toolset.Era) map[string]string {
	t.Helper()
	page, err := v.List("", era)
	if err != nil {
		t.Fatal(err)
	}
	var tools []json.RawMessage
	if err := json.Unmarshal(page.Tools, &tools); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, text := range tools {
		var named struct{ Name string }
		if err := json.Unmarshal(text, &named); err != nil {
			t.Fatal(err)
		}
		all[named.Name] = string(text)
	}
	return all
}

func TestElement(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	full := tool("math/add", echo)
	full.Title, full.Description = "Add <two> numbers", "Adds.\n\"Quickly\" & well."
	full.Annotations = wasmtools.Annotations{ReadOnly: &yes, Destructive: &no}
	full.Icons = []wasmtools.Icon{{Src: "https://example.com/i.png", MIMEType: "image/png", Sizes: []string{"48x48"}, Theme: "dark"}}
	full.Parameters = schema.MustCompile("{\n \"type\": \"object\", \"properties\": {} }")
	full.Result = resultSchema(t, `{"type":"number"}`)
	plain := tool("plain", echo)
	plain.Description = ""
	plain.Parameters = schema.MustCompile(`{"type":"object","properties":{}}`)
	plain.Result = resultSchema(t, `{"type": "object"}`)
	view := setOf(t, tableOf(t, full, plain), toolset.Options{}).View("", wasmtools.Everybody())
	const head = `{"name":"math-add","title":"Add <two> numbers","description":"Adds.\n\"Quickly\" & well.",` +
		`"icons":[{"src":"https://example.com/i.png","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}],"inputSchema":{"type":"object","properties":{}},`
	digest := func(t *wasmtools.Tool) string {
		return `"_meta":{"io.github.toolsrv/digest":"` + t.Fingerprint() + `"}}`
	}
	tail := `"annotations":{"readOnlyHint":true,"destructiveHint":false},` + digest(full)
	for era, want := range map[toolset.Era]string{toolset.Legacy: head + tail, toolset.Modern: head + `"outputSchema":{"type":"number"},` + tail} {
		if got := elements(t, view, era)["math-add"]; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := elements(t, view, era)["plain"], `{"name":"plain","inputSchema":{"type":"object","properties":{}},"outputSchema":{"type":"object"},`+digest(plain); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// notObject is a schema of arguments that MCP can't show.
func notObject(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestInputSchema checks schemas in both forms. Package schemas tests that both forms mean the same.
func TestInputSchema(t *testing.T) {
	t.Parallel()
	const dialect = `"$schema":"https://json-schema.org/draft/2020-12/schema"`
	for _, test := range []struct{ name, schema, modern, legacy, words string }{
		{"plain", `{ "type": "object", "properties": {"a": {}} }`, `{"type":"object","properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`, ""},
		{"no properties", `{"type":"object","additionalProperties":false}`, `{"type":"object","additionalProperties":false}`, `{"type":"object","properties":{},"additionalProperties":false}`, ""},
		{"a reference", `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{}}}}}`, `{"type":"object","$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{}}}}}`, `{"type":"object","properties":{"a":{}}}`, ""},
		{"a list of types", `{"properties":{"a":{}},"type":["object"],"title":"x"}`, `{"properties":{"a":{}},"type":"object","title":"x"}`, `{"type":"object","title":"x","properties":{"a":{}}}`, ""},
		{"a condition", `{` + dialect + `,"type":"object","properties":{"a":{}},"required":["a"],"if":{"required":["b"]},"then":false}`, `{` + dialect + `,"type":"object","properties":{"a":{}},"required":["a"],"if":{"required":["b"]},"then":false}`,
			`{` + dialect + `,"type":"object","properties":{"a":{}},"required":["a"],"dependentSchemas":{"a":{"if":{"required":["b"]},"then":false}}}`, ""},
		{"rules that can't be expressed", `{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"type":"object","properties":{"a":{}}}`,
			"A tool.\n\nThe arguments must also fit this JSON Schema, whose references point into the schema of the arguments: {\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}"},
		{"and is long", `{"type":"object","properties":{"a":{}},"not":{"properties":{"a":{"const":"` + strings.Repeat("x", 5000) + `"}}}}`, ``, `{"type":"object","properties":{"a":{}}}`,
			"A tool.\n\nThe tool has more rules for its arguments than its schema shows. The error of a call that breaks one says which."},
	} {
		for _, s := range []*schema.Schema{schema.MustCompile(test.schema)} {
			one := tool("one", echo)
			one.Parameters = s
			view := setOf(t, tableOf(t, one), toolset.Options{}).View("", wasmtools.Everybody())
			for era, want := range map[toolset.Era]string{toolset.Legacy: test.legacy, toolset.Modern: test.modern} {
				var got struct {
					Description string
					InputSchema json.RawMessage
				}
				if err := json.Unmarshal([]byte(elements(t, view, era)["one"]), &got); err != nil {
					t.Fatal(err)
				}
				if want != "" && string(got.InputSchema) != want {
					t.Errorf("%s: got %s, want %s", test.name, got.InputSchema, want)
				}
				words := "A tool."
				if era == toolset.Legacy && test.words != "" {
					words = test.words
				}
				if got.Description != words {
					t.Errorf("%s: got %q, want %q", test.name, got.Description, words)
				}
			}
		}
	}
}

func TestOutputSchema(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ schema, modern, legacy string }{
		{`{"type": "object"}`, `{"type":"object"}`, `{"type":"object"}`},
		{`{"type":"string"}`, `{"type":"string"}`, ``},
		{`{"anyOf":[{"type":"object"},{"type":"null"}]}`, `{"anyOf":[{"type":"object"},{"type":"null"}]}`, ``},
		{`{"$ref":"#/$defs/A","$defs":{"A":{"type":"object"}}}`, `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object"}}}`, `{"type":"object"}`},
		{`{"$id":"https://example.com/x","type":"object","properties":{"a":{"$ref":"x#/properties/b"},"b":{}}}`, `{"$id":"https://example.com/x","type":"object","properties":{"a":{"$ref":"x#/properties/b"},"b":{}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/properties.b"},"b":{"$ref":"#/$defs/properties.b"}},"$defs":{"properties.b":{}}}`},
		{`true`, ``, ``},
		{`false`, ``, ``},
	} {
		for _, s := range []*schema.Schema{resultSchema(t, test.schema)} {
			one := tool("one", echo)
			one.Result = s
			view := setOf(t, tableOf(t, one), toolset.Options{}).View("", wasmtools.Everybody())
			for era, want := range map[toolset.Era]string{toolset.Legacy: test.legacy, toolset.Modern: test.modern} {
				var got struct{ OutputSchema json.RawMessage }
				if err := json.Unmarshal([]byte(elements(t, view, era)["one"]), &got); err != nil || string(got.OutputSchema) != want {
					t.Errorf("%s: got %s, %v, want %s", test.schema, got.OutputSchema, err, want)
				}
			}
		}
	}
}

// TestDescriptionsHaveRoom checks that what the set adds to a description never makes it longer than model APIs accept.
func TestDescriptionsHaveRoom(t *testing.T) {
	t.Parallel()
	rest := func(n int) string {
		return `{"type":"object","properties":{"a":{}},"not":{"properties":{"a":{"const":"` + strings.Repeat("x", n) + `"}}}}`
	}
	for _, c := range []struct{ name, description, schema, want string }{
		{"room for the schema", strings.Repeat("é", 500), rest(300), "const"},
		{"room for a sentence", strings.Repeat("é", 500), rest(500), "has more rules"},
		{"no room", strings.Repeat("é", 1000), rest(500), ""},
		{"too long by itself", strings.Repeat("é", 2000), rest(5), ""},
	} {
		one := tool("one", echo)
		one.Description, one.Parameters = c.description, schema.MustCompile(c.schema)
		var got struct{ Description string }
		view := setOf(t, tableOf(t, one), toolset.Options{}).View("", wasmtools.Everybody())
		if err := json.Unmarshal([]byte(elements(t, view, toolset.Legacy)["one"]), &got); err != nil {
			t.Fatal(err)
		}
		added, ok := strings.CutPrefix(got.Description, c.description)
		if !ok || !strings.Contains(added, c.want) || (added == "") != (c.want == "") {
			t.Errorf("%s: %q is added, want %q", c.name, added, c.want)
		}
		if n := utf8.RuneCountInString(got.Description); added != "" && n > 1024 {
			t.Errorf("%s: the description has %d characters", c.name, n)
		}
	}
}

// TestSpoilers: tools whose schemas would make clients refuse the whole list are left out, with a warning.
// Proves: Answers and logs show what is meant to be seen
func TestSpoilers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`true`:              "MCP requires an object",
		`{"type":"array"}`:  `its \"type\" is not \"object\"`,
		`{"type":["null"]}`: `its \"type\" is not \"object\"`,
	} {
		bad := tool("bad/one", echo)
		bad.Parameters = notObject(t, text)
		var log strings.Builder
		view := setOf(t, tableOf(t, bad, tool("good", echo)), toolset.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}).View("", wasmtools.Everybody())
		if got := strings.Join(names(t, view, toolset.Legacy), " "); got != "good" {
			t.Errorf("%s: the list has %q", text, got)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "path=/bad/one") || !strings.Contains(got, want) {
			t.Errorf("%s: the log has %q, want %q", text, got, want)
		}
		if _, err := view.Call(t.Context(), "bad-one", &wasmtools.Call{Principal: wasmtools.Everybody()}); err == nil {
			t.Errorf("%s: a tool that is not shown can be called", text)
		}
	}
}

// TestKept checks that a tool is described only once while the table has it, whatever other tools come and go.
func TestKept(t *testing.T) {
	t.Parallel()
	bad, a, b, c := tool("b/bad", echo), tool("a", echo), tool("b/c", echo), tool("z", echo)
	bad.Parameters = notObject(t, "true")
	var log strings.Builder
	table := tableOf(t, bad)
	set := setOf(t, table, toolset.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, tools := range [][]*wasmtools.Tool{{a, bad}, {bad, c}, {a, b, bad, c}, {bad, b}, {bad}} {
		if err := table.Replace(tools, nil); err != nil {
			t.Fatal(err)
		}
		if got := len(names(t, set.View("", wasmtools.Everybody()), toolset.Modern)); got != len(tools)-1 {
			t.Errorf("got %d tools of %d", got, len(tools)-1)
		}
	}
	if got := strings.Count(log.String(), "\n"); got != 1 {
		t.Errorf("%d warnings: %s", got, &log)
	}
	replaced := *bad // as when its file is written again
	if err := table.Replace([]*wasmtools.Tool{&replaced}, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "\n"); got != 2 {
		t.Errorf("%d warnings: %s", got, &log)
	}
}
