package sandbox

import (
	"fmt"

	"github.com/toolsrv/toolsrv/runtime/codecache"
	"github.com/toolsrv/toolsrv/runtime/instrument"
)

// What modules say of themselves is kept with the cache, so that those which have to run for it need not at each start of a server.

// descriptionKey is the key of the entry with what a module says of itself. Like the code's, it differs between versions.
func (f *foundry) descriptionKey(of sum) codecache.Key {
	return codecache.KeyOf(f.host, fmt.Sprint(instrument.RewriterVersion), string(of[:]), "description")
}

// Described returns what Describe returned for an equal module, in this process or in an earlier one with the same Config.CacheDir, or nil
// where that is not known.
func (p *Program) Described() []byte {
	f, m := p.module.engine.foundry, p.module
	if f.cache == nil || m.sum != m.plain || !m.shape.describe {
		return nil
	}
	parts, err := f.cache.Get(f.descriptionKey(m.sum))
	if err != nil || len(parts) != 1 { // a damaged one is removed, and found out anew
		return nil
	}
	return parts[0]
}

// keepDescription keeps what a module said, for Described.
func (p *Program) keepDescription(text []byte) {
	f, m := p.module.engine.foundry, p.module
	if f.cache == nil || m.sum != m.plain || f.failing() {
		return
	}
	if err := f.cache.Put(f.descriptionKey(m.sum), text); err != nil {
		f.warn(notKept, err)
	}
}
