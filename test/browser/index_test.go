package browser_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestIndex reads the page at /, and opens a tool from there.
func TestIndex(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, "title = 'The tools of the shop'", add(), divide()), "/")
	p.read("2 tools")
	p.read("/math/add")
	p.read("claude mcp add --transport http tools " + p.home.JoinPath("mcp").String())
	p.check()
	p.click(`a[href="#connect"]`)
	p.until("document.activeElement.id === 'connect'")
	p.until("navigator.clipboard.writeText = () => Promise.reject(), document.execCommand = (what) => globalThis.did = what") // as browsers do over plain HTTP
	p.click("#connect ~ p .copy")
	p.until("globalThis.did === 'copy'")
	p.write("#filter", "divide")
	p.until("document.querySelectorAll('.tools li').length === 1")
	p.tolerate("/admin/v1/self") // the console requests this path, which the server does not have
	p.click(".tools a")
	p.read("Divide two numbers.")
	p.until("location.pathname === '/console'")
}

// TestIndexClosed checks that the page shows nothing without a token, and with a token the tools that its scopes allow.
func TestIndexClosed(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, "title = 'Secret tools'\n"+token("some", `["math/add"]`)+token("none", `["nothing/*"]`), add(), divide()), "/")
	p.tolerate("status of 401") // without the token
	p.see("#token")
	p.check()
	if text := p.shown(); strings.Contains(text, "Secret") || strings.Contains(text, "/math") {
		t.Errorf("it tells strangers:\n%s", text)
	}
	p.write("#token", "none-token")
	p.press(kb.Enter)
	p.read("There is none that you may call")
	p.check()
	p.click(".token button")
	p.see("#token")
	p.write("#token", "some-token")
	p.press(kb.Enter)
	p.read("1 tool")
	p.read("Bearer YOUR-TOKEN")
	p.check()
	if text := p.shown(); strings.Contains(text, "/math/divide") || strings.Contains(text, "some-token") {
		t.Errorf("it shows a tool that the token may not call, or the token:\n%s", text)
	}
}

// TestPrefix serves the pages through a proxy, below a path prefix.
func TestPrefix(t *testing.T) {
	t.Parallel()
	behind, err := url.Parse(serve(t, "server.public_url = '/shop/tools'", append(many(400), add())...))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host = r.In.Host
	}}
	server := httptest.NewServer(http.StripPrefix("/shop/tools", proxy))
	t.Cleanup(server.Close)
	p := open(t, server.URL, "/shop/tools/")
	p.read("401 tools")
	p.read("claude mcp add --transport http tools " + server.URL + "/shop/tools/mcp")
	p.visit("/shop/tools/docs")
	p.read("Choose a namespace")
	p.check()
	p.click(`a[href$="/docs/math"]`)
	p.click("#operations-math-math-add .opblock-summary-control")
	p.click("#operations-math-math-add .try-out__btn")
	p.write("#operations-math-math-add textarea", `{"a": 1, "b": 8}`)
	p.click("#operations-math-math-add .execute")
	p.until(`document.querySelector("#operations-math-math-add .live-responses-table")?.innerText.includes("9")`)
	p.visit("/shop/tools/docs/many/n7")
	p.read("/many/n7/tool7")
	p.tolerate("/admin/v1/self")
	p.visit("/shop/tools/console")
	p.read("401 tools")
}
