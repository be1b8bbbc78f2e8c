package sandbox

import (
	"crypto/sha256"
	"slices"
)

// With returns the program with those settings, JSON that its guests are given in each call and in their start; nil: none. What a
// start makes of them is in the snapshot, so the program with other settings is another program: it shares the code, and has a
// snapshot and instances of its own. p must not be closed yet, and both are to be closed. Tools of p keep what they have.
func (p *Program) With(settings []byte) (*Program, error) {
	m := p.module
	of := m.plain
	if settings != nil {
		of = sumOfSettings(m.plain, settings)
	}
	if found, err := m.engine.loaded(of, p.digest, nil); found != nil || err != nil {
		return found, err
	}
	other := &module{engine: m.engine, code: m.code, sum: of, plain: m.plain, digest: m.digest, shape: m.shape, settings: slices.Clone(settings)}
	if m.bundle != nil {
		other.bundle = &bundle{m.bundle.address, m.bundle.source}
	}
	return m.engine.loaded(of, p.digest, other)
}

// sumOfSettings returns the sum of a module with settings. It begins with what neither a section does nor the sum of a bundle.
func sumOfSettings(plain sum, settings []byte) (of sum) {
	h := sha256.New()
	h.Write([]byte{0xfe})
	h.Write(plain[:])
	h.Write(settings)
	h.Sum(of[:0])
	return of
}
