package linmem_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/linmem"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestReset does everything that a guest may do, to a memory of every kind.
// Proves: Nothing is left of a call
func TestReset(t *testing.T) {
	t.Parallel()
	page := os.Getpagesize()
	for _, use := range []struct {
		name string
		do   func(b []byte)
	}{
		{"nothing", func([]byte) {}},
		{"read everything", func(b []byte) { read(b) }},
		{"write the first byte", func(b []byte) { b[0]++ }},
		{"write the last byte", func(b []byte) { b[len(b)-1]++ }},
		{"write the same bytes", func(b []byte) {
			for n := 0; n < len(b); n += 1000 {
				b[n] = b[n] + 0
			}
		}},
		{"write across a border of pages", func(b []byte) { binary.NativeEndian.PutUint64(b[page-3:], 0xffffffffffffffff) }},
		{"write each side of every border", func(b []byte) {
			for at := page; at < len(b); at += page {
				b[at-1]++
				b[at]++
			}
		}},
		{"write every other page", func(b []byte) {
			for at := 0; at < len(b); at += 2 * page {
				b[at+17]++
			}
		}},
		{"read, then write", func(b []byte) {
			read(b)
			for at := 0; at < len(b); at += 3 * page {
				b[at]++
			}
		}},
		{"write zeros", func(b []byte) { clear(b) }},
		{"write everything", func(b []byte) {
			for n := range b {
				b[n] ^= 0xff
			}
		}},
	} {
		for _, kind := range kinds {
			t.Run(use.name+"/"+kind.name, func(t *testing.T) {
				t.Parallel()
				for _, c := range contents {
					if c.size == 0 {
						continue
					}
					content := filled(c.size, c.fill)
					_, m := mapped(t, kind.make, content, uint64(c.size)+granule)
					for turn := range 3 {
						use.do(m.Bytes())
						if _, err := m.Reset(); err != nil {
							t.Fatalf("image with %s: %v", c.name, err)
						}
						if !bytes.Equal(m.Bytes(), content) || !m.Equal() {
							t.Fatalf("image with %s: reset %d did not restore it", c.name, turn)
						}
					}
				}
			})
		}
	}
}

func read(b []byte) (sum int) {
	for _, x := range b {
		sum += int(x)
	}
	return sum
}

// TestResetOfNothing makes images without anything to reset.
func TestResetOfNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		_, m := mapped(t, kind.make, nil, 0)
		if n, err := m.Reset(); n != 0 || err != nil || !m.Equal() {
			t.Errorf("%s: Reset of an empty memory: got %d, %v", kind.name, n, err)
		}
	}
}

// TestResetCostsWhatWasWritten checks the reason for this package: a reset costs as much as was written.
func TestResetCostsWhatWasWritten(t *testing.T) {
	t.Parallel()
	page := os.Getpagesize()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			if copiesAll(t, kind.name) {
				return
			}
			content := filled(100*granule, func(b []byte) { sprinkle(b[:50*granule], 1) })
			_, m := mapped(t, kind.make, content, 4<<30)
			b := m.Bytes()
			read(b[:50*granule])
			if n, err := m.Resident(); n != 0 || err != nil {
				t.Errorf("Resident after reads: got %d, %v; want 0", n, err)
			}
			if n, err := m.Reset(); n != 0 || err != nil {
				t.Errorf("Reset after reads: got %d, %v; want 0", n, err)
			}
			b[0]++
			b[3*granule]++
			b[90*granule]++
			if n, err := m.Reset(); n != 3*page || err != nil {
				t.Errorf("Reset after writes to three pages: got %d, %v; want %d", n, err, 3*page)
			}
			if n, err := m.Resident(); n != 3*page || err != nil {
				t.Errorf("Resident after a reset: got %d, %v; want %d", n, err, 3*page)
			}
		})
	}
}

// copiesAll reports whether a kind of memory copies everything. It skips the test if all kinds do because of the system.
func copiesAll(t *testing.T, kind string) (plain bool) {
	t.Helper()
	if kind == "plain" {
		return true
	}
	image, err := new(linmem.Store).NewImage(filled(granule, func(b []byte) { b[0] = 1 }))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	m, err := image.Map(granule)
	if err != nil {
		t.Fatal(err)
	}
	defer free(t, m)
	if n, _ := m.Reset(); n != 0 {
		t.Skip("the system does not report dirty pages, so resets copy everything")
	}
	return false
}

// TestResetDropsExcess has a call that writes more than an idle memory may keep.
func TestResetDropsExcess(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			if copiesAll(t, kind.name) {
				return
			}
			content := filled(2*linmem.KeepResident, func(b []byte) { sprinkle(b[:linmem.KeepResident+3*granule], 1) })
			_, m := mapped(t, kind.make, content, 4<<30)
			if _, err := m.Reset(); err != nil { // the first reset differs from later ones
				t.Fatal(err)
			}
			for range 2 {
				for n := range m.Bytes() {
					m.Bytes()[n]++
				}
				if n, err := m.Reset(); n != linmem.KeepResident || err != nil {
					t.Fatalf("Reset: got %d, %v; want %d", n, err, linmem.KeepResident)
				}
				if n, err := m.Resident(); n != linmem.KeepResident || err != nil {
					t.Errorf("Resident: got %d, %v; want %d", n, err, linmem.KeepResident)
				}
				if !m.Equal() {
					t.Fatal("the memory is not restored")
				}
			}
		})
	}
}

