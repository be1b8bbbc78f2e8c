package weigh_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A palette has the parts of a random shape: some sources whose values live throughout, and some pieces of code. A few pieces
// occur again and again.
type palette struct {
	seed   uint64
	values int   // index in sources
	pieces []int // kinds for writer.piece, which draws from them
	depth  int   // how deep pieces nest
}

// randomShape returns the shape of a seed: n values and m pieces.
func randomShape(seed uint64) shape {
	r := rand.New(rand.NewPCG(seed, 1))
	p := palette{seed: seed, values: r.IntN(len(sources)), depth: r.IntN(4)}
	for range 1 + r.IntN(4) {
		p.pieces = append(p.pieces, r.IntN(pieces))
	}
	return shape{fmt.Sprint("random ", seed), p.make}
}

func (p palette) make(n, m int) []byte {
	source := sources[p.values]
	w := writer{Rand: rand.New(rand.NewPCG(p.seed, 2)), pieces: p.pieces, locals: n}
	source.fill(&w.code, n)
	for w.left = m; w.left > 0; {
		w.piece(p.depth)
	}
	source.drain(&w.code, n)
	all := plan{locals: n + 2, globals: 2}
	return all.module(w.b)
}

// A writer writes random pieces of code that leave the operand stack as it was.
type writer struct {
	code
	*rand.Rand
	pieces []int
	locals int
	left   int
}

const pieces = 14

func (w *writer) local() int { return 1 + w.IntN(w.locals+1) }

func (w *writer) piece(depth int) {
	w.left--
	inside := func() {
		for range w.IntN(3) {
			if depth > 0 && w.left > 0 {
				w.piece(depth - 1)
			}
		}
	}
	switch w.pieces[w.IntN(len(w.pieces))] {
	case 0:
		w.op(0x20, 0, 0x04, 0x40)
		inside()
		w.op(0x0b)
	case 1:
		w.op(0x20, 0, 0x04, 0x40)
		inside()
		w.op(0x05)
		inside()
		w.op(0x0b)
	case 2:
		w.op(0x03, 0x40)
		inside()
		w.op(0x20, 0, 0x0d, 0, 0x0b)
	case 3:
		w.op(0x02, 0x40, 0x20, 0, 0x0d, 0)
		inside()
		w.op(0x20, 0, 0x0d, 0, 0x0b)
	case 4:
		w.op(0x20, 0, 0x20, 0, 0x41, 8, 0xfc, 0x0b, 0) // memory.fill
	case 5:
		w.op(0x20, 0, 0xd0, 0x70, 0x41, 8, 0xfc, 0x11, 0) // table.fill
	case 6:
		w.op(0x20, 0, 0x20, 0, 0x41, 8, 0xfc, 0x0a, 0, 0) // memory.copy
	case 7:
		w.op(0x10, functionNone)
	case 8:
		w.get(w.local())
		w.set(w.local())
	case 9:
		w.load(w.IntN(1000))
		w.set(w.local())
	case 10:
		w.op(0x23, 0)
		w.set(w.local())
	case 11:
		w.get(w.local())
		w.op(0x24, 1)
	case 12: // a switch
		w.op(0x02, 0x40, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 2, 0, 1, 2, 0x0b)
		inside()
		w.op(0x0b)
		inside()
		w.op(0x0b)
	case 13:
		w.op(0x20, 0, 0xb7, 0x20, 0, 0xb7, 0xa4, 0xaa) // f64.min
		w.set(w.local())
	}
}

// TestRandomShapes compares the predicted cost with the measured one, for shapes that nobody thought of. TOOLSRV_ATTACK_SHAPES sets how many shapes
// there are. If it is set, each shape has the largest size that is accepted, and each run uses new seeds.
// Proves: Compiling is bounded
func TestRandomShapes(t *testing.T) {
	if testing.Short() || testkit.Race(t) {
		t.Skip("compiles for some seconds, and several times as long with the race detector")
	}
	if count, err := strconv.Atoi(os.Getenv("TOOLSRV_ATTACK_SHAPES")); err == nil {
		seed := rand.Uint64() % 1_000_000_000
		for i := range count {
			s := randomShape(seed + uint64(i))
			t.Run(s.name, func(t *testing.T) { attackWith(t, s) })
		}
		return
	}
	for seed := range uint64(3) {
		s := randomShape(seed)
		n, best := 8, (*instrument.Rewritten)(nil)
		for ; best == nil || best.Weight.Time() < 200*time.Millisecond; n += n / 2 {
			r, err := rewrite(s.make(n, n))
			if err != nil {
				t.Fatal(err)
			}
			best = r
		}
		got := measure(t, best.Module)
		if got.Error != "" || got.CPU > 5*best.Weight.Time() || got.Bytes > 3*best.Weight.Bytes {
			t.Errorf("%s: took %v and %d MB, predicted %v and %d MB %s", s.name, got.CPU, got.Bytes>>20, best.Weight.Time(), best.Weight.Bytes>>20, got.Error)
		}
	}
}
