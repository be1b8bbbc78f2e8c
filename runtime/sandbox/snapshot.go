package sandbox

import (
	"fmt"

	"github.com/toolsrv/toolsrv/runtime/account"
	"github.com/toolsrv/toolsrv/runtime/linmem"
)

// A snapshot is a program's memory and globals just after initialisation. It never changes.
type snapshot struct {
	image   *linmem.Image
	globals []uint64 // of the exported mutable ones, in the rewriter's order
}

// takeSnapshot makes a snapshot of an instance that was started.
func (i *instance) takeSnapshot() (*snapshot, error) {
	image, err := i.call.engine.images.NewImage(i.memory.linear.Bytes())
	if err != nil {
		return nil, fmt.Errorf("make snapshot: %w", err)
	}
	s := &snapshot{image: image, globals: make([]uint64, len(i.globals))}
	for k, g := range i.globals {
		s.globals[k] = g.Get()
	}
	return s, nil
}

// size returns the memory's size in bytes.
func (s *snapshot) size() int64 { return int64(s.image.Size()) }

// resident returns what the snapshot itself takes, in bytes.
func (s *snapshot) resident() int64 { return int64(s.image.Resident()) }

// drop frees a snapshot. s may be nil. All instances of it must be closed.
func (e *Engine) drop(s *snapshot) {
	if s == nil {
		return
	}
	e.account.Give(account.Memory, s.resident())
	if err := s.image.Close(); err != nil {
		e.log.Warn("free snapshot", "error", err)
	}
}
