package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/configured"
)

func TestUnmatched(t *testing.T) {
	t.Parallel()
	paths := []string{"/now", "/math/add", "/math/big/add", "/web/fetch"}
	c := parse(t, `
[tools]
mode = "denylist"
disabled = ["now", "/math", "math/big", "mth", "math/ad", {tool = "web/fetsch", reason = "x"}, "add", "nothing-like-it"]
enabled = ["web/fetch", "Web"]
[[override]]
match = "**/add"
[[override]]
match = "*/fetch"
[[override]]
match = "/math/big"
[[override]]
match = "math/addd"
[[override]]
match = "mat/*"
[[override]]
match = "math/add/more"
`)
	var got []string
	for _, u := range configured.UnmatchedOf(c, paths, nil) {
		got = append(got, u.Key+": "+u.String())
	}
	want := []string{
		`tools.disabled[3]: "mth" matches no tool: did you mean "math"?`,
		`tools.disabled[4]: "math/ad" matches no tool: did you mean "math/add"?`,
		`tools.disabled[5]: "web/fetsch" matches no tool: did you mean "web/fetch"?`,
		`tools.disabled[6]: the entry matches no tool`,
		`tools.disabled[7]: the entry matches no tool`,
		`tools.enabled[1]: "Web" matches no tool: did you mean "web"?`,
		`override[3].match: "math/addd" matches no tool: did you mean "math/add"?`,
		`override[4].match: "mat/*" matches no tool: did you mean "math"?`,
		`override[5].match: "math/add/more" matches no tool`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := configured.UnmatchedOf(config.Default(), paths, nil); got != nil {
		t.Errorf("the defaults: got %v", got)
	}
}

// TestUnmatchedBounded has very many wrong entries: only the first ones get guesses, which are expensive.
func TestUnmatchedBounded(t *testing.T) {
	t.Parallel()
	paths := make([]string, 10_000)
	for i := range paths {
		paths[i] = fmt.Sprintf("/shop/tool-%d", i)
	}
	c := config.Default()
	c.Tools.Disabled = slices.Repeat([]string{"shop/tol-77"}, 90_000)
	got := configured.UnmatchedOf(c, paths, nil)
	guesses := 0
	for _, u := range got {
		if u.Meant != "" {
			guesses++
		}
	}
	if len(got) != 90_000 || guesses != 20 || got[0].Meant != "shop/tool-77" {
		t.Errorf("got %d entries with %d guesses, the first is %v", len(got), guesses, got[0])
	}
}

// TestDisabledReasons reads entries with and without a reason.
func TestDisabledReasons(t *testing.T) {
	t.Parallel()
	c := parse(t, "[tools]\ndisabled = ['web', {tool = '/math/div', reason = 'being repaired'}, {tool = 'now'}]\n")
	if want := []string{"web", "math/div", "now"}; !slices.Equal(c.Tools.Disabled, want) {
		t.Errorf("got %q, want %q", c.Tools.Disabled, want)
	}
	if len(c.Tools.Reasons) != 1 || c.Tools.Reasons["math/div"] != "being repaired" {
		t.Errorf("got %q", c.Tools.Reasons)
	}
	c = parse(t, "[[tools.disabled]]\ntool = 'web'\nreason = '''audit'''\n")
	if c.Tools.Reasons["web"] != "audit" {
		t.Errorf("as tables: got %q", c.Tools.Reasons)
	}
	for _, bad := range []struct{ entry, want string }{
		{`{tol = 'web'}`, `configuration:2:13: tools.disabled[0]: unknown key "tol": did you mean "tool"?`},
		{`{reason = 'x'}`, `tools.disabled[0]: tool is missing`},
		{`{}`, `tools.disabled[0]: tool is missing`},
		{`{tool = 'a/*'}`, `tools.disabled[0]: tool: has a *`},
		{`{tool = 7}`, `tools.disabled[0]: tool: must be a string`},
		{`{tool = {tool = 'x'}}`, `tools.disabled[0]: tool: must be a string`},
		{`{tool = 'web', reason = ''}`, `tools.disabled[0]: reason: must not be empty`},
		{`{tool = 'web', reason = "a\u0007"}`, `tools.disabled[0]: reason: has a control character`},
		{`{tool = 'web', reason = '` + strings.Repeat("x", 1001) + `'}`, `tools.disabled[0]: reason: has 1001 bytes; at most 1000 are allowed`},
		{`7`, `tools.disabled[0]: must be a string, or a table such as {tool = `},
	} {
		_, err := config.Parse([]byte("[tools]\ndisabled = ["+bad.entry+"]\n"), "")
		if err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: got %v, want %s", bad.entry, err, bad.want)
		}
	}
}
