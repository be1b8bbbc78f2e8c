package invoker

import (
	"errors"
	"io"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A drip is a body that delivers a few bytes at a time, and looks at the buffer that they are read into.
type drip struct {
	left, each int
	look       func()
}

func (d *drip) Read(p []byte) (int, error) {
	d.look()
	n := min(len(p), d.each, d.left)
	if d.left -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestBuffersFollowWhatArrives has clients that announce much and send little, or announce no length: a buffer is never much larger than what has
// arrived, and the memory of all buffers together is counted.
// Proves: Limits hold, one by one and in sum
func TestBuffersFollowWhatArrives(t *testing.T) {
	t.Parallel()
	m := newMemory(1<<30, nil)
	var held []*buffer
	counted := func(when string, length int64) {
		t.Helper()
		var sum, larger int64
		for _, b := range held {
			if n := int64(cap(b.bytes)); n > firstRead {
				larger += n
			}
			sum += b.held + b.small
		}
		if got := m.used + m.usedSmall.Load(); got != sum || got < larger {
			t.Fatalf("%s of %d bytes announced: the buffers take %d bytes, the buffers themselves count %d, and the memory counts %d", when, length, larger, sum, got)
		}
	}
	for _, length := range []int64{-1, 0, 1, firstRead, 5000, small, small + 1, 1 << 20, 1 << 40} {
		for _, arrive := range []int{0, 1, 1000, firstRead - 1, firstRead, firstRead + 1, 20_000, small, small + 1, 300_000, 2 << 20} {
			for _, each := range []int{1000, 1 << 20} {
				b := &buffer{call: &wasmtools.Call{}}
				held = append(held, b)
				look := func() {
					t.Helper()
					come, size := int64(len(b.bytes)), int64(cap(b.bytes))
					most := max(firstRead, 2*come)
					if come >= firstRead {
						most = max(most, small+1)
					}
					if size > most {
						t.Fatalf("%d bytes have arrived and %d were announced: the buffer has %d, want at most %d", come, length, size, most)
					}
					if come <= length && size > max(firstRead, length+1) {
						t.Fatalf("%d bytes have arrived and %d were announced: the buffer has %d, which is more than was announced", come, length, size)
					}
					counted("while a body comes", length)
				}
				if err := b.read(m, &drip{arrive, each, look}, length, 1<<20); err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				if want := min(arrive, 1<<20); len(b.bytes) != want {
					t.Fatalf("%d bytes were read of %d", len(b.bytes), want)
				}
			}
		}
	}
	// Half of the buffers are given back, and their memory is reused for other bodies.
	for n, b := range held {
		if n%2 == 0 {
			m.give(b)
			b.bytes = b.bytes[:0]
			if cap(b.bytes) > small+1 {
				b.bytes = nil
			}
			if err := b.read(m, &drip{10, 10, func() { counted("with a buffer that was used before", 10) }}, 10, 1<<20); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, b := range held {
		m.give(b)
	}
	if got := m.used + m.usedSmall.Load(); got != 0 {
		t.Errorf("%d bytes are still counted", got)
	}
}
