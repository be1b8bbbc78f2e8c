package sandbox

import (
	"fmt"
	"maps"
	"slices"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/internal/foundry"
)

// A RoomError means that a module's bytes would take more memory than those of all modules leave. They are kept as long as the module is
// loaded, because its code may get lost from the cache.
type RoomError struct {
	Needs int64 // bytes
	Limit int64 // of all together
}

// Error says what to do.
func (e *RoomError) Error() string {
	return fmt.Sprintf("to keep the module takes %s of memory, compressed, and all modules together would take more than the %s that they may: make it smaller, remove other tools, or raise server.memory",
		text.Size(e.Needs), text.Size(e.Limit))
}

// newSource returns a source that the caller holds. Bytes for which there is no room are a *RoomError; replaces is as in [Program.Keep].
func (e *Engine) newSource(content []byte, replaces bool) (*foundry.Source, error) {
	s := foundry.NewSource(e.account, content)
	fits := func() bool { return s.Take(replaces) }
	if fits() {
		return s, nil
	}
	if s.Pack(); fits() {
		return s, nil
	}
	if e.packAll(true); fits() {
		return s, nil
	}
	return nil, &RoomError{s.Length(), e.account.Use(account.Sources).Limit}
}

// packAll packs the modules whose code was in the cache when they were loaded, and bundles. A small one takes a tenth of a millisecond,
// for which the start of a server has no time. Where room is needed, it packs those that are to be compiled, too.
func (e *Engine) packAll(needed bool) {
	e.mu.Lock()
	all := slices.Collect(maps.Values(e.modules))
	e.mu.Unlock()
	for _, m := range all {
		if e.stop.Err() != nil {
			return
		}
		if c := m.code; needed || c.Quiet() {
			c.Source().Pack()
		}
		if m.bundle != nil {
			m.bundle.source.Pack()
		}
	}
}
