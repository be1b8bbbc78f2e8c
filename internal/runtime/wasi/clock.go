package wasi

import (
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
)

// The numbers of the clocks.
const (
	clockReal      = 0
	clockMonotonic = 1
	clockProcess   = 2
	clockThread    = 3
)

// clocks are the clocks of guests. All except the real-time clock begin when the set was made.
type clocks struct{ begun time.Time }

// now reads a clock, in nanoseconds. Guests do not learn their CPU time: the elapsed time takes its place.
func (k clocks) now(id uint32) (nanos int64, ok bool) {
	switch id {
	case clockReal:
		return time.Now().UnixNano(), true
	case clockMonotonic, clockProcess, clockThread:
		return int64(time.Since(k.begun)), true
	}
	return 0, false
}

func clockResolution(c *hostcall.Call, stack []uint64) {
	if uint32(stack[0]) > clockThread {
		stack[0] = errnoInval
		return
	}
	c.WriteUint64(stack[1], 1)
	stack[0] = errnoSuccess
}

func (k clocks) time(c *hostcall.Call, stack []uint64) {
	nanos, ok := k.now(uint32(stack[0]))
	if !ok {
		stack[0] = errnoInval
		return
	}
	c.WriteUint64(stack[2], uint64(nanos))
	stack[0] = errnoSuccess
}
