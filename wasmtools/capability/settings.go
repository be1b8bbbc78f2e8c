package capability

import (
	"fmt"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/settings"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// settings grants settings. The last ones count. Without any the schema's defaults are, where they are enough: a default is the author's
// word, and nothing that would have to be granted.
func (*Grants) settings(needs *wasmtools.Needs, matching []config.Grant) (granted []byte, missing []string) {
	if needs.Config == nil {
		return nil, nil
	}
	schema, err := settings.Compile(needs.Config)
	if err != nil {
		return nil, []string{fmt.Sprintf("config (its schema: %v)", err)}
	}
	last := config.Grant{}
	for _, g := range matching {
		if g.Config != nil {
			last = g
		}
	}
	granted, err = schema.Apply(last.Config)
	switch {
	case err == nil:
		return granted, nil
	case last.Config == nil:
		return nil, []string{fmt.Sprintf("config (%v)", err)}
	default:
		return nil, []string{fmt.Sprintf("config (of the grant to %s: %v)", last.Match, err)}
	}
}
