package browser_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// declared returns the configuration's table for a token.
func declared(token, name string, scopes ...string) string {
	sum := sha256.Sum256([]byte(token))
	list, err := json.Marshal(scopes)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("[[auth.token]]\nname = %q\nsha256 = %q\nscopes = %s\n", name, hex.EncodeToString(sum[:]), list)
}

// signIn types a token into the console, and waits until it is let in.
func (p *page) signIn(token string) {
	p.t.Helper()
	p.write("#token", token)
	p.press(kb.Enter)
	p.see(".who button")
}

// script is an action that runs JavaScript in the page.
func script(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](text)
}

// atStart makes each document that the page loads run JavaScript before its own.
func (p *page) atStart(text string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: text})
		return err
	}))
}

// button clicks the button with a text.
func (p *page) button(text string) {
	p.t.Helper()
	p.until("window.found = [...document.querySelectorAll('dialog[open] button, main button')].find((b) => b.innerText.trim() === " + quoted(text) + ")")
	p.do(script("found.click()"))
}

// tool opens the page of a tool in the console.
func (p *page) tool(path string) {
	p.t.Helper()
	p.do(script("location.hash = " + quoted("#/tool"+path)))
	p.until("document.querySelector('#tool-name') && document.querySelector('.facts code').innerText === " + quoted(path))
}

// pageOf goes to a page of the console.
func (p *page) pageOf(name, title string) {
	p.t.Helper()
	p.do(script("location.hash = " + quoted("#/"+name)))
	p.until("document.querySelector('main h1')?.innerText === " + quoted(title))
}

// call presses the button that calls the tool, and waits for its answer.
func (p *page) call() {
	p.t.Helper()
	p.click(".actions .primary")
	p.see(".outcome strong")
}

// choose chooses an option of a list by its text.
func (p *page) choose(selector, option string) {
	p.t.Helper()
	p.see(selector)
	p.do(script(`(() => { const list = document.querySelector(` + quoted(selector) + `); list.value = [...list.options].find((o) => o.text === ` + quoted(option) + `).value; list.dispatchEvent(new Event("change", {bubbles: true})); })()`))
}

// answers calls the tool, and waits for its answer to be this.
func (p *page) answers(want string) {
	p.t.Helper()
	p.call()
	p.until(`document.querySelector(".outcome pre")?.innerText.replace(/\n */g, "") === ` + quoted(want))
}

// pick chooses a file with this content in the dialog's field. The name may be hostile.
func (p *page) pick(name, content string) {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.do(chromedp.SetUploadFiles(chromedp.CSS("dialog input[type=file]"), []string{path}))
	p.until("document.querySelector('dialog input[type=file] + .hint').innerText.includes(' bytes') || document.querySelector('dialog input[type=file] + .hint').innerText.includes(' KiB')")
}

// fill replaces the content of the field with a label.
func (p *page) fill(label, text string) {
	p.t.Helper()
	p.until("window.found = [...document.querySelectorAll('dialog[open] label, main label')].filter((l) => l.innerText.trim() === " + quoted(label) + ").at(-1)")
	p.write(`[id="`+eval[string](p, "found.htmlFor")+`"]`, text)
}

// yes presses the button that confirms a dialog.
func (p *page) yes() {
	p.t.Helper()
	p.until("document.querySelector('dialog[open] :is(.danger, .primary):not([aria-disabled])')")
	p.do(script("document.querySelector('dialog[open] :is(.danger, .primary)').click()"))
}

// asked makes the page record its requests from now on in window.asked.
func (p *page) asked() {
	p.t.Helper()
	p.do(script(`window.asked = []; { const ask = window.fetch; window.fetch = (url, o) => { asked.push((o?.method ?? "GET") + " " + new URL(url, location).pathname); return ask(url, o); }; }`))
}

