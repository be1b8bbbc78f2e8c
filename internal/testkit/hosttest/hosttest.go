// Package hosttest plays the part of a guest, to test the functions that guests import without a guest.
package hosttest

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/capability/hostset"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

// A Guest stands for a guest in one call: a test plays its part. A Guest also records what the host was asked to do. A test uses it on one
// goroutine.
type Guest struct {
	Memory  []byte
	ABI     hostcall.Call
	Context context.Context // the context with which the host waits for the guest

	Looks           int
	Output, Failure string
	Reports         []string // progress reports: "done/total message"
	Lines           []string // log lines: "source: line"
	Uses            []hostcall.Use
	Held, MostHeld  int64       // bytes
	Descriptors     int64       // how many descriptors are left
	Tallies         map[any]int // counts by grant, shared by all calls inside a client's call

	Exports map[string]func(stack []uint64) // the guest's exports by name, parameters and results, such as "alloc(i)i"

	spent int64
}

// Begin begins a call of a guest with the given memory, which can be replaced later, on a host with the given number of sets of functions. The caller
// must end the call.
func Begin(t testing.TB, memory []byte, sets int, run hostcall.Run) *Guest {
	g := &Guest{Memory: memory, Context: t.Context(), Descriptors: 1000, Tallies: map[any]int{}}
	g.ABI = hostcall.NewCall(host{g: g}, hostcall.Guest{Memory: view{g}, Sets: sets})
	g.ABI.Begin(run)
	return g
}

// Charged returns what the host's work is estimated to have taken so far, in nanoseconds.
func (g *Guest) Charged() int64 {
	g.spent += g.ABI.Spent()
	return g.spent
}

// Invoke calls a function of the set with that number, and returns its result, or the first parameter if the function has no result.
func (g *Guest) Invoke(f *hostcall.Function, set int, params ...uint64) uint64 {
	stack := make([]uint64, 1+len(params))
	copy(stack, params)
	g.ABI.Invoke(f, set, stack[:max(1, len(params))])
	return stack[0]
}

// Do calls a function of a capability, as Invoke does.
func (g *Guest) Do(f *hostabi.Function, set int, params ...uint64) uint64 {
	function := hostset.Function(*f)
	return g.Invoke(&function, set, params...)
}

// Trapped returns the message of the trap that f ends in, or "".
func Trapped(f func()) (message string) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *hostcall.Trap:
			message = p.Message
		default:
			panic(p)
		}
	}()
	f()
	return ""
}

// A view is the memory of a guest.
type view struct{ g *Guest }

func (v view) Size() uint32 { return uint32(len(v.g.Memory)) }

func (v view) Read(offset, length uint32) ([]byte, bool) {
	if end := uint64(offset) + uint64(length); end > uint64(len(v.g.Memory)) {
		return nil, false
	}
	return v.g.Memory[offset : offset+length : offset+length], true
}

// A host records what a guest asks of it.
type host struct {
	hostcall.Outer // nil, since no guest of a test calls another one
	g              *Guest
}

var _ hostcall.Host = host{}

func (h host) Look() {
	h.g.Looks++
	h.g.Charged()
}

func (h host) Context() context.Context { return h.g.Context }

func (h host) Wait(f func(context.Context)) {
	f(h.g.Context)
	if h.g.Context.Err() != nil {
		panic(&hostcall.Trap{Message: "the call is over"})
	}
}

func (h host) Enter(export, params, results string, stack []uint64) bool {
	f := h.g.Exports[export+"("+params+")"+results]
	if f != nil {
		f(stack)
	}
	return f != nil
}

func (h host) Nest(f func(context.Context)) { f(h.g.Context) }
func (h host) Ends() time.Time              { return time.Now().Add(time.Minute) }
func (h host) Fail(b []byte)                { h.g.Failure = string(b) }

func (h host) Output(b []byte, replace bool) {
	if replace {
		h.g.Output = ""
	}
	h.g.Output += string(b)
}

func (h host) Progress(done, total float64, message []byte) bool {
	h.g.Reports = append(h.g.Reports, fmt.Sprintf("%v/%v %s", done, total, message))
	return true
}

func (h host) Log(_ slog.Level, source string, line []byte) bool {
	h.g.Lines = append(h.g.Lines, fmt.Sprintf("%s: %s", source, line))
	return true
}

func (h host) Used(u hostcall.Use) { h.g.Uses = append(h.g.Uses, u) }

func (h host) Tally(key any, n int) int {
	h.g.Tallies[key] += n
	return h.g.Tallies[key]
}

func (h host) Hold(n int64) {
	h.g.Held += n
	h.g.MostHeld = max(h.g.MostHeld, h.g.Held)
}

func (h host) Descriptor(n int64) bool {
	if n > h.g.Descriptors {
		return false
	}
	h.g.Descriptors -= n
	return true
}
