package toolset_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/internal/modelapi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// described returns a tool with texts.
func described(path, description, properties string) *wasmtools.Tool {
	t := tool(path, echo)
	t.Description = description
	t.Parameters = schema.MustCompile(`{"type":"object","properties":{` + properties + `}}`)
	return t
}

// zoo is a few different tools.
func zoo() []*wasmtools.Tool {
	return []*wasmtools.Tool{
		described("image/resize", "Makes a picture smaller or larger.", `"width":{"type":"integer","description":"in pixels"}`),
		described("image/rotate", "Turns a picture.", `"angle":{}`),
		described("text/wordCount", "Counts the words of a text.", `"text":{}`),
		described("math/add", "Adds two numbers.", `"a":{},"b":{}`),
		described("math/stats/mean", "The mean of numbers.", `"numbers":{"type":"array"}`),
		described("nihongo/honyaku", "日本語の文章を英語に翻訳します", `"text":{}`),
		described("secret/resize", "Resizes a secret picture.", `"width":{}`),
	}
}

// search returns the names that a search finds.
func search(t testing.TB, v *toolset.View, p *wasmtools.Principal, query string) string {
	t.Helper()
	arguments, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	r, err := v.Call(t.Context(), "search_tools", &wasmtools.Call{Arguments: arguments, Principal: p})
	if err != nil || r.Failed() != nil {
		t.Fatalf("%q: %v, %v", query, err, r.Failed())
	}
	var found struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(r.Structured(toolset.Legacy), &found); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range found.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// Proves: A caller reaches its own tools only
func TestSearch(t *testing.T) {
	t.Parallel()
	set := setOf(t, tableOf(t, zoo()...), toolset.Options{Search: toolset.SearchAlways})
	p := principal(t, "image", "text", "math", "nihongo")
	view := set.View("", p)
	if got := strings.Join(names(t, view, toolset.Modern), " "); got != "call_tool search_tools" {
		t.Fatalf("the list has %q", got)
	}
	if got := elements(t, view, toolset.Legacy)["search_tools"]; !strings.Contains(got, "Its namespaces: image, math, nihongo, text.") {
		t.Errorf("got %s", got)
	}
	for query, want := range map[string]string{
		"resize":           "image-resize",
		"Resize an image":  "image-resize image-rotate",
		"what is the mean": "math-stats-mean",
		"picture":          "image-resize image-rotate",
		"pictures":         "image-resize image-rotate",
		"pixels":           "image-resize",
		"count words":      "text-wordCount",
		"WORD count":       "text-wordCount",
		"numbers":          "math-stats-mean math-add",
		"math-add":         "math-add math-stats-mean",
		"翻訳":               "nihongo-honyaku",
		"secret":           "",
		"zzz":              "",
		"":                 "image-resize image-rotate math-add math-stats-mean nihongo-honyaku text-wordCount",
		" \t!":             "image-resize image-rotate math-add math-stats-mean nihongo-honyaku text-wordCount",
	} {
		if got := search(t, view, p, query); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
	// Only the tools of the view matter: the answers are the same with and without the secret tool.
	without := setOf(t, tableOf(t, zoo()[:6]...), toolset.Options{Search: toolset.SearchAlways}).View("", p)
	for _, arguments := range []string{`{"query":"resize secret picture"}`, `{"query":"","limit":2}`} {
		call := func(v *toolset.View) string {
			r, err := v.Call(t.Context(), "search_tools", &wasmtools.Call{Arguments: []byte(arguments), Principal: p})
			if err != nil {
				t.Fatal(err)
			}
			return answer(r, toolset.Modern)
		}
		if with, without := call(view), call(without); with != without || strings.Contains(with, "secret-") {
			t.Errorf("got\n%s, and without the tool\n%s", with, without)
		}
	}
	if got := search(t, set.View("math/stats", p), p, "numbers"); got != "math-stats-mean" {
		t.Errorf("in a namespace: got %q", got)
	}
}

// TestSearchAnswer checks that an answer has what a model needs to call a tool, and no more than fits.
func TestSearchAnswer(t *testing.T) {
	t.Parallel()
	large := described("large/one", strings.Repeat("large ", 1000), `"a":{"description":"`+strings.Repeat("x", 200<<10)+`"}`)
	other := described("large/two", strings.Repeat("large ", 1000), `"a":{}`)
	large.Icons = []wasmtools.Icon{{Src: "data:image/png;base64,AAEC"}}
	view := setOf(t, tableOf(t, append(zoo(), large, other)...), toolset.Options{Search: toolset.SearchAlways}).View("", wasmtools.Everybody())
	r, err := view.Call(t.Context(), "search_tools", &wasmtools.Call{Arguments: []byte(`{"query":"rotate","limit":1}`), Principal: wasmtools.Everybody()})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"tools":[{"name":"image-rotate","description":"Turns a picture.","inputSchema":{"type":"object","properties":{"angle":{}}},"_meta":{"io.github.toolsrv/digest":"ae68365057e391175e1dea7c9ee4af34552620669b381647830f62a416d1fb16"}}]}`
	if got := string(r.Structured(toolset.Modern)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// The schema is the one that the author wrote, even if clients of older versions see another one in the list, since a model reads this one.
	deep := described("deep/one", "Deepens.", `"a":{}`)
	deep.Parameters = schema.MustCompile(`{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{},"b":{}}}`)
	deeper := setOf(t, tableOf(t, deep), toolset.Options{Search: toolset.SearchAlways}).View("", wasmtools.Everybody())
	if r, err := deeper.Call(t.Context(), "search_tools", &wasmtools.Call{Arguments: []byte(`{"query":"deep"}`), Principal: wasmtools.Everybody()}); err != nil ||
		!strings.Contains(string(r.Structured(toolset.Legacy)), `"anyOf":[{"required":["a"]},{"required":["b"]}]`) {
		t.Errorf("a schema with anyOf: got %s, %v", r.Structured(toolset.Legacy), err)
	}
	r, err = view.Call(t.Context(), "search_tools", &wasmtools.Call{Arguments: []byte(`{"query":"large"}`), Principal: wasmtools.Everybody()})
	if err != nil {
		t.Fatal(err)
	}
	got := string(r.Structured(toolset.Modern))
	if len(got) > 300<<10 || strings.Count(got, `"inputSchema"`) != 1 || strings.Count(got, `"name":"large-`) != 2 || strings.Contains(got, "AAEC") {
		t.Errorf("got %d bytes: %.200s", len(got), got)
	}
	for _, arguments := range []string{`{}`, `{"query":1}`, `{"query":"a","limit":0}`, `{"query":"a","limit":51}`, `{"query":"a","x":1}`, `{"query":"` + strings.Repeat("a", 1001) + `"}`, strings.Repeat(" ", 20<<10) + `{"query":"a"}`} {
		r, err := view.Call(t.Context(), "search_tools", &wasmtools.Call{Arguments: []byte(arguments), Principal: wasmtools.Everybody()})
		if err != nil || r.Failed() == nil {
			t.Errorf("%.50s: got %v, want an error", arguments, err)
		}
	}
}

