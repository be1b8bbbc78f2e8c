package sandbox

import (
	"sync"

	"github.com/toolsrv/toolsrv/internal/runtime/internal/foundry"
)

// A code is what modules share if they have the same interpreter, and differ only in their bundle: the machine code of the interpreter without a
// bundle, and the snapshot that they begin with.
type code struct {
	*foundry.Code
	sum     sum
	modules map[*module]struct{} // those with users; guarded by Engine.mu
	starts  peak                 // memory that the starts of its modules take, including the snapshots

	mu     sync.Mutex
	base   *snapshot     // the snapshot of an interpreter that its modules begin with; nil: none yet, or this is not an interpreter
	basing chan struct{} // closed when the base is made, or can't be; nil: none is being made
}

// strip removes from the code what can be made again. No call may be using it.
func (c *code) strip() (r released) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.snapshot, c.base = c.base, nil
	r.code = c.Code.Strip()
	return r
}
