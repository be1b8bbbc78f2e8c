package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// echo returns a tool that answers with its arguments.
func echo(name, parameters string) *wasmtools.Tool {
	return &wasmtools.Tool{
		Namespace: "echo", Name: name, Description: "Return the arguments.", Parameters: schema.MustCompile(parameters),
		Caller: wasmtools.CallerFunc(func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
			return []byte(string(call.Arguments)), nil
		}),
	}
}

// field returns the selector of the field for a place in the arguments, such as ["a",0].
func field(place string) string {
	return `[id="field-` + strings.NewReplacer("[", "%5B", "]", "%5D", `"`, "%22", ",", "%2C").Replace(place) + `"]`
}

// TestConsoleNumbers has numbers that JavaScript can't represent in a schema, in a field, and in an error: each stays as it was written.
func TestConsoleNumbers(t *testing.T) {
	t.Parallel()
	fails := echo("fails", `{"type": "object", "additionalProperties": false}`)
	fails.Caller = hostile{err: &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "no", ToolCode: "x", Data: []byte(`{"id":9007199254740993}`)}}
	p := open(t, serve(t, "", fails, echo("large", `{"type": "object", "properties": {"id": {"enum": [9007199254740993, 1]}, "k": {"const": 9007199254740993}, "any": {},
		"n": {"type": "integer", "minimum": 9007199254740993, "default": 9007199254740995}}}`)), "/console#/tool/echo/large")
	p.tolerate("/admin/v1/self")
	p.tolerate("status of 500")
	p.read("Otherwise 9007199254740995.")
	p.read("At least 9007199254740993")
	p.choose(field(`["id"]`), "9007199254740993")
	p.choose(field(`["k"]`), "9007199254740993")
	p.write(field(`["any"]`), "[9007199254740993, 1.50]")
	p.answers(`{"id": 9007199254740993,"k": 9007199254740993,"any": [9007199254740993,1.50],"n": 9007199254740995}`)
	p.do(script("document.querySelectorAll('details').forEach((d) => { d.open = true; })"))
	p.read(`"const": 9007199254740993`)
	if strings.Contains(p.shown(), "900719925474099"+"2") {
		t.Errorf("a number has changed:\n%s", p.shown())
	}
	p.tool("/echo/fails")
	p.call()
	p.read("9007199254740993")
}

// TestConsoleSizes checks that the sizes of data that is sent or saved are in bytes.
func TestConsoleSizes(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, "", echo("text", `{"type": "object", "properties": {"t": {"type": "string"}}}`)), "/console#/tool/echo/text")
	p.tolerate("/admin/v1/self")
	p.write(field(`["t"]`), "üüü😀")
	p.call()
	p.read("18 bytes")
	if strings.Contains(p.shown(), "13 bytes") {
		t.Errorf("characters are counted as bytes:\n%s", p.shown())
	}
}