// TestSearchTellsFingerprints checks that a found tool has the same digest as in the list, by which a client recognizes a tool that it has approved.
func TestSearchTellsFingerprints(t *testing.T) {
	t.Parallel()
	table := tableOf(t, zoo()...)
	set := setOf(t, table, toolset.Options{Search: toolset.SearchAlways})
	r, err := set.View("", wasmtools.Everybody()).Call(t.Context(), "search_tools", &wasmtools.Call{Arguments: []byte(`{"query":"numbers"}`), Principal: wasmtools.Everybody()})
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Tools []struct {
			Name string
			Meta map[string]string `json:"_meta"`
		}
	}
	if err := json.Unmarshal(r.Structured(toolset.Legacy), &found); err != nil || len(found.Tools) < 2 {
		t.Fatal(found, err)
	}
	for _, tool := range found.Tools {
		route, _ := table.Lookup("/" + strings.ReplaceAll(tool.Name, "-", "/"))
		if got := tool.Meta["io.github.toolsrv/digest"]; got != route.Fingerprint() {
			t.Errorf("%s: got %q, want %q", tool.Name, got, route.Fingerprint())
		}
	}
}

func TestCallTool(t *testing.T) {
	t.Parallel()
	picture := tool("image/make", ends(`"AAEC"`, nil))
	picture.Result = resultSchema(t, filed("image/png"))
	table := tableOf(t, append(zoo(), picture, tool("echo", echo), tool("off", echo), tool("fail", ends("", errors.New("2 are left"))))...)
	if err := table.Disable("/off", "being repaired"); err != nil {
		t.Fatal(err)
	}
	p := principal(t, "image", "echo", "off", "fail", "math")
	view := setOf(t, table, toolset.Options{Search: toolset.SearchAlways}).View("", p)
	for _, test := range []struct{ arguments, want, tool string }{
		{`{"name":"echo","arguments":{"n":1}}`, `"structuredContent":{"n":1}`, "/echo"},
		{`{"name":"echo"}`, `"structuredContent":{"n":7}`, "/echo"},
		{`{"name":"echo","arguments":{"n":"x"}}`, `\n- n: Input should be a valid integer (got \"x\")`, "/echo"},
		{`{"name":"image-make"}`, `"content":[{"type":"image","data":"AAEC","mimeType":"image/png"}]`, "/image/make"},
		{`{"name":"fail"}`, `2 are left`, "/fail"},
		{`{"name":"off"}`, `Tool /off is disabled: being repaired`, "/off"},
		{`{"name":"math-ad"}`, `There is no tool \"math-ad\". Did you mean \"math-add\"?`, "/call_tool"},
		{`{"name":"secret-resize"}`, `There is no tool \"secret-resize\".`, "/call_tool"},
		{`{"name":"search_tools","arguments":{"query":"x"}}`, `There is no tool \"search_tools\".`, "/call_tool"},
		{`{"name":"call_tool"}`, `There is no tool \"call_tool\".`, "/call_tool"},
		{`{"name":"echo","arguments":[]}`, `arguments: Input should be a valid`, "/call_tool"},
		{`{"arguments":{}}`, `name: Field required`, "/call_tool"},
	} {
		i, err := view.Begin("call_tool", &wasmtools.Call{Arguments: []byte(test.arguments), Principal: p})
		if err != nil {
			t.Fatal(err)
		}
		r, err := i.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := answer(r, toolset.Modern); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %s, want %s", test.arguments, got, test.want)
		}
		if i.Tool() != test.tool {
			t.Errorf("%s: called %s, want %s", test.arguments, i.Tool(), test.tool)
		}
		i.End()
	}
	// Hidden and missing tools are answered alike.
	message := func(name string) string {
		r, err := view.Call(t.Context(), "call_tool", &wasmtools.Call{Arguments: []byte(`{"name":"` + name + `"}`), Principal: p})
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(answer(r, toolset.Modern), name, "NAME")
	}
	if a, b := message("secret-resize"), message("secret-resizx"); a != b {
		t.Errorf("got %s and %s", a, b)
	}
	// A client that knows a tool's name may also call it directly.
	if r, err := view.Call(t.Context(), "echo", &wasmtools.Call{Principal: p}); err != nil || r.Failed() != nil {
		t.Errorf("got %v", err)
	}
}

