package invoke

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/wasmtools"
)

const (
	// small is the size in bytes up to which arguments and results are not counted: a connection costs as much. So small
	// calls go on while large ones use up the memory.
	small = 64 << 10
	// defaultMemory is Options.Memory where it is zero: 256 calls with the largest arguments that the default limit allows.
	defaultMemory = 256 << 20
	// firstRead is the first size of a buffer, in bytes: more than most calls have.
	firstRead = 4 << 10
)

// A memory counts the bytes of large arguments and results that all calls hold at the same time. Without it, every client
// that has a connection could hold the largest arguments, and the largest result by not reading it.
type memory struct {
	most int64
	used atomic.Int64
	// large has the sizes of the last results that were large, by the paths of their tools.
	large sync.Map // of string to int64
}

func newMemory(most int64) *memory {
	if most <= 0 {
		most = defaultMemory
	}
	return &memory{most: most}
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

func (m *memory) release(n int64) { m.used.Add(-n) }

// check refuses a call of the tool at a path where there is no room for another result such as its last: the tool would run in vain, and
// may do what it does a second time for a client that tries again.
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
}

// grow counts n bytes more, if m has room for them.
func (b *buffer) grow(m *memory, n int64) error {
	if !m.grow(b.held, n) {
		return errMemory()
	}
	b.held += n
	return nil
}

// read fills b until the end of r, or until most bytes are there. It grows as the bytes come, so that a client which
// promises much and sends little costs little. What is large has to be granted by m.
func (b *buffer) read(m *memory, r io.Reader, length, most int64) error {
	b.bytes = slices.Grow(b.bytes, int(min(max(length+1, firstRead), small)))
	for int64(len(b.bytes)) < most {
		if len(b.bytes) == cap(b.bytes) {
			next := min(2*int64(len(b.bytes)), most)
			if next > small {
				if err := b.grow(m, next-b.held); err != nil {
					return err
				}
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

// A Body is where a message is read into before it is known which tool it calls. Its memory counts as that of a call. It is
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

// Read reads r to its end. length is the number of bytes that the client has announced, or -1. An error is that of r, TooLarge,
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
	b.memory.release(b.buffer.held)
	b.buffer.held = 0
}