// TestResetForgetsRareCalls has one call that writes much and many that write little.
func TestResetForgetsRareCalls(t *testing.T) {
	t.Parallel()
	page := os.Getpagesize()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			if copiesAll(t, kind.name) {
				return
			}
			content := filled(20*granule, func(b []byte) { sprinkle(b[:10*granule], 1) })
			_, m := mapped(t, kind.make, content, 20*granule)
			if _, err := m.Reset(); err != nil { // the first reset differs from later ones
				t.Fatal(err)
			}
			for n := range m.Bytes() {
				m.Bytes()[n]++
			}
			if n, err := m.Reset(); n != 20*granule || err != nil {
				t.Fatalf("Reset after the rare call: got %d, %v", n, err)
			}
			for range linmem.AgeEvery {
				m.Bytes()[5*granule]++
				m.Bytes()[15*granule]++
				if _, err := m.Reset(); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := m.Resident(); n != 2*page || err != nil {
				t.Errorf("Resident: got %d, %v; want the %d of the calls since", n, err, 2*page)
			}
			if !m.Equal() {
				t.Fatal("the memory is not restored")
			}
		})
	}
}

func TestResetAllocatesNothing(t *testing.T) {
	_, m := mapped(t, new(linmem.Store).NewImage, filled(17*granule, func(b []byte) { sprinkle(b, 1) }), 64<<20)
	if n := testing.AllocsPerRun(100, func() {
		m.Bytes()[0]++
		m.Bytes()[granule]++
		if _, err := m.Reset(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a reset allocates %v times", n)
	}
}

// FuzzReset reads operations from bytes, and applies them to a memory of every kind and to a slice.
// Proves: Nothing is left of a call
func FuzzReset(f *testing.F) {
	f.Add(uint64(1), []byte("write, read and reset"))
	f.Add(uint64(2), []byte{0, 0, 0, 3, 1, 255, 255, 3, 2, 128, 0, 3})
	f.Add(uint64(0), []byte{1, 0, 0, 0, 1, 16, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0})
	many := make([]byte, 400)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range many {
		many[n] = byte(random.Uint32())
	}
	f.Add(uint64(3), many)
	f.Fuzz(func(t *testing.T, shape uint64, ops []byte) {
		const granules = 2
		ops = ops[:min(len(ops), 4*64)]
		content := make([]byte, granules*granule)
		for n := range granules * granule / 4096 { // for each page of 4 KiB, the shape says whether it contains anything
			if shape>>(n%64)&1 != 0 {
				sprinkle(content[n*4096:(n+1)*4096], n)
			}
		}
		clear(content[granules*granule-int(shape>>60)*8192:])
		var memories []*linmem.Memory
		for _, kind := range kinds {
			_, m := mapped(t, kind.make, content, 3*granules*granule)
			memories = append(memories, m)
		}
		want := bytes.Clone(content)
		for ; len(ops) >= 4; ops = ops[4:] {
			at := int(binary.LittleEndian.Uint16(ops[1:])) * len(want) >> 16
			length := min(1+int(ops[3])*int(ops[3])/4, len(want)-at)
			reset := false
			do := func(b []byte) { read(b[at : at+length]) }
			switch ops[0] % 5 {
			case 1:
				do = func(b []byte) { sprinkle(b[at:at+length], int(ops[0])) }
			case 2:
				do = func(b []byte) { clear(b[at : at+length]) }
			case 3:
				reset = true
			case 4:
				size := min(len(want)+length, 3*granules*granule)
				want = append(want, make([]byte, size-len(want))...)
			}
			do(want)
			if reset {
				want = append(want[:0], content...)
			}
			for n, m := range memories {
				if n%2 == 0 {
					m.Watch()
				}
				m.Grow(uint64(len(want)))
				do(m.Bytes())
				if reset {
					if _, err := m.Reset(); err != nil {
						t.Fatalf("%s: %v", kinds[n].name, err)
					}
				}
				if !reset && ops[0] < 224 {
					continue // checking everything each time is slow, and touches every page
				}
				if !bytes.Equal(m.Bytes(), want) {
					t.Fatalf("%s: the memory is not what was written to it (reset: %v)", kinds[n].name, reset)
				}
				if got, same := m.Equal(), bytes.Equal(want, content); got != same {
					t.Fatalf("%s: Equal: got %v, want %v", kinds[n].name, got, same)
				}
			}
		}
		for n, m := range memories {
			if _, err := m.Reset(); err != nil || !bytes.Equal(m.Bytes(), content) {
				t.Fatalf("%s: the last reset did not restore the image (error %v)", kinds[n].name, err)
			}
		}
	})
}
