package browser_test

import (
	"context"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
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

// field returns the selector of the field for a place, such as ["a",0].
func field(place string) string {
	return `[id="field-` + strings.NewReplacer("[", "%5B", "]", "%5D", `"`, "%22", ",", "%2C").Replace(place) + `"]`
}

// TestConsoleNumbers has numbers that JavaScript can't hold in a schema, in a field, and in an error: each stays as it was written.
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

// TestConsoleSizes counts what is sent and saved in bytes.
func TestConsoleSizes(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, "", echo("text", `{"type": "object", "properties": {"t": {"type": "string"}}}`)), "/console#/tool/echo/text")
	p.tolerate("/admin/v1/self")
	p.write(field(`["t"]`), "üüü😀")
	p.call()
	p.read("18 bytes")
	if strings.Contains(p.shown(), "13 bytes") {
		t.Errorf("characters are said to be bytes:\n%s", p.shown())
	}
}
