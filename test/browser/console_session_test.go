package browser_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// holding makes a page hold back answers for paths that begin with an element of the array held, until release is called.
const holding = `window.held = []; window.waiting = []; window.sent = [];
const asking = window.fetch;
window.fetch = async (url, o) => {
	const path = new URL(url, location).pathname;
	window.sent.push({path, method: o?.method ?? "GET", match: new Headers(o?.headers).get("If-Match")});
	const hold = held.some((h) => path.startsWith(h));
	const answer = await asking(url, hold ? {...o, signal: undefined} : o);
	if (hold) await new Promise((go) => waiting.push(go));
	return answer;
};
window.release = () => { held = []; waiting.splice(0).forEach((go) => go()); return new Promise((done) => setTimeout(() => done(true), 300)); };`

// TestConsoleSignOut signs out while answers that would sign in again are still in flight. They arrive although their requests were cancelled.
func TestConsoleSignOut(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, administered(), add(), divide()), "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.atStart(holding)
	p.visit("/console?held")
	p.read("wants a token")
	p.signIn(boss)
	p.read("2 tools")
	for _, held := range []string{"/tools", "/admin/v1/self", "/admin/v1/tools"} {
		p.do(script("held = [" + quoted(held) + "]; document.dispatchEvent(new Event('visibilitychange'))"))
		p.until("waiting.length > 0")
		p.do(script("held = []"))
		p.click(".who button")
		p.read("wants a token")
		eval[bool](p, "release()")
		if text := p.shown(); eval[int](p, "sessionStorage.length") != 0 || !eval[bool](p, "document.querySelector('#token') !== null && !document.querySelector('.item') && !document.querySelector('nav a:not([href$=docs])')") {
			t.Errorf("%s came after signing out, and the page shows:\n%s", held, text)
		}
		p.signIn(boss)
		p.read("2 tools")
	}
	// Another page in this tab forgets the token, and the browser goes back to the page in its cache.
	p.do(script("window.old = true; sessionStorage.clear(); dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"))
	p.read("wants a token")
	p.until("window.old === undefined") // the page was loaded again
	if eval[bool](p, "document.querySelector('nav a:not([href$=docs])') !== null") {
		t.Error("a page that the browser has kept still shows an administrator's pages")
	}
}

// TestConsoleGuard confirms a change before the page has the version that guards it.
func TestConsoleGuard(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, administered(), add()), "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.atStart(holding)
	p.visit("/console?held")
	p.read("wants a token")
	p.signIn(boss)
	p.tool("/math/add")
	p.do(script("held = ['/admin/v1/switches']"))
	p.button("Disable")
	p.see("dialog[open]")
	p.until("waiting.length > 0")
	p.do(script("document.querySelector('dialog .danger').click(); document.querySelector('dialog form').requestSubmit()"))
	eval[bool](p, "new Promise((done) => setTimeout(() => done(true), 300))")
	if eval[bool](p, "sent.some((s) => s.method === 'POST' && s.path === '/admin/v1/disable')") {
		t.Error("a tool is disabled before the page has the list of switches")
	}
	eval[bool](p, "release()")
	p.do(script("document.querySelector('dialog .danger').click()"))
	p.until("document.querySelector('.facts .state').innerText === 'disabled'")
	if !eval[bool](p, "sent.some((s) => s.path === '/admin/v1/disable' && s.match)") {
		t.Error("a tool is disabled without If-Match")
	}
	// If the version can't be loaded, nobody can confirm the change.
	p.tolerate("/admin/v1/switches")
	p.do(script(`const before = window.fetch; window.fetch = (url, o) => String(url).includes("switches") ? Promise.reject(new TypeError("gone")) : before(url, o); sent = []`))
	p.button("Enable")
	p.read("The server doesn't answer")
	p.do(script("document.querySelector('dialog form').requestSubmit()"))
	eval[bool](p, "new Promise((done) => setTimeout(() => done(true), 300))")
	if eval[bool](p, "sent.some((s) => s.method === 'POST' && s.path === '/admin/v1/enable')") {
		t.Error("a tool is enabled without a version")
	}
}

// TestConsoleBadToken has a stored token with characters that a header can't have.
func TestConsoleBadToken(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, administered(), add()), "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.atStart(`if (!window.name) { window.name = "again"; sessionStorage.setItem("toolsrv token /", "a\u201cb"); }`)
	p.visit("/console?again")
	p.read("characters that can't be sent")
	p.button("Try again")
	p.read("characters that can't be sent")
	p.click(".who button")
	p.read("wants a token")
	p.signIn(boss)
	p.read("1 tool")
}

// TestConsoleWords checks the console's texts about missing things and limits, and its output for other programs.
func TestConsoleWords(t *testing.T) {
	t.Parallel()
	greet := &wasmtools.Tool{
		Name: "greet", Namespace: "shop", Description: "Greet.", Caller: hostile{result: []byte(`"done"`)},
		Parameters: schema.MustCompile(`{"type": "object", "properties": {"who": {"type": "string", "description": "Whom to greet.", "minLength": 1, "maxLength": 100}}}`),
	}
	p := open(t, serve(t, declared(ann, "ann", "shop/*"), greet), "/console#/tool/nope")
	p.tolerate("status of 401")
	p.tolerate("/admin/v1/self")
	p.read("wants a token")
	p.signIn(ann)
	p.read("There is no such tool, or you may not call it.")
	if strings.Contains(p.shown(), "no longer served") {
		t.Error("the page says of a tool that never existed that it is no longer served")
	}
	p.do(script("location.hash = '#/tokens'"))
	p.read("This page is for administrators")
	p.check()
	p.tool("/shop/greet")
	p.read("Whom to greet. At least 1 character, at most 100 characters.")
	p.button("JSON")
	const arguments = `{"__proto__":{"a":1},"who":"O'Neil \"\u2028\" ${x}"}`
	p.do(script("const to = document.querySelector('#arguments-json'); to.value = " + quoted(arguments) + "; to.dispatchEvent(new Event('input', {bubbles: true})); document.querySelectorAll('details').forEach((d) => { d.open = true; })"))
	p.button("JavaScript")
	p.until("document.querySelector('.snippet').innerText.includes('fetch(')")
	_, body, _ := strings.Cut(eval[string](p, "document.querySelector('.snippet').innerText"), "  body: ")
	body, _, _ = strings.Cut(body, ",\n});")
	var text string
	if err := json.Unmarshal([]byte(body), &text); err != nil || text != arguments {
		t.Errorf("the snippet sends %s; want %s (%v)", body, arguments, err)
	}
}
