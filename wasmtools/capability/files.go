package capability

import (
	"github.com/toolsrv/toolsrv/runtime/wasi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/files"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func filesPart() part { return part{wasi.Module, (*Grants).files} }

// files grants directories. Of two for one name the last counts.
func (*Grants) files(_ string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string) {
	granted := map[string]string{}
	for _, need := range needs.Files {
		directory := ""
		for _, g := range matching {
			if path, ok := g.Files[need]; ok {
				directory = path
			}
		}
		if directory == "" {
			missing = append(missing, "files "+need)
			continue
		}
		granted[need] = directory
	}
	if len(granted) == 0 {
		return nil, missing
	}
	return files.Grant(granted), missing
}
