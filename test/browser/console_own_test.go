package browser_test

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

const carol = "the-token-of-another-caller"

// post sends JSON to a path of a server, and returns its answer.
func post(t *testing.T, server, path, token, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", path, answer.Status, text, err)
	}
	return string(text)
}

// personal is the configuration of a server whose callers have their own secrets and values, with a tool that uses their secrets.
func personal() (string, *wasmtools.Tool) {
	settings := administered() + declared(carol, "carol", "weather/*", "notes/*") +
		"[[grant]]\nmatch = 'weather/*'\nhttp = ['https://api.example.com']\nheaders = {'https://api.example.com' = {Authorization = 'Bearer ${secret:github@principal}'}}\n" +
		"[[grant]]\nmatch = 'notes/*'\nkv = {size = '1MiB', by = 'principal'}\n"
	return settings, &wasmtools.Tool{Namespace: "weather", Name: "now", Description: "Tell the weather.", Parameters: schema.MustCompile(`{"type": "object"}`), Caller: hostile{result: []byte("1")},
		Needs: wasmtools.Needs{"http": {Words: []string{"https://api.example.com"}}}}
}

// TestConsoleOwn lets a caller set a secret of its own and remove it, and an administrator see and remove what callers have.
func TestConsoleOwn(t *testing.T) {
	t.Parallel()
	settings, weather := personal()
	server := serve(t, settings, weather, add())
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.tolerate("status of 422")
	p.tolerate("status of 412")
	p.read("wants a token")
	p.signIn(carol)
	p.pageOf("you", "You")
	p.read("declared+carol")
	p.read("not set: these tools can't act for you")
	p.read("/weather/now")
	p.check()

	const value = "the-secret-of-carol-7"
	p.button("Set")
	p.fill("Secret", "short")
	p.check()
	p.yes()
	p.read("Nothing was changed")
	p.fill("Secret", value)
	p.yes()
	p.read("github is set.")
	p.read("1 secret")
	if html := eval[string](p, "document.documentElement.outerHTML + JSON.stringify(sessionStorage)"); strings.Contains(html, value) {
		t.Error("the page still has the secret")
	}
	p.button("Change")
	if got := eval[string](p, "document.querySelector('dialog input[type=password]').value"); got != "" {
		t.Errorf("the field has %q", got)
	}
	// Another window sets the secret after the list was loaded.
	post(t, server, "/admin/v1/secrets/set", carol, `{"name":"github","value":"another-secret-of-carol-8"}`)
	p.fill("Secret", value)
	p.yes()
	p.read("Somebody else has changed the secret")
	p.button("Cancel")
	p.button("Set a secret…")
	p.fill("Name", `<img src=x onerror="window.owned=1">`)
	p.fill("Secret", value)
	p.yes()
	p.until("document.querySelector('dialog [role=alert]').innerText")
	p.intact("a hostile name")
	p.button("Cancel")
	if shown := eval[string](p, "document.querySelector('header').innerText"); strings.Contains(shown, "Callers") || strings.Contains(shown, "Files") {
		t.Errorf("a caller is led to pages of administrators: %s", shown)
	}

	// The values that a tool keeps for this caller.
	notes, err := os.ReadFile("../../examples/notes/notes.wasm")
	if err != nil {
		t.Fatal(err)
	}
	putAs(t, server, "notes.wasm", notes)
	post(t, server, "/notes/add", carol, `{"text":"tea"}`)
	admin := open(t, server, "/console")
	admin.tolerate("status of 401")
	admin.tolerate("status of 422")
	admin.read("wants a token")
	admin.signIn(boss)
	admin.pageOf("callers", "Callers")
	admin.read("1 secret")
	admin.read("1 space")
	admin.check()
	admin.button("Set a secret…")
	admin.fill("Caller", "nobody")
	admin.fill("Name", "github")
	admin.fill("Secret", value)
	admin.yes()
	admin.read("The principal is not valid")
	admin.fill("Caller", "issued+dave")
	admin.check()
	admin.yes()
	admin.read("github is set.")
	admin.read("2 secrets")
	admin.button("Remove")
	admin.read("Of declared+carol")
	admin.yes()
	admin.read("github is removed.")
	admin.read("1 secret")
	admin.button("Erase")
	admin.read("notes, ")
	admin.check()
	admin.yes()
	admin.read("of declared+carol erased.")
	admin.read("Nothing is kept for single callers.")
	p.button("Look again")
	p.read("not set: these tools can't act for you")

	// An administrator is a caller, too, and sees their own secrets here.
	admin.pageOf("you", "You")
	admin.read("declared+boss")
	admin.read("1 secret")
	admin.check()
}