// TestAuto searches in views of more than 200 tools only.
func TestAuto(t *testing.T) {
	t.Parallel()
	var tools []*wasmtools.Tool
	for i := range 201 {
		tools = append(tools, tool(fmt.Sprintf("n%d/t%d", i%50, i), echo))
	}
	for _, test := range []struct {
		search    toolset.Search
		tools     int
		namespace string
		want      int
	}{
		{"", 200, "", 200},
		{"", 201, "", 2},
		{toolset.SearchAuto, 201, "", 2},
		{toolset.SearchAuto, 201, "n0", 5},
		{toolset.SearchNever, 201, "", 201},
		{toolset.SearchAlways, 3, "", 2},
		{toolset.SearchAlways, 0, "", 2},
	} {
		set := setOf(t, tableOf(t, tools[:test.tools]...), toolset.Options{Search: test.search})
		view := set.View(test.namespace, wasmtools.Everybody())
		if got := len(names(t, view, toolset.Modern)); got != test.want {
			t.Errorf("%+v: got %d", test, got)
		}
		if test.want != 2 {
			if _, err := view.Begin("search_tools", &wasmtools.Call{Principal: wasmtools.Everybody()}); err == nil {
				t.Errorf("%+v: search_tools can be called, but is not listed", test)
			}
		}
	}
	set := setOf(t, tableOf(t, tools...), toolset.Options{})
	if got := elements(t, set.View("", wasmtools.Everybody()), toolset.Modern)["search_tools"]; !strings.Contains(got, " and 10 more.") {
		t.Errorf("got %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown kind of search is accepted")
		}
	}()
	toolset.New(tableOf(t), toolset.Options{Search: "x"})
}

// TestHiddenNamespaces makes sure that a namespace whose tools are all hidden can't be told from a missing one.
// Proves: A caller reaches its own tools only
func TestHiddenNamespaces(t *testing.T) {
	t.Parallel()
	for _, search := range []toolset.Search{toolset.SearchNever, toolset.SearchAlways} {
		set := setOf(t, tableOf(t, zoo()...), toolset.Options{Search: search})
		p := principal(t, "image")
		for _, namespace := range []string{"secret", "secreter", "math/stats"} {
			view := set.View(namespace, p)
			if got := names(t, view, toolset.Modern); len(got) != 0 || view.Edition() != set.View("nothing", p).Edition() {
				t.Errorf("%s: got %q", namespace, got)
			}
			if _, err := view.Begin("search_tools", &wasmtools.Call{Principal: p}); err == nil {
				t.Errorf("%s: search_tools can be called", namespace)
			}
		}
		if first, second := set.View("nothing", p), set.View("nothing", p); first == second {
			t.Error("the view of a missing namespace is kept")
		}
	}
}

