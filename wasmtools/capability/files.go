package capability

import (
	"github.com/toolsrv/toolsrv/runtime/wasi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func filesPart() part { return part{wasi.Module, (*Grants).files} }

// files grants directories. Of two for one name the last counts.
func (*Grants) files(_ string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string) {
	granted := map[string]string{}
	for _, g := range matching {
		for name, directory := range g.Files {
			granted[name] = directory
		}
	}
	for _, need := range needs.Files {
		if _, ok := granted[need]; !ok {
			missing = append(missing, "files "+need)
		}
	}
	return nil, missing
}
