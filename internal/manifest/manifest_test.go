package manifest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// one returns a manifest with one tool, which has these members in addition to its name, description and parameters.
func one(members string) string {
	return `{"abi":1,"tools":[{"name":"add","description":"Add.","parameters":{"type":"object"}` + members + `}]}`
}

const full = `
  {"abi": 1, "namespace": "math/basic", "version": "1.2.0", "sdk": "go/0.1.0", "engine": "cpython 3.13.5 (1f0c)",
   "tools": [{"name": "add", "description": "Add \u00e4 <b>.\n",
              "parameters": {"type":  "object", "properties": {"a": {"const": 1e400}}},
              "result": {"type": "number"}, "examples": [{"arguments": {"a": 1}, "result": null}, {"arguments": {}}]},
             {"parameters": {}, "description": "Subtract.", "name": "sub-2_X", "result": false, "examples": []}]}
`

func TestParseManifest(t *testing.T) {
	t.Parallel()
	text := []byte(full)
	m, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want := &manifest.Manifest{ABI: 1, Namespace: "math/basic", Version: "1.2.0", SDK: "go/0.1.0", Engine: "cpython 3.13.5 (1f0c)", Tools: []manifest.Tool{
		{Name: "add", Description: "Add ä <b>.\n",
			Parameters: json.RawMessage(`{"type":  "object", "properties": {"a": {"const": 1e400}}}`),
			Result:     json.RawMessage(`{"type": "number"}`),
			Examples:   []wasmtools.Example{{Arguments: json.RawMessage(`{"a": 1}`), Result: json.RawMessage(`null`)}, {Arguments: json.RawMessage(`{}`)}}},
		{Name: "sub-2_X", Description: "Subtract.", Parameters: json.RawMessage(`{}`), Result: json.RawMessage(`false`), Examples: []wasmtools.Example{}},
	}}
	clear(text)
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

func TestParseManifestWithoutNamespace(t *testing.T) {
	t.Parallel()
	for _, text := range []string{one(""), strings.Replace(one(""), `"abi":1`, `"abi":1,"namespace":""`, 1)} {
		if m, err := manifest.Parse([]byte(text)); err != nil || m.Namespace != "" {
			t.Errorf("%s: got %+v, %v", text, m, err)
		}
	}
}

func TestParseManifestRefuses(t *testing.T) {
	t.Parallel()
	top := func(members string) string { return strings.Replace(one(""), `"abi":1`, members, 1) }
	tool := func(members string) string { return `{"abi":1,"tools":[{` + members + `}]}` }
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                  {"", "line 1, column 1: unexpected end of JSON input"},
		"cut off":                  {`{"abi":1,`, "unexpected end of JSON input"},
		"no JSON":                  {"{\n  'abi': 1}", "line 2, column 3: invalid character '\\''"},
		"trailing data":            {one("") + "\n{}", "line 2, column 1: invalid character '{' after top-level value"},
		"trailing comma":           {`{"abi":1,}`, "line 1, column 10: invalid character '}'"},
		"byte order mark":          {"\ufeff" + one(""), "invalid character"},
		"no UTF-8":                 {"{\"ä\xff\": 1}", "line 1, column 4: the byte 0xff is not UTF-8"},
		"NaN":                      {top(`"abi":NaN`), "invalid character 'N'"},
		"too large":                {one("") + strings.Repeat(" ", manifest.Max), "are too many; at most 1048576 are allowed"},
		"half a character":         {one(`,"examples":[{"arguments":{"a":"\\\ud83d"}}]`), `\ud83d is half of a character`},
		"other half":               {one(`,"result":{"\ude00":1}`), `\ude00 is half of a character`},
		"halves apart":             {one(`,"result":{"\ud83d\\ude00":1}`), `\ud83d is half of a character`},
		"array":                    {`[1]`, "a manifest must be an object, not an array"},
		"string":                   {` "x"`, "a manifest must be an object, not a string"},
		"endless nesting":          {one(`,"result":` + strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)), "tools[0].result.a.a.a.a.a.a.a.a.a"},
		"endless arrays":           {strings.Repeat("[", manifest.Max), "nest deeper than 128: flatten"},
		"closed endless arrays":    {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nest deeper than 128: flatten"},
		"no abi":                   {top(`"sdk":""`), "abi is missing: set it to 1"},
		"other abi":                {top(`"abi":2,"magic":true`), "abi is 2, but this server speaks ABI 1: rebuild the module with an SDK for ABI 1"},
		"abi in words":             {top(`"abi":"1"`), "abi must be a number, not a string"},
		"abi null":                 {top(`"abi":null`), "abi must be a number, not null"},
		"abi of a million digits":  {top(`"abi":` + strings.Repeat("1", 1000000)), "abi is 11111"},
		"member twice":             {top(`"abi":1,"sdk":"a","sdk":"b"`), "sdk appears twice: remove one"},
		"member twice, escaped":    {one(`,"n\u0061me":"b"`), "tools[0].name appears twice"},
		"schema's member twice":    {one(`,"result":{"properties":{"a b":1,"a b":2}}`), `tools[0].result.properties["a b"] appears twice`},
		"unknown member":           {top(`"abi":1,"author":"me"`), "author: unknown member: remove it; the members are abi, namespace, version, sdk, engine, needs and tools"},
		"misspelt member":          {one(`,"parametres":{}`), `tools[0].parametres: unknown member; did you mean "parameters"?`},
		"member in capitals":       {top(`"abi":1,"SDK":"x"`), `SDK: unknown member; did you mean "sdk"?`},
		"example's member":         {one(`,"examples":[{"arguments":{},"results":1}]`), `tools[0].examples[0].results: unknown member; did you mean "result"?`},
		"member with a weird name": {top(`"abi":1,"":1`), `[""]: unknown member`},
		"member with a long name":  {top(`"abi":1,"` + strings.Repeat("x", 100000) + `":1`), `xxx..."]: unknown member`},
		"namespace":                {top(`"abi":1,"namespace":"a//b"`), `namespace "a//b": "" is not a valid name: use 1 to 64 of the characters`},
		"namespace in slashes":     {top(`"abi":1,"namespace":"/a"`), `namespace "/a": "" is not a valid name`},
		"namespace null":           {top(`"abi":1,"namespace":null`), "namespace must be a string, not null: leave it out"},
		"version a number":         {top(`"abi":1,"version":1.2`), "version must be a string, not a number"},
		"sdk an object":            {top(`"abi":1,"sdk":{}`), "sdk must be a string, not an object"},
		"engine an object":         {top(`"abi":1,"engine":{}`), "engine must be a string, not an object"},
		"no tools":                 {`{"abi":1}`, "tools is missing"},
		"tools null":               {`{"abi":1,"tools":null}`, "tools must be an array, not null"},
		"tools an object":          {`{"abi":1,"tools":{}}`, "tools must be an array, not an object"},
		"tools empty":              {`{"abi":1,"tools":[]}`, "tools is empty: declare at least one tool, with name, description and parameters"},
		"tool null":                {`{"abi":1,"tools":[null]}`, "tools[0] must be an object, not null"},
		"1,001 tools":              {`{"abi":1,"tools":[` + strings.Repeat("{},", 1000) + `{}]}`, "tools: 1001 are too many; at most 1000 are allowed"},
		"two tools of one name":    {strings.Replace(one(""), `"tools":[`, `"tools":[{"name":"add","description":"x","parameters":{}},`, 1), `tools[1].name: "add" is also the name of tools[0]: rename one`},
		"no name":                  {tool(``), "tools[0].name is missing"},
		"name a number":            {tool(`"name":1`), "tools[0].name must be a string, not a number"},
		"name with a slash":        {tool(`"name":"a/b"`), `tools[0].name: "a/b" is not a valid name: use 1 to 64`},
		"name with a line break":   {tool(`"name":"a\n"`), `tools[0].name: "a\n" is not a valid name`},
		"name empty":               {tool(`"name":""`), `tools[0].name: "" is not a valid name`},
		"name too long":            {tool(`"name":"` + strings.Repeat("a", 65) + `"`), "is not a valid name"},
		"no description":           {tool(`"name":"a"`), "tools[0].description is missing: say what the tool does"},
		"description blank":        {tool(`"name":"a","description":" \n\t"`), "tools[0].description is empty: say what the tool does"},
		"description a boolean":    {tool(`"name":"a","description":true`), "tools[0].description must be a string, not a boolean"},
		"no parameters":            {tool(`"name":"a","description":"x"`), "tools[0].parameters is missing: write a schema"},
		"parameters a boolean":     {tool(`"name":"a","description":"x","parameters":true`), "tools[0].parameters must be an object, not a boolean"},
		"result null":              {one(`,"result":null`), "tools[0].result must be a schema, an object or a boolean, not null: leave it out"},
		"examples an object":       {one(`,"examples":{}`), "tools[0].examples must be an array, not an object"},
		"example a string":         {one(`,"examples":["x"]`), "tools[0].examples[0] must be an object, not a string"},
		"example without call":     {one(`,"examples":[{}]`), "tools[0].examples[0].arguments is missing"},
		"arguments in an array":    {one(`,"examples":[{"arguments":[]}]`), "tools[0].examples[0].arguments must be an object, not an array"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := manifest.Parse([]byte(c.text))
			if err == nil {
				t.Fatalf("got %+v, want an error with %q", m, c.want)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want %q in it", err, c.want)
			}
			if len(err.Error()) > 400 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// A manifest just within the limits is accepted.
func TestParseManifestLimits(t *testing.T) {
	t.Parallel()
	var tools []string
	for i := range manifest.MaxTools {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","description":"x","parameters":{}}`, i))
	}
	for name, text := range map[string]string{
		"1,000 tools":   `{"abi":1,"tools":[` + strings.Join(tools, ",") + `]}`,
		"1 MiB":         one("") + strings.Repeat(" ", manifest.Max-len(one(""))),
		"125 levels":    one(`,"result":` + strings.Repeat(`{"a":`, 125) + "1" + strings.Repeat("}", 125)),
		"a character":   one(`,"result":{"description":"\ud83d\ude00 \\ud83d"}`),
		"a long number": one(`,"result":{"const":` + strings.Repeat("1", 1000000) + `}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := manifest.Parse([]byte(text)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestManifestRoundTrip(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	checkRoundTrip(t, m)
}

// checkRoundTrip checks that a manifest stays the same if it is written, read and written again.
func checkRoundTrip(t *testing.T, m *manifest.Manifest) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	if len(text) > manifest.Max {
		return // escapes have made it longer
	}
	again, err := manifest.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if second, err := json.Marshal(again); err != nil || !bytes.Equal(text, second) {
		t.Fatalf("got %s, %v, want %s", second, err, text)
	}
	if again.Namespace != m.Namespace || len(again.Tools) != len(m.Tools) || again.Tools[0].Description != m.Tools[0].Description {
		t.Fatalf("got %+v, want %+v", again, m)
	}
}

func FuzzParseManifest(f *testing.F) {
	for _, seed := range []string{full, one(""), one(`,"examples":[{"arguments":{"a":"\ud83d\ude00"}}]`), one(`,"result":true`), `{"abi":2}`, `[`, ``, `{"abi":1,"tools":[]}`,
		one(`,"title":"A","annotations":{"readOnly":true,"idempotent":false},"icons":[{"src":"https://a.example:1/%20","sizes":["1x1","any"],"theme":"dark"},{"src":"data:image/png;base64,AA==","mimeType":"image/png"}]`),
		one(`,"title":"","annotations":{},"icons":[{"src":"https://[::1]/","sizes":[]}]`)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := manifest.Parse(text)
		if err != nil {
			if m != nil {
				t.Errorf("got %+v beside the error %v", m, err)
			}
			return
		}
		for _, tool := range m.Tools {
			if err := wasmtools.CheckName(tool.Name); err != nil {
				t.Error(err)
			}
			if !json.Valid(tool.Parameters) || !bytes.Contains(text, tool.Parameters) {
				t.Errorf("the parameters %q are not what was written", tool.Parameters)
			}
		}
		checkRoundTrip(t, m)
	})
}

func BenchmarkParseManifest(b *testing.B) {
	var tools []string
	for i := range 100 {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","description":"A tool.","parameters":{"type":"object","properties":{"a":{"type":"string"},"z":{"type":"integer"}}}}`, i))
	}
	hundred := `{"abi":1,"tools":[` + strings.Join(tools, ",") + `]}`
	for _, c := range []struct{ name, text string }{{"1 tool", one("")}, {"100 tools", hundred}} {
		b.Run(c.name, func(b *testing.B) {
			text := []byte(c.text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := manifest.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
