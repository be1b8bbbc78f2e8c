package browser_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// secretOf returns the secret in the answer to a request for a token.
func secretOf(t *testing.T, answer string) string {
	t.Helper()
	var made struct {
		Secret string `json:"secret"`
	}
	if err := json.Unmarshal([]byte(answer), &made); err != nil || made.Secret == "" {
		t.Fatalf("got %s, %v", answer, err)
	}
	return made.Secret
}

// TestConsoleRevoke checks the question before a token is revoked, which names exactly the tokens that end together with this one.
func TestConsoleRevoke(t *testing.T) {
	t.Parallel()
	server := serve(t, administered(), add())
	ci := secretOf(t, post(t, server, "/admin/v1/tokens/add", boss, `{"name":"ci","scopes":["math/*"]}`))
	agent := secretOf(t, post(t, server, "/admin/v1/tokens/attenuate", ci, `{"name":"agent","scopes":["math/add"]}`))
	post(t, server, "/admin/v1/tokens/attenuate", agent, `{"name":"deep","scopes":["math/add"]}`)
	post(t, server, "/admin/v1/tokens/add", boss, `{"name":"cinema","scopes":["math/*"]}`)
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	p.pageOf("tokens", "Tokens")
	row := `[...document.querySelectorAll("main tbody tr")].find((row) => row.querySelector("td").innerText === %s)`
	revoke := func(name string) {
		t.Helper()
		p.until(strings.ReplaceAll(row, "%s", quoted(name)))
		p.do(script(`[...` + strings.ReplaceAll(row, "%s", quoted(name)) + `.querySelectorAll("button")].find((b) => b.innerText === "Revoke").click()`))
		p.until("document.querySelector('dialog[open] .danger:not([aria-disabled])')")
	}
	revoke("ci")
	p.read("2 narrower tokens made from it end with it:")
	if got := eval[string](p, `[...document.querySelectorAll("dialog .ends li")].map((e) => e.innerText).join()`); got != "ci/agent,ci/agent/deep" {
		t.Errorf("the question names %s", got)
	}
	p.check()
	p.button("Cancel")
	p.until("!document.querySelector('dialog')")
	revoke("cinema")
	if text := eval[string](p, "document.querySelector('dialog').innerText"); strings.Contains(text, "narrower") {
		t.Errorf("the question says\n%s", text)
	}
	p.button("Cancel")
	p.until("!document.querySelector('dialog')")
	revoke("ci")
	p.yes()
	p.until("!document.querySelector('dialog')")
	p.until("!document.querySelector('main tbody').innerText.includes('ci/agent')")
	p.read("cinema")
}

// TestConsoleUntilRestart switches tools only until the restart.
func TestConsoleUntilRestart(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, administered(), add(), divide()), "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	p.tool("/math/add")
	p.button("Disable")
	p.see("dialog[open]")
	p.click("dialog input[type=checkbox]")
	p.check()
	p.yes()
	p.until("document.querySelector('.facts .state').innerText === 'disabled'")
	p.tool("/math/divide")
	p.button("Disable")
	p.see("dialog[open]")
	p.yes()
	p.until("document.querySelector('.facts .state').innerText === 'disabled'")
	p.pageOf("switches", "Switches")
	p.until(`[...document.querySelectorAll("main tbody tr")].map((row) => row.innerText.split("\t").slice(0, 2).join(" ").trim()).sort().join() === "/math/add disabled until restart,/math/divide disabled"`)
	p.button("Enable…")
	p.see("dialog[open]")
	p.write("dialog input", "math")
	p.click("dialog input[type=checkbox]")
	p.read("Enables 2 tools")
	p.yes()
	p.until("document.querySelector('main tbody').innerText.includes('enabled until restart')")
}

// TestConsoleOfTools filters the log and the events by tools.
func TestConsoleOfTools(t *testing.T) {
	t.Parallel()
	server := serve(t, administered(), add(), divide())
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	for _, tool := range []string{"add", "divide"} {
		post(t, server, "/math/"+tool, boss, `{"a":1,"b":2}`)
		post(t, server, "/admin/v1/disable", boss, `{"names":["math/`+tool+`"]}`)
	}
	for _, page := range [][2]string{{"log", "Log"}, {"events", "Events"}} {
		p.pageOf(page[0], page[1])
		p.until("document.querySelector('main tbody')?.innerText.includes('/math/divide')")
		p.write("#of-tool", "math/add")
		p.button("Ask")
		p.until("document.querySelector('main tbody')?.innerText.includes('/math/add') && !document.querySelector('main tbody').innerText.includes('/math/divide')")
		p.check()
		p.write("#of-tool", "shop/*")
		p.button("Ask")
		p.read("There is nothing of such tools.")
		p.write("#of-tool", " ")
		p.button("Ask")
		p.until("document.querySelector('main tbody')?.innerText.includes('/math/divide')")
	}
}

// TestConsoleExact has numbers that JavaScript can't represent in an answer of the admin door.
func TestConsoleExact(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, administered(), add()), "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn(boss)
	p.do(script(`{ const ask = window.fetch; window.fetch = (url, o) => !String(url).includes("/admin/v1/logs") ? ask(url, o) :
		Promise.resolve(new Response('{"lines":[{"number":1,"time":"2026-01-01T00:00:00Z","level":"INFO","message":"counted","attributes":{"id":9007199254740993,"share":0.1}}],"last":1,"run":"x","missed":0}')); }`))
	p.pageOf("log", "Log")
	p.read("id=9007199254740993")
	p.read("share=0.1")
}

// TestConsoleLeaveOut signs out while a call runs, which ends the call only after a confirmation.
func TestConsoleLeaveOut(t *testing.T) {
	t.Parallel()
	ended, finish := make(chan error, 2), make(chan struct{}, 1)
	slow := gotool.New("work/slow", "Work slowly.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-finish:
		case <-ctx.Done():
		}
		ended <- ctx.Err()
		return "finished", ctx.Err()
	})
	p := open(t, serve(t, administered()+declared("a-token-of-a-worker", "worker", "work/*"), slow, add()), "/console")
	p.tolerate("status of 401")
	p.read("wants a token")
	p.signIn("a-token-of-a-worker")
	p.tool("/work/slow")
	p.click(".actions .primary")
	p.read("running")
	p.click(".who button")
	p.read("The call is still running")
	p.check()
	p.button("Stay")
	p.until("!document.querySelector('dialog')")
	finish <- struct{}{}
	p.read("finished")
	if err := <-ended; err != nil {
		t.Errorf("after staying, the call is lost: %v", err)
	}
	p.click(".actions .primary")
	p.read("running")
	p.click(".who button")
	p.button("Cancel the call and leave")
	p.read("This server wants a token")
	if err := <-ended; err == nil {
		t.Error("the call goes on")
	}
	if left := eval[int](p, "sessionStorage.length"); left != 0 {
		t.Errorf("%d values are kept after signing out", left)
	}
}
