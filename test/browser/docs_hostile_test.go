package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// TestSignedOut goes back to pages after their token was forgotten, and calls a tool from one that is still open.
// Proves: Web pages are kept out
func TestSignedOut(t *testing.T) {
	t.Parallel()
	home := serve(t, token("some", `["math/add"]`), add())
	p := open(t, home, "/docs")
	p.tolerate("status of 401")
	p.tolerate("/admin/v1/self")
	p.see("#token")
	p.write("#token", "some-token")
	p.press(kb.Enter)
	execute := func(want string) {
		t.Helper()
		p.click("#operations-math-math-add .execute")
		p.until(`document.querySelector("#operations-math-math-add .live-responses-table")?.innerText.includes(` + quoted(want) + ")")
		if text := p.shown(); strings.Contains(text, "some-token") {
			t.Errorf("the page shows the token:\n%s", text)
		}
	}
	p.click("#operations-math-math-add .opblock-summary-control")
	p.click("#operations-math-math-add .try-out__btn")
	execute("200")
	if got := eval[string](p, "document.querySelector('pre.curl').innerText"); !strings.Contains(got, "Bearer $TOOLSRV_TOKEN") {
		t.Errorf("the command for curl is %s", got)
	}
	p.do(script("sessionStorage.clear()"))
	execute("401")
	for _, path := range []string{"/docs", "/"} {
		p.visit("/")
		p.see("#token")
		p.write("#token", "some-token")
		p.press(kb.Enter)
		p.visit(path)
		p.read("/math/add")
		p.visit("/console")
		p.click(".who button")
		p.read("wants a token")
		p.do(script("history.back()"))
		p.until("location.pathname === " + quoted(path) + " && document.querySelector('#token') && document.readyState === 'complete'")
		if text := p.shown(); strings.Contains(text, "/math/add") {
			t.Errorf("after going back to %s, the page shows what only the forgotten token may see:\n%s", path, text)
		}
		// The page came from the cache and was then loaded again. Otherwise the test proves nothing.
		if how := eval[string](p, "performance.getEntriesByType('navigation')[0].type"); how != "reload" {
			t.Errorf("the browser went back to %s by %s", path, how)
		}
	}
}

// TestAuthorize enters a token in Swagger UI's dialog, and forgets it.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, token("some", `["math/add"]`)+token("other", `["math/divide"]`), add(), divide()), "/docs")
	p.tolerate("status of 401")
	p.see("#token")
	p.write("#token", "some-token")
	p.press(kb.Enter)
	p.read("/math/add")
	p.click(".auth-wrapper .authorize")
	p.until("window.found = [...document.querySelectorAll('.modal-ux button')].find((b) => b.innerText === 'Logout')")
	p.do(script("found.click()"))
	p.see("#token")
	if got := eval[string](p, "JSON.stringify(sessionStorage)"); got != "{}" {
		t.Errorf("after Logout there is %s", got)
	}
}

// TestHugeSamples opens tools whose schemas require more than any page can show.
func TestHugeSamples(t *testing.T) {
	t.Parallel()
	var levels []string
	for i := range 10 {
		levels = append(levels, fmt.Sprintf(`"l%d": {"type": "object", "required": ["a", "b", "c"], "properties": {"a": {"$ref": "#/$defs/l%[2]d"}, "b": {"$ref": "#/$defs/l%[2]d"}, "c": {"$ref": "#/$defs/l%[2]d"}}}`, i, i+1))
	}
	tree := `{"$ref": "#/$defs/l0"}`
	defs := `, "$defs": {` + strings.Join(levels, ", ") + `, "l10": {"type": "string"}, "again": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/again"}, "b": {"$ref": "#/$defs/again"}}}}`
	schemas := []string{
		`{"type": "string", "pattern": "^(((((((a+)+)+)+)+)+)+)+$"}`,
		`{"type": "string", "minLength": 1000000000}`,
		`{"type": "array", "minItems": 1000000000, "items": {"type": "string"}}`,
		`{"type": "object", "minProperties": 1000000000, "additionalProperties": {"type": "string"}}`,
		tree,
		`{"$ref": "#/$defs/again"}`,
		`{"allOf": [` + tree + `, ` + tree + `]}`,
		`{"type": "array", "items": ` + tree + `}`,
		`{"default": "` + strings.Repeat("long", 100_000) + `"}`,
	}
	var tools []*wasmtools.Tool
	for i, one := range schemas {
		tool := attacking(fmt.Sprintf("bad/t%d", i), "x")
		whole := `{"type": "object", "required": ["p"], "properties": {"p": ` + one + `}` + defs + `}`
		tool.Parameters, tool.Result, tool.Examples = schema.MustCompile(whole), schema.MustCompile(whole), nil
		tools = append(tools, tool)
	}
	p := open(t, serve(t, "", tools...), "/docs")
	p.read("/bad/t0")
	for i, one := range schemas {
		at := fmt.Sprintf("#operations-bad-bad-t%d ", i)
		p.click(at + ".opblock-summary-control")
		p.click(at + ".try-out__btn")
		p.see(at + "textarea")
		if size := eval[int](p, "document.querySelector("+quoted(at+"textarea")+").value.length"); size < 2 || size > 20_000 {
			t.Errorf("the example for %.80s has %d characters", one, size)
		}
		p.do(script(`[...document.querySelectorAll(` + quoted(at+".tablinks") + `)].filter((b) => b.innerText === "Schema").forEach((b) => b.click())`))
		p.see(at + ".json-schema-2020-12")
		p.click(at + ".opblock-summary-control")
	}
}

