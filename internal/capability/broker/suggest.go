package broker

import (
	"maps"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
)

// Suggest returns a [[grant]] table that grants a tool, or the tools that a pattern matches, all of their needs. It has placeholders for what only an
// operator knows: the quota, paths and settings. The result is TOML with several lines.
func Suggest(match string, needs wasmtools.Needs, kinds []capability.Kind) string {
	var b strings.Builder
	b.WriteString("[[grant]]\nmatch = " + keys.Quote(match) + "\n")
	known := map[string]bool{}
	for _, k := range kinds {
		known[k.Name] = true
		if n, ok := needs[k.Name]; ok && k.Suggest != nil {
			b.WriteString(k.Suggest(n))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if !known[name] {
			b.WriteString("# " + name + " = ...\n")
		}
	}
	return b.String()
}