// BenchmarkSearch searches among 10,000 tools.
func BenchmarkSearch(b *testing.B) {
	var tools []*wasmtools.Tool
	for i := range 10_000 {
		tools = append(tools, described(fmt.Sprintf("n%d/tool%dOf%d", i%100, i, i%37), fmt.Sprintf("Does the thing %d with a picture of kind %d, and then returns what word%d says.", i%1000, i%77, i), `"width":{"description":"in pixels"},"height":{}`))
	}
	view := setOf(b, tableOf(b, tools...), toolset.Options{}).View("", wasmtools.Everybody())
	search(b, view, wasmtools.Everybody(), "picture")
	b.ReportAllocs()
	for b.Loop() {
		search(b, view, wasmtools.Everybody(), "resize a picture of kind 12")
	}
}

// FuzzSearch checks that no query or name breaks an answer.
func FuzzSearch(f *testing.F) {
	for _, seed := range []string{"resize", "", "\x00\xff", "翻訳 ﬀ İ ẞ", `{"a":"\ud800"}`, strings.Repeat("x", 2000)} {
		f.Add(seed)
	}
	view := setOf(f, tableOf(f, zoo()...), toolset.Options{Search: toolset.SearchAlways}).View("", wasmtools.Everybody())
	f.Fuzz(func(t *testing.T, text string) {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Skip()
		}
		for name, arguments := range map[string]string{"search_tools": `{"query":` + string(quoted) + `}`, "call_tool": `{"name":` + string(quoted) + `,"arguments":{}}`, "image-resize": text} {
			r, err := view.Call(t.Context(), name, &wasmtools.Call{Arguments: []byte(arguments), Principal: wasmtools.Everybody()})
			if err != nil {
				t.Fatal(err)
			}
			written := answer(r, toolset.Modern)
			if !json.Valid([]byte(written)) || strings.ContainsAny(written, "\r\n") {
				t.Fatalf("%q", written)
			}
			agree(t, r, written)
		}
	})
}

// TestOwnToolsSuitModels checks that every model API accepts search_tools and call_tool, however many namespaces there are and however long their
// names, since an API that refuses one tool refuses all.
func TestOwnToolsSuitModels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ namespaces, length int }{{0, 0}, {3, 5}, {39, 10}, {40, 60}, {1000, 1}, {2000, 60}} {
		tools := []*wasmtools.Tool{tool("top", echo)}
		for i := range c.namespaces {
			tools = append(tools, tool(fmt.Sprintf("n%d%s/x", i, strings.Repeat("a", max(0, c.length-5))), echo))
		}
		view := setOf(t, tableOf(t, tools...), toolset.Options{Search: toolset.SearchAlways}).View("", wasmtools.Everybody())
		for _, era := range []toolset.Era{toolset.Legacy, toolset.Modern} {
			for name, text := range elements(t, view, era) {
				var shown struct {
					Description string
					InputSchema json.RawMessage
				}
				if err := json.Unmarshal([]byte(text), &shown); err != nil {
					t.Fatal(err)
				}
				for _, r := range modelapi.Check(modelapi.Tool{Name: name, Description: shown.Description, Parameters: shown.InputSchema}) {
					if r.Usual() {
						t.Errorf("%d namespaces: %s: %+v", c.namespaces, name, r)
					}
				}
				if name == "search_tools" && c.namespaces > 0 && !strings.Contains(shown.Description, "n0") {
					t.Errorf("%d namespaces: search_tools names none: %s", c.namespaces, shown.Description)
				}
			}
		}
	}
}

// TestSearchIsBounded searches for parts of words among tools whose authors have made up many words with these parts. It is not parallel, because it
// counts what the whole process allocates.
func TestSearchIsBounded(t *testing.T) {
	var all []*wasmtools.Tool
	for i := range 1000 {
		odd := tool(fmt.Sprintf("t%d", i), ends("1", nil))
		var words strings.Builder
		for k := range 100 {
			fmt.Fprintf(&words, "abcdefghij%dx%d ", i, k)
		}
		odd.Description = words.String()
		all = append(all, odd)
	}
	view := setOf(t, tableOf(t, all...), toolset.Options{}).View("", wasmtools.Everybody())
	search := func() {
		if _, err := view.Call(t.Context(), "search_tools", &wasmtools.Call{Principal: wasmtools.Everybody(),
			Arguments: []byte(`{"query":"abc bcd cde def efg fgh ghi hij abcd bcde cdef defg efgh fghi ghij abcde"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	search() // makes the index
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	search()
	runtime.ReadMemStats(&after)
	if size := after.TotalAlloc - before.TotalAlloc; size > 8<<20 {
		t.Errorf("a search takes %d bytes", size)
	}
}
