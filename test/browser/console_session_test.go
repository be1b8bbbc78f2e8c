package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// holding has a page keep answers whose path begins as one of those in the array held, until release is called.
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

// TestConsoleSignOut signs out while answers are on their way that would sign in again. They come although they were cancelled.
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
		if text := p.shown(); eval[int](p, "sessionStorage.length") != 0 || !eval[bool](p, "document.querySelector('#token') !== null && !document.querySelector('.item') && !document.querySelector('nav a')") {
			t.Errorf("%s came after somebody had signed out, and the page shows:\n%s", held, text)
		}
		p.signIn(boss)
		p.read("2 tools")
	}
	// Another page of this tab forgets the token, and the browser goes back to the page that it has kept.
	p.do(script("sessionStorage.clear(); dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"))
	p.read("wants a token")
	p.press(kb.Escape)
	if eval[bool](p, "document.querySelector('nav a') !== null") {
		t.Error("a page that the browser has kept still shows an administrator's pages")
	}
}