// TestConsoleVisitor uses the console of a server that lets everybody in, with the keyboard alone.
func TestConsoleVisitor(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, "", add(), divide()), "/console")
	p.tolerate("/admin/v1/self") // even without a token, the page asks the server, since the caller may have a certificate
	p.read("2 tools")
	size := eval[int](p, `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].filter((e) => e.name.includes("/console")).reduce((sum, e) => sum + e.encodedBodySize, 0)`)
	t.Logf("the first load has %d KiB", size>>10)
	if size < 1<<10 || size > 150<<10 {
		t.Errorf("the first load has %d bytes; want at most 150 KiB", size)
	}
	p.check()
	p.press("/")
	p.press("divide")
	p.read("1 tool of 2")
	p.press(kb.ArrowDown)
	p.press(kb.Enter)
	p.read("Divide two numbers.")
	p.check()
	// In the tab order, the form comes after the two buttons that choose it.
	p.until("document.activeElement.id === 'tool-name'")
	p.press(kb.Tab + kb.Tab + kb.Tab)
	p.press("1")
	p.press(kb.Tab)
	p.press("4")
	p.press(kb.Enter)
	p.read("0.25")
	// An error of the server is shown at its field, and in a list that leads there.
	p.write(`[id="field-%5B%22a%22%5D"]`, "one")
	p.call()
	p.until(`document.querySelector('[id="field-%5B%22a%22%5D"]').getAttribute("aria-invalid") === "true"`)
	p.click(".failed button.link")
	p.until(`document.activeElement.id === "field-%5B%22a%22%5D"`)
	p.check()
	p.do(script("location.hash = '#/connect'"))
	p.read("Connect an agent")
	p.check()
}

// TestConsoleToken signs in with a wrong token and then with a right one, whose holder sees three tools, and signs out again.
func TestConsoleToken(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-somebody"
	p := open(t, serve(t, declared(token, "ann", "math/*", "shop/order"), add(), divide(), order(), large()), "/console")
	p.tolerate("status of 401")
	p.read("This server wants a token")
	p.check()
	p.write("#token", "wrong")
	p.press(kb.Enter)
	p.read("does not take this token")
	p.check()
	p.signIn(token)
	p.read("3 tools")
	p.tool("/math/add")
	// No snippet contains the token.
	p.do(script("document.querySelectorAll('details').forEach((d) => { d.open = true; })"))
	for _, name := range []string{"curl", "Python", "JavaScript", "MCP"} {
		p.do(script("[...document.querySelectorAll('details button')].find((b) => b.innerText === " + quoted(name) + ").click()"))
		p.until("document.querySelector('.snippet').getAttribute('aria-label') === " + quoted("The call with "+name))
		if text := eval[string](p, "document.querySelector('.snippet').innerText"); strings.Contains(text, token) || !strings.Contains(text, "TOOLSRV_TOKEN") {
			t.Errorf("the call with %s has the token, or doesn't say where it comes from:\n%s", name, text)
		}
	}
	if all := eval[string](p, "document.documentElement.outerHTML + document.cookie + location.href"); strings.Contains(all, token) {
		t.Error("the token is in the page, in a cookie or in the address")
	}
	p.click(".who button")
	p.read("This server wants a token")
	if left := eval[int](p, "sessionStorage.length + localStorage.length"); left != 0 {
		t.Errorf("%d values are kept after signing out", left)
	}
}

// An order has the arguments of a tool with every kind of argument.
type orders struct {
	Customer string   `json:"customer" minLength:"2" description:"Who orders."`
	Count    int      `json:"count" minimum:"1" maximum:"9"`
	Express  bool     `json:"express,omitempty"`
	Size     string   `json:"size,omitempty" enum:"[\"small\",\"medium\",\"large\"]"`
	Items    []item   `json:"items" minItems:"1"`
	Address  *address `json:"address,omitempty" description:"Where it goes."`
}

type item struct {
	Name  string  `json:"name"`
	Price float64 `json:"price,omitempty" minimum:"0"`
}

type address struct {
	Street string `json:"street"`
	Zip    string `json:"zip,omitempty" pattern:"^[0-9]{5}$"`
}

func order() *wasmtools.Tool {
	return gotool.New("shop/order", "Take an order.", func(_ context.Context, in orders) (orders, error) { return in, nil })
}

// large returns the requested number of lines.
func large() *wasmtools.Tool {
	type lines struct {
		Count int `json:"count"`
	}
	return gotool.New("shop/large", "Return many lines.", func(_ context.Context, in lines) ([]string, error) {
		all := make([]string, in.Count)
		for i := range all {
			all[i] = fmt.Sprintf("line %d %s", i, strings.Repeat("x", 110))
		}
		return all, nil
	})
}

