package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// listed returns n texts of JSON, with commas between.
func listed(n int, format string) string {
	var all []string
	for i := range n {
		all = append(all, strings.ReplaceAll(format, "@", fmt.Sprint(i)))
	}
	return strings.Join(all, ", ")
}

// TestConsoleVast opens tools with small schemas that make huge forms: the page shows a part of each, and stays quick.
func TestConsoleVast(t *testing.T) {
	t.Parallel()
	var deep []string
	for i := range 10 {
		next := fmt.Sprintf(`{"$ref": "#/$defs/a%d"}`, i+1)
		deep = append(deep, fmt.Sprintf(`"a%d": {"type": "object", "required": ["p0", "p1", "p2"], "properties": {"p0": %s, "p1": %s, "p2": %s}}`, i, next, next, next))
	}
	last := `"a10": {"type": "string"}`
	wide := `"type": "object", "properties": {` + listed(150, `"p@": {"$ref": "#/$defs/one"}`) + `}, "$defs": {"one": `
	for _, test := range []struct{ name, schema, see string }{
		{"deep", `{"type": "object", "required": ["p0", "p1"], "properties": {"p0": {"$ref": "#/$defs/a0"}, "p1": {"$ref": "#/$defs/a0"}}, "$defs": {` + strings.Join(deep, ", ") + ", " + last + `}}`, "Fill in p0"},
		{"enum", `{` + wide + `{"enum": [` + listed(1000, `"option @"`) + `]}}}`, "one of 1,000"},
		{"any", `{` + wide + `{"anyOf": [` + listed(1000, `{"const": "option @"}`) + `]}}}`, "p149"},
		{"all", `{` + wide + `{"allOf": [` + listed(65, `{"$ref": "#/$defs/two"}`) + `]}, "two": {"allOf": [` + listed(65, `{"type": "string", "title": "title @"}`) + `]}}}`, "p149"},
		{"proto", `{"type": "object", "properties": {"p": {"allOf": [{"__proto__": {"owned": 1}, "type": "object", "properties": {"__proto__": {"type": "string"}}}]}}}`, "Add p"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tool := &wasmtools.Tool{Name: test.name, Namespace: "vast", Description: "Take much.", Parameters: schema.MustCompile(test.schema), Caller: hostile{result: []byte(`"done"`)}}
			p := open(t, serve(t, "", tool), "/console")
			p.tolerate("/admin/v1/self")
			p.read("1 tool")
			p.do(script(`window.longest = 0; new PerformanceObserver((l) => l.getEntries().forEach((e) => { longest = Math.max(longest, e.duration); })).observe({type: "longtask"})`))
			p.tool("/vast/" + test.name)
			p.read(test.see)
			nodes, longest := eval[int](p, "document.querySelectorAll('*').length"), eval[float64](p, "longest")
			t.Logf("%d elements; the page does not respond for %.0f ms", nodes, longest)
			if nodes > 20_000 || longest > 5000 { // ten times what it may take on a quiet machine
				t.Error("that is far too much")
			}
			p.intact(test.name)
			switch test.name {
			case "deep":
				before := eval[int](p, "document.querySelectorAll('form.call textarea, form.call fieldset').length")
				p.button("Fill in p0")
				p.until(fmt.Sprint("document.querySelectorAll('form.call textarea, form.call fieldset').length > ", before))
			case "enum":
				p.write(`[id="field-%5B%22p0%22%5D"]`, "option 700")
				p.until("document.querySelectorAll('datalist option').length === 1000")
				p.button("JSON")
				p.until(`document.querySelector("#arguments-json").value.includes('"p0": "option 700"')`)
			}
		})
	}
}
