package sandbox

import (
	"fmt"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
)

// A snapshot is a program's memory and globals just after initialisation, or those of an interpreter before it gets a bundle. It never changes.
// Programs of one interpreter share the pages of its snapshot.
type snapshot struct {
	image   *linmem.Image
	globals []uint64     // values of the exported mutable globals, in the rewriter's order
	base    *snapshot    // the snapshot whose pages it shares, with a hold on it; nil: none
	holds   atomic.Int32 // number of holds, not counting the owner's: instances, layers and starts have them
}

// takeSnapshot makes a snapshot of an instance that was started. If the instance began with an interpreter's snapshot, its hold on that goes to
// the new snapshot.
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

// resident returns how many bytes the snapshot itself takes.
func (s *snapshot) resident() int64 { return int64(s.image.Resident()) }

// hold adds a hold to s, which may be nil, and returns s. drop gives the hold up.
func (s *snapshot) hold() *snapshot {
	if s != nil {
		s.holds.Add(1)
	}
	return s
}
