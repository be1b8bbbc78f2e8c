package instrument_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestCompilingLoads compiles functions with many loads, each from a different address, and with many blocks. At the end of each block, wazero keeps
// a list of the addresses that it has checked. If none of our charges came in between and made wazero forget them, the lists would take loads ×
// blocks × 32 bytes. The test is not parallel, since it measures allocations.
func TestCompilingLoads(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for several seconds: not with -short")
	}
	testkit.SkipEmulated(t, "it counts the compiler's allocations, which do not depend on the processor")
	if testkit.Race(t) {
		t.Skip("takes most of a minute with -race, and nothing in it is concurrent")
	}
	const load = "\x20\x00\x28\x02\x00\x21\x00" // local.get 0, i32.load, local.set 0
	for name, code := range map[string]string{
		"nothing else":   strings.Repeat(load, 100_000),
		"then if else":   strings.Repeat(load, 100_000) + strings.Repeat("\x20\x00\x04\x40\x05\x0b", 3_000),
		"between br_ifs": "\x02\x40" + strings.Repeat("\x20\x00\x0d\x00"+strings.Repeat(load, 14), 6_000) + "\x0b",
		"in loops":       strings.Repeat("\x03\x40"+strings.Repeat(load, 40)+"\x20\x00\x0d\x00\x0b", 700),
	} {
		t.Run(name, func(t *testing.T) {
			r, err := rewrite(program(1, []byte("\x00"+code+"\x41\x00\x0b")))
			if err != nil {
				t.Fatal(err)
			}
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err = h.instantiate(t.Context(), "", r, 1<<24); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 1000 {
				t.Errorf("compiling %d KB of code allocated %d MB, want a few hundred", len(code)>>10, took)
			} else {
				t.Logf("%d MB", took)
			}
		})
	}
}

// Elements count in segments of every kind.
// Proves: Compiling is bounded
func TestElements(t *testing.T) {
	t.Parallel()
	r, err := rewrite(module(
		section(1, vec(b(0x60, 0, 0))), section(3, vec(b(0))), section(4, vec(b(0x70, 0, 5), b(0x6f, 0, 7))),
		section(9, vec(append(b(0, 0x41, 0, 0x0b), vec(b(0), b(0))...), append(b(1, 0), vec(b(0), b(0), b(0))...), append(b(3, 0), vec(b(0))...), append(b(5, 0x70), vec(b(0xd2, 0, 0x0b))...))),
		section(10, vec(append(leb(2), 0, 0x0b))),
	))
	if err != nil {
		t.Fatal(err)
	}
	if r.Elements != 4+7 || r.TableMost != 12 {
		t.Errorf("got %d elements and segments, %d in tables, want 11 and 12", r.Elements, r.TableMost)
	}
}

// If no instruction grows a table, tables count with their initial size. Otherwise they count with the size to which they can grow.
// Proves: Limits hold, one by one and in sum
func TestTables(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]uint64{"": 5, "\xd0\x70\x41\x00\xfc\x0f\x01\x1a": 9 + 128<<10} {
		r, err := rewrite(module(
			section(1, vec(b(0x60, 0, 0))), section(3, vec(b(0))), section(4, vec(b(0x70, 1, 2, 9), b(0x70, 0, 3))),
			section(10, vec(append(leb(len(code)+2), "\x00"+code+"\x0b"...))),
		))
		if err != nil {
			t.Fatal(err)
		}
		if r.TableMost != want {
			t.Errorf("got %d elements, want %d", r.TableMost, want)
		}
	}
}
