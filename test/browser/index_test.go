package browser_test

import "testing"

// closed has a token for all tools, one for two of them, and one for administrators.
const closed = `
[[auth.token]]
name = "all"
sha256 = "f2e7e2b1d9a5e0b9f9a7d7a4a5b1f2c0a1b2c3d4e5f60718293a4b5c6d7e8f90"
scopes = ["*"]
`

func TestIndex(t *testing.T) {
	t.Parallel()
	p := open(t, serve(t, "title = 'The tools of the shop'", add(), divide()), "/")
	p.read("2 tools")
	p.read("/math/add")
	p.read("claude mcp add --transport http tools " + p.home.JoinPath("mcp").String())
	p.check()
	p.write("#filter", "divide")
	p.until("document.querySelectorAll('.tools li').length === 1")
	p.click(".tools a")
	p.read("Divide two numbers.")
}