// TestHiddenCharacters has a tool with hidden characters in every text that the page of the API shows.
func TestHiddenCharacters(t *testing.T) {
	t.Parallel()
	const text = "\u202egpj.exe\u200b"
	one := attacking("bad/hides", text)
	two := attacking("bad/hides2", text)
	one.Title, two.Title = "", "" // titles must not have such characters
	one.Result, two.Examples = one.Parameters, nil
	p := open(t, serve(t, "", one, two), "/docs")
	p.read("/bad/hides2")
	for _, at := range []string{"#operations-bad-bad-hides ", "#operations-bad-bad-hides2 "} {
		p.click(at + ".opblock-summary-control")
		p.click(at + ".try-out__btn")
		p.see(at + "textarea")
		p.click(at + ".execute")
		answer := "document.querySelector(" + quoted(at+".live-responses-table") + ")"
		p.until(answer + `?.innerText.includes("⟨U+202E⟩gpj.exe⟨U+200B⟩")`)
		if eval[bool](p, `/[\u202a-\u202e\u2066-\u2069\u200b\ufeff]/.test(`+answer+".textContent)") {
			t.Errorf("an answer has hidden characters:\n%s", p.shown())
		}
		hidden := `/[\u202a-\u202e\u2066-\u2069\u200b\ufeff]/.test([...document.querySelectorAll("textarea")].map((t) => t.value).join() + document.querySelector("` + at + `.curl").innerText`
		if eval[bool](p, hidden+")") {
			t.Errorf("a body or a command has hidden characters:\n%s", p.shown())
		}
		if body := eval[string](p, "document.querySelector("+quoted(at+"textarea")+").value"); !strings.Contains(body, `"\u202egpj.exe\u200b"`) {
			t.Errorf("the body is %s", body)
		}
		p.do(script(`[...document.querySelectorAll(` + quoted(at+".tablinks") + `)].filter((b) => b.innerText === "Schema").forEach((b) => b.click())`))
		p.see(at + ".json-schema-2020-12")
		p.do(script(`document.querySelectorAll(".json-schema-2020-12-expand-deep-button").forEach((b) => b.click())`))
		p.read("⟨U+202E⟩gpj.exe")
		if eval[bool](p, `/[\u202a-\u202e\u2066-\u2069\u200b\ufeff]/.test([...document.querySelectorAll(".json-schema-2020-12, .opblock-summary, .plain, .example")].map((e) => e.textContent).join())`) {
			t.Errorf("the page shows characters that hide or reverse the text beside them:\n%s", p.shown())
		}
	}
}

// TestImpossibleToken types into each page a token with characters that a header can't have.
func TestImpossibleToken(t *testing.T) {
	t.Parallel()
	home := serve(t, token("some", `["math/add"]`), add())
	for _, path := range []string{"/", "/docs", "/console"} {
		p := open(t, home, path)
		p.tolerate("status of 401")
		p.tolerate("/admin/v1/self")
		p.see("#token")
		p.do(script(`{ const field = document.querySelector("#token"); field.focus(); document.execCommand("insertText", false, "“some-token”"); }`))
		p.press(kb.Enter)
		p.read("only characters of ASCII.")
		if text := p.shown(); strings.Contains(text, "some-token") || strings.Contains(text, "is kept") || eval[string](p, "JSON.stringify(sessionStorage)") != "{}" {
			t.Errorf("%s takes it:\n%s", path, text)
		}
		p.write("#token", "some-token")
		p.press(kb.Enter)
		p.until(`document.body.innerText.includes("/math/add") || document.body.innerText.includes("1 tool")`)
	}
}

// TestForget checks that people can forget their token even if nothing else works.
func TestForget(t *testing.T) {
	t.Parallel()
	home := serve(t, token("some", `["math/add"]`), add())
	for _, path := range []string{"/", "/docs", "/console"} {
		p := open(t, home, path)
		p.tolerate("status of 401")
		p.tolerate("/admin/v1/self")
		p.see("#token")
		p.atStart(`const real = fetch; window.fetch = () => Promise.reject(new TypeError("Failed to fetch"));`)
		p.write("#token", "some-token")
		p.press(kb.Enter)
		p.until(`document.body.innerText.includes("/math/add") || document.body.innerText.includes("1 tool")`)
		p.visit(path)
		p.read("The server doesn't answer.")
		if text := p.shown(); strings.Contains(text, "..") {
			t.Errorf("%s says\n%s", path, text)
		}
		p.do(script(`[...document.querySelectorAll("button")].find((b) => b.innerText === "Forget it" || b.innerText === "Sign out").click()`))
		p.until(`sessionStorage.length === 0 && !document.body.innerText.includes("is kept")`)
	}
}
