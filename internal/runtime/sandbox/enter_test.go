package sandbox_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// entered returns a guest. Its tool n makes the host run the guest's export named e and n (e0 for tool 0), writes to the last page of its memory,
// and answers 1. Tool 5 makes the host run the export without end, and tool 6 a thousand times.
func entered() []byte {
	code := func(body string) []byte {
		return slices.Concat(wasmtest.LEB(len(body)+2), []byte{0}, []byte(body), []byte{0x0b})
	}
	const call = 2 // after two imports
	exports := [][]byte{
		slices.Concat(wasmtest.Str("memory"), wasmtest.Bytes(2, 0)),
		slices.Concat(wasmtest.Str("toolsrv_call"), wasmtest.Bytes(0, call)),
		slices.Concat(wasmtest.Str("alloc"), wasmtest.Bytes(0, call+8)),
		slices.Concat(wasmtest.Str("host"), wasmtest.Bytes(0, 0)), // the host's own function
	}
	for n := range byte(7) {
		exports = append(exports, slices.Concat(wasmtest.Str(fmt.Sprintf("e%d", n)), wasmtest.Bytes(0, call+1+n)))
	}
	tool := "\x20\x00\x41\x05\x46\x04\x40\x03\x40\x41\x05\x10\x00\x0c\x00\x0b\x0b" + // if tool is 5: loop: enter(5)
		"\x20\x00\x41\x06\x46\x04\x40\x03\x40\x41\x06\x10\x00\x41\x08\x41\x08\x28\x02\x00\x41\x01\x6a\x36\x02\x00" + // if tool is 6: loop: enter(6), count
		"\x41\x08\x28\x02\x00\x41\xe8\x07\x49\x0d\x00\x0b\x0b" + // until 1,000
		"\x20\x00\x10\x00" + // enter(tool)
		"\x3f\x00\x41\x01\x6b\x41\x10\x74\x41\x31\x3a\x00\x00" + // a byte of the last page
		"\x41\x00\x41\x31\x3a\x00\x00\x41\x00\x41\x01\x10\x01\x41\x00"
	return wasmtest.Module(
		wasmtest.Section(1, wasmtest.Vec(
			wasmtest.Bytes(0x60, 1, 0x7f, 1, 0x7f), wasmtest.Bytes(0x60, 1, 0x7f, 0), wasmtest.Bytes(0x60, 2, 0x7f, 0x7f, 0), wasmtest.Bytes(0x60, 0, 0))),
		wasmtest.Section(2, wasmtest.Vec(
			slices.Concat(wasmtest.Str("probe"), wasmtest.Str("enter"), wasmtest.Bytes(0, 1)),
			slices.Concat(wasmtest.Str(abi1.Module), wasmtest.Str("output_write"), wasmtest.Bytes(0, 2)))),
		wasmtest.Section(3, wasmtest.Bytes(9, 0, 3, 3, 3, 3, 3, 3, 3, 0)),
		wasmtest.Section(5, wasmtest.Bytes(1, 0, 1)),
		wasmtest.Section(7, wasmtest.Vec(exports...)),
		wasmtest.Section(10, wasmtest.Vec(
			code(tool),
			code("\x03\x40\x0c\x00\x0b"), // e0: an endless loop
			code("\x41\x01\x10\x00"),     // e1: has the host enter it again
			code("\x00"),                 // e2: a trap
			code("\x41\x04\x40\x00\x41\x7f\x46\x04\x40\x00\x0b"), // e3: grows the memory by four pages, or traps
			code("\x10\x07"), // e4: calls itself
			code("\x41\x04\x41\x00\x36\x02\x00\x03\x40\x41\x04\x41\x04\x28\x02\x00\x41\x01\x6a\x36\x02\x00\x41\x04\x28\x02\x00\x41\xa0\x8d\x06\x49\x0d\x00\x0b"), // e5: counts to 100,000
			code(""),                     // e6: nothing
			code("\x20\x00\x41\x01\x6a"), // alloc: returns its parameter plus one
		)),
	)
}

