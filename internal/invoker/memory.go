package invoker

import (
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// small is the size in bytes up to which arguments and results do not count as large. Small calls go on while large ones use up the
	// memory: their arguments are counted apart, and their results are not.
	small = 64 << 10
	// defaultMemory is Options.Memory where it is zero: 256 calls with the largest arguments that the default limit allows.
	defaultMemory = 256 << 20
	// firstRead is the first size of a buffer, in bytes: more than most calls have. It is not counted: a connection costs more.
	firstRead = 4 << 10
	// reliefTime is how long arguments wait at most for the memory of others that come slowly.
	reliefTime = time.Second
)

// A memory counts the bytes of arguments and large results that all calls hold at the same time. Without it, every client
// that has a connection could hold the largest arguments by not sending their end, and the largest result by not reading it.
type memory struct {
	most int64
	used atomic.Int64
	// small is for the buffers of small arguments.
	mostSmall int64
	usedSmall atomic.Int64
	// large has the sizes of the last results that were large, by the paths of their tools.
	large sync.Map // of string to int64
	hurry func() bool

	waiting atomic.Int32
	mu      sync.Mutex
	freed   chan struct{} // closed, and made anew, when something is given back while anybody waits
}

func newMemory(most int64, hurry func() bool) *memory {
	if most <= 0 {
		most = defaultMemory
	}
	return &memory{most: most, mostSmall: max(small+1, most/4), hurry: hurry, freed: make(chan struct{})}
}

// take takes memory with a function that reports whether there was room, if need be by dropping arguments that come slowly.
func (m *memory) take(take func() bool) error {
	if take() {
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
		if take() {
			return nil
		}
		if m.hurry == nil || !m.hurry() {
			return errMemory()
		}
		select {
		case <-freed:
		case <-limit.C:
			return errMemory()
		}
	}
}

// growSmall lets a buffer have n bytes more, or reports false.
func (m *memory) growSmall(n int64) bool {
	if m.usedSmall.Add(n) <= m.mostSmall {
		return true
	}
	m.usedSmall.Add(-n)
	return false
}

// give gives back what a buffer holds.
func (m *memory) give(b *buffer) {
	if b.held == 0 && b.small == 0 {
		return
	}
	m.used.Add(-b.held)
	m.usedSmall.Add(-b.small)
	b.held, b.small = 0, 0
	if m.waiting.Load() > 0 {
		m.mu.Lock()
		close(m.freed)
		m.freed = make(chan struct{})
		m.mu.Unlock()
	}
}

// grow lets a call that holds held bytes have n more, or reports false. A call that is alone gets what it asks for: a tool
// whose limit is above all the memory can be called, too.
func (m *memory) grow(held, n int64) bool {
	used := m.used.Add(n)
	if used > m.most && used > held+n {
		m.used.Add(-n)
		return false
	}
	return true
}

// hold counts bytes that exist already. They keep later large calls out.
func (m *memory) hold(n int64) { m.used.Add(n) }

// check refuses a call of a tool if another result like its last one would find no room: the tool would run for nothing, and have its
// effect twice if the client tries again.
func (m *memory) check(path string) error {
	last, ok := m.large.Load(path)
	if !ok {
		return nil
	}
	if used := m.used.Load(); used > 0 && used+last.(int64) > m.most {
		return errMemory()
	}
	return nil
}

// note notes the size of a result of the tool at a path.
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

// A buffer holds the arguments of a call from their first byte until the answer is written: arguments, violations and the
// result may all share its memory.
type buffer struct {
	bytes []byte
	held  int64 // bytes that memory counts for it
	small int64 // bytes that it counts for it as small arguments
}

// grow counts n bytes more, if m has room for them.
func (b *buffer) grow(m *memory, n int64) error {
	if !m.grow(b.held, n) {
		return errMemory()
	}
	b.held += n
	return nil
}

// reserve counts a buffer of n bytes instead of the one that there is, as soon as m has room for it.
func (b *buffer) reserve(m *memory, n int64) error {
	switch {
	case n <= firstRead:
		return nil
	case n <= small+1:
		if err := m.take(func() bool { return m.growSmall(n - b.small) }); err != nil {
			return err
		}
		b.small = n
		return nil
	}
	if err := m.take(func() bool { return m.grow(b.held, n-b.held) }); err != nil {
		return err
	}
	b.held = n
	m.usedSmall.Add(-b.small)
	b.small = 0
	return nil
}

// next returns the size of the next buffer for what a client has announced as length, or -1. A client that has sent 4 KiB gets what it has
// announced, up to 64 KiB. From then on the buffer grows as the bytes come, so that a client which promises much and sends little costs little.
func (b *buffer) next(length, most int64) int64 {
	n := max(firstRead, 2*int64(len(b.bytes)))
	if length >= int64(len(b.bytes)) {
		if len(b.bytes) == firstRead {
			n = small + 1
		}
		n = min(n, max(firstRead, length+1)) // one more, for the end
	}
	return min(n, most)
}

// read fills b until the end of r, or until most bytes are there. m must grant everything beyond the first buffer.
func (b *buffer) read(m *memory, r io.Reader, length, most int64) error {
	if n := int64(cap(b.bytes)); n > firstRead {
		if m.growSmall(n) { // it was used before
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

// A Body is where a message is read into before it is known which tool it calls. Its memory counts as a call's. It is
// not safe for concurrent use.
type Body struct {
	memory *memory
	buffer buffer
	most   int64
}

// NewBody returns a body of most bytes at most.
func (v *Invoker) NewBody(most int64) *Body {
	return &Body{memory: v.memory, most: min(most, math.MaxInt64-1)}
}

// Limit returns the largest size in bytes.
func (b *Body) Limit() int64 { return b.most }

// TooLarge returns the error of a larger body.
func (b *Body) TooLarge() error {
	return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge, Message: fmt.Sprintf("The body is larger than %d bytes", b.most)}
}

// Read reads r to its end. length is the number of bytes that the client has announced, or -1. An error is r's, TooLarge,
// or one with CodeOverloaded if there is not enough memory.
func (b *Body) Read(r io.Reader, length int64) error {
	err := b.buffer.read(b.memory, r, length, b.most+1)
	if int64(len(b.buffer.bytes)) > b.most {
		return b.TooLarge()
	}
	return err
}

// Bytes returns what has been read. It stays as it is after Release.
func (b *Body) Bytes() []byte { return b.buffer.bytes }

// Release stops counting the memory: because a call counts it from now on, or because nobody needs it any more.
func (b *Body) Release() {
	b.memory.give(&b.buffer)
}
