package browser_test

import (
	"slices"
	"testing"
)

// TestConsoleErrors lets calls of a tool fail: each is one entry with the tool's message, and no entry moves under the pointer.
func TestConsoleErrors(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, administered(), divide()), "/console")
	p.tolerate("status of 401")
	p.tolerate("status of 400") // the tool fails
	p.read("wants a token")
	p.signIn(boss)
	p.tool("/math/divide")
	fail := func(a string) {
		p.write(`[id="field-%5B%22a%22%5D"]`, a)
		p.write(`[id="field-%5B%22b%22%5D"]`, "0")
		p.call()
		p.read("Failed")
	}
	const errors = "[...document.querySelectorAll('.errors li')].map((e) => e.innerText)"
	fail("1")
	p.pageOf("limits", "Limits")
	p.tool("/math/divide")
	p.until("(" + errors + ").length === 1 && (" + errors + ")[0].includes('tool_error b is 0 by boss')")
	p.check()
	// Another error comes while the pointer is there: it waits until the pointer has gone.
	p.do(script("document.querySelector('.errors').parentElement.dispatchEvent(new PointerEvent('pointerenter'))"))
	fail("2")
	p.read("1 new")
	if got := eval[[]string](p, errors); len(got) != 1 {
		t.Errorf("under the pointer, the list has become %q", got)
	}
	p.do(script("document.querySelector('.errors').parentElement.dispatchEvent(new PointerEvent('pointerleave'))"))
	p.until("(" + errors + ").length === 2")

	// The lines of one call stay together and in order, whatever a tool logs.
	got := eval[[]string](p, `import("./console/app/lasterrors.js").then((m) => m.entriesOf([
		{number: 1, level: "ERROR", message: "Traceback:", attributes: {tool: "/fail", source: "log", request_id: "a"}},
		{number: 2, level: "ERROR", message: "ValueError: no", attributes: {tool: "/fail", source: "log", request_id: "a"}},
		{number: 3, level: "ERROR", message: "request", attributes: {tool: "/fail", source: "log", request_id: "a", status: 400}},
		{number: 4, level: "INFO", message: "request", attributes: {path: "/fail", status: 400, code: "tool_error", detail: "no", request_id: "a"}},
		{number: 5, level: "ERROR", message: "only said", attributes: {tool: "/fail", source: "log", request_id: "b"}},
		{number: 6, level: "INFO", message: "request", attributes: {path: "/fail", status: 200, request_id: "b"}},
		{number: 7, level: "WARN", message: "of another tool", attributes: {tool: "/fail/too", request_id: "c"}},
		{number: 8, level: "WARN", message: "called by another", attributes: {tool: "/fail", source: "log", request_id: "d"}},
		{number: 9, level: "WARN", message: "request", attributes: {path: "/mcp", tool: "/fail", status: 200, code: "tool_timeout", error: "after 10 s", request_id: "e"}},
	], "/fail").map((e) => [e.code, e.message, ...e.said].join("|")))`)
	want := []string{"tool_timeout|after 10 s", "WARN|called by another|called by another", "tool_error|no|Traceback:|ValueError: no|request"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
