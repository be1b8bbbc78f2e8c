package browser_test

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

const (
	boss = "the-token-of-an-administrator"
	ann  = "the-token-of-a-caller"
)

// administered is the configuration of a server with an administrator and a caller who may call three tools.
func administered() string {
	return "state.directory = '.state'\nadmin.enabled = true\nadmin.upload = true\n" + declared(boss, "boss", "*", "admin") + declared(ann, "ann", "math/*", "shop/order")
}

// TestConsoleAdmin makes a token and calls with it, disables a tool and sees another window change, rolls a file back, and finds all of it in
// the audit.
func TestConsoleAdmin(t *testing.T) {
	t.Parallel()
	server := serve(t, administered(), add(), divide(), order(), large())
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	p.read("4 tools")

	p.pageOf("tokens", "Tokens")
	p.button("Make a token…")
	p.see("dialog[open]")
	p.check()
	p.write("dialog .field:nth-of-type(1) input", "ci")
	p.write("dialog .field:nth-of-type(2) input", "math/*")
	p.button("Make it")
	p.see("#made-secret")
	secret := eval[string](p, "document.querySelector('#made-secret').innerText")
	p.check()
	p.press(kb.Escape + kb.Escape + kb.Escape) // a secret that is shown once must not be closed by mistake
	p.see("#made-secret")
	p.button("I have kept it")
	p.until("!document.querySelector('#made-secret')")
	if strings.Contains(eval[string](p, "document.documentElement.outerHTML"), secret) {
		t.Error("the secret of a token is still in the page")
	}
	p.check()

	// Another person signs in with the new token, in another window.
	other := open(t, server, "/console")
	other.tolerate("status of 401")
	other.read("wants a token")
	other.signIn(secret)
	other.read("2 tools")
	other.tool("/math/add")
	other.write(`[id="field-%5B%22a%22%5D"]`, "1")
	other.write(`[id="field-%5B%22b%22%5D"]`, "2")
	other.call()
	other.read("Answered")

	// A tool is removed. Its place says so, and nothing moves.
	p.tool("/math/divide")
	p.button("Disable")
	p.write("dialog input", "it rains")
	p.check()
	p.do(script("document.querySelector('dialog .danger').click()"))
	p.until("document.querySelector('.facts .state').innerText === 'disabled'")
	p.read("switched by boss: it rains")
	other.read("1 gone: update")
	other.until("[...document.querySelectorAll('.item')].map((i) => i.innerText.split('\\n')[0]).join() === '/math/add,/math/divide no longer served'")
	other.check()
	other.button("1 gone: update")
	other.read("1 tool")
	p.pageOf("switches", "Switches")
	p.read("it rains")
	p.check()
	p.button("Reset")
	p.see("dialog[open]")
	p.do(script("document.querySelector('dialog .primary').click()"))
	p.read("Nothing has been switched")
	other.read("1 new: update")

	// A file is put three times, and then an earlier version is served again.
	module, err := os.ReadFile("../../examples/calc/calc.wasm")
	if err != nil {
		t.Fatal(err)
	}
	put(t, server, module)
	for _, next := range []byte{'1', '2'} { // each version has a section x with different content
		put(t, server, append(module[:len(module):len(module)], 0, 3, 1, 'x', next))
	}
	p.pageOf("versions", "Versions")
	p.until("/[23] versions/.test(document.body.innerText)") // the served version is stored after a few seconds
	p.check()
	p.button("Serve this")
	p.see("dialog[open]")
	p.check()
	p.do(script("document.querySelector('dialog .danger').click()"))
	p.read("rolled back by boss")

	p.pageOf("tokens", "Tokens")
	p.write("main input[type=search]", "ci")
	p.read("1 token of 3")
	p.button("Revoke")
	p.read("Nothing takes this back.")
	p.yes()
	p.until("!document.querySelector('dialog')")
	other.read("does not take this token")

	p.pageOf("audit", "Audit")
	for _, action := range []string{"tokens.add", "disable", "reset", "put", "rollback", "tokens.revoke"} {
		p.read(action)
	}
	p.check()
	p.button("Verify all entries")
	p.read("are unaltered")
	for _, page := range [][2]string{{"limits", "Limits"}, {"refused", "Refused"}, {"events", "Events"}, {"log", "Log"}, {"configuration", "Configuration"}, {"reach", "Reach"}} {
		p.pageOf(page[0], page[1])
		p.until("!document.body.innerText.includes('Asking the server')")
		p.check()
	}
	p.tool("/math/add")
	p.read("in the last hour")
	p.read("fuel burned, in instructions")
	p.see(".plot canvas")
	p.check()
}

// put puts the file calc.wasm on the server, and waits until it is served.
func put(t *testing.T, server string, module []byte) {
	t.Helper()
	putAs(t, server, "calc.wasm", module)
}

func putAs(t *testing.T, server, name string, module []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server+"/admin/v1/put?name="+name, bytes.NewReader(module))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+boss)
	r.Header.Set("Content-Type", "application/octet-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		var said bytes.Buffer
		_, _ = said.ReadFrom(answer.Body)
		t.Fatalf("put: %s %s", answer.Status, &said)
	}
}

// TestConsoleCaller checks that a caller finds no page and no button of the administrators.
func TestConsoleCaller(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, administered(), add(), divide(), order(), large()), "/console#/tokens")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(ann)
	p.read("This page is for administrators")
	p.do(script("location.hash = '#/tools'"))
	p.read("3 tools")
	if text := eval[string](p, "document.querySelector('header').innerText"); strings.Contains(text, "Audit") || strings.Contains(text, "Tokens") {
		t.Errorf("a caller gets links to pages of administrators: %s", text)
	}
	p.tool("/math/add")
	if eval[bool](p, "[...document.querySelectorAll('button')].some((b) => b.innerText === 'Disable')") {
		t.Error("a caller finds a button that disables a tool")
	}
	p.check()
}

// TestConsoleLink lets an administrator follow links that try to change something.
func TestConsoleLink(t *testing.T) {
	t.Parallel()
	server := serve(t, administered(), add())
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	p.read("1 tool")
	p.do(script(`window.asked = []; const ask = window.fetch; window.fetch = (url, o) => { asked.push((o?.method ?? "GET") + " " + new URL(url, location).pathname); return ask(url, o); }`))
	for _, hash := range []string{
		"#/tool/math/add?a=1&b=2&call=1", "#/tool/math/add/call", "#/tool//evil.example/x", "#/tool/../../evil", "#token=evil", "#/tokens/add?name=x&scopes=admin", "#/switches/disable/math",
		"#https://evil.example/", "#/javascript:alert(1)", "#<img src=x onerror=alert(1)>", "#/" + strings.Repeat("a", 100_000), "#/tool/%E0%A4%A", "#/constructor", "#/__proto__",
	} {
		p.do(script("location.hash = " + quoted(hash)))
		p.until("new Promise((done) => setTimeout(() => done(true), 100))")
	}
	for _, asked := range eval[[]string](p, "asked") {
		if strings.HasPrefix(asked, "POST") && asked != "POST /admin/v1/reload" && asked != "POST /mcp" {
			t.Errorf("a link makes the page request %s", asked)
		}
	}
	if got := eval[string](p, "sessionStorage.getItem(Object.keys(sessionStorage)[0])"); got != boss {
		t.Errorf("a link has changed the token: %q", got)
	}
	p.visit("/console?token=evil&server=https://evil.example#token=evil")
	p.read("1 tool")
	if got := eval[string](p, "sessionStorage.getItem(Object.keys(sessionStorage)[0])"); got != boss {
		t.Errorf("an address has changed the token: %q", got)
	}
}
