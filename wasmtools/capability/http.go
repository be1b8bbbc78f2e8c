package capability

import (
	"slices"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/egress"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func httpPart() part { return part{egress.Module, (*Grants).http} }

// http grants requests.
func (*Grants) http(_ string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string) {
	for _, need := range needs.HTTP {
		if !slices.ContainsFunc(matching, func(g config.Grant) bool { return slices.Contains(g.HTTP, need) }) {
			missing = append(missing, "http "+need)
		}
	}
	return nil, missing
}
