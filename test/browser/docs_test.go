package browser_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// token returns the lines of a configuration for a token with scopes. The token is its name and "-token".
func token(name string, scopes string) string {
	return fmt.Sprintf("[[auth.token]]\nname = %q\nsha256 = \"%x\"\nscopes = %s\n", name, sha256.Sum256([]byte(name+"-token")), scopes)
}

// TestDocs reads the page of the API, and calls a tool from there.
func TestDocs(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, "", add(), divide()), "/docs")
	p.read("/math/add")
	p.check()
	p.visit("/")
	p.visit("/docs#/math/math-divide")
	p.read("Divide two numbers.")
	p.click("#operations-math-math-divide .try-out__btn")
	p.write("#operations-math-math-divide textarea", `{"a": 1, "b": 8}`)
	p.click("#operations-math-math-divide .execute")
	p.until(`document.querySelector("#operations-math-math-divide .live-responses-table .highlight-code")?.innerText.includes("0.125")`)
	p.check()
}

// TestDocsAuthorized checks that the page shows nothing without a token, and with a token the tools that its scopes allow. The page forgets the token when the window closes.
func TestDocsAuthorized(t *testing.T) {
	t.Parallel()
	home := serve(t, token("some", `["math/add"]`), add(), divide())
	p := open(t, home, "/docs")
	p.tolerate("status of 401") // without the token
	p.see("#token")
	p.check()
	p.write("#token", "a-wrong-one")
	p.press(kb.Enter)
	p.read("does not accept")
	p.write("#token", "some-token")
	p.press(kb.Enter)
	p.read("/math/add")
	p.check()
	if text := p.shown(); strings.Contains(text, "/math/divide") {
		t.Errorf("it shows a tool that the token may not call:\n%s", text)
	}
	p.click(".authorize")
	p.read("Authorized")
	p.check()
	p.click(".btn-done")
	p.click("#operations-math-math-add .opblock-summary-control")
	p.click("#operations-math-math-add .try-out__btn")
	p.write("#operations-math-math-add textarea", `{"a": 1, "b": 8}`)
	p.click("#operations-math-math-add .execute")
	p.until(`document.querySelector("#operations-math-math-add .live-responses-table")?.innerText.includes("9")`)
	if text := eval[string](p, "JSON.stringify(localStorage) + document.cookie + location.href"); strings.Contains(text, "some-token") {
		t.Errorf("the token outlives the window: %s", text)
	}
	other := open(t, home, "/docs")
	other.tolerate("status of 401")
	other.see("#token")
}

// TestDocsOfNamespace checks that the page shows only the tools of the namespace.
func TestDocsOfNamespace(t *testing.T) {
	t.Parallel()
	home := serve(t, "", append(many(3), add())...)
	p := open(t, home, "/docs/many/n1")
	p.read("/many/n1/tool1")
	if text := p.shown(); strings.Contains(text, "/math/add") || strings.Contains(text, "tool2") {
		t.Errorf("the page of a namespace shows others:\n%s", text)
	}
	p.visit("/docs/math")
	p.read("/math/add")
	p.tolerate("/nothing/openapi.json")
	p.visit("/docs/nothing")
	p.read("The namespace nothing has no tools that you may call.")
	p.check()
}
