package weigh_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument/internal/weigh"
)

// A cost that grows with a product is weighed as a product: if both factors are doubled, the weight is at least four times as large.
func TestProducts(t *testing.T) {
	t.Parallel()
	shapes := map[string]func(n int) []byte{
		"values across branches": func(n int) []byte {
			return slices.Concat([]byte{0}, bytes.Repeat([]byte("\x41\x00\x28\x02\x00"), n), bytes.Repeat([]byte("\x41\x00\x04\x40\x0b"), n), bytes.Repeat([]byte{0x1a}, n), []byte{0x0b})
		},
		"locals across branches": func(n int) []byte {
			b := []byte{1, byte(n) | 0x80, byte(n >> 7), 0x7f}
			use := func(op byte) {
				for i := range n {
					b = append(b, op, byte(i)|0x80, byte(i>>7))
					if op == 0x20 {
						b = append(b, 0x1a)
					}
				}
			}
			b = append(b, bytes.Repeat([]byte("\x41\x00"), n)...)
			use(0x21)
			b = append(b, bytes.Repeat([]byte("\x41\x00\x04\x40\x0b"), n)...)
			use(0x20)
			return append(b, 0x0b)
		},
		"branches to one label": func(n int) []byte {
			return slices.Concat([]byte("\x00\x02\x40"), bytes.Repeat([]byte("\x41\x00\x0d\x00"), n), []byte{0x0b, 0x0b})
		},
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := func(n int) float64 {
				c, err := weigh.NewScale(&weigh.Module{}).Count(weigh.Signature{}, shape(n))
				if err != nil {
					t.Fatal(err)
				}
				return float64(c.Weight().Nanos)
			}
			if ratio := of(8000) / of(4000); ratio < 3 {
				t.Errorf("with both factors doubled, the weight is %.1f times as large, want 4 or more", ratio)
			}
		})
	}
}

func TestCountRefuses(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"no such instruction": "\x00\x06\x0b", "cut off": "\x00\x20", "unreached": "\x00\x00\x41", "unreached call": "\x00\x00\x10", "locals": "\x01"} {
		if c, err := weigh.NewScale(&weigh.Module{}).Count(weigh.Signature{}, []byte(body)); err == nil {
			t.Errorf("%s: got %+v, want an error", name, c)
		}
	}
}

// TestManyBlocks weighs a function with more blocks than are counted: a function with so many is refused anyway.
// Proves: Compiling is bounded
func TestManyBlocks(t *testing.T) {
	t.Parallel()
	body := slices.Concat([]byte{0}, bytes.Repeat([]byte("\x41\x00\x04\x40\x0b"), 500_000), []byte{0x0b})
	c, err := weigh.NewScale(&weigh.Module{}).Count(weigh.Signature{}, body)
	if err != nil || c[weigh.Blocks] > 1<<20+2 || c.Weight().Bytes < 512<<20 {
		t.Errorf("got %.0f blocks that take %d MB, %v", c[weigh.Blocks], c.Weight().Bytes>>20, err)
	}
}

// TestUnreachable weighs unreachable code in a function with many results. The compiler checks its types too, and keeps the results for that.
// Proves: Compiling is bounded
func TestUnreachable(t *testing.T) {
	t.Parallel()
	m := &weigh.Module{Types: []weigh.Signature{{Results: 1000}}, Functions: []uint32{0}}
	for name, code := range map[string]string{
		"calls":          "\x10\x00",
		"indirect calls": "\x11\x00\x00",
		"blocks":         "\x02\x00\x00\x0b",
		"branches":       "\x0c\x00",
		"conditional":    "\x0d\x00",
		"returns":        "\x0f",
		"tables":         "\x0e\x00\x00",
	} {
		const n = 10_000
		body := slices.Concat([]byte{0, 0}, bytes.Repeat([]byte(code), n), []byte{0x0b})
		c, err := weigh.NewScale(m).Count(m.Types[0], body)
		if err != nil || c.Weight().Bytes < n*1000*100 {
			t.Errorf("%s: 10 million values weigh %d MB, %v", name, c.Weight().Bytes>>20, err)
		}
	}
}
