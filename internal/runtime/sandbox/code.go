package sandbox

import (
	"sync"

	"github.com/toolsrv/toolsrv/internal/runtime/internal/foundry"
)

// A code is what modules of one engine share, which differ only in their bundle: the machine code of the engine without a bundle, and the
// snapshot that they begin with.
type code struct {
	*foundry.Code
	sum     sum
	modules map[*module]struct{} // those that have users; guarded by Engine.mu
	starts  peak                 // of what the starts of its modules take, with the snapshots that are made

	mu     sync.Mutex
	base   *snapshot     // of an engine, with which its modules begin; if nil, none yet, or it is not of an engine
	basing chan struct{} // closed when the base is made, or can't be; if nil, none is being made
}

// strip takes from the code all that can be made again. No call uses it.
func (c *code) strip() (r released) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.snapshot, c.base = c.base, nil
	r.code = c.Code.Strip()
	return r
}
