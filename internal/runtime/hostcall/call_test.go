package hostcall_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
)

// invoke calls a function of set 1 of 2 in a run.
func invoke(t *testing.T, memory []byte, r hostcall.Run, do func(*hostcall.Call)) *hosttest.Guest {
	g := hosttest.Begin(t, memory, 2, r)
	g.Invoke(&hostcall.Function{Name: "f", Do: func(c *hostcall.Call, _ []uint64) { do(c) }}, 1)
	return g
}

// TestPlaces passes addresses at the end of the memory, and outside it, to each method that takes one.
func TestPlaces(t *testing.T) {
	t.Parallel()
	serving := hostcall.Run{Serving: true, Input: []byte("12345678")}
	for _, method := range []struct {
		name   string
		length uint64
		do     func(c *hostcall.Call, ptr, length uint64)
	}{
		{"View", 8, func(c *hostcall.Call, ptr, length uint64) { c.View(ptr, length) }},
		{"Read", 8, func(c *hostcall.Call, ptr, length uint64) { c.Read(ptr, length) }},
		{"ReadInput", 8, func(c *hostcall.Call, ptr, length uint64) { c.ReadInput(ptr, length) }},
		{"Write", 8, func(c *hostcall.Call, ptr, length uint64) { c.Write(ptr, make([]byte, length)) }},
		{"WriteUint32", 4, func(c *hostcall.Call, ptr, _ uint64) { c.WriteUint32(ptr, 1) }},
		{"WriteUint64", 8, func(c *hostcall.Call, ptr, _ uint64) { c.WriteUint64(ptr, 1) }},
	} {
		for ptr, outside := range map[uint64]bool{0: false, 16 - method.length: false, 17 - method.length: true, 16: true, math.MaxUint32: true} {
			got := hosttest.Trapped(func() {
				invoke(t, make([]byte, 16), serving, func(c *hostcall.Call) { method.do(c, ptr, method.length) })
			})
			if (got != "") != outside || outside && !strings.HasPrefix(got, "it gave f a place outside its memory") {
				t.Errorf("%s at %d: got the trap %q, want a trap: %t", method.name, ptr, got, outside)
			}
		}
	}
}

// TestCopies checks that bytes that were read belong to the host, and that bytes that were written belong to the guest.
func TestCopies(t *testing.T) {
	t.Parallel()
	m := []byte("0123456789abcdef")
	g := invoke(t, m, hostcall.Run{Serving: true, Input: []byte("input")}, func(c *hostcall.Call) {
		read := c.Read(0, 4)
		c.Write(0, []byte("++"))
		if string(read) != "0123" {
			t.Errorf("the bytes that were read have become %q", read)
		}
		if n := c.ReadInput(4, 3) + 10*c.ReadInput(7, 9) + 100*c.ReadInput(99, 99); n != 23 {
			t.Errorf("read %d, want 3, 2 and 0 bytes of input", n)
		}
		c.AppendOutput([]byte("lost"))
		c.SetOutput([]byte("out"))
		c.AppendOutput([]byte("put"))
		c.Fail([]byte("failure"))
		if !c.Progress(1, 2, []byte("half")) {
			t.Error("a report of a call is dropped")
		}
	})
	if got := fmt.Sprint(g.Reports); got != "[1/2 half]" {
		t.Errorf("got the progress %s", got)
	}
	if string(m) != "++23input9abcdef" || g.Output != "output" || g.Failure != "failure" {
		t.Errorf("got %q, output %q, failure %q", m, g.Output, g.Failure)
	}
	start := invoke(t, m, hostcall.Run{}, func(c *hostcall.Call) {
		c.SetOutput([]byte("out"))
		c.Fail([]byte("failure"))
		c.Progress(1, 2, nil)
		if c.Grant() != nil || c.Principal() != nil || len(c.Input()) > 0 {
			t.Error("a start has input, a principal or a grant")
		}
	})
	if start.Output != "" || start.Failure != "" || start.Reports != nil {
		t.Errorf("a start has the output %q, the failure %q and the progress %q", start.Output, start.Failure, start.Reports)
	}
}

// TestCharge lets work add up until the host checks the call.
func TestCharge(t *testing.T) {
	t.Parallel()
	g := hosttest.Begin(t, make([]byte, 1<<20), 1, hostcall.Run{})
	c := &g.ABI
	c.Charge(150_000)
	c.Write(0, make([]byte, 399_992))
	if g.Looks != 0 {
		t.Errorf("checked after %d ns", g.Charged())
	}
	c.Write(0, make([]byte, 8))
	if charged := g.Charged(); g.Looks != 1 || charged != 200_000 {
		t.Errorf("%d checks after %d ns, want one after 200,000", g.Looks, charged)
	}
}

