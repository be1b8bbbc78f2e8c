package instrument_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// program returns a module whose memory has the given number of pages. It exports f0, f1 … of the type (i32) -> i32.
func program(pages int, bodies ...[]byte) []byte {
	var functions, exported, codes [][]byte
	for i, one := range bodies {
		functions = append(functions, b(0))
		exported = append(exported, slices.Concat(str("f"+string(rune('0'+i))), b(0), leb(i)))
		codes = append(codes, append(leb(len(one)), one...))
	}
	refs := make([][]byte, len(bodies))
	for i := range refs {
		refs[i] = leb(i)
	}
	return module(
		section(1, vec(b(0x60, 1, 0x7f, 1, 0x7f))),
		section(3, vec(functions...)),
		section(4, vec(slices.Concat(b(0x70, 0), leb(len(bodies))))),
		section(5, vec(append(b(0), leb(pages)...))),
		section(7, vec(exported...)),
		section(9, vec(append(b(0, 0x41, 0, 0x0b), vec(refs...)...))),
		section(12, b(1)),
		section(10, vec(codes...)),
		section(11, vec(append(b(1), str(strings.Repeat("x", 200_000))...))),
	)
}

// body returns a body with one i32 local, number 1, that ends with 0 as its result.
func body(parts ...string) []byte {
	return []byte("\x01\x01\x7f" + strings.Join(parts, "") + "\x41\x00\x0b")
}

// i32 returns the instruction i32.const.
func i32(n int) string {
	out := []byte{0x41}
	for n < -0x40 || n >= 0x40 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return string(append(out, byte(n)&0x7f))
}

// endless are programs that never end, or run much longer than a slice.
func endless() map[string][]byte {
	const spin = "\x03\x40\x0c\x00\x0b" // loop br 0 end
	const big = 1000                    // pages
	size := i32(big << 16)
	init := "\x03\x40" + i32(0) + i32(0) + i32(200_000) + "\xfc\x08\x00\x00\x0c\x00\x0b"
	return map[string][]byte{
		"spin":                program(1, body(spin)),
		"spin on a condition": program(1, body("\x03\x40"+i32(1)+"\x0d\x00\x0b")),
		"br_table":            program(1, body("\x03\x40"+i32(1)+"\x0e\x01\x00\x00\x0b")),
		"outer loop":          program(1, body("\x03\x40\x03\x40\x0c\x01\x0b\x0b")),
		"loop in a block":     program(1, body("\x02\x40\x03\x40\x02\x40\x20\x00\x0d\x00\x20\x00\x45\x0d\x01\x0b\x0c\x00\x0b\x0b")),
		"loop after a br":     program(1, body("\x03\x40\x02\x40\x0c\x00\x03\x40\x0b\x0b\x0c\x00\x0b")),
		"recursion in two":    program(1, body("\x20\x00\x45\x04\x40"+i32(0)+"\x0f\x0b\x20\x00"+i32(1)+"\x6b\x10\x00\x1a\x20\x00"+i32(1)+"\x6b\x10\x00\x1a")),
		"indirect in two":     program(1, body("\x20\x00\x45\x04\x40"+i32(0)+"\x0f\x0b\x20\x00"+i32(1)+"\x6b"+i32(0)+"\x11\x00\x00\x1a\x20\x00"+i32(1)+"\x6b"+i32(0)+"\x11\x00\x00\x1a")),
		"small function":      program(1, body("\x03\x40"+i32(0)+"\x10\x01\x1a\x0c\x00\x0b"), body()),
		"long straight line":  program(1, body("\x03\x40"+strings.Repeat("\x20\x01\x28\x02\x00\x21\x01", 100_000)+"\x0c\x00\x0b")),
		"long if":             program(1, body("\x03\x40\x20\x00\x04\x40"+strings.Repeat("\x20\x01\x41\x03\x6e\x21\x01", 30_000)+"\x05"+strings.Repeat("\x20\x01\x41\x05\x6e\x21\x01", 30_000)+"\x0b\x0c\x00\x0b")),
		"division":            program(1, body("\x03\x40"+strings.Repeat("\x20\x01\x20\x00\x6e\x21\x01", 100)+"\x0c\x00\x0b")),
		"memory.fill":         program(big, body("\x03\x40"+i32(0)+i32(1)+size+"\xfc\x0b\x00\x0c\x00\x0b")),
		"memory.copy":         program(big, body("\x03\x40"+i32(0)+i32(1)+i32(big<<16-1)+"\xfc\x0a\x00\x00\x0c\x00\x0b")),
		"copy backwards":      program(big, body("\x03\x40"+i32(1)+i32(0)+i32(big<<16-1)+"\xfc\x0a\x00\x00\x0c\x00\x0b")),
		"memory.init":         program(big, body(init)),
		"short fills":         program(big, body("\x03\x40"+i32(0)+i32(1)+i32(256)+"\xfc\x0b\x00\x0c\x00\x0b")),
		"memory.grow":         program(1, body("\x03\x40"+i32(0)+"\x40\x00\x1a\x0c\x00\x0b")),
		"memory.size":         program(1, body("\x03\x40\x3f\x00\x1a\x0c\x00\x0b")),
		"table.grow":          program(1, body("\x03\x40\xd0\x70"+i32(100_000)+"\xfc\x0f\x00\x1a\x0c\x00\x0b")),
		"table.fill":          program(1, body("\xd0\x70"+i32(131_071)+"\xfc\x0f\x00\x1a\x03\x40"+i32(0)+"\xd0\x70"+i32(131_072)+"\xfc\x11\x00\x0c\x00\x0b")),
		"table.copy":          program(1, body("\xd0\x70"+i32(131_071)+"\xfc\x0f\x00\x1a\x03\x40"+i32(1)+i32(0)+i32(131_071)+"\xfc\x0e\x00\x00\x0c\x00\x0b")),
		"ref.func":            program(1, body("\x03\x40\xd2\x00\x1a\x0c\x00\x0b")),
		"dependent loads":     program(big, body("\x03\x40\x20\x01\x20\x01\x28\x02\x00\x6a"+i32(4160*7)+"\x6a"+i32(1<<25-4)+"\x71\x21\x01\x0c\x00\x0b")),
		"random loads":        program(big, body("\x03\x40\x20\x01\x28\x02\x00\x20\x01"+i32(1664525)+"\x6c\x6a"+i32(1013904223)+"\x6a"+i32(1<<25-4)+"\x71\x21\x01\x0c\x00\x0b")),
		"cold stores":         program(big, body("\x03\x40\x20\x01\x20\x01\x36\x02\x00\x20\x01"+i32(4160)+"\x6a"+i32(1<<25-4)+"\x71\x21\x01\x0c\x00\x0b")),
		"cold loads":          program(big, body("\x03\x40\x20\x01\x28\x02\x00\x1a\x20\x01"+i32(4160)+"\x6a"+i32(1<<25-4)+"\x71\x21\x01\x0c\x00\x0b")),
	}
}