// TestConsoleForm fills in a nested form, one part of which the server refuses, and converts it to JSON and back.
func TestConsoleForm(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, "", order()), "/console#/tool/shop/order")
	p.tolerate("/admin/v1/self")
	p.see("form.call")
	p.write(`[id="field-%5B%22customer%22%5D"]`, "Ann")
	p.write(`[id="field-%5B%22count%22%5D"]`, "12")
	p.button("Add to items")
	p.write(`[id="field-%5B%22items%22%2C0%2C%22name%22%5D"]`, "tea")
	p.write(`[id="field-%5B%22items%22%2C0%2C%22price%22%5D"]`, "-1")
	p.button("Add address")
	p.write(`[id="field-%5B%22address%22%2C%22zip%22%5D"]`, "x")
	p.call()
	for _, place := range []string{`["count"]`, `["items",0,"price"]`, `["address","street"]`, `["address","zip"]`} {
		if got := eval[string](p, "document.getElementById('field-' + encodeURIComponent("+quoted(place)+")).getAttribute('aria-invalid')"); got != "true" {
			t.Errorf("no mistake is shown at %s", place)
		}
	}
	p.check()
	p.write(`[id="field-%5B%22count%22%5D"]`, "2")
	p.write(`[id="field-%5B%22items%22%2C0%2C%22price%22%5D"]`, "1.50")
	p.write(`[id="field-%5B%22address%22%2C%22zip%22%5D"]`, "12345")
	p.write(`[id="field-%5B%22address%22%2C%22street%22%5D"]`, "Main Street")
	p.button("JSON")
	const want = `{"customer":"Ann","count":2,"items":[{"name":"tea","price":1.50}],"address":{"street":"Main Street","zip":"12345"}}`
	if got := eval[string](p, "JSON.stringify(JSON.parse(document.querySelector('#arguments-json').value))"); got != strings.ReplaceAll(want, "1.50", "1.5") {
		t.Errorf("the form is %s; want %s", got, want)
	}
	p.write("#arguments-json", "[1]")
	p.button("Form")
	p.read("The arguments have to be a JSON object")
	p.write("#arguments-json", want)
	p.button("Form")
	p.see(`[id="field-%5B%22count%22%5D"]`)
	p.call()
	p.read("Answered")
	p.read("Main Street")
}