// TestConsoleMembers fills in objects whose members a schema leaves open, or allows in several forms.
func TestConsoleMembers(t *testing.T) {
	t.Parallel()
	tools := []*wasmtools.Tool{
		echo("none", `{"type": "object", "additionalProperties": false}`),
		echo("open", `{"type": "object"}`),
		echo("kinds", `{"type": "object", "oneOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "number"}}, "required": ["b"]}]}`),
		echo("beside", `{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "anyOf": [{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/square"}], "$defs": {
			"circle": {"properties": {"shape": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["shape"]},
			"square": {"properties": {"shape": {"const": "square"}, "side": {"type": "number"}}, "required": ["shape"]}}}`),
		echo("both", `{"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "number"}}, "required": ["b"]}],
			"oneOf": [{"properties": {"c": {"type": "string"}}, "required": ["c"]}, {"properties": {"d": {"type": "number"}}, "required": ["d"]}]}`),
		echo("either", `{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}`),
		echo("extra", `{"type": "object", "properties": {"a": {"type": "string"}, "o": {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": {"type": "integer"}}}, "additionalProperties": {"type": "integer"}}`),
		echo("pattern", `{"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": false}`),
		echo("condition", `{"type": "object", "properties": {"card": {"type": "string"}, "cvc": {"type": "string"}}, "dependentRequired": {"card": ["cvc"]}, "if": {"properties": {"card": {"const": "x"}}}, "then": {"required": ["zip"]}}`),
		echo("lists", `{"type": "object", "required": ["a", "o", "in"], "properties": {"a": {"type": "array", "items": {"type": "string"}}, "o": {"type": "object", "properties": {"x": {"type": "string"}}},
			"in": {"type": "object", "required": ["s", "l"], "properties": {"s": {"type": "string"}, "l": {"type": "array"}}}}}`),
		echo("nullable", `{"type": "object", "required": ["n"], "properties": {"s": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "Some text."}, "d": {"type": ["string", "null"], "default": "x"}, "n": {"type": ["integer", "null"]}}}`),
	}
	p := open(t, serve(t, "", tools...), "/console")
	p.tolerate("/admin/v1/self")
	p.tolerate("status of 4")
	begin := func(path string) {
		t.Helper()
		p.tool("/echo/" + path)
		p.see("form.call")
	}
	// name adds a member to the object that the selector leads to.
	name := func(at, name string) {
		t.Helper()
		p.write(at+" > .row label + input", name)
		p.click(at + " > .row label + input + button")
	}
	begin("none")
	p.read("The tool takes no arguments.")

	begin("open")
	name("form.call", "b")
	p.write(field(`["b"]`), "[1]")
	p.answers(`{"b": [1]}`)

	begin("kinds")
	p.choose("form.call select", "object with b")
	p.write(field(`["b"]`), "2.5")
	p.answers(`{"b": 2.5}`)

	begin("beside")
	p.write(field(`["id"]`), "1")
	p.choose("form.call select", `shape: "square"`)
	p.choose(field(`["shape"]`), "square")
	p.write(field(`["side"]`), "3")
	p.answers(`{"id": 1,"shape": "square","side": 3}`)

	begin("both")
	p.choose("form.call select", "object with b")
	p.write(field(`["b"]`), "2.5")
	p.choose(`[id="`+eval[string](p, `document.querySelectorAll("form.call > .field > select")[1].id`)+`"]`, "object with b, d")
	p.write(field(`["d"]`), "3")
	p.answers(`{"b": 2.5,"d": 3}`)

	begin("either")
	p.write(field(`["b"]`), "yes")
	p.answers(`{"b": "yes"}`)

	begin("extra")
	p.button("Add o")
	name("form.call fieldset", "n")
	p.write(field(`["o","n"]`), "1")
	name("form.call", "m")
	p.write(field(`["m"]`), "two")
	p.call()
	p.until(`document.querySelector(` + quoted(field(`["m"]`)) + `).getAttribute("aria-invalid") === "true"`)
	p.write(field(`["m"]`), "2")
	p.answers(`{"o": {"n": 1},"m": 2}`)
	p.check()

	begin("pattern")
	p.read("Names that match ^x-.")
	name("form.call", "x-a")
	p.write(field(`["x-a"]`), "7")
	p.answers(`{"x-a": 7}`)

	begin("condition")
	for _, words := range []string{"(if card is given)", `(if card is "x")`, "zip"} {
		p.read(words)
	}
	p.write(field(`["card"]`), "x")
	p.write(field(`["cvc"]`), "1")
	p.call()
	p.click(".failed button.link")
	p.until(`document.activeElement.innerText === "Add zip"`)
	p.check()
	p.press(" ")
	p.write(field(`["zip"]`), "here")
	p.answers(`{"card": "x","cvc": "1","zip": "here"}`)

	begin("lists")
	p.write(field(`["in","s"]`), "x")
	p.answers(`{"a": [],"o": {},"in": {"s": "x","l": []}}`)

	begin("nullable")
	p.read("Some text. Otherwise null.")
	p.write(field(`["s"]`), "text")
	p.click(".or-null [type=checkbox]:not(:checked)")
	p.until(`document.querySelectorAll(".or-null input:checked").length === 1`)
	p.click(".or-null [type=checkbox]:not(:checked)")
	p.until(`document.querySelectorAll(".or-null input:checked").length === 2`)
	p.check()
	p.answers(`{"n": null,"s": "text","d": null}`)
	p.write(field(`["n"]`), "4")
	p.answers(`{"n": 4,"s": "text","d": null}`)
}

// TestConsoleParts checks how the page shows the part of a JSON value that the server refuses.
func TestConsoleParts(t *testing.T) {
	t.Parallel()
	kinds := listed(60, `{"type": "object", "properties": {"k@": {"type": "string"}}, "required": ["k@"]}`)
	p := open(t, serve(t, "", echo("parts", `{"type": "object", "properties": {"x": {"anyOf": [`+kinds+`]}}, "anyOf": [`+kinds+`, {}]}`)), "/console#/tool/echo/parts")
	p.tolerate("/admin/v1/self")
	p.tolerate("status of 4")
	p.write(field(`[]`), `{"x": {"k0": 9007199254740993}}`)
	p.call()
	p.click(".failed button.link")
	p.until(`document.activeElement.id === "field-%5B%5D"`)
	p.until(`document.querySelector(".field .wrong").innerText.startsWith("x")`)
	p.write(field(`[]`), `{"x": {"k0": "a"}}`)
	p.answers(`{"x": {"k0": "a"}}`)
}

