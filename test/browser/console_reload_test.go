package browser_test

import (
	"strings"
	"sync/atomic"
	"testing"
)

// TestConsoleReload reloads configurations: one with changes, one that has changed since it was shown, and refused ones.
func TestConsoleReload(t *testing.T) {
	t.Parallel()
	const later = "the-token-of-somebody-who-comes-later"
	var settings atomic.Pointer[string]
	set := func(text string) { settings.Store(&text) }
	set(administered())
	server := serveAs(t, func() string { return *settings.Load() }, add())
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	p.pageOf("configuration", "Configuration")
	p.read("Nothing differs.")

	other := open(t, server, "/console")
	other.tolerate("status of 401")
	other.read("wants a token")
	refused := func(when string) {
		t.Helper()
		other.write("#token", later)
		other.do(script("document.querySelector('#token').form.requestSubmit()"))
		other.read("does not take this token")
		if !eval[bool](other, "document.querySelector('#token') !== null") {
			t.Errorf("%s, the new token is accepted", when)
		}
	}
	refused("before")

	// A configuration that is refused when it is compared: the reason is shown, and there is no button.
	p.tolerate("status of 4")
	p.tolerate("status of 5")
	set("limits.timeout = 'never'\n" + administered())
	p.button("Compare again")
	p.read("limits.timeout")
	p.check()
	if eval[bool](p, "[...document.querySelectorAll('main button')].some((b) => b.innerText === 'Reload…')") {
		t.Errorf("a refused configuration can be put in force:\n%s", p.shown())
	}

	// Its changes are shown first, and saying no changes nothing.
	changed := "limits.timeout = '7s'\n" + administered() + declared(later, "later", "math/*")
	set(changed)
	p.button("Compare again")
	p.read("5s → 7s")
	p.read("+later")
	p.check()
	p.button("Reload…")
	p.see("dialog[open]")
	if text := eval[string](p, "document.querySelector('dialog').innerText"); !strings.Contains(text, "timeout: 5s → 7s") || !strings.Contains(text, "+later") {
		t.Errorf("the question says\n%s", text)
	}
	p.check()
	p.button("Cancel")
	p.until("!document.querySelector('dialog')")
	refused("after Cancel")

	// The file is broken, or changed, after its changes were shown.
	yes := func() {
		t.Helper()
		p.see("dialog[open]")
		p.do(script("document.querySelector('dialog .danger').click()"))
	}
	set("limits.timeout = 'never'\n" + administered())
	p.button("Reload…")
	yes()
	p.until("document.querySelector('dialog [role=alert]').innerText.includes('limits.timeout')")
	refused("after a broken configuration")
	set(changed + declared("the-token-of-an-intruder-whom-nobody-saw", "unseen", "*"))
	yes()
	p.until("/changed|differ|version/.test(document.querySelector('dialog [role=alert]').innerText)")
	refused("after a configuration that was not shown")
	set(changed)
	yes()
	p.until("!document.querySelector('dialog')")
	p.read("Nothing differs.")
	other.write("#token", later)
	other.do(script("document.querySelector('#token').form.requestSubmit()"))
	other.read("1 tool")
}

// TestConsoleTooOften calls a tool too often, over MCP and over REST.
func TestConsoleTooOften(t *testing.T) {
	t.Parallel()
	for _, mcp := range []string{"true", "false"} {
		t.Run("mcp="+mcp, func(t *testing.T) {
			t.Parallel()
			p := open(t, serve(t, "mcp.enabled = "+mcp+"\n"+declared(ann, "ann", "math/*")+"rate = '1/h'\n", add()), "/console")
			p.tolerate("status of 401")
			p.tolerate("/admin/v1/self")
			p.tolerate("status of 429")
			p.read("wants a token")
			p.signIn(ann)
			p.tool("/math/add")
			p.write(`[id="field-%5B%22a%22%5D"]`, "1")
			p.write(`[id="field-%5B%22b%22%5D"]`, "2")
			p.call()
			p.read("Answered")
			p.click(".actions .primary")
			p.read("rate_limited")
			p.until(`/try again in 3[56]\d\d s/.test(document.querySelector(".outcome").innerText)`)
			p.check()
		})
	}
}

// TestConsoleWithoutMCP uses the pages of a server without MCP. They offer nothing that needs it.
func TestConsoleWithoutMCP(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, "mcp.enabled = false\n", add()), "/")
	p.read("1 tool")
	if text := p.shown(); strings.Contains(text, "Connect an agent") || strings.Contains(text, "/mcp") {
		t.Errorf("the page has settings for agents:\n%s", text)
	}
	p.check()
	p.tolerate("/admin/v1/self")
	p.visit("/console#/connect")
	p.read("1 tool")
	p.tool("/math/add")
	p.write(`[id="field-%5B%22a%22%5D"]`, "1")
	p.write(`[id="field-%5B%22b%22%5D"]`, "2")
	p.call() // a request to /mcp would fail the test
	p.read("Answered")
	p.do(script("document.querySelectorAll('details').forEach((d) => { d.open = true; })"))
	p.read("curl -s")
	if text := p.shown(); strings.Contains(text, "MCP") || strings.Contains(text, "/mcp") || strings.Contains(text, "Connect") {
		t.Errorf("the console offers MCP:\n%s", text)
	}
	p.check()
}
