package sandbox

import (
	"bytes"
	"context"
	"time"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/text"
)

// Limits on asking a guest where it was, and on the bytes of its answer. CPython takes 10,000 units of fuel. QuickJS takes 500,000, or 15 million if
// it has to find one of 2,000 lines of TypeScript. The fuel ends a guest that spins after at most some 150 ms of processor time. The time limit is on
// the clock, so that a guest that waits for a processor on a busy machine can still answer.
const (
	whereFuel = 30_000_000
	whereTime = time.Second
	whereText = 256
)

// where returns "; it was at slow.py:3" for a guest that was stopped at a limit and knows its place, as interpreters do. Otherwise it returns "". The
// guest runs once more for that, without grants, in a memory that does not grow. The instance can't be used afterwards.
func (i *instance) where() string {
	f := i.guest.ExportedFunction(i.convention.Where.Name)
	if f == nil {
		return ""
	}
	c := &i.call
	before := c.runState
	defer func() {
		c.rest()
		if before.outer != nil { // otherwise a tool that calls many others would make the host do this work for nothing
			before.outer.Burn(c.spent())
		}
		c.abi.Begin(hostcall.Run{})
		c.runState = before
	}()
	c.abi.Begin(hostcall.Run{})
	c.runState = runState{ctx: context.Background(), deadline: time.Now().Add(whereTime), limits: before.limits, starting: true, meter: meter{most: whereFuel}}
	c.meter.pace, c.meter.give = c.module.paces.Begin()
	i.memory.limit = int64(len(i.memory.linear.Bytes()))
	var stack [1]uint64
	if i.invoke(f, stack[:]) != nil {
		return "" // whatever goes wrong here, the reason for the guest's end is already known
	}
	c.filter, c.principal = before.filter, before.principal
	place := i.placeAt(uint32(stack[0]))
	if place == "" {
		return ""
	}
	return "; it was at " + string(c.filtered("place", []byte(place)))
}

// placeAt returns the text at an address of the guest, up to a zero byte, or "" if it can't be shown as a line.
func (i *instance) placeAt(address uint32) string {
	memory := i.memory.linear.Bytes()
	if address == 0 || uint64(address) >= uint64(len(memory)) {
		return ""
	}
	b := memory[address:min(uint64(address)+whereText, uint64(len(memory)))]
	end := bytes.IndexByte(b, 0)
	if end <= 0 || !utf8.Valid(b[:end]) {
		return ""
	}
	place := string(b[:end])
	if text.Escape(place) != place {
		return ""
	}
	return place
}
