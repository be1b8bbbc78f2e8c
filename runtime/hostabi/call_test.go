package hostabi_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// A memory is that of a guest.
type memory []byte

func (m memory) Size() uint32 { return uint32(len(m)) }

func (m memory) Read(offset, length uint32) ([]byte, bool) {
	if end := uint64(offset) + uint64(length); end > uint64(len(m)) {
		return nil, false
	}
	return m[offset : offset+length : offset+length], true
}

// A host notes what a call asks of it.
type host struct {
	hostabi.Host // what no test needs

	looks           int
	output, failure string
	progress        []string
	used            []hostabi.Use
	held            int64
}

func (h *host) Look()                               { h.looks++ }
func (h *host) Descriptor(int64) bool               { return true }
func (h *host) Wait(f func(context.Context))        { f(context.Background()) }
func (h *host) Ends() time.Time                     { return time.Time{} }
func (h *host) Fail(b []byte)                       { h.failure = string(b) }
func (h *host) Log(slog.Level, string, []byte) bool { return true }
func (h *host) Progress(done, total float64, message []byte) bool {
	h.progress = append(h.progress, fmt.Sprintf("%v/%v %s", done, total, message))
	return true
}
func (h *host) Used(u hostabi.Use) { h.used = append(h.used, u) }
func (h *host) Hold(n int64)       { h.held += n }
func (h *host) Output(b []byte, replace bool) {
	if replace {
		h.output = ""
	}
	h.output += string(b)
}

// invoke runs a function of set 1 of 2, with 16 bytes of memory, in a run.
func invoke(h *host, m memory, r hostabi.Run, do func(*hostabi.Call)) {
	c := hostabi.NewCall(h, hostabi.Guest{Memory: m, Sets: 2})
	c.Begin(r)
	c.Invoke(&hostabi.Function{Name: "f", Do: func(c *hostabi.Call, _ []uint64) { do(c) }}, 1, nil)
}

// trapped returns the message of the trap that f ends in.
func trapped(t *testing.T, f func()) (message string) {
	t.Helper()
	defer func() {
		if trap, ok := recover().(*hostabi.Trap); ok {
			message = trap.Message
		}
	}()
	f()
	return ""
}

// TestPlaces passes each method that takes a place some at the memory's end, and outside it.
func TestPlaces(t *testing.T) {
	t.Parallel()
	serving := hostabi.Run{Serving: true, Input: []byte("12345678")}
	for _, method := range []struct {
		name   string
		length uint64
		do     func(c *hostabi.Call, ptr, length uint64)
	}{
		{"View", 8, func(c *hostabi.Call, ptr, length uint64) { c.View(ptr, length) }},
		{"Read", 8, func(c *hostabi.Call, ptr, length uint64) { c.Read(ptr, length) }},
		{"ReadInput", 8, func(c *hostabi.Call, ptr, length uint64) { c.ReadInput(ptr, length) }},
		{"Write", 8, func(c *hostabi.Call, ptr, length uint64) { c.Write(ptr, make([]byte, length)) }},
		{"WriteUint32", 4, func(c *hostabi.Call, ptr, _ uint64) { c.WriteUint32(ptr, 1) }},
		{"WriteUint64", 8, func(c *hostabi.Call, ptr, _ uint64) { c.WriteUint64(ptr, 1) }},
	} {
		for ptr, outside := range map[uint64]bool{0: false, 16 - method.length: false, 17 - method.length: true, 16: true, math.MaxUint32: true} {
			got := trapped(t, func() {
				invoke(&host{}, make(memory, 16), serving, func(c *hostabi.Call) { method.do(c, ptr, method.length) })
			})
			if (got != "") != outside || outside && !strings.HasPrefix(got, "it gave f a place outside its memory") {
				t.Errorf("%s at %d: got the trap %q, want one: %t", method.name, ptr, got, outside)
			}
		}
	}
}