// Whatever runs for a long time asks for fuel again and again. If the machine does something else, slices take longer, so the best of three runs
// counts.
// Proves: A tool stops
func TestMeteringBites(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "it measures what code takes")
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, and the race detector makes slices longer")
	}
	for name, module := range endless() {
		t.Run(name, func(t *testing.T) {
			r, err := rewrite(module)
			if err != nil {
				t.Fatal(err)
			}
			const most = time.Millisecond
			middle := time.Hour
			for range 3 {
				took := takeSlices(t, r)
				if len(took) == 0 {
					return
				}
				var longest time.Duration
				middle, longest = median(took)
				t.Logf("%d slices: median %v, longest %v", len(took), middle, longest)
				if middle < most {
					return
				}
			}
			t.Errorf("a slice takes %v, want less than %v", middle, most)
		})
	}
}

// takeSlices runs f0 until it has asked for fuel 200 times, and returns how long each slice took.
func takeSlices(t *testing.T, r *instrument.Rewritten) (slices []time.Duration) {
	h := newHost(t, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
	h.most = 200
	var last time.Time
	var module instrument.Paces
	pace, first := module.Begin()
	h.slice = first
	h.onSlice = func() {
		now := time.Now()
		slices = append(slices, now.Sub(last))
		h.slice = pace.Next(int64(h.slice), now.Sub(last))
		last = now
	}
	m, err := h.instantiate(t.Context(), "", r, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	last = time.Now()
	if _, err = m.ExportedFunction("f0").Call(context.Background(), 1000); !errors.Is(err, errStopped) && !errors.Is(err, errOverflow) {
		t.Fatalf("got %v, want it to be stopped", err)
	}
	return slices
}

// Bulk instructions cost a unit for every four bytes or elements, and ask for fuel at least once for every 16 KiB.
func TestBulkIsCharged(t *testing.T) {
	t.Parallel()
	const pages = 20
	grown := "\xd0\x70" + i32(131_071) + "\xfc\x0f\x00\x1a" // table.grow
	for _, c := range []struct {
		name, code string
		units      int // at least
		looks      int // the least number of requests for fuel, if each request gets one unit
	}{
		{"memory.fill of a chunk", i32(0) + i32(1) + i32(16<<10) + "\xfc\x0b\x00", 4096, 1},
		{"memory.fill of less", i32(0) + i32(1) + i32(15_000) + "\xfc\x0b\x00", 3750, 1},
		{"memory.fill", i32(0) + i32(1) + i32(1<<20+5000) + "\xfc\x0b\x00", 1<<18 + 1250, 65},
		{"memory.copy", i32(1) + i32(9) + i32(1<<20) + "\xfc\x0a\x00\x00", 1 << 18, 64},
		{"memory.copy backwards", i32(9) + i32(1) + i32(1<<20) + "\xfc\x0a\x00\x00", 1 << 18, 64},
		{"memory.init", i32(9) + i32(0) + i32(200_000) + "\xfc\x08\x00\x00", 50_000, 12},
		{"table.grow", grown, 32_767, 1},
		{"table.fill", grown + i32(0) + "\xd0\x70" + i32(131_072) + "\xfc\x11\x00", 32_767 + 32_768, 2},
		{"table.copy", grown + i32(1) + i32(0) + i32(131_071) + "\xfc\x0e\x00\x00", 2 * 32_767, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := rewrite(program(pages, body(c.code)))
			if err != nil {
				t.Fatal(err)
			}
			// The fuel comes all at once, and then unit by unit.
			for _, slice := range []int32{1 << 30, 0} {
				h := newHost(t, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
				h.slice = slice
				m, err := h.instantiate(t.Context(), "", r, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := m.ExportedFunction("f0").Call(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				if slice == 0 {
					if h.refills < c.looks {
						t.Errorf("it asks for fuel %d times, want %d at least", h.refills, c.looks)
					}
					continue
				}
				used := int(slice) - int(int32(uint32(m.ExportedGlobal(instrument.FuelGlobal).Get())))
				if used < c.units || used > c.units+1000 {
					t.Errorf("it takes %d units, want %d or a few more", used, c.units)
				}
			}
		})
	}
}

func median(list []time.Duration) (middle, longest time.Duration) {
	slices.Sort(list)
	return list[len(list)/2], list[len(list)-1]
}

// The limit of the call stack stops every kind of recursion.
// Proves: A tool stops
func TestCallStack(t *testing.T) {
	t.Parallel()
	again := "\x20\x00\x10\x00\x1a"
	many := body(again)
	many = slices.Concat([]byte("\x02\x01\x7f\xd0\x0f\x7e"), many[3:]) // 2,000 locals
	results := bytes.Repeat(b(0x7e), 100)
	for name, module := range map[string][]byte{
		"itself":        program(1, body(again)),
		"each other":    program(1, body("\x20\x00\x10\x01\x1a"), body("\x20\x00\x10\x00\x1a")),
		"indirect":      program(1, body("\x20\x00"+i32(0)+"\x11\x00\x00\x1a")),
		"through three": program(1, body("\x20\x00"+i32(1)+"\x11\x00\x00\x1a"), body("\x20\x00\x10\x02\x1a"), body("\x20\x00\x10\x00\x1a")),
		"many locals":   program(1, many),
		"many results": module(section(1, vec(b(0x60, 1, 0x7f, 1, 0x7f), append(b(0x60, 0, 100), results...))), section(3, vec(b(0), b(1))),
			section(7, vec(append(str("f0"), 0, 0))),
			section(10, vec(append(leb(len(body("\x10\x01"+strings.Repeat("\x1a", 100)))), body("\x10\x01"+strings.Repeat("\x1a", 100))...), append(leb(4), 0, 0x10, 1, 0x0b)))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := rewrite(module)
			if err != nil {
				t.Fatal(err)
			}
			h := newHost(t, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
			m, err := h.instantiate(t.Context(), "", r, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				m.ExportedGlobal(instrument.StackGlobal).(api.MutableGlobal).Set(1 << 20)
				if _, err := m.ExportedFunction("f0").Call(t.Context(), 1); !errors.Is(err, errOverflow) {
					t.Fatalf("got %v, want %v", err, errOverflow)
				}
			}
		})
	}
}

// A call gives back the call stack that it took, however it returns.
func TestCallStackIsGivenBack(t *testing.T) {
	t.Parallel()
	r, err := rewrite(program(1,
		// returns from within blocks, by branches to the function's label, and at its end
		body("\x20\x00\x45\x04\x40"+i32(7)+"\x0f\x0b\x02\x40\x20\x00"+i32(1)+"\x46\x04\x40"+i32(8)+"\x0c\x02\x0b"+
			"\x20\x00"+i32(2)+"\x46\x04\x40\x02\x40\x02\x40"+i32(9)+i32(2)+"\x0e\x00\x04\x0b\x0b\x0b\x0b\x20\x00"+i32(1)+"\x6b\x10\x00\x1a")))
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
	m, err := h.instantiate(t.Context(), "", r, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []uint64{7, 8, 9, 0, 0, 0} {
		got, err := m.ExportedFunction("f0").Call(t.Context(), uint64(n))
		if err != nil || got[0] != want {
			t.Errorf("f0(%d): got %v, %v, want %d", n, got, err, want)
		}
		if left := m.ExportedGlobal(instrument.StackGlobal).Get(); left != 1<<20 {
			t.Errorf("after f0(%d) the call stack has %d bytes left, want %d", n, left, 1<<20)
		}
	}
}
