package instrument_test

import (
	"slices"
	"testing"
)

// TestLinearStack checks which globals are taken for the pointer of a stack in memory, and which are not.
func TestLinearStack(t *testing.T) {
	t.Parallel()
	global := func(mutable byte, value ...byte) []byte {
		return slices.Concat(b(0x7f, mutable, 0x41), value, b(0x0b))
	}
	var (
		at4096   = b(0x80, 0x20)
		at4097   = b(0x81, 0x20)
		at128Ki  = b(0x80, 0x80, 0x08)
		negative = b(0x70)
		pointer  = global(1, at4096...)
		name     = func(index byte, name string) []byte {
			return custom("name", string(slices.Concat(b(7), leb(3+len(name)), b(1, index), str(name))))
		}
		exported = section(7, vec(append(str("__stack_pointer"), 3, 1)))
		below    = section(11, vec(slices.Concat(b(0, 0x41, 0, 0x0b), str("hello")), slices.Concat(b(0, 0x41, 0x80, 0x20, 0x0b), str("above"))))
	)
	for _, test := range []struct {
		name     string
		sections [][]byte
		pointer  int // -1: none
		end      uint32
	}{
		{"the first global", [][]byte{section(6, vec(pointer))}, 0, 0},
		{"data below and above", [][]byte{section(6, vec(pointer)), below}, 0, 5},
		{"a second global", [][]byte{section(6, vec(global(1, 0), pointer))}, -1, 0},
		{"behind a constant", [][]byte{section(6, vec(global(0, at4096...), pointer))}, -1, 0},
		{"Go's", [][]byte{section(6, vec(global(1, 0)))}, -1, 0},
		{"not aligned", [][]byte{section(6, vec(global(1, at4097...)))}, -1, 0},
		{"behind the memory", [][]byte{section(6, vec(global(1, at128Ki...)))}, -1, 0},
		{"negative", [][]byte{section(6, vec(global(1, negative...)))}, -1, 0},
		{"a constant", [][]byte{section(6, vec(global(0, at4096...)))}, -1, 0},
		{"exported", [][]byte{section(6, vec(global(1, 0), pointer)), exported}, 1, 0},
		{"named", [][]byte{section(6, vec(global(1, 0), pointer)), name(1, "__stack_pointer")}, 1, 0},
		{"named, with a constant before it", [][]byte{section(6, vec(global(0, 0), pointer)), name(1, "__stack_pointer")}, 0, 0},
		{"named something else", [][]byte{section(6, vec(pointer)), name(0, "counter")}, -1, 0},
		{"the name of a missing global", [][]byte{section(6, vec(pointer)), name(9, "__stack_pointer")}, -1, 0},
		{"a number of names, but no names", [][]byte{section(6, vec(pointer)), custom("name", "\x07\x05\xff\xff\xff\xff\x0f")}, 0, 0},
		{"no globals", nil, -1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rewritten, err := rewrite(module(append([][]byte{section(5, vec(b(0, 1)))}, test.sections...)...))
			if err != nil {
				t.Fatal(err)
			}
			got := rewritten.LinearStack
			if (got == nil) != (test.pointer < 0) || got != nil && (got.Pointer != test.pointer || got.End != test.end) {
				t.Errorf("got %+v, want pointer %d and end %d", got, test.pointer, test.end)
			}
		})
	}
}
