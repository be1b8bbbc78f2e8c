package capability

import (
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/settings"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func settingsPart() part { return part{settings.Module, (*Grants).settings} }

// settings grants settings. The last ones count.
func (*Grants) settings(_ string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string) {
	if needs.Config == nil {
		return nil, nil
	}
	for _, g := range matching {
		if g.Config != nil {
			return nil, nil
		}
	}
	return nil, []string{"config"}
}
