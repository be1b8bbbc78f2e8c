package invoker

import (
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// small is the size in bytes up to which arguments and results are not large. Small calls still work while large ones use up the memory: their
	// arguments are counted separately, and their results are not counted.
	small = 64 << 10
	// defaultMemory is the value for Options.Memory if that is zero: enough for 256 calls with the largest arguments that the default limit allows.
	defaultMemory = 256 << 20
	// firstRead is the first size of a buffer, in bytes. Most calls need less. It is not counted, since a connection costs more.
	firstRead = 4 << 10
	// reliefTime is how long arguments wait at most for the memory of slow ones.
	reliefTime = time.Second
)

// A memory counts the bytes of arguments and large results that all calls hold at the same time. Without it, every client with a connection could
// hold the memory of the largest arguments by not sending their end, and of the largest result by not reading it.
//
// One caller leaves room for others, however many calls it makes: see room.
type memory struct {
	most int64
	// small is the count for the buffers of small arguments.
	mostSmall int64
	usedSmall atomic.Int64
	// large has the size of a tool's last large result, by the tool's path.
	large sync.Map // maps a path (string) to a size (int64)

	hurry   func() bool
	waiting atomic.Int32

	mu    sync.Mutex
	used  int64
	held  map[rates.Caller]int64 // bytes that each caller holds; it has no entries of 0
	freed chan struct{}          // closed and replaced when memory is given back while anybody waits
}

func newMemory(most int64, hurry func() bool) *memory {
	if most <= 0 {
		most = defaultMemory
	}
	return &memory{most: most, mostSmall: max(small+1, most/4), hurry: hurry, held: map[rates.Caller]int64{}, freed: make(chan struct{})}
}

// take takes memory with a function that returns an error if there is no room. If necessary, it ends slow arguments to make room.
func (m *memory) take(take func() error) error {
	err := take()
	if err == nil {
		return nil
	}
	m.waiting.Add(1)
	defer m.waiting.Add(-1)
	limit := time.NewTimer(reliefTime)
	defer limit.Stop()
	for {
		m.mu.Lock()
		freed := m.freed
		m.mu.Unlock()
		if err = take(); err == nil {
			return nil
		}
		if m.hurry == nil || !m.hurry() {
			return err
		}
		select {
		case <-freed:
		case <-limit.C:
			return err
		}
	}
}

// growSmall lets a buffer have n more bytes, or returns an error if there is no room.
func (m *memory) growSmall(n int64) error {
	if m.usedSmall.Add(n) <= m.mostSmall {
		return nil
	}
	m.usedSmall.Add(-n)
	return errMemory()
}

// give gives back what a buffer holds.
func (m *memory) give(b *buffer) {
	if b.held == 0 && b.small == 0 {
		return
	}
	m.usedSmall.Add(-b.small)
	b.small = 0
	if b.held == 0 && m.waiting.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(b, -b.held)
	if m.waiting.Load() > 0 {
		close(m.freed)
		m.freed = make(chan struct{})
	}
}

// grow lets a buffer have n more bytes, or returns an error that says why there is no room.
func (m *memory) grow(b *buffer, n int64) error {
	by := b.caller()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.room(by, b.held, n); err != nil {
		return err
	}
	m.add(b, n)
	return nil
}

// add counts n more bytes for a buffer. n may be negative. The caller holds m.mu.
func (m *memory) add(b *buffer, n int64) {
	b.held += n
	m.used += n
	if m.held[b.by] += n; m.held[b.by] == 0 {
		delete(m.held, b.by)
	}
}

// leaves bounds what a caller with several large calls may hold: this many times as much as stays free.
const leaves = 3

// room returns an error if a caller can't have n more bytes for a call that already holds own bytes. m.mu must be held.
//
// A caller may hold three times as much as stays free: three quarters of all memory while nobody else holds any, and the next caller three quarters
// of the rest. So a caller that reads none of its results leaves a quarter to others, and several such callers still leave something. A caller's only
// call just has to fit. A call that is alone gets all it needs, so that even a tool whose limit exceeds the whole memory can be called.
func (m *memory) room(by rates.Caller, own, n int64) error {
	free, held := m.most-m.used-n, m.held[by]
	switch {
	case m.used == own:
		return nil
	case free < 0:
		return errMemory()
	case held > own && held+n > leaves*free:
		return errOwn(by, held, m.most-m.used)
	}
	return nil
}

// check refuses a call of a tool if another result like its last one would find no room: the tool would run for nothing, and have its
// effect twice if the client tries again.
func (m *memory) check(path string, call *wasmtools.Call) error {
	last, ok := m.large.Load(path)
	if !ok {
		return nil
	}
	by := rates.CallerOf(call)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.room(by, 0, last.(int64))
}