// TestLongProgress reports progress with a message as long as the memory. The host reads only as much of it as may be passed on, and
// charges for that.
// Proves: A tool stops
func TestLongProgress(t *testing.T) {
	t.Parallel()
	g := hosttest.Begin(t, nil, 1, hostcall.Run{Serving: true})
	g.ABI.Progress(1, 0, make([]byte, 1<<20))
	if n := len(g.Reports[0]) - len("1/0 "); n > 2*hostcall.MaxLine || g.Charged() < int64(n) {
		t.Errorf("%d bytes of the message were read, and %d ns charged", n, g.Charged())
	}
}

// A state records that it was ended.
type state struct {
	ends  *[]string
	name  string
	panic bool
}

func (s state) End(*hostcall.Call) {
	if *s.ends = append(*s.ends, s.name); s.panic {
		panic(s.name)
	}
}

// TestStatesEnd keeps states for two sets, one of them twice, and ends them all, although one panics.
func TestStatesEnd(t *testing.T) {
	t.Parallel()
	var ends []string
	g := hosttest.Begin(t, nil, 2, hostcall.Run{Grants: []any{"grant of set 0"}})
	c := &g.ABI
	in := func(set int, do func()) {
		c.Invoke(&hostcall.Function{Do: func(*hostcall.Call, []uint64) { do() }}, set, nil)
	}
	in(0, func() {
		if c.Local() != nil || c.Grant() != "grant of set 0" {
			t.Errorf("set 0 has the state %v and the grant %v", c.Local(), c.Grant())
		}
		c.Keep(state{&ends, "first", false})
		c.Keep(state{&ends, "second", true})
	})
	in(1, func() {
		if c.Local() != nil || c.Grant() != nil {
			t.Errorf("set 1 has the state %v and the grant %v", c.Local(), c.Grant())
		}
		c.Keep(state{&ends, "other", true})
	})
	func() {
		defer func() { _ = recover() }()
		c.End()
	}()
	c.End()
	if got := strings.Join(ends, " "); got != "first other second" {
		t.Errorf("ended: %s", got)
	}
	in(0, func() {
		if c.Local() != nil {
			t.Error("a state is still kept")
		}
	})
}

// TestEnter has a function run the guest, which calls a function of another set. Each function has the grant and the state of its own set. The first
// function still has its own afterwards.
// Proves: Nothing without a grant
func TestEnter(t *testing.T) {
	t.Parallel()
	var ends []string
	g := hosttest.Begin(t, nil, 2, hostcall.Run{Grants: []any{"grant of set 0", "grant of set 1"}})
	inner := 0
	g.Exports = map[string]func([]uint64){"f(i)i": func(stack []uint64) {
		g.ABI.Invoke(&hostcall.Function{Name: "inner", Do: func(c *hostcall.Call, _ []uint64) {
			if inner++; c.Grant() != "grant of set 0" || c.Local() != nil {
				t.Errorf("the inner function has the grant %v and the state %v", c.Grant(), c.Local())
			}
		}}, 0, nil)
		stack[0]++
	}}
	g.Invoke(&hostcall.Function{Name: "outer", Do: func(c *hostcall.Call, _ []uint64) {
		kept := state{&ends, "outer", false}
		c.Keep(kept)
		before := g.Charged()
		if got := []uint64{41}; !c.Enter("f", "i", "i", got) || got[0] != 42 || inner != 1 {
			t.Errorf("got %d after %d calls, want 42 after one", got[0], inner)
		}
		if c.Grant() != "grant of set 1" || c.Local() != kept {
			t.Errorf("afterwards the outer function has the grant %v and the state %v", c.Grant(), c.Local())
		}
		if c.Enter("f", "", "", nil) || c.Enter("g", "i", "i", []uint64{0}) || inner != 1 {
			t.Error("a function that is not exported runs")
		}
		if charged := g.Charged() - before; charged < 3*1000 {
			t.Errorf("three attempts are charged %d ns", charged)
		}
		if got := hosttest.Trapped(func() { c.View(0, 1) }); !strings.Contains(got, "outer") {
			t.Errorf("got the trap %q, want it to name the function", got)
		}
	}}, 1)
	g.ABI.End()
}

// TestUses checks that uses, and how much memory is held, are passed on to the host.
func TestUses(t *testing.T) {
	t.Parallel()
	use := hostcall.Use{Capability: "http", Target: "https://example.com", Sent: 1, Received: 2, Took: 3, Outcome: "timeout"}
	g := invoke(t, nil, hostcall.Run{Serving: true}, func(c *hostcall.Call) {
		c.Used(use)
		c.Hold(100)
		c.Hold(-60)
	})
	if len(g.Uses) != 1 || g.Uses[0] != use || g.Held != 40 {
		t.Errorf("used %v and holds %d bytes", g.Uses, g.Held)
	}
}