// TestConsoleSnippets types arguments that are too long for a command, and some that are not JSON.
func TestConsoleSnippets(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, "", echo("text", `{"type": "object", "properties": {"t": {"type": "string"}}}`)), "/console#/tool/echo/text")
	p.tolerate("/admin/v1/self")
	p.see("form.call")
	p.button("JSON")
	p.do(script("window.saved = []; const made = URL.createObjectURL; URL.createObjectURL = (b) => (b.text().then((t) => saved.push(t)), made(b)); document.querySelectorAll('details').forEach((d) => { d.open = true; })"))
	p.do(script(`const to = document.querySelector("#arguments-json"); to.value = JSON.stringify({t: "ü".repeat(5000)}); to.dispatchEvent(new Event("input", {bubbles: true}))`))
	for i, test := range []struct{ name, reads, file string }{
		{"curl", "--data-binary @arguments.json", "arguments.json"}, {"Python", `open("arguments.json", "rb")`, "arguments.json"},
		{"JavaScript", `readFile("arguments.json")`, "arguments.json"}, {"MCP", "--data-binary @message.json", "message.json"},
	} {
		p.button(test.name)
		p.read(test.reads)
		p.read("save that file")
		p.button("Save " + test.file)
		p.until(fmt.Sprint("saved.length > ", i))
		var saved struct {
			T      string
			Params struct{ Arguments struct{ T string } }
		}
		if err := json.Unmarshal([]byte(eval[string](p, "saved.at(-1)")), &saved); err != nil || saved.T+saved.Params.Arguments.T != strings.Repeat("ü", 5000) {
			t.Errorf("%s: the saved file does not have the arguments (%v)", test.name, err)
		}
	}
	p.check()
	p.write("#arguments-json", `{"t": "x",`)
	p.read("The call stands here once the arguments are right")
	if eval[bool](p, "document.querySelector('.snippet') !== null") {
		t.Error("there is a command for arguments that are not JSON")
	}
	p.write("#arguments-json", `{"t": "x"}`)
	p.see(".snippet")
}

// TestConsoleOptions chooses the last of 5,000 options.
func TestConsoleOptions(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, "", echo("city", `{"type": "object", "properties": {"c": {"enum": [`+listed(5000, `"City @"`)+`]}}}`)), "/console#/tool/echo/city")
	p.tolerate("/admin/v1/self")
	p.see("form.call")
	p.read("The list shows the first 1,000 that have what is typed")
	p.write(field(`["c"]`), "city 499")
	p.until(`[...document.querySelectorAll("datalist option")].map((o) => o.value).join() === "City 499,City 4990,City 4991,City 4992,City 4993,City 4994,City 4995,City 4996,City 4997,City 4998,City 4999"`)
	p.write(field(`["c"]`), "City 4999")
	p.answers(`{"c": "City 4999"}`)
}

// TestConsoleLeave leaves the page of a running tool, which asks first.
func TestConsoleLeave(t *testing.T) {
	t.Parallel()
	ended, finish := make(chan error, 2), make(chan struct{}, 1)
	slow := gotool.New("work/slow", "Work slowly.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-finish:
		case <-ctx.Done():
		}
		ended <- ctx.Err()
		return "finished", ctx.Err()
	})
	p := open(t, serve(t, "", slow, add()), "/console#/tool/work/slow")
	p.tolerate("/admin/v1/self")
	// A tab that closes asks first.
	running := func() {
		t.Helper()
		p.click(".actions .primary")
		p.read("running")
		if eval[bool](p, `dispatchEvent(new Event("beforeunload", {cancelable: true}))`) {
			t.Error("the tab closes without a question")
		}
	}
	running()
	p.do(script("location.hash = '#/connect'"))
	p.read("The call is still running")
	p.check()
	p.button("Stay")
	finish <- struct{}{}
	p.read("finished")
	if err := <-ended; err != nil || eval[string](p, "location.hash") != "#/tool/work/slow" {
		t.Errorf("after staying, the page is another one: %v", err)
	}
	running()
	p.do(script("location.hash = '#/tool/math/add'"))
	p.button("Cancel the call and leave")
	p.read("Add two numbers.")
	p.until("document.querySelector('.facts code').innerText === '/math/add'")
	if err := <-ended; err == nil {
		t.Error("the call goes on")
	}
}
