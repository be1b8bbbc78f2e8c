package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// needing returns a tool with these needs.
func needing(t *wasmtools.Tool, needs wasmtools.Needs) *wasmtools.Tool {
	t.Needs = needs
	return t
}

// grants returns the grants for the tools that granted returns.
const grants = `
[[grant]]
match = "math/*"
tools = ["shop/*"]
[[grant]]
match = "shop/*"
http = ["https://api.example.com/v1"]
kv = "1MiB"
`

// granted returns three tools; one calls another, which reaches something.
func granted() []*wasmtools.Tool {
	return []*wasmtools.Tool{
		needing(add(), wasmtools.Needs{"tools": {Words: []string{"shop/order"}}}),
		divide(),
		needing(order(), wasmtools.Needs{"http": {Words: []string{"https://api.example.com/v1"}}, "kv": {}}),
	}
}

// boxes returns the boxes of the picture, column by column.
const boxes = "[...document.querySelectorAll('.reach .box')].map((b) => b.ariaLabel)"

// TestConsoleReach checks the picture of who reaches what, with few tools and with the keyboard.
func TestConsoleReach(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, administered()+grants, granted()...), "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	p.pageOf("reach", "Reach")
	p.see(".reach svg")
	all := eval[[]string](p, boxes)
	for _, want := range []string{"caller ann, ", "caller boss, ", "tool math/add, ", "tool shop/order, ", "http https://api.example.com/v1, ", "kv "} {
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("no box is for %q: %q", want, all)
		}
	}
	p.check()

	// Tab moves the focus to one box, and the arrow keys move it to the others. Enter chooses a box, and the table follows.
	p.do(script("document.querySelector('.reach [tabindex=\"0\"]').focus()"))
	if got := eval[string](p, "document.activeElement.ariaLabel"); !strings.HasPrefix(got, "caller ann, ") {
		t.Errorf("the first box is %s", got)
	}
	p.press(kb.ArrowDown)
	p.until("document.activeElement.ariaLabel.startsWith('caller boss, ')")
	p.press(kb.ArrowRight)
	p.until("document.activeElement.ariaLabel.startsWith('tool math/add, ')")
	p.press(kb.ArrowRight)
	p.until("document.activeElement.ariaLabel.startsWith('tool shop/order, ')")
	p.press(kb.Enter)
	p.read("Only ways of the tool shop/order")
	p.until("document.activeElement.ariaPressed === 'true'")
	p.press(kb.Enter)
	p.read("All ways")
	p.do(script("[...document.querySelectorAll('.reach .box')].find((b) => b.ariaLabel.startsWith('caller ann')).dispatchEvent(new MouseEvent('click', {bubbles: true}))"))
	p.read("Only ways of the caller ann")
	if all := eval[[]string](p, boxes); strings.Contains(strings.Join(all, "\n"), "boss") {
		t.Errorf("the ways of ann have %q", all)
	}
	if eval[bool](p, "[...document.querySelectorAll('tbody tr')].some((r) => r.innerText.includes('boss'))") {
		t.Error("the table has ways of other callers")
	}
	p.check()
	p.button("Show all ways")
	p.write("main input[type=search]", "no-such-thing")
	p.read("None has all these words")
	p.write("main input[type=search]", "kv")
	p.until("!" + boxes + ".some((b) => b.startsWith('http'))")

	// Only a part is requested from the server.
	p.write("main input[type=search]", "")
	p.write("#reach-tools", "shop/*")
	p.press(kb.Enter)
	p.until("!" + boxes + ".some((b) => b.includes('math/add'))")
	p.tolerate("status of 404")
	p.write("#reach-caller", "nobody-of-this-name")
	p.press(kb.Enter)
	p.read("No caller is named")
}

// TestConsoleReachMany checks the picture of a thousand tools, which shows a part of them.
func TestConsoleReachMany(t *testing.T) {
	t.Parallel()
	tools := many(1000)
	for i, tool := range tools {
		needing(tool, wasmtools.Needs{"http": {Words: []string{fmt.Sprintf("https://s%d.example.com", i%500)}}})
	}
	p := open(t, serve(t, administered()+"[[grant]]\nmatch = \"*\"\nhttp = [\"https://*.example.com\"]\n", tools...), "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	p.pageOf("reach", "Reach")
	p.read("1,000 ways")
	if n := eval[int](p, "document.querySelectorAll('.reach .box').length"); n > 100 {
		t.Errorf("the picture has %d boxes", n)
	}
	if all := strings.Join(eval[[]string](p, boxes), "\n"); !strings.Contains(all, "Tools: 970 others, 970 ways") {
		t.Errorf("the boxes are %s", all)
	}
	p.check()
	p.write("main input[type=search]", "tool777")
	p.until(boxes + ".join() === 'caller boss, 1 way,tool many/n77/tool777, 1 way,http https://s277.example.com, 1 way'")
}