// TestConsoleRate limits the calls of a token after it was made, makes a narrower one with it, and asks which tools it may call, and why.
func TestConsoleRate(t *testing.T) {
	t.Parallel()
	settings, weather := personal()
	server := serve(t, settings, weather, add())
	dave := regexp.MustCompile(`tsv_[a-z2-7]{10}_[a-z2-7]{59}`).FindString(post(t, server, "/admin/v1/tokens/add", boss, `{"name":"dave","scopes":["math/*"],"networks":["127.0.0.0/8"]}`))
	p := open(t, server, "/console")
	p.tolerate("status of 401")
	p.tolerate("status of 403") // a higher rate than the token has
	p.tolerate("status of 404")
	p.tolerate("status of 412")
	p.tolerate("status of 422")
	p.read("wants a token")
	p.signIn(boss)
	p.pageOf("tokens", "Tokens")
	p.write("main input[type=search]", "dave")
	p.read("1 token of 4")
	p.button("Rate")
	p.read("Now: as rates.default.")
	p.check()
	p.fill("Rate", "often")
	p.yes()
	p.until("document.querySelector('dialog [role=alert]').innerText.includes('often')")
	p.fill("Rate", "100/min")
	p.fill("At once", "-1")
	p.yes()
	p.read("“At once” has to be a whole number")
	p.fill("At once", "20")
	p.fill("Running", "4")
	p.yes()
	p.read("100/min, 20 at once, 4 running")
	p.button("Rate")
	if got := eval[string](p, "[...document.querySelectorAll('dialog input')].map((i) => i.value).join(' ')"); got != "100/min 20 4" {
		t.Errorf("the dialog begins with %q", got)
	}
	post(t, server, "/admin/v1/tokens/rate", boss, `{"name":"dave","rate":"7/s"}`)
	p.yes()
	p.read("Somebody else has changed the token")
	p.button("Cancel")
	p.button("Look again")
	p.read("7/s")
	p.button("Show")
	p.read("127.0.0.0/8")
	p.read("Made by\tboss")
	p.check()
	p.button("Close")
	p.until("!document.querySelector('dialog')")

	own := open(t, server, "/console")
	own.tolerate("status of 401")
	own.tolerate("status of 403")
	own.read("wants a token")
	own.signIn(dave)
	own.pageOf("you", "You")
	own.read("7/s, 7 left now")
	own.read("No tool that you may call uses one.")
	own.check()
	own.button("Make a narrower token…")
	own.fill("Name", "agent")
	own.fill("Scopes", "weather/now")
	own.yes()
	own.until("document.querySelector('dialog [role=alert]').innerText")
	own.fill("Scopes", "math/add")
	own.yes()
	own.see("#made-secret")
	own.check()
	own.button("I have kept it")

	p.pageOf("explain", "Explain")
	p.check()
	for _, asked := range []struct{ caller, tool, answer string }{
		{"dave", "math/add", "can call"}, {"dave", "/weather/now", "can't call"}, {"carol", "weather/now", "which carol doesn"}, {"boss", "no/tool", "no tool has the path"},
		{"mallory", "math/add", "No caller is named"}, {`<img src=x onerror="window.owned=1">`, "math/add", "No caller is named"}, {"dave", `<img src=x onerror="window.owned=1">`, "no tool has the path"},
	} {
		p.fill("Caller", asked.caller)
		p.fill("Tool", asked.tool)
		p.button("Explain")
		p.read(asked.answer)
		p.intact(asked.caller + " " + asked.tool)
	}
	p.check()
	post(t, server, "/math/add", dave, `{"a":1,"b":2}`)
	p.pageOf("slow", "Slow")
	p.read("/math/add")
	p.check()
}
