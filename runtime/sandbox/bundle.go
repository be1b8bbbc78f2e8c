package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/toolsrv/toolsrv/runtime/internal/foundry"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// A bundle is what a module has besides its engine: a data segment, which is written when the engine has been initialised.
type bundle struct {
	address uint32
	source  *foundry.Source // with a hold of each module that has it
}

// sumOfBundle returns the sum of a module with that engine and that bundle. It begins with what no section does, so that it is no sum
// of a module's sections.
func sumOfBundle(engine sum, b wasmbin.Bundle) (of sum) {
	h := sha256.New()
	h.Write([]byte{0xff})
	h.Write(engine[:])
	h.Write(binary.LittleEndian.AppendUint32(nil, b.Address))
	h.Write(b.Content)
	h.Sum(of[:0])
	return of
}

// mostInterpreters is how many interpreters are remembered that modules were made of.
const mostInterpreters = 4

// interpreter remembers code that modules are made of with a bundle, until it is released.
func (e *Engine) interpreter(c *code) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.codes[c.sum] == c && !slices.Contains(e.interpreters, c) && len(e.interpreters) < mostInterpreters {
		e.interpreters = append(e.interpreters, c)
	}
}

// sumOfEngine returns the sum of a module without its bundle. To compare it with an interpreter that is known takes a quarter of the time
// that its SHA-256 takes: of CPython 2 ms, not 8, for each tool file of a script.
func (e *Engine) sumOfEngine(b wasmbin.Bundle) sum {
	e.mu.Lock()
	known := slices.Clone(e.interpreters)
	e.mu.Unlock()
	for _, c := range known {
		if engine := c.Source().Unpacked(); engine != nil && b.IsOf(engine) {
			return c.sum
		}
	}
	return b.EngineSum()
}

// writeBundle puts the module's bundle into the memory of an instance. The error is an *Error.
func (m *module) writeBundle(i *instance) error {
	content, err := m.bundle.source.Plain()
	if err != nil {
		return internal(fmt.Errorf("unpack the bundle: %w", err))
	}
	b := i.memory.linear.Bytes()
	if uint64(m.bundle.address)+uint64(len(content)) > uint64(len(b)) {
		return &Error{Outcome: ToolTrapped, Message: fmt.Sprintf("The tool broke: its bundle (%d bytes at %d) does not fit into its memory of %d bytes.",
			len(content), m.bundle.address, len(b))}
	}
	copy(b[m.bundle.address:], content)
	return nil
}

// basis returns a hold on the snapshot of the module's engine, just before it gets a bundle: all modules of the engine begin with it.
// It is nil where the module has none, and where the engine does not start within the memory that the run may have. The first run
// makes it, within its limits, while others wait. The error is an *Error.
func (m *module) basis(ctx context.Context, native *foundry.Native, r *run) (*snapshot, error) {
	c := m.code
	if m.bundle == nil || c.Native().Rewritten.Fresh != "" {
		return nil, nil
	}
	for {
		c.mu.Lock()
		s, basing := c.base, c.basing
		first := s == nil && basing == nil
		switch {
		case s != nil:
			s.holds.Add(1)
		case first:
			c.basing = make(chan struct{})
		}
		c.mu.Unlock()
		switch {
		case s != nil && s.size() > r.limits.Memory:
			m.engine.drop(s)
			return nil, nil
		case s != nil:
			return s, nil
		case first:
			return m.makeBase(ctx, native, r)
		}
		r.yield(m.engine)
		if err := r.await(m.engine, basing); err != nil {
			return nil, err
		}
	}
}

// makeBase makes what basis returns. One call at a time does this, while c.basing has others wait.
func (m *module) makeBase(ctx context.Context, native *foundry.Native, r *run) (s *snapshot, err error) {
	c := m.code
	defer func() {
		c.mu.Lock()
		if s != nil {
			s.holds.Add(1)
			c.base = s
		}
		close(c.basing)
		c.basing = nil
		c.mu.Unlock()
	}()
	i, err := m.attempt(ctx, r, native, nil, m.initialize)
	if err != nil {
		return nil, err
	}
	if i.adapted { // an engine's state must not be due to one tool's limit
		m.discard(i)
		return nil, nil
	}
	return m.capture(r, i)
}
