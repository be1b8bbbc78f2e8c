package browser_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestConsoleLists checks lists: nothing is cut off silently, nothing moves, and a phone shows whole rows.
func TestConsoleLists(t *testing.T) {
	t.Parallel()
	server := serve(t, administered(), add(), divide(), order(), large())
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.tolerate("status of 400")
	p.read("wants a token")
	p.signIn(boss)
	p.read("4 tools")

	// A dialog puts the focus into its first field, and says how many tools it changes.
	p.pageOf("switches", "Switches")
	p.button("Disable…")
	p.see("dialog[open]")
	p.until("document.activeElement === document.querySelector('dialog input')")
	p.press("math")
	p.read("Disables 2 tools: /math/add, /math/divide")
	p.write("dialog input", "*")
	p.read("Disables 4 tools")
	p.write("dialog input", "math/add shop")
	p.read("Disables 3 tools: /math/add, /shop/large, /shop/order")
	p.check()
	long := strings.Repeat("it rains ", 60)
	p.write("dialog .field:nth-of-type(2) input", long)
	p.press(kb.Enter)
	p.until("!document.querySelector('dialog')")
	p.pageOf("audit", "Audit")
	p.button("Show all of it")
	p.read(strings.TrimSpace(long))
	p.check()
	p.button("Show less")
	p.until("!document.body.innerText.includes(" + quoted(strings.TrimSpace(long)) + ")")

	for _, list := range [][2]string{{"audit", "Audit"}, {"tokens", "Tokens"}, {"log", "Log"}} {
		p.pageOf(list[0], list[1])
		p.see("main table")
		p.light(360)
		if beyond := eval[[]string](p, "[...document.querySelectorAll('main td')].filter((c) => c.getBoundingClientRect().right > innerWidth).map((c) => c.innerText)"); len(beyond) > 0 {
			t.Errorf("%s, 360 wide: out of sight are %q", list[1], beyond)
		}
		p.light(1280)
	}
}

// TestConsoleOrder checks that the tools that use most keep their places while others are called more, until somebody sorts the list. Below that
// list is the list of callers who hold most.
func TestConsoleOrder(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, administered(), add(), divide()), "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	const called = "[aria-label='Tools with calls'] tbody"
	const paths = "[...document.querySelectorAll(`" + called + " tr`)].map((r) => r.cells[0].innerText).join()"
	calls := func(tool string, times int) {
		p.do(script(fmt.Sprintf(`window.called = Promise.all(Array.from({length: %d}, () => fetch("%s", {method: "POST", body: '{"a":1,"b":1}', headers: {"Content-Type": "application/json", Authorization: "Bearer %s"}}))).then(() => true)`, times, tool, boss)))
		if !eval[bool](p, "called") {
			t.Error("a call failed")
		}
	}
	calls("/math/add", 2)
	calls("/math/divide", 1)
	p.pageOf("limits", "Limits")
	p.until(paths + " === '/math/add,/math/divide'")
	for _, name := range []string{"Manifests", "Modules and scripts", "Arguments and results"} {
		p.see(fmt.Sprintf("meter[aria-label=%q]", name))
	}
	calls("/math/divide", 5)
	p.until("document.querySelector(`" + called + "`).innerText.includes('6 calls')")
	if got := eval[string](p, paths); got != "/math/add,/math/divide" {
		t.Errorf("the rows have moved: %s", got)
	}
	p.button("Sort by calls")
	p.until(paths + " === '/math/divide,/math/add'")
	for _, held := range []string{`connections\tboss\t\d+ connections?`, `streams\tboss\t1 stream`} { // the page's own stream of changes
		p.until("/" + held + "/.test(document.querySelector(`[aria-label='Who holds most'] tbody`).innerText)")
	}
	for _, name := range []string{"Streams", "Sessions of MCP"} {
		p.see(fmt.Sprintf("meter[aria-label=%q]", name))
	}
	p.read("State on disk")
	p.check()
}

// TestConsoleDifference shows a long difference between configurations, and says how long it is and how much is left out.
func TestConsoleDifference(t *testing.T) {
	t.Parallel()
	var off atomic.Value
	off.Store("")
	server := serveAs(t, func() string { return off.Load().(string) + administered() }, many(400)...)
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	off.Store("tools.disabled = ['many']\n")
	p.pageOf("configuration", "Configuration")
	const off400 = "section[aria-label='Tools switched off']"
	p.see(off400)
	p.read("400 lines")
	p.read("100 others not shown")
	p.check()
	p.write(off400+" input", "tool399")
	p.read("1 line of 400")
	if got := eval[string](p, "document.querySelector("+quoted(off400+" ul")+").innerText"); !strings.Contains(got, "/many/n99/tool399") || strings.Contains(got, "\n") {
		t.Errorf("the filter finds %q", got)
	}
}
