package capability

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/settings"
	"github.com/toolsrv/toolsrv/wasmtools/config"
)

// settings grants settings. The last ones count. Without any the schema's defaults are, where they are enough: a default is the author's
// word, and nothing that would have to be granted.
func (g *Grants) settings(needs *wasmtools.Needs, matching []config.Grant) (granted []byte, missing []string) {
	if needs.Config == nil {
		return nil, nil
	}
	last := config.Grant{}
	for _, g := range matching {
		if g.Config != nil {
			last = g
		}
	}
	made := g.made.of(needs.Config, last.Config)
	switch {
	case made.invalid != nil:
		return nil, []string{fmt.Sprintf("config (its schema: %v)", made.invalid)}
	case made.err == nil:
		return made.settings, nil
	case last.Config == nil:
		return nil, []string{fmt.Sprintf("config (%v)", made.err)}
	default:
		return nil, []string{fmt.Sprintf("config (of the grant to %s: %v)", last.Match, made.err)}
	}
}

// maxMade is how many settings are kept for further tools. They can have a megabyte each, and so can their schemas.
const maxMade = 16

// madeSettings are settings by what they were made of. A module has one schema for all of its tools, of which there may be a thousand.
type madeSettings struct {
	mu  sync.Mutex
	all map[source]*made
}

// A source is the first byte of the schema and that of what was granted, neither of which changes. nil: nothing was granted.
type source struct{ schema, granted *byte }

// made is what became of one source.
type made struct {
	make     func() // once
	settings []byte
	invalid  error // why the schema can't be used
	err      error // why the settings don't fit it
}

// of returns what is made of a schema and of what was granted.
func (m *madeSettings) of(schema, granted json.RawMessage) *made {
	from := source{first(schema), first(granted)}
	m.mu.Lock()
	one := m.all[from]
	if one == nil {
		if m.all == nil || len(m.all) == maxMade {
			m.all = map[source]*made{}
		}
		one = &made{}
		one.make = sync.OnceFunc(func() {
			var compiled *settings.Schema
			if compiled, one.invalid = settings.Compile(schema); one.invalid == nil {
				one.settings, one.err = compiled.Apply(granted)
			}
		})
		m.all[from] = one
	}
	m.mu.Unlock()
	one.make()
	return one
}

func first(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}
