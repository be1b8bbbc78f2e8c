package sandbox

import (
	"fmt"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
)

// A snapshot is a program's memory and globals just after initialisation, or an engine's before it has its bundle. It never
// changes. Programs of one engine share the pages of their engine's.
type snapshot struct {
	image   *linmem.Image
	globals []uint64     // of the exported mutable ones, in the rewriter's order
	base    *snapshot    // it shares the pages of this one, and holds it; if nil, none
	holds   atomic.Int32 // besides its owner's: by instances, layers and starts
}

// takeSnapshot makes a snapshot of an instance that was started. If the instance began with an engine's, it passes on its hold on
// that.
func (i *instance) takeSnapshot() (*snapshot, error) {
	image, err := i.memory.linear.Snapshot(&i.call.engine.images)
	if err != nil {
		return nil, fmt.Errorf("make snapshot: %w", err)
	}
	s := &snapshot{image: image, globals: make([]uint64, len(i.globals))}
	for k, g := range i.globals {
		s.globals[k] = g.Get()
	}
	s.base, i.base = i.base, nil
	return s, nil
}

// size returns the memory's size in bytes.
func (s *snapshot) size() int64 { return int64(s.image.Size()) }

// resident returns what the snapshot itself takes, in bytes.
func (s *snapshot) resident() int64 { return int64(s.image.Resident()) }

// hold returns s, which may be nil, with one hold more, which drop gives up.
func (s *snapshot) hold() *snapshot {
	if s != nil {
		s.holds.Add(1)
	}
	return s
}