// TestConsoleProgress follows a call's progress, cancels another call, and checks how errors are shown.
func TestConsoleProgress(t *testing.T) {
	t.Parallel()
	enough := make(chan struct{})
	slow := gotool.NewWithCall("work/slow", "Work slowly.", func(ctx context.Context, call *wasmtools.Call, _ struct{}) (string, error) {
		call.Progress(3, 8, "three are done")
		select {
		case <-enough:
			return "finished", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	fails := gotool.New("work/fails", "Fail.", func(context.Context, struct{}) (string, error) {
		return "", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "There is no tea left."}
	})
	p := open(t, serve(t, "", slow, fails), "/console#/tool/work/slow")
	p.tolerate("/admin/v1/self")
	p.click(".actions .primary")
	p.read("3 of 8 three are done")
	p.check()
	p.press(kb.Escape)
	p.read("Cancelled")
	p.click(".actions .primary")
	p.read("3 of 8")
	close(enough)
	p.read("finished")
	p.tool("/work/fails")
	p.call()
	p.read("There is no tea left.")
	p.read("tool_error")
	p.check()
}

// TestConsoleFiles shows a picture and plays a sound as results, and saves neither by itself.
func TestConsoleFiles(t *testing.T) {
	t.Parallel()
	const (
		png = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FAAhKDveksOjmAAAAAElFTkSuQmCC"
		wav = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA=="
	)
	p := open(t, serve(t, "", file("picture", "image/png", png), file("sound", "audio/wav", wav)), "/console#/tool/files/picture")
	p.tolerate("/admin/v1/self")
	p.see("form.call")
	p.read("The tool takes no arguments.")
	p.call()
	p.until("document.querySelector('.outcome img')?.naturalWidth === 10")
	p.check()
	p.tool("/files/sound")
	p.call()
	p.until("document.querySelector('.outcome audio')?.duration > 0")
	p.check()
}

// file returns a tool whose result is a file in base64.
func file(name, mime, data string) *wasmtools.Tool {
	return &wasmtools.Tool{
		Name: name, Namespace: "files", Description: "Return a file.",
		Parameters: schema.MustCompile(`{"type": "object", "additionalProperties": false}`),
		Result:     must(schema.Compile(json.RawMessage(`{"type": "string", "contentEncoding": "base64", "contentMediaType": ` + quoted(mime) + `}`))),
		Caller:     hostile{result: []byte(quoted(data))},
	}
}

// TestConsoleSchema uses a schema with 100 properties, and one that requires itself.
func TestConsoleSchema(t *testing.T) {
	t.Parallel()
	var properties []string
	for i := range 100 {
		properties = append(properties, fmt.Sprintf(`"p%d": {"type": "string", "description": "The value number %d."}`, i, i))
	}
	wide := &wasmtools.Tool{
		Name: "wide", Namespace: "schemas", Description: "Take much.", Caller: hostile{result: []byte(`"done"`)},
		Parameters: schema.MustCompile(`{"type": "object", "properties": {` + strings.Join(properties, ", ") + `, "tree": {"$ref": "#/$defs/node"}}, "$defs": {
			"node": {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#/$defs/node"}, "some": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}}`),
	}
	p := open(t, serve(t, "", wide), "/console#/tool/schemas/wide")
	p.tolerate("/admin/v1/self")
	p.see("form.call")
	if fields := eval[int](p, "document.querySelectorAll('form.call textarea').length"); fields != 100 {
		t.Errorf("the form has %d fields; want 100", fields)
	}
	p.write(`[id="field-%5B%22p99%22%5D"]`, "the last one")
	p.button("Add tree")
	p.until("document.querySelectorAll('form.call fieldset').length > 5")
	if groups := eval[int](p, "document.querySelectorAll('form.call fieldset').length"); groups > 30 {
		t.Errorf("a schema that requires itself makes %d groups", groups)
	}
	p.button("Leave out tree")
	p.call()
	p.read("done")
	p.fill("Filter the arguments", "number 9")
	p.read("19 rows, with those around them")
	p.fill("Filter the arguments", "next")
	p.until("document.querySelector('table.schema tbody').innerText.startsWith('tree')") // the property next contains itself
	p.fill("Filter the arguments", "nothing of it")
	p.read("No row has all these words.")
	p.check()
	p.fill("Filter the arguments", " ")
	p.button("Show all rows")
	p.until("document.querySelectorAll('table.schema tbody tr').length > 100")
	if rows := eval[int](p, "document.querySelectorAll('table.schema tbody tr').length"); rows > 110 {
		t.Errorf("a schema that refers to itself makes %d rows", rows)
	}
	p.check()
}

// TestConsoleMany has 10,000 tools, and a result of 4 MiB. The time of a keystroke is measured from its event to the next frame.
func TestConsoleMany(t *testing.T) {
	server := serve(t, "", append(many(10_000), large())...)
	p := open(t, server, "/console")
	p.tolerate("/admin/v1/self")
	p.read("10,001 tools")
	p.atStart(`new MutationObserver((_, o) => { if (document.querySelector(".item")) { window.ready = performance.now(); o.disconnect(); } }).observe(document, {childList: true, subtree: true})`)
	p.visit("/console?again") // the documents of the first visit are kept, as for every later visitor
	p.read("10,001 tools")
	ready := eval[float64](p, "window.ready")
	keys := eval[[]float64](p, `(async () => {
		const input = document.querySelector("#tool-filter"), all = [];
		for (const text of ["t", "to", "too", "tool", "tool9", "tool99", "tool999", "tool99", "tool9", "tool", "n", "n5", "n55", "n5", "n", "", "m", "many n7", "many n77 tool", ""]) {
			const began = performance.now();
			input.value = text;
			input.dispatchEvent(new Event("input", {bubbles: true}));
			await new Promise((next) => requestAnimationFrame(() => setTimeout(next)));
			all.push(performance.now() - began);
		}
		return all.sort((a, b) => a - b);
	})()`)
	slowest := keys[len(keys)*95/100-1]
	t.Logf("page_ready_ms %.0f", ready) // make bench-see reads the next two figures
	t.Logf("page_key_ms %.1f", slowest)
	if ready > 10_000 || slowest > 500 { // ten times what it may take on a quiet machine
		t.Error("that is far too long")
	}
	if rows := eval[int](p, "document.querySelectorAll('.item').length"); rows > 100 {
		t.Errorf("%d rows are in the page; want those in sight", rows)
	}
	p.tool("/shop/large")
	p.write(`[id="field-%5B%22count%22%5D"]`, "32000")
	p.do(script(`window.longest = 0; new PerformanceObserver((l) => l.getEntries().forEach((e) => { longest = Math.max(longest, e.duration); })).observe({type: "longtask"})`))
	p.call()
	p.read("32,002 rows")
	t.Logf("a result of 4 MiB keeps the page from answering for %.0f ms", eval[float64](p, "longest"))
	if nodes := eval[int](p, "document.querySelectorAll('*').length"); nodes > 2000 {
		t.Errorf("%d elements are in the page", nodes)
	}
}
