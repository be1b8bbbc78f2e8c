package sandbox

// What modules say of themselves is kept with the cache, so that those which have to run for it need not at each start of a server.

// Described returns what Describe returned for an equal module, in this process or in an earlier one with the same Config.CacheDir, or nil
// where that is not known.
func (p *Program) Described() []byte {
	m := p.module
	if m.sum != m.plain || !m.shape.describe {
		return nil
	}
	return m.engine.foundry.Described(m.sum)
}

// keepDescription keeps what a module said, for Described.
func (p *Program) keepDescription(text []byte) {
	if m := p.module; m.sum == m.plain {
		m.engine.foundry.Describe(m.sum, text)
	}
}