// TestCopies holds that what is read belongs to the host, and what is written to the guest.
func TestCopies(t *testing.T) {
	t.Parallel()
	m := memory("0123456789abcdef")
	h := &host{}
	invoke(h, m, hostabi.Run{Serving: true, Input: []byte("input")}, func(c *hostabi.Call) {
		read := c.Read(0, 4)
		c.Write(0, []byte("++"))
		if string(read) != "0123" {
			t.Errorf("what was read has become %q", read)
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
	if got := fmt.Sprint(h.progress); got != "[1/2 half]" {
		t.Errorf("got the progress %s", got)
	}
	if string(m) != "++23input9abcdef" || h.output != "output" || h.failure != "failure" {
		t.Errorf("got %q, output %q, failure %q", m, h.output, h.failure)
	}
	start := &host{}
	invoke(start, m, hostabi.Run{}, func(c *hostabi.Call) {
		c.SetOutput([]byte("out"))
		c.Fail([]byte("failure"))
		c.Progress(1, 2, nil)
		if c.Grant() != nil || c.Principal() != nil || len(c.Input()) > 0 {
			t.Error("a start is given something")
		}
	})
	if start.output != "" || start.failure != "" || start.progress != nil {
		t.Errorf("a start has the output %q, the failure %q and the progress %q", start.output, start.failure, start.progress)
	}
}

// TestCharge has work add up until the host looks at the call.
func TestCharge(t *testing.T) {
	t.Parallel()
	h := &host{}
	invoke(h, make(memory, 1<<20), hostabi.Run{}, func(c *hostabi.Call) {
		c.Charge(150_000)
		c.Write(0, make([]byte, 399_992))
		if h.looks != 0 {
			t.Errorf("looked at after %d ns", c.Spent())
		}
		c.Write(0, make([]byte, 8))
		if spent := c.Spent(); h.looks != 1 || spent != 200_000 {
			t.Errorf("%d looks after %d ns, want one after 200,000", h.looks, spent)
		}
	})
}

// A state notes its end.
type state struct {
	ends  *[]string
	name  string
	panic bool
}

func (s state) End(*hostabi.Call) {
	if *s.ends = append(*s.ends, s.name); s.panic {
		panic(s.name)
	}
}

// TestStatesEnd keeps states for two sets, one of them twice, and ends them, though one panics.
func TestStatesEnd(t *testing.T) {
	t.Parallel()
	var ends []string
	c := hostabi.NewCall(&host{}, hostabi.Guest{Sets: 2})
	c.Begin(hostabi.Run{Grants: []any{"grant of set 0"}})
	in := func(set int, do func()) {
		c.Invoke(&hostabi.Function{Do: func(*hostabi.Call, []uint64) { do() }}, set, nil)
	}
	in(0, func() {
		if c.State() != nil || c.Grant() != "grant of set 0" {
			t.Errorf("set 0 has the state %v and the grant %v", c.State(), c.Grant())
		}
		c.Keep(state{&ends, "first", false})
		c.Keep(state{&ends, "second", true})
	})
	in(1, func() {
		if c.State() != nil || c.Grant() != nil {
			t.Errorf("set 1 has the state %v and the grant %v", c.State(), c.Grant())
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
		if c.State() != nil {
			t.Error("a state is left")
		}
	})
}

// TestUses passes on what is used and held.
func TestUses(t *testing.T) {
	t.Parallel()
	h := &host{}
	use := hostabi.Use{Capability: "http", Target: "https://example.com", Sent: 1, Received: 2, Took: 3, Outcome: "timeout"}
	invoke(h, nil, hostabi.Run{Serving: true}, func(c *hostabi.Call) {
		c.Used(use)
		c.Hold(100)
		c.Hold(-60)
	})
	if len(h.used) != 1 || h.used[0] != use || h.held != 40 {
		t.Errorf("used %v and holds %d bytes", h.used, h.held)
	}
}
