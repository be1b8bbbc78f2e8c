package wasi

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
)

// The sizes of a subscription and of an event of poll_oneoff, in bytes.
const (
	subscriptionSize = 48
	eventSize        = 32
)

// The kinds of subscriptions, and the flag by which a clock's timeout is a point in time.
const (
	pollClock    = 0
	pollRead     = 1
	pollWrite    = 2
	pollAbsolute = 1
)

// poll waits for the first of the guest's subscriptions. Descriptors are always ready. For a clock it sleeps, at most until the call has to end.
func (k clocks) poll(c *hostcall.Call, stack []uint64) {
	n := uint64(uint32(stack[2]))
	if n == 0 || n > maxVectors {
		stack[0] = errnoInval
		return
	}
	c.Charge(int(n) * costEvent)
	// This is a copy, because the guest may have the events written over the subscriptions.
	subscriptions := c.Read(stack[0], n*subscriptionSize)
	events := c.View(stack[1], n*eventSize)
	begun := time.Now()
	occurred := k.events(c, subscriptions, events[:0], 0)
	for len(occurred) == 0 {
		c.Wait(func(ctx context.Context) {
			timer := time.NewTimer(k.firstClock(subscriptions, time.Since(begun)))
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		})
		occurred = k.events(c, subscriptions, events[:0], time.Since(begun))
	}
	c.WriteUint32(stack[3], uint32(len(occurred)/eventSize))
	stack[0] = errnoSuccess
}

// events appends to list the events that have occurred once the guest has slept for that long.
func (k clocks) events(c *hostcall.Call, subscriptions, list []byte, slept time.Duration) []byte {
	for ; len(subscriptions) > 0; subscriptions = subscriptions[subscriptionSize:] {
		errno := uint16(errnoSuccess)
		ready := uint64(0) // bytes that can be read or written
		kind := subscriptions[8]
		switch kind {
		case pollClock:
			wait, ok := k.wait(subscriptions, slept)
			if ok && wait > 0 {
				continue
			} else if !ok {
				errno = errnoInval
			}
		case pollRead, pollWrite:
			ready = 1
			fd := binary.LittleEndian.Uint32(subscriptions[16:])
			if fd < rootFD && (fd == 0) != (kind == pollRead) || fd >= rootFD && opened(c, uint64(fd)) == nil {
				errno, ready = errnoBadF, 0
			}
		default:
			errno = errnoInval
		}
		var event [eventSize]byte
		copy(event[:8], subscriptions) // the guest's own identifier
		binary.LittleEndian.PutUint16(event[8:], errno)
		event[10] = kind
		binary.LittleEndian.PutUint64(event[16:], ready)
		list = append(list, event[:]...)
	}
	return list
}

// firstClock returns how long it takes until the first of the subscriptions is due. All must be of valid clocks.
func (k clocks) firstClock(subscriptions []byte, slept time.Duration) time.Duration {
	first := time.Duration(1<<63 - 1)
	for ; len(subscriptions) > 0; subscriptions = subscriptions[subscriptionSize:] {
		wait, _ := k.wait(subscriptions, slept)
		first = min(first, wait)
	}
	return first
}

// wait returns how long it still takes until the clock of the first subscription is due, once the guest has slept for that long.
func (k clocks) wait(subscription []byte, slept time.Duration) (time.Duration, bool) {
	timeout := binary.LittleEndian.Uint64(subscription[24:])
	nanos := int64(min(timeout, 1<<63-1))
	now, ok := k.now(binary.LittleEndian.Uint32(subscription[16:]))
	if ok && binary.LittleEndian.Uint16(subscription[40:])&pollAbsolute != 0 {
		return time.Duration(nanos - now), true // now is not negative, so this does not overflow
	}
	return time.Duration(nanos) - slept, ok
}
