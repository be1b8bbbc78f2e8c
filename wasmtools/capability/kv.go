package capability

import (
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/kv"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

func kvPart() part { return part{kv.Module, (*Grants).kv} }

// kv grants a space for values. The last quota counts.
func (*Grants) kv(_ string, needs *wasmtools.Needs, matching []config.Grant) (value any, missing []string) {
	if !needs.KV {
		return nil, nil
	}
	quota := int64(0)
	for _, g := range matching {
		if g.KV > 0 {
			quota = g.KV
		}
	}
	if quota == 0 {
		return nil, []string{"kv"}
	}
	return nil, nil
}