// note records the size of a result of the tool at a path.
func (m *memory) note(path string, size int64) {
	last, noted := m.large.Load(path)
	switch {
	case size <= small && noted:
		m.large.Delete(path)
	case size > small && (!noted || last.(int64) != size):
		m.large.Store(path, size)
	}
}

func errMemory() error {
	return &wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "Too many large calls are running; try again later"}
}

// errOwn is the error if there is room, but not for this caller.
func errOwn(by rates.Caller, held, free int64) error {
	return &wasmtools.Error{
		Code:    wasmtools.CodeOverloaded,
		Message: "The caller's other large calls and unread results take as much memory as one caller may have; read the results, or try again later",
		Err:     fmt.Errorf("large calls of %s hold %d bytes, which leaves %d for others", by, held, free),
	}
}

// A buffer holds the arguments of a call from their first byte until the answer is written: arguments, violations and the
// result may all share its memory.
type buffer struct {
	bytes []byte
	call  *wasmtools.Call
	by    rates.Caller // the caller when the call began to hold memory
	held  int64        // bytes that the memory counts for it
	small int64        // bytes that the memory counts for it as small arguments
}

// caller returns the caller for whom the buffer is counted. The principal of a call can change while its arguments arrive.
func (b *buffer) caller() rates.Caller {
	if b.held == 0 {
		b.by = rates.CallerOf(b.call)
	}
	return b.by
}

// reserve counts a buffer of n bytes instead of the present one, as soon as m has room for it.
func (b *buffer) reserve(m *memory, n int64) error {
	switch {
	case n <= firstRead:
		return nil
	case n <= small+1:
		if err := m.take(func() error { return m.growSmall(n - b.small) }); err != nil {
			return err
		}
		b.small = n
		return nil
	}
	if err := m.take(func() error { return m.grow(b, n-b.held) }); err != nil {
		return err
	}
	m.usedSmall.Add(-b.small)
	b.small = 0
	return nil
}

// next returns the size of the next buffer. length is the announced length, or -1. After the first 4 KiB have arrived, the buffer gets the announced
// size, up to 64 KiB. From then on the buffer grows as bytes arrive, so that a client which announces much and sends little costs little.
func (b *buffer) next(length, most int64) int64 {
	n := max(firstRead, 2*int64(len(b.bytes)))
	if length >= int64(len(b.bytes)) {
		if len(b.bytes) == firstRead {
			n = small + 1
		}
		n = min(n, max(firstRead, length+1)) // one more byte, to see the end
	}
	return min(n, most)
}

// read fills b until r ends, or until b has the number of bytes in most. m must grant everything beyond the first buffer.
func (b *buffer) read(m *memory, r io.Reader, length, most int64) error {
	if n := int64(cap(b.bytes)); n > firstRead {
		if m.growSmall(n) == nil { // a reused buffer
			b.small = n
		} else {
			b.bytes = nil
		}
	}
	for int64(len(b.bytes)) < most {
		if len(b.bytes) == cap(b.bytes) {
			next := b.next(length, most)
			if err := b.reserve(m, next); err != nil {
				return err
			}
			b.bytes = append(make([]byte, 0, next), b.bytes...)
		}
		free := b.bytes[len(b.bytes):cap(b.bytes)]
		free = free[:min(int64(len(free)), most-int64(len(b.bytes)))]
		n, err := r.Read(free)
		b.bytes = b.bytes[:len(b.bytes)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A Body is what a message is read into before it is known which tool it calls. Its memory is counted like a call's. It is not safe for concurrent
// use.
type Body struct {
	memory *memory
	buffer buffer
	most   int64
}

// NewBody returns a body whose largest size in bytes is most. The body is counted for the caller of a call.
func (v *Invoker) NewBody(call *wasmtools.Call, most int64) *Body {
	return &Body{memory: v.memory, buffer: buffer{call: call}, most: min(most, math.MaxInt64-1)}
}

// Limit returns the largest size in bytes.
func (b *Body) Limit() int64 { return b.most }

// TooLarge returns the error for a larger body.
func (b *Body) TooLarge() error {
	return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge, Message: fmt.Sprintf("The body is larger than %d bytes", b.most)}
}

// Read reads r to its end. length is the number of bytes that the client has announced, or -1. The error is r's own, TooLarge, or one with
// CodeOverloaded if there is not enough memory.
func (b *Body) Read(r io.Reader, length int64) error {
	err := b.buffer.read(b.memory, r, length, b.most+1)
	if int64(len(b.buffer.bytes)) > b.most {
		return b.TooLarge()
	}
	return err
}

// Bytes returns what has been read. It stays valid after Release.
func (b *Body) Bytes() []byte { return b.buffer.bytes }

// Release stops counting the memory, because a call counts it from now on, or because it is no longer needed.
func (b *Body) Release() {
	b.memory.give(&b.buffer)
}
