package instrument_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// mostPace is the longest that a unit of fuel may take, in nanoseconds. The length of slices is based on this.
const mostPace = 16

// processorTime returns how much processor time the thread has used: other tests also use the machine.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// pace runs f0, which never ends, for some milliseconds at a time. It returns how long a unit took in the fastest of these runs, in nanoseconds.
func pace(t *testing.T, module []byte) float64 {
	t.Helper()
	r, err := rewrite(module)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	h := newHost(t, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
	h.slice = 10_000
	best := math.Inf(1)
	var begun time.Duration
	var units int64
	rounds := 0
	h.onSlice = func() {
		units += int64(h.slice) - int64(h.left)
		took := processorTime() - begun
		if took < 2*time.Millisecond {
			return
		}
		if rounds > 0 { // the first run touches the stack and fills the caches
			best = min(best, float64(took)/float64(units))
		}
		if rounds++; rounds == 5 {
			panic(errStopped)
		}
		begun, units = processorTime(), 0
	}
	m, err := h.instantiate(t.Context(), "", r, 1<<26)
	if err != nil {
		t.Fatal(err)
	}
	begun = processorTime()
	if _, err := m.ExportedFunction("f0").Call(context.Background(), 1000); !errors.Is(err, errStopped) {
		t.Fatalf("got %v, want it to be stopped", err)
	}
	return best
}

// joined returns a body with n locals of a kind, after local 1, which is 0. code is a loop; an S in it stands for setting all these locals. They are
// needed after the loop.
func joined(n int, kind byte, code string) []byte {
	give, drop := "\x20\x00", "\x1a"
	if kind == 0x7b {
		give = "\x20\x00\xfd\x11" // i32x4.splat
	}
	var sets, gets strings.Builder
	for i := range n {
		fmt.Fprintf(&sets, "%s\x21%s", give, leb(i+2))
		fmt.Fprintf(&gets, "\x20%s%s", leb(i+2), map[byte]string{0x7f: "\x6a", 0x7b: "\xfd\x51"}[kind])
	}
	first := map[byte]string{0x7f: "\x41\x00", 0x7b: "\x41\x00\xfd\x11"}[kind]
	return slices.Concat([]byte("\x02\x01\x7f"), leb(n), []byte{kind},
		[]byte("\x02\x40"+strings.ReplaceAll(code, "S", sets.String())+"\x0b"+first+gets.String()+drop+"\x41\x00\x0b"))
}

// TestJoins moves the values of many locals at joins, because the locals are set on paths that are never taken.
// Proves: A tool stops
func TestJoins(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	testkit.SkipEmulated(t, "it measures the time that code takes")
	if testkit.Race(t) {
		t.Skip("the race detector makes the host slower than any guest")
	}
	for name, code := range map[string]string{
		"an if in a loop":      "\x03\x40\x20\x01\x04\x40S\x0b\x20\x01\x0d\x01\x0c\x00\x0b",
		"an else in a loop":    "\x03\x40\x20\x01\x45\x04\x40\x05S\x0b\x20\x01\x0d\x01\x0c\x00\x0b",
		"a block in a loop":    "\x03\x40\x02\x40\x20\x00\x0d\x00S\x0b\x20\x01\x0d\x01\x0c\x00\x0b",
		"a branch by a table":  "\x03\x40\x02\x40\x02\x40\x20\x01\x0e\x01\x01\x00\x0bS\x0b\x20\x01\x0d\x01\x0c\x00\x0b",
		"a loop in a loop":     "\x03\x40\x03\x40\x20\x01\x0d\x02\x20\x01\x04\x40S\x0c\x01\x0b\x0b\x0c\x00\x0b",
		"a loop without an if": "\x03\x40\x20\x00\x0d\x00S\x20\x01\x0d\x01\x0c\x00\x0b",
	} {
		type locals struct {
			n    int
			kind byte
		}
		all := []locals{{20, 0x7f}, {100, 0x7b}, {1000, 0x7b}}
		if name == "an if in a loop" { // one case is enough: these take long to compile and to run
			all = append(all, locals{3072, 0x7b}, locals{6000, 0x7f})
		}
		for _, c := range all {
			t.Run(fmt.Sprintf("%d of %#x set in %s", c.n, c.kind, name), func(t *testing.T) {
				body := joined(c.n, c.kind, code)
				got := pace(t, program(1, body))
				t.Logf("%d bytes: a unit takes %.2f ns", len(body), got)
				if got > mostPace {
					t.Errorf("a unit takes %.1f ns, want %d at most", got, mostPace)
				}
			})
		}
	}
}

// TestFloats computes with floats that are denormal, or become so. Some processors take a hundred times as long for them.
// Proves: A tool stops
func TestFloats(t *testing.T) {
	testkit.SkipEmulated(t, "it measures the time that code takes")
	if testkit.Race(t) {
		t.Skip("the race detector makes the host slower than any guest")
	}
	f64 := func(f float64) string {
		b := make([]byte, 8)
		for i := range b {
			b[i] = byte(math.Float64bits(f) >> (8 * i))
		}
		return "\x44" + string(b)
	}
	const small, again = 1e-310, "\x20\x01\x20\x02"
	for name, c := range map[string]struct {
		first, second float64
		code          string
	}{
		"product":  {small, 0.9999999, again + "\xa2\x21\x01"},
		"sum":      {small, 5e-324, again + "\xa0\x21\x01"},
		"quotient": {small, 1.0000001, again + "\xa3\x21\x01"},
		"root":     {small, 0, "\x20\x02\x20\x01\x9f\xa0\x21\x02"},
		"demotion": {1e-40, 0, "\x20\x02\x20\x01\xb6\xbb\xa0\x21\x02"},
		"minimum":  {small, 5e-324, "\x20\x01\x20\x02\xa4\x21\x01"},
		"ordinary": {1.5, 0.5, again + "\xa0\x21\x01"},
	} {
		t.Run(name, func(t *testing.T) {
			body := "\x01\x02\x7c" + f64(c.first) + "\x21\x01" + f64(c.second) + "\x21\x02\x03\x40" + strings.Repeat(c.code, 100) +
				"\x20\x01\xbd\x20\x02\xbd\x85\x42\x11\x51\x04\x40\x00\x0b\x0c\x00\x0b\x00\x0b" // uses the results, so that the code is not dropped
			got := pace(t, program(1, []byte(body)))
			t.Logf("a unit takes %.2f ns", got)
			if got > mostPace {
				t.Errorf("a unit takes %.1f ns, want %d at most", got, mostPace)
			}
		})
	}
}
