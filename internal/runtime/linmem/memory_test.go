package linmem_test

import (
	"bytes"
	"os"
	"testing"
	"unsafe"

	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
)

func TestGrow(t *testing.T) {
	t.Parallel()
	m, err := linmem.New(5 * granule)
	if err != nil {
		t.Fatal(err)
	}
	defer free(t, m)
	if b := m.Grow(0); b == nil || len(b) != 0 {
		t.Errorf("Grow(0): got %v, want an empty slice", b)
	}
	first := m.Grow(granule)
	sprinkle(first, 1)
	before := bytes.Clone(first)
	for _, size := range []uint64{granule + 1, granule + 4097, 2 * granule, 5 * granule, 3 * granule, granule, 0} {
		b := m.Grow(size)
		if uint64(len(b)) != size || b == nil || cap(b) != len(b) {
			t.Fatalf("Grow(%d): got %d bytes with room for %d", size, len(b), cap(b))
		}
		if unsafe.SliceData(b) != unsafe.SliceData(first) {
			t.Fatalf("Grow(%d) moved the memory", size)
		}
		if size >= granule && !bytes.Equal(b[:granule], before) {
			t.Errorf("Grow(%d) changed what was there", size)
		}
		for n := granule; n < len(b); n++ {
			if b[n] != 0 {
				t.Fatalf("Grow(%d): byte %d is %d, want 0", size, n, b[n])
			}
		}
	}
	if got := len(m.Bytes()); got != 5*granule {
		t.Errorf("after a smaller Grow the memory has %d bytes, want %d", got, 5*granule)
	}
	for _, size := range []uint64{5*granule + 1, 6 * granule, 4 << 30, 1 << 63, 1<<64 - 1} {
		if b := m.Grow(size); b != nil {
			t.Errorf("Grow(%d) past the reservation: got %d bytes", size, len(b))
		}
	}
}

// TestGrowKeepsToTheLimit reserves a size that is not a multiple of a page. The bytes up to the next page exist, but the memory does
// not give them out.
func TestGrowKeepsToTheLimit(t *testing.T) {
	t.Parallel()
	m, err := linmem.New(100)
	if err != nil {
		t.Fatal(err)
	}
	defer free(t, m)
	if b := m.Grow(101); b != nil {
		t.Errorf("Grow(101) of 100: got %d bytes", len(b))
	}
	if b := m.Grow(100); len(b) != 100 {
		t.Errorf("Grow(100): got %d bytes", len(b))
	}
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	for _, reserve := range []uint64{4<<30 + 1, 1 << 62, 1<<64 - 1} {
		if m, err := linmem.New(reserve); err == nil {
			t.Errorf("New(%d): no error", reserve)
			free(t, m)
		}
	}
	m, err := linmem.New(0)
	if err != nil {
		t.Fatal(err)
	}
	defer free(t, m)
	if b := m.Grow(0); b == nil {
		t.Error("Grow(0) of nothing: got nil, want an empty slice")
	}
	if b := m.Grow(1); b != nil {
		t.Errorf("Grow(1) of nothing: got %d bytes", len(b))
	}
	if _, err := m.Reset(); err == nil {
		t.Error("Reset of a memory without an image: no error")
	}
	if m.Equal() {
		t.Error("Equal of a memory without an image: got true")
	}
}

// TestGrownIsReset lets calls grow a memory by any amount. Each call finds zeros in the new part. After each reset, the memory equals the image
// again.
// Proves: Nothing is left of a call
func TestGrownIsReset(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			content := filled(granule, func(b []byte) { sprinkle(b, 1) })
			_, m := mapped(t, kind.make, content, 200*granule)
			for turn, size := range []int{3, 1, 2, 1, 3, 2, 1, 200, 1, 2, 200, 3, 1, 100, 2} {
				size *= granule
				b := m.Grow(uint64(size))
				if len(b) != size || len(m.Bytes()) != size {
					t.Fatalf("turn %d: Grow: got %d bytes and %d, want %d", turn, len(b), len(m.Bytes()), size)
				}
				if !bytes.Equal(b[:granule], content) {
					t.Fatalf("turn %d: the memory does not begin with the image", turn)
				}
				for n := granule; n < len(b); n++ {
					if b[n] != 0 {
						t.Fatalf("turn %d: new byte %d is %d, want 0", turn, n, b[n])
					}
					b[n] = 0xff
				}
				if size > granule && m.Equal() {
					t.Error("Equal of a memory that grew: got true")
				}
				if _, err := m.Reset(); err != nil {
					t.Fatalf("turn %d: %v", turn, err)
				}
				if len(m.Bytes()) != granule || !m.Equal() {
					t.Fatalf("turn %d: after Reset it has %d bytes, equal: %v", turn, len(m.Bytes()), m.Equal())
				}
				if size > granule {
					b[size-1] = 1
					if m.Equal() {
						t.Errorf("turn %d: Equal of a memory with something beyond its end: got true", turn)
					}
					b[size-1] = 0
				}
			}
		})
	}
}

// TestGrowthIsGivenBack has one call that grows a memory by a large amount, and many calls that don't.
func TestGrowthIsGivenBack(t *testing.T) {
	t.Parallel()
	page := os.Getpagesize()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			if copiesAll(t, kind.name) {
				return
			}
			_, m := mapped(t, kind.make, filled(granule, func(b []byte) { sprinkle(b, 1) }), 4<<30)
			if _, err := m.Reset(); err != nil { // the first reset differs from later ones
				t.Fatal(err)
			}
			b := m.Grow(3 * linmem.KeepResident)
			for n := range b {
				b[n] = 1
			}
			if n, err := m.Reset(); n != linmem.KeepResident || err != nil {
				t.Errorf("Reset after the rare call: got %d, %v", n, err)
			}
			if n, err := m.Resident(); n != linmem.KeepResident || err != nil {
				t.Errorf("Resident after the rare call: got %d, %v; want %d, most of it beyond the end", n, err, linmem.KeepResident)
			}
			for range linmem.AgeEvery {
				m.Bytes()[0]++
				if _, err := m.Reset(); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := m.Resident(); n != page || err != nil {
				t.Errorf("Resident: got %d, %v; want the %d of the calls since", n, err, page)
			}
			if n := read(m.Grow(3 * linmem.KeepResident)[granule:]); n != 0 {
				t.Errorf("when it grows again, the new part holds %d", n)
			}
		})
	}
}

func TestUseAfterFree(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			_, m := mapped(t, kind.make, make([]byte, granule), granule)
			for range 2 {
				if err := m.Free(); err != nil {
					t.Fatalf("Free: %v", err)
				}
			}
			if m.Bytes() != nil || m.Grow(0) != nil || m.Grow(granule) != nil {
				t.Error("a freed memory gave bytes out")
			}
			if _, err := m.Reset(); err == nil {
				t.Error("Reset after Free: no error")
			}
			if _, err := m.Resident(); err == nil {
				t.Error("Resident after Free: no error")
			}
			if m.Equal() {
				t.Error("Equal after Free: got true")
			}
		})
	}
}
