// Package convention defines the ways in which the host calls the tools of a module. Each way is a value that says which functions run, how they
// begin, and what their results mean. The sandbox treats all of them alike: another convention is another value in [All].
package convention

import (
	"errors"
	"fmt"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// A Convention is one way of calling tools. Conventions are compared by their addresses, and never change.
type Convention struct {
	// Call is the export that runs a tool. It has at most one parameter and one result.
	Call Export
	// Initialize and Warm are run, in this order, before the first call, if the module exports them.
	Initialize, Warm Export
	// Describe is the export that outputs the manifest.
	Describe Export
	// Where is the export that returns the address of a text. If the guest is stopped, the text says where it was.
	Where Export
	// Command is set if a module holds only one tool, number 0, whose standard input and output belong to the call.
	Command bool
	// Begin stores the arguments of Call for a tool in stack.
	Begin func(stack []uint64, tool int32)
	// Result interprets the end of Call or Describe. stack holds the returned values, unless err is not nil.
	Result func(stack []uint64, err error) Result
}

// An Export is a function that a module exports.
type Export struct {
	Name string
	Type wasmbin.FuncType
}

// A Result says what the end of a function means.
type Result struct {
	End End
	// Starved says that, if the guest was refused memory, this was the reason for its end.
	Starved bool
	// Reason is the reason that the guest gave, if End is Failed. It may be empty.
	Reason string
	// Message is the host's sentence, if End is Wrong or the guest has given no reason.
	Message string
}

// An End is a way in which a function can end.
type End int

// The ways in which a function can end.
const (
	Broke    End = iota // it ended in a way that the convention does not define
	Done                // its output is the result
	Reported            // it failed, for the reason that it passed to fail
	Failed              // it failed, for the reason in Reason
	Wrong               // it returned a value that the convention does not define
)

// All returns the conventions. A module follows the first one whose Call it exports.
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

// The other exports that modules of either convention may have.
var (
	number     = wasmbin.FuncType{Results: []wasmbin.ValueType{wasmbin.I32}}
	initialize = Export{Name: "_initialize"}
	warm       = Export{Name: "toolsrv_warm"}
	describe   = Export{"toolsrv_describe", number}
	where      = Export{"toolsrv_where", number}
)

// returned interprets the result of ABI 1: 0 is done, 1 failed, and 2 failed for lack of memory.
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
			Message: fmt.Sprintf("The tool returned %d instead of 0 (done), 1 (failed) or 2 (failed for lack of memory).", int32(code))}
	}
}

var silent = [...]string{
	1: "The tool failed without saying why: it returned 1, but did not call fail.",
	2: "The tool failed without saying why: it returned 2, but did not call fail.",
}

// exited interprets the end of a plain WASI program by its exit code.
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
