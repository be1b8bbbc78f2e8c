package sandbox

// What modules say of themselves is kept with the cache, so that those which have to run for it need not at each start of a server.

// Described returns what Describe returned for an equal module, in this process or in an earlier one with the same Config.CacheDir, or nil
// where that is not known.
func (p *Program) Described() []byte {
	f, m := p.module.engine.foundry, p.module
	if f.cache == nil || m.sum != m.plain || !m.shape.describe {
		return nil
	}
	parts, err := f.cache.Get(f.key(m.sum, aboutDescription))
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
	if err := f.cache.Put(f.key(m.sum, aboutDescription), text); err != nil {
		f.warn(notKept, err)
	}
}
