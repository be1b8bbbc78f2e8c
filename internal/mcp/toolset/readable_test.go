package toolset_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestUnreadable: results that some clients can't read are sent in a way that all can.
// Proves: Answers and logs show what is meant to be seen
func TestUnreadable(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	for _, test := range []struct{ name, result, structured string }{
		{"half a character", `{"a":"\ud83d"}`, `{"a":"\ufffd"}`},
		{"the other half", `{"a\udE00":1}`, `{"a\ufffd":1}`},
		{"a pair", `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d\ude00"}`},
		{"two first halves", `{"a":"\ud83d\uD83d\ude00"}`, `{"a":"\ufffd\uD83d\ude00"}`},
		{"two halves in the wrong order", `{"a":"\ude00\ud83d"}`, `{"a":"\ufffd\ufffd"}`},
		{"half and another escape", `{"a":"\ud83d\u0041\ud83d\n"}`, `{"a":"\ufffd\u0041\ufffd\n"}`},
		{"an escaped backslash", `{"a":"\\ud83d"}`, `{"a":"\\ud83d"}`},
		{"deep", deep(150), deep(150)},
		{"too deep", deep(200), ``},
		{"wide", `{"a":[` + strings.Repeat("[],", 1000) + `[]]}`, `{"a":[` + strings.Repeat("[],", 1000) + `[]]}`},
		{"a long number", `{"a":` + strings.Repeat("9", 4301) + `}`, ``},
		{"a long fraction", `{"a":0.` + strings.Repeat("9", 5000) + `}`, ``},
		{"a long run of digits in a string", `{"a":"` + strings.Repeat("9", 50_000) + `"}`, `{"a":"` + strings.Repeat("9", 50_000) + `"}`},
		{"long strings with escapes", `{"a":"\"` + strings.Repeat("9", 50_000) + `\\"}`, `{"a":"\"` + strings.Repeat("9", 50_000) + `\\"}`},
		{"a large number", `{"a":1e400}`, `{"a":1e400}`},
	} {
		view := setOf(t, tableOf(t, tool("one", ends(test.result, nil))), toolset.Options{}).View("", wasmtools.Everybody())
		r, err := view.Call(t.Context(), "one", &wasmtools.Call{Principal: wasmtools.Everybody()})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.Structured(toolset.Modern)); got != test.structured {
			t.Errorf("%s: got %.100s, want %.100s", test.name, got, test.structured)
		}
		// In the text it is what the tool returned, except for the unpaired surrogates.
		if got, want := r.Blocks()[0].Text, test.result; got != want && got != test.structured {
			t.Errorf("%s: the text is %.100s, want %.100s", test.name, got, want)
		}
		agree(t, r, answer(r, toolset.Modern))
	}
	failing := tool("one", ends("", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "2 are left\xff", Data: json.RawMessage(`{"a":"\ud83d"}`)}))
	deeper := tool("two", ends("", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "deep", Data: json.RawMessage(deep(200))}))
	view := setOf(t, tableOf(t, failing, deeper), toolset.Options{}).View("", wasmtools.Everybody())
	for name, want := range map[string]string{
		"one": `{"content":[{"type":"text","text":"2 are left` + "\ufffd" + `\n{\"data\":{\"a\":\"\\ufffd\"}}"}],"isError":true,"_meta":{"io.github.toolsrv/error":{"code":"tool_error","detail":"2 are left\ufffd","error":{"data":{"a":"\ufffd"}}}}}`,
		"two": `{"content":[{"type":"text","text":"deep"}],"isError":true,"_meta":{"io.github.toolsrv/error":{"code":"tool_error","detail":"deep"}}}`,
	} {
		r, err := view.Call(t.Context(), name, &wasmtools.Call{Principal: wasmtools.Everybody()})
		if err != nil {
			t.Fatal(err)
		}
		if got := answer(r, toolset.Modern); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// FuzzReadable checks that structured content can be read by a strict parser, except for duplicate names and large exponents.
// Proves: Answers and logs show what is meant to be seen
func FuzzReadable(f *testing.F) {
	for _, seed := range []string{`"\ud83d\ude00"`, `"\ud83d"`, `"\\\ud83d\\"`, `["\uDe00\u0041\\ud83d"]`, `{"\ud83d":1}`, `"\u"`, `\ud`, `"\ud83d\u00"`, strings.Repeat("[", 190) + strings.Repeat("]", 190)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		view := setOf(t, tableOf(t, tool("one", ends(string(result), nil))), toolset.Options{}).View("", wasmtools.Everybody())
		r, err := view.Call(t.Context(), "one", &wasmtools.Call{Principal: wasmtools.Everybody()})
		if err != nil || r.Failed() != nil {
			return
		}
		structured := r.Structured(toolset.Modern)
		if structured == nil {
			return
		}
		var tree jsontree.Tree
		if err := tree.Read(string(structured)); err != nil && (strings.Contains(err.Error(), jsontree.LoneSurrogate) || !json.Valid(structured) || !utf8.Valid(structured)) {
			t.Errorf("%q became %q: %v", result, structured, err)
		}
	})
}
