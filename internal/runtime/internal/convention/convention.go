// Package convention has the ways in which the host calls the tools of a module. Each is a value that says which functions run, how they
// begin, and what their ends mean. The sandbox has no case for any of them: a further one is one more value in [All].
package convention

import (
	"errors"
	"fmt"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// A Convention is one way to call tools. Conventions are compared by their addresses, and never change.
type Convention struct {
	// Call is the export that runs a tool. It takes, and gives, one value at most.
	Call Export
	// Initialize and Warm are what a module may want to have run, in this order, before the first call.
	Initialize, Warm Export
	// Describe writes the manifest as its output.
	Describe Export
	// Where returns the address of a text that says if the guest was when it was ended.
	Where Export
	// Command is set where a module holds one tool, number 0, whose standard input and output belong to the call.
	Command bool
	// Begin writes what Call is given for a tool.
	Begin func(stack []uint64, tool int32)
	// Result says what the end of Call or Describe means: stack is what it has returned, unless err is not nil.
	Result func(stack []uint64, err error) Result
}

// An Export is a function that a module exports.
type Export struct {
	Name string
	Type wasmbin.FuncType
}

// A Result is what the end of a function means.
type Result struct {
	End End
	// Starved says that the guest ended that way because it was refused memory, if it was.
	Starved bool
	// Reason is the guest's own, of Failed; it may be empty.
	Reason string
	// Message is the host's sentence, of Wrong, and if the guest has given no reason.
	Message string
}

// An End is a way in which a function ends.
type End int

// The ways.
const (
	Broke    End = iota // it did not end in a way of the convention
	Done                // its output is the result
	Reported            // it failed, for the reason that it passed to fail
	Failed              // it failed, for Reason
	Wrong               // it returned what the convention does not know
)

// All returns the conventions. A module is of the first whose Call it exports.
func All() []*Convention { return all[:] }

var all = [...]*Convention{
	{
		Call:       Export{"toolsrv_call", wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32}, Results: []wasmbin.ValueType{wasmbin.I32}}},
		Initialize: initialize, Warm: warm, Describe: describe, Where: where,
		Begin:  func(stack []uint64, tool int32) { stack[0] = uint64(uint32(tool)) },
		Result: returned,
	},
	{
		Call:       Export{Name: "_start"},
		Initialize: initialize, Warm: warm, Describe: describe, Where: where,
		Command: true,
		Begin:   func([]uint64, int32) {},
		Result:  exited,
	},
}

// The limits for modules of both.
var (
	number     = wasmbin.FuncType{Results: []wasmbin.ValueType{wasmbin.I32}}
	initialize = Export{Name: "_initialize"}
	warm       = Export{Name: "toolsrv_warm"}
	describe   = Export{"toolsrv_describe", number}
	where      = Export{"toolsrv_where", number}
)

// returned is the result of ABI 1: 0 is done, 1 failed, and 2 failed for lack of memory.
func returned(stack []uint64, err error) Result {
	if err != nil {
		return Result{End: Broke}
	}
	switch code := uint32(stack[0]); code {
	case 0:
		return Result{End: Done}
	case 1, 2:
		return Result{End: Reported, Starved: code == 2, Message: silent[code]}
	default:
		return Result{End: Wrong, Starved: true,
			Message: fmt.Sprintf("The tool returned %d instead of 0 (done), 1 (failed) or 2 (failed for want of memory).", int32(code))}
	}
}

var silent = [...]string{
	1: "The tool failed without saying why: it returned 1, but did not call fail.",
	2: "The tool failed without saying why: it returned 2, but did not call fail.",
}

// exited is the result of a plain WASI program: its exit code.
func exited(_ []uint64, err error) Result {
	var end *hostcall.Exit
	switch {
	case err == nil:
		return Result{End: Done}
	case !errors.As(err, &end):
		return Result{End: Broke}
	case end.Code == 0:
		return Result{End: Done}
	}
	return Result{End: Failed, Starved: true, Reason: end.Message, Message: fmt.Sprintf("The tool ended with exit code %d.", end.Code)}
}