// TestEnter has the host run functions of a guest that break, or do not end. Their limits are the same as if the guest had run them, and the next
// call is not affected.
// Proves: Limits hold, one by one and in sum
// Proves: A tool stops
func TestEnter(t *testing.T) {
	t.Parallel()
	enters := 0
	probe := &hostcall.Set{Module: "probe", Functions: []hostcall.Function{{Name: "enter", Params: "i", Do: func(c *hostcall.Call, stack []uint64) {
		enters++
		name := fmt.Sprintf("e%d", stack[0])
		if c.Enter(name, "i", "", []uint64{0}) || c.Enter(name, "", "i", []uint64{0}) || c.Enter("nothing", "", "", nil) || c.Enter("memory", "", "", nil) {
			t.Error("the host ran a missing export")
		}
		if !c.Enter(name, "", "", nil) {
			t.Errorf("there is no %s", name)
		}
		if got := []uint64{41}; !c.Enter("alloc", "i", "i", got) || got[0] != 42 {
			t.Errorf("alloc gave %d, want 42", got)
		}
		c.View(0, 1)
	}}}}
	e, err := sandbox.New(t.Context(), sandbox.Config{Imports: append(abi1.Sets(), probe), Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	p, err := e.Load(entered(), abi1.Module, "probe")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	const page = 64 << 10
	ample := time.Minute
	for _, test := range []struct {
		name    string
		index   int32
		limits  limits.Limits
		outcome sandbox.Outcome // "": it answers
		message string
		most    int // of enters
	}{
		{"endless, by its time", 0, limits.Limits{Timeout: time.Second}, sandbox.ToolTimeout, "longer than its limit", 1},
		{"endless, by its fuel", 0, limits.Limits{Timeout: ample, Fuel: 10_000_000}, sandbox.ToolFuel, "", 1},
		{"host and guest in turn", 1, limits.Limits{Timeout: ample}, sandbox.ToolStack, "are nested more than", 9},
		{"a trap", 2, limits.Limits{Timeout: ample}, sandbox.ToolTrapped, "unreachable", 1},
		{"memory grows", 3, limits.Limits{Timeout: ample}, "", "", 1},
		{"memory must not grow", 3, limits.Limits{Timeout: ample, Memory: 3 * page}, sandbox.ToolMemory, "", 1},
		{"recursion", 4, limits.Limits{Timeout: ample, Stack: 1 << 20}, sandbox.ToolStack, "", 1},
		{"again and again, by its fuel", 5, limits.Limits{Timeout: ample, Fuel: 10_000_000}, sandbox.ToolFuel, "", 100},
		{"a thousand times", 6, limits.Limits{Timeout: ample}, "", "", 1001},
	} {
		for _, index := range []int32{test.index, 6} {
			l := limits.Limits{Timeout: ample}
			enters = 0
			if index == test.index {
				l = test.limits
			}
			out, err := p.Tool("x", index, l).Call(t.Context(), sandbox.CallSpec{})
			if index == test.index && enters > test.most {
				t.Errorf("%s: the host was asked %d times", test.name, enters)
			}
			if index == test.index && test.outcome != "" {
				wantError(t, err, test.outcome, test.message)
			} else if err != nil || string(out) != "1" {
				t.Errorf("%s, tool %d: got %q, %v, want 1", test.name, index, out, err)
			}
		}
	}
}

// TestUpperHalves has a guest pass and return an i32 where registers and the stack have held an i64. The host reads 7 as 7.
func TestUpperHalves(t *testing.T) {
	t.Parallel()
	code := func(body string) []byte {
		return slices.Concat(wasmtest.LEB(len(body)+2), []byte{0}, []byte(body), []byte{0x0b})
	}
	const full = "\x41\x08\x29\x03\x00" // i64.load (i32.const 8), from the data
	const wide = full + "\xa7"          // i32.wrap_i64
	guest := wasmtest.Module(
		wasmtest.Section(1, wasmtest.Vec(
			wasmtest.Bytes(0x60, 1, 0x7f, 1, 0x7f), wasmtest.Bytes(0x60, 3, 0x7f, 0x7e, 0x7f, 0), wasmtest.Bytes(0x60, 2, 0x7f, 0x7f, 0), wasmtest.Bytes(0x60, 3, 0x7e, 0x7e, 0x7e, 0))),
		wasmtest.Section(2, wasmtest.Vec(
			slices.Concat(wasmtest.Str("probe"), wasmtest.Str("look"), wasmtest.Bytes(0, 1)),
			slices.Concat(wasmtest.Str("probe"), wasmtest.Str("fill"), wasmtest.Bytes(0, 3)),
			slices.Concat(wasmtest.Str(abi1.Module), wasmtest.Str("output_write"), wasmtest.Bytes(0, 2)))),
		wasmtest.Section(3, wasmtest.Bytes(2, 0, 0)),
		wasmtest.Section(5, wasmtest.Bytes(1, 0, 1)),
		wasmtest.Section(7, wasmtest.Vec(
			slices.Concat(wasmtest.Str("memory"), wasmtest.Bytes(2, 0)),
			slices.Concat(wasmtest.Str("toolsrv_call"), wasmtest.Bytes(0, 3)),
			slices.Concat(wasmtest.Str("wide"), wasmtest.Bytes(0, 4)))),
		wasmtest.Section(10, wasmtest.Vec(
			code(full+full+full+"\x10\x01"+wide+full+wide+"\x10\x00"+"\x41\x00\x41\x01\x10\x02\x41\x00"), // fill, look, and write "1"
			code(wide),
		)),
		wasmtest.Section(11, wasmtest.Vec(
			slices.Concat(wasmtest.Bytes(0, 0x41, 0, 0x0b), wasmtest.Str("1\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\xff\xff\xff\x7f")))),
	)
	looks := 0
	probe := &hostcall.Set{Module: "probe", Functions: []hostcall.Function{{Name: "look", Params: "iIi", Do: func(c *hostcall.Call, stack []uint64) {
		looks++
		if want := []uint64{7, 0x7fffffff00000007, 7}; !slices.Equal(stack[:3], want) {
			t.Errorf("the guest passed %#x, want %#x", stack[:3], want)
		}
		if got := []uint64{math.MaxUint64}; !c.Enter("wide", "i", "i", got) || got[0] != 7 {
			t.Errorf("the guest returned %#x, want 7", got)
		}
	}}, {Name: "fill", Params: "III", Do: func(*hostcall.Call, []uint64) {}}}}
	e, err := sandbox.New(t.Context(), sandbox.Config{Imports: append(abi1.Sets(), probe), Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	p, err := e.Load(guest, abi1.Module, "probe")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if out, err := p.Tool("x", 0, limits.Limits{Timeout: time.Minute}).Call(t.Context(), sandbox.CallSpec{}); err != nil || string(out) != "1" || looks != 1 {
		t.Errorf("got %q, %v after %d looks", out, err, looks)
	}
}
