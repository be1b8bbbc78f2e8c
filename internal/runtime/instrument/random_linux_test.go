package instrument_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A writer writes the code of a random function that never ends: a loop of a few words in random order. So the loop may be one basic block with one
// kind of instruction, or a thicket of branches, calls and loads.
type writer struct {
	*rand.Rand
	out   []byte
	count [kinds]int // number of locals of each kind
	left  int        // words that may still be written
	words []func(w *writer, depth int)
	names []string
}

// The function's own locals, which come before those that writer.count counts.
const (
	localParam = iota
	localZero
	localCounter
	localsOwn
)

// The module's functions besides f0, and their types.
const (
	functionSmall  = 1 // (i32) -> i32
	functionWide   = 2 // twenty i64 -> twenty i64
	functionVector = 3 // () -> v128
	wideValues     = 20
	pagesRandom    = 1<<10 + 1 // pages of 64 KiB: the part that is accessed, plus the offsets
)

func (w *writer) op(code string) { w.out = append(w.out, code...) }

func (w *writer) index(op byte, n int) { w.out = append(append(w.out, op), leb(n)...) }

// local returns a random local of a kind.
func (w *writer) local(kind int) int {
	at := localsOwn + w.IntN(w.count[kind])
	for _, n := range w.count[:kind] {
		at += n
	}
	return at
}

func (w *writer) get(kind int) { w.index(0x20, w.local(kind)) }

func (w *writer) set(kind int) { w.index(0x21, w.local(kind)) }

// inside writes some words, nested up to depth levels.
func (w *writer) inside(depth int) {
	for range w.IntN(3) {
		w.word(depth - 1)
	}
}

func (w *writer) word(depth int) {
	if w.left--; w.left >= 0 && depth >= 0 {
		w.words[w.IntN(len(w.words))](w, depth)
	}
}

// constant pushes a number. A float may be an awkward one.
func (w *writer) constant(kind int) {
	floats := []float64{0, 1, -1.5, 0.999999, 1.000001, 1e30, math.Inf(1), math.NaN(), 1e-310, 5e-324, 3e-309, 1e-41, 2e-39, 1e-45}
	f := floats[w.IntN(len(floats))]
	switch kind {
	case kindI32:
		w.op(i32(int(w.Int32())))
	case kindI64:
		w.op("\x42" + i32(int(w.Int32()))[1:])
	case kindF32:
		w.out = binary.LittleEndian.AppendUint32(append(w.out, 0x43), math.Float32bits(float32(f)))
	case kindF64:
		w.out = binary.LittleEndian.AppendUint64(append(w.out, 0x44), math.Float64bits(f))
	case kindVector:
		lanes := w.IntN(4)
		w.constant(lanes)
		w.op("\xfd" + string(rune(17+lanes)))
	}
}

// address pushes an address below bytes, which is a power of 2.
func (w *writer) address(bytes int) {
	w.get(kindI32)
	w.op(i32(bytes-1) + "\x71")
}

// wordSets is the index of the word that needs many locals.
const wordSets = 5

