// Command template is a module with a tool that fills data into a text template.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

type query struct {
	Template string         `json:"template" minLength:"1" maxLength:"200000" description:"A template of Go's text/template: {{.name}}, {{range .items}}…{{end}}, {{if gt .n 3}}…{{else}}…{{end}}, {{.price | printf \"%.2f\"}}." examples:"[\"Dear {{.name}},\"]"`
	Data     map[string]any `json:"data" default:"{}" description:"What the template refers to."`
	Missing  string         `json:"missing" enum:"error,empty" default:"error" description:"What to do with a name that is not in the data: report an error, or write nothing."`
	MaxBytes int            `json:"max_bytes" default:"1000000" minimum:"1" maximum:"2000000" description:"How long the result may get; a longer one is an error."`
}

var module = toolsrv.Export(toolsrv.Module{
	Namespace: "template",
	Version:   "1.0.0",
	Tools: []toolsrv.Tool{
		toolsrv.Func("render", "Fill data into a text template (Go's text/template, with functions for text, numbers and lists) and return the text. "+
			"Besides Go's own functions: upper, lower, title, trim, replace, split, join, contains, starts_with, ends_with, default, json, add, sub, mul, div, round, first, last, sort, reverse, keys.", render,
			toolsrv.Example{
				Arguments: `{"template": "Dear {{.name}},\n{{range .items}}- {{.title | upper}}: {{printf \"%.2f\" .price}}\n{{end}}", "data": {"name": "Ada", "items": [{"title": "tea", "price": 3.5}]}}`,
				Result:    `"Dear Ada,\n- TEA: 3.50\n"`,
			},
			toolsrv.Example{
				Arguments: `{"template": "{{if gt (len .list) 1}}{{join \", \" .list}}{{else}}nothing{{end}}", "data": {"list": ["a", "b"]}}`,
				Result:    `"a, b"`,
			},
		).With(toolsrv.Options{Title: "Fill in a template", Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, OpenWorld: toolsrv.No}}),
	},
})

func main() {}

// This makes text/template build its tables when the module starts; otherwise each call would build them.
var _, _ = render(nil, query{Template: `{{range .list}}{{printf "%v" .}}{{end}}`, Data: map[string]any{"list": []any{"", 0.5}}, Missing: "error", MaxBytes: 100})

func render(_ *toolsrv.Call, in query) (string, error) {
	r := &renderer{limit: in.MaxBytes, steps: maxSteps}
	t := template.New("").Funcs(r.functions())
	if in.Missing == "error" {
		t.Option("missingkey=error")
	}
	t, err := t.Parse(in.Template)
	if err != nil {
		return "", fault("invalid_template", err)
	}
	for _, part := range t.Templates() {
		if part.Tree != nil {
			watch(part.Root)
		}
	}
	if err := t.Execute(r, values(in.Data)); err != nil {
		return "", fault("failed", err)
	}
	return r.out.String(), nil
}

// A renderer limits a template: it writes at most limit bytes, and the number of its loop iterations and function calls together is at most steps.
type renderer struct {
	out   bytes.Buffer
	limit int
	steps int
	depth int // how many templates are running that other templates have called
}

// maxSteps take about a second. The call stack is small, and each level of templates that call templates needs some of it.
const (
	maxSteps = 100_000
	maxDepth = 50
)

var (
	errLong  = invalid("the result gets longer than max_bytes: shorten it, or pass a larger max_bytes (2000000 at most)")
	errSteps = invalid(fmt.Sprintf("the template takes more than %d steps: loop over less", maxSteps))
	errDepth = invalid(fmt.Sprintf("templates call templates more than %d levels deep: does one call itself without end?", maxDepth))
)

// Write takes what the template puts out.
func (r *renderer) Write(b []byte) (int, error) {
	if r.out.Len()+len(b) > r.limit {
		return 0, errLong
	}
	return r.out.Write(b)
}

// step counts.
func (r *renderer) step() (string, error) {
	if r.steps--; r.steps < 0 {
		return "", errSteps
	}
	return "", nil
}

// enter is called before each call of a template, and leave after it.
func (r *renderer) enter() (string, error) {
	if r.depth++; r.depth > maxDepth {
		return "", errDepth
	}
	return "", nil
}

func (r *renderer) leave() string {
	r.depth--
	return ""
}

// fault explains an error of text/template to the author of the template.
func fault(code string, err error) error {
	var own *misuse
	if errors.As(err, &own) {
		return &toolsrv.Error{Code: code, Message: place(err) + sentence(own.message)}
	}
	message := err.Error()
	if m := regexp.MustCompile(`map has no entry for key "(.*)"$`).FindStringSubmatch(message); m != nil {
		return &toolsrv.Error{Code: "missing", Message: fmt.Sprintf("%sThe data have no %q: pass it, or \"missing\": \"empty\".", place(err), m[1])}
	}
	if m := regexp.MustCompile(`function "(.*)" not defined$`).FindStringSubmatch(message); m != nil {
		return &toolsrv.Error{Code: code, Message: fmt.Sprintf("%sThere is no function %q; write a member of the data with a point before it: {{.%s}}.", place(err), m[1], m[1])}
	}
	if strings.Contains(message, "bad character U+002D '-'") {
		return &toolsrv.Error{Code: code, Message: place(err) + `A name with a hyphen is written as {{index . "the-name"}}, and a difference as {{sub 3 2}}.`}
	}
	if m := regexp.MustCompile(`can't evaluate field (\S+) in type`).FindStringSubmatch(message); m != nil {
		return &toolsrv.Error{Code: code, Message: fmt.Sprintf("%sThe value before .%s is not an object, so it has no members.", place(err), m[1])}
	}
	// "template: :3:5: executing "" at <.x>: …" or "template: :3: …"
	if m := regexp.MustCompile(`(?s)^template: [^:]*:\d+:(?:\d+:)? (?:executing ".*?" at )?(.*)$`).FindStringSubmatch(message); m != nil {
		return &toolsrv.Error{Code: code, Message: place(err) + sentence(m[1])}
	}
	return &toolsrv.Error{Code: code, Message: sentence(strings.TrimPrefix(message, "template: "))}
}

// place returns where in the template an error is, such as "Line 3: ", or nothing.
func place(err error) string {
	if m := regexp.MustCompile(`^template: [^:]*:(\d+):`).FindStringSubmatch(err.Error()); m != nil {
		return "Line " + m[1] + ": "
	}
	return ""
}

func sentence(s string) string {
	const most = 500
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.TrimRight(s, ".?") + "."
}

// values returns decoded JSON with numbers that print as people write them: without a decimal point if they are whole, and never with an exponent.
func values(v any) any {
	switch v := v.(type) {
	case float64:
		return number(v)
	case map[string]any:
		for name, e := range v {
			v[name] = values(e)
		}
	case []any:
		for i, e := range v {
			v[i] = values(e)
		}
	}
	return v
}

func number(f float64) any {
	if whole := int64(f); float64(whole) == f && f >= -1<<53 && f <= 1<<53 {
		return int(whole)
	}
	return decimal(f)
}

// asJSON writes a value for the function json.
func asJSON(v any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
