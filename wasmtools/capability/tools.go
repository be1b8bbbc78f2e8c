package capability

import (
	"slices"

	"github.com/toolsrv/toolsrv/internal/pattern"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/compose"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func toolsPart() part { return part{compose.Module, (*Grants).tools} }

// tools grants calls of other tools.
func (g *Grants) tools(_ string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string) {
	for _, need := range needs.Tools {
		if !slices.ContainsFunc(matching, func(one config.Grant) bool {
			return slices.ContainsFunc(one.Tools, func(granted string) bool { return pattern.Match(granted, need) })
		}) {
			missing = append(missing, "tool "+need)
		}
	}
	if len(needs.Tools) == 0 || len(missing) > 0 || g.broker.tools.Invoker == nil {
		return nil, missing
	}
	return compose.Grant(&g.broker.tools, needs.Tools...).Value, nil
}