// The words. Each function returns the word's name, and a function that writes it.
var vocabulary = []func(w *writer) (string, func(w *writer, depth int)){
	func(w *writer) (string, func(*writer, int)) {
		all := numerics()
		n := all[w.IntN(len(all))]
		return fmt.Sprintf("numeric %x", n.code), func(w *writer, _ int) {
			for _, kind := range n.takes {
				w.get(kind)
			}
			w.op(n.code)
			w.set(n.result)
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		op := byte(0x28 + w.IntN(0x3f-0x28))
		kind := []int{0, 1, 2, 3, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 2, 3, 0, 0, 1, 1, 1}[op-0x28]
		bytes := 1 << (4 + w.IntN(23))
		offset := leb(w.IntN(1 << 10))
		return fmt.Sprintf("access %#x in %d bytes", op, bytes), func(w *writer, _ int) {
			w.address(bytes)
			if op >= 0x36 {
				w.get(kind)
			}
			w.op(string([]byte{op, 0}) + string(offset))
			if op < 0x36 {
				w.set(kind)
			}
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		bytes := 1 << (4 + w.IntN(23))
		store := w.IntN(2) == 0
		load := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 92, 93}[w.IntN(13)]
		return fmt.Sprintf("vector access %d in %d bytes, store: %t", load, bytes, store), func(w *writer, _ int) {
			w.address(bytes)
			if store {
				w.get(kindVector)
				w.op("\xfd\x0b\x00\x00")
				return
			}
			w.op("\xfd" + string(rune(load)) + "\x00\x00")
			w.set(kindVector)
		}
	},
	func(w *writer) (string, func(*writer, int)) { // new addresses
		return "next address", func(w *writer, _ int) {
			l := w.local(kindI32)
			w.index(0x20, l)
			w.op(i32(1664525) + "\x6c" + i32(1013904223) + "\x6a")
			w.index(0x21, l)
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		return "if", func(w *writer, depth int) {
			w.get(kindI32)
			w.op("\x41\x01\x71\x04\x40")
			w.inside(depth)
			if w.IntN(2) == 0 {
				w.op("\x05")
				w.inside(depth)
			}
			w.op("\x0b")
		}
	},
	func(w *writer) (string, func(*writer, int)) { // its branch is never entered
		kind := slices.Index(w.count[:], slices.Max(w.count[:]))
		return fmt.Sprintf("sets of %d kind %d", w.count[kind], kind), func(w *writer, _ int) {
			if len(w.out) > 100_000 {
				return
			}
			w.index(0x20, localZero)
			w.op("\x04\x40")
			from := w.local(kind)
			for range w.count[kind] {
				w.index(0x20, from)
				w.set(kind)
			}
			w.op("\x0b")
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		return "block", func(w *writer, depth int) {
			w.op("\x02\x40")
			w.inside(depth)
			w.get(kindI32)
			w.op("\x0d\x00")
			w.inside(depth)
			w.op("\x0b")
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		return "switch", func(w *writer, depth int) {
			w.op("\x02\x40\x02\x40\x02\x40")
			w.get(kindI32)
			w.op("\x41\x03\x71\x0e\x02\x00\x01\x02\x0b")
			w.inside(depth)
			w.op("\x0b")
			w.inside(depth)
			w.op("\x0b")
		}
	},
	func(w *writer) (string, func(*writer, int)) { // runs once, or as often as the counter says; loops inside it share the counter
		return "loop", func(w *writer, depth int) {
			w.op(i32(w.IntN(4)))
			w.index(0x21, localCounter)
			w.op("\x03\x40")
			w.inside(depth)
			w.index(0x20, localCounter)
			w.op("\x41\x01\x6b")
			w.index(0x22, localCounter)
			w.op("\x41\x00\x4a\x0d\x00\x0b")
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		return "call", func(w *writer, _ int) {
			w.get(kindI32)
			w.index(0x10, functionSmall)
			w.set(kindI32)
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		return "wide call", func(w *writer, _ int) {
			for range wideValues {
				w.get(kindI64)
			}
			w.index(0x10, functionWide)
			for range wideValues {
				w.set(kindI64)
			}
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		op := byte(0x02 + w.IntN(2))
		return fmt.Sprintf("wide block %#x", op), func(w *writer, _ int) {
			for range wideValues {
				w.get(kindI64)
			}
			w.op(string([]byte{op, 1}))
			w.index(0x20, localZero)
			w.op("\x0d\x00\x0b")
			for range wideValues {
				w.set(kindI64)
			}
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		return "call for a vector", func(w *writer, _ int) {
			w.index(0x10, functionVector)
			w.set(kindVector)
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		return "indirect call", func(w *writer, _ int) {
			w.get(kindI32)
			w.op("\x41\x01\x11\x00\x00")
			w.set(kindI32)
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		kind := w.IntN(kinds)
		return fmt.Sprintf("global of kind %d", kind), func(w *writer, _ int) {
			w.index(0x23, kind)
			w.set(kind)
			w.get(kind)
			w.index(0x24, kind)
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		kind := w.IntN(kinds)
		return fmt.Sprintf("selection of kind %d", kind), func(w *writer, _ int) {
			w.get(kind)
			w.get(kind)
			w.get(kindI32)
			w.op("\x1b")
			w.set(kind)
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		kind := w.IntN(kinds)
		return fmt.Sprintf("constant of kind %d", kind), func(w *writer, _ int) {
			w.constant(kind)
			w.set(kind)
		}
	},
	func(w *writer) (string, func(*writer, int)) {
		codes := []string{
			"\x3f\x00\x1a", "\x41\x01\x25\x00\x1a", "\xd2\x00\x1a", "\x41\x01\xd2\x01\x26\x00", "\x41\x00\x40\x00\x1a", "\xfc\x10\x00\x1a",
			"\x41\x00\xd2\x01\x41\x02\xfc\x11\x00", "\x41\x00\x41\x00\x41\x02\xfc\x0e\x00\x00", "\xd2\x01\x41\x00\xfc\x0f\x00\x1a",
		}
		n := w.IntN(len(codes))
		return fmt.Sprintf("other %x", codes[n]), func(w *writer, _ int) { w.op(codes[n]) }
	},
	func(w *writer) (string, func(*writer, int)) {
		copies, bytes := w.IntN(2) == 0, 1<<w.IntN(18)
		return fmt.Sprintf("bulk of %d bytes, copy: %t", bytes, copies), func(w *writer, _ int) {
			w.address(1 << 20)
			if copies {
				w.address(1 << 20)
				w.op(i32(bytes) + "\xfc\x0a\x00\x00")
				return
			}
			w.get(kindI32)
			w.op(i32(bytes) + "\xfc\x0b\x00")
		}
	},
}

// randomModule returns the module for a seed, and a description of it.
func randomModule(seed uint64) (name string, module []byte) {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 3)), left: 40}
	for kind := range w.count {
		w.count[kind] = 1 + w.IntN(6)
	}
	add := func(n int) {
		name, word := vocabulary[n](w)
		w.words, w.names = append(w.words, word), append(w.names, name)
	}
	if w.IntN(4) == 0 {
		w.count[w.IntN(kinds)] = 10 + w.IntN(1500)
		add(wordSets)
	}
	for range 1 + w.IntN(3) {
		add(w.IntN(len(vocabulary)))
	}
	depth := w.IntN(4)
	w.out = append(leb(kinds+1), 2, 0x7f)
	for kind, n := range w.count {
		w.out = append(append(w.out, leb(n)...), kindTypes[kind])
	}
	for kind, n := range w.count {
		for range min(n, 8) {
			w.constant(kind)
			w.set(kind)
		}
	}
	w.op("\x02\x40\x03\x40")
	for w.left > 0 {
		w.word(depth)
	}
	w.index(0x20, localZero)
	w.op("\x0d\x01\x0c\x00\x0b\x0b")
	at := localsOwn
	for kind, n := range w.count { // all results are needed
		for range n {
			w.op("\x41\x00")
			w.index(0x20, at)
			w.op([]string{"\x36\x02\x00", "\x37\x03\x00", "\x38\x02\x00", "\x39\x03\x00", "\xfd\x0b\x04\x00"}[kind])
			at++
		}
	}
	w.op("\x41\x00\x0b")
	return strings.Join(w.names, ", "), randomSections(w.out)
}

// randomSections returns a module with f0 and everything that its code uses.
func randomSections(f0 []byte) []byte {
	many := string(leb(wideValues)) + strings.Repeat("\x7e", wideValues)
	wide := "\x00"
	for i := range wideValues {
		wide += "\x20" + string(leb(i))
	}
	var codes, globals [][]byte
	for _, body := range []string{string(f0), "\x00\x20\x00\x41\x01\x6a\x0b", wide + "\x0b", "\x00\x41\x01\xfd\x11\x0b"} {
		codes = append(codes, append(leb(len(body)), body...))
	}
	zeros := []string{"\x41\x00", "\x42\x00", "\x43" + strings.Repeat("\x00", 4), "\x44" + strings.Repeat("\x00", 8), "\xfd\x0c" + strings.Repeat("\x00", 16)}
	for kind, zero := range zeros {
		globals = append(globals, []byte(string([]byte{kindTypes[kind], 1})+zero+"\x0b"))
	}
	return module(
		section(1, vec(b(0x60, 1, 0x7f, 1, 0x7f), []byte("\x60"+many+many), b(0x60, 0, 1, 0x7b))),
		section(3, vec(b(0), b(0), b(1), b(2))),
		section(4, vec(b(0x70, 0, 4))),
		section(5, vec(append(b(0), leb(pagesRandom)...))),
		section(6, vec(globals...)),
		section(7, vec(append(str("f0"), 0, 0))),
		section(9, vec(append(b(0, 0x41, 0, 0x0b), vec(b(0), b(1), b(2), b(3))...))),
		section(10, vec(codes...)),
	)
}

// TestRandomPace measures how long a unit of fuel takes in random modules: no longer than mostPace, except in one of a thousand. A number in
// TOOLSRV_PACE_SHAPES sets how many modules there are, and then each run uses new seeds.
// Proves: A tool stops
func TestRandomPace(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	testkit.SkipEmulated(t, "it measures the time that code takes")
	if testkit.Race(t) {
		t.Skip("the race detector makes the host slower than any guest")
	}
	count, seed := 60, uint64(0)
	if n, err := strconv.Atoi(os.Getenv("TOOLSRV_PACE_SHAPES")); err == nil {
		count, seed = n, rand.Uint64()%1_000_000_000
	}
	type shape struct {
		seed uint64
		name string
		pace float64
	}
	var all []shape
	for i := range uint64(count) {
		name, module := randomModule(seed + i)
		all = append(all, shape{seed + i, name, pace(t, module)})
	}
	slices.SortFunc(all, func(a, b shape) int { return cmp.Compare(b.pace, a.pace) })
	t.Logf("%d shapes: a unit takes %.2f ns in the median", count, all[count/2].pace)
	for i, s := range all {
		if s.pace > mostPace && i >= count/1000 {
			t.Errorf("seed %d: a unit takes %.1f ns, want %d at most: %s", s.seed, s.pace, mostPace, s.name)
		} else if i < 12 {
			t.Logf("seed %d: a unit takes %.2f ns: %s", s.seed, s.pace, s.name)
		}
	}
}
