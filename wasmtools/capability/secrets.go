package capability

import (
	"slices"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/secret"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func secretsPart() part { return part{secret.Module, (*Grants).secrets} }

// secrets grants to see secrets.
func (*Grants) secrets(_ string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string) {
	for _, need := range needs.Secrets {
		if !slices.ContainsFunc(matching, func(g config.Grant) bool { return slices.Contains(g.SecretsVisible, need) }) {
			missing = append(missing, "secret "+need)
		}
	}
	return nil, missing
}
