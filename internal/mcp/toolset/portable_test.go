package toolset_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestPortable: older clients don't see the schema of a result that one of them could not compile, since the TypeScript SDK would drop
// the whole list.
// Proves: Answers and logs show what is meant to be seen
func TestPortable(t *testing.T) {
	t.Parallel()
	pattern := func(p string) string {
		text, _ := json.Marshal(p)
		return `"a":{"type":"string","pattern":` + string(text) + `}`
	}
	for properties, want := range map[string]bool{
		`"a":{"enum":[1]},"pattern":{"type":"string"},"id":{"type":"string"},"nullable":{"type":"boolean"}`: true,
		`"a":{"enum":[]}`:                         false,
		`"a":{"prefixItems":[{}],"items":false}`:  false,
		`"a":{"nullable":true}`:                   false,
		`"a":{"id":"x"}`:                          false,
		`"a":{"patternProperties":{"^x-":true}}`:  true,
		`"a":{"patternProperties":{"\\pL":true}}`: false,
		pattern(`^[a-z0-9_-]+(\.[^@\s]{1,63})*$`): true,
		pattern(`(?:a|b)\d{2,}\/\u00e4\x41`):      true,
		pattern(`[\w.-]`):                         true,
		pattern(`(?i)x`):                          false,
		pattern(`(?P<n>x)`):                       false,
		pattern(`\pL`):                            false,
		pattern(`\p{L}`):                          false,
		pattern(`a\-b`):                           false,
		pattern(`[a\-b]`):                         true,
		pattern(`\z`):                             false,
		pattern(`a}`):                             false,
		pattern(`a{,2}`):                          false,
		pattern(`a{x}`):                           false,
		pattern(`[[:alpha:]]`):                    false,
		pattern(`[]a]`):                           false,
		pattern(`[^]a]`):                          false,
		pattern(`[\w-z]`):                         false,
		pattern(`[-a]`):                           true,
		pattern(`[a-]`):                           true,
		pattern(`[-]`):                            true,
	} {
		one := tool("one", echo)
		one.Result = resultSchema(t, `{"type":"object","properties":{`+properties+`}}`)
		view := setOf(t, tableOf(t, one), toolset.Options{}).View("", wasmtools.Everybody())
		if got := strings.Contains(elements(t, view, toolset.Legacy)["one"], "outputSchema"); got != want {
			t.Errorf("%s: shown %t, want %t", properties, got, want)
		}
		if !strings.Contains(elements(t, view, toolset.Modern)["one"], "outputSchema") {
			t.Errorf("%s: not shown to newer clients", properties)
		}
	}
}
