package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/internal/foundry"
	"github.com/toolsrv/toolsrv/internal/text"
)

// An Outcome is a stable word for how a call ended.
type Outcome string

// The outcomes of a call.
const (
	OK            Outcome = "ok"
	ToolError     Outcome = "tool_error"      // the tool reported a failure
	ToolTrapped   Outcome = "tool_trapped"    // the tool's code broke
	ToolTimeout   Outcome = "tool_timeout"    // the limit Timeout was reached
	ToolFuel      Outcome = "tool_fuel"       // the limit Fuel was used up
	ToolMemory    Outcome = "tool_memory"     // the tool broke after it was refused memory
	ToolStack     Outcome = "tool_stack"      // the call stack, or the stack in the guest's memory, was used up
	ToolBadOutput Outcome = "tool_bad_output" // the tool returned, but without a valid result
	InputTooLarge Outcome = "input_too_large" // the input is larger than the limit Input; the tool was not run
	Cancelled     Outcome = "cancelled"       // the caller gave up, or the engine is closing
	Overloaded    Outcome = "overloaded"      // the tool's queue is full, or the process has no room
	Internal      Outcome = "internal"        // not the tool's fault
)

// An Error is the reason why a call gave no result.
type Error struct {
	// Outcome is any outcome but OK.
	Outcome Outcome
	// Message is a sentence for the client. It reveals nothing about the host.
	Message string
	// Status, Code and Data are the guest's own, if Outcome is ToolError. Status is an HTTP status from 400 to 599, or 0 if the guest gave none. Code
	// and Data may be empty.
	Status int
	Code   string
	Data   json.RawMessage
	// Err is the cause, for the log, with the guest's stack trace if there is one. It is nil if Message says everything.
	Err error
}

// Error returns the message, and the cause if there is one.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + " " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A fault is the panic by which the host ends a guest. wazero recovers from it and adds the guest's stack trace.
type fault struct {
	outcome Outcome
	message string
}

func (f *fault) Error() string { return f.message }

// Parts of the first lines of wazero's traps. The type of a trap is internal to wazero, so its text must be examined; TestTraps checks it.
const (
	trapPrefix = "wasm error: "
	trapStack  = "stack overflow"
)

// classify turns the end of a guest into an outcome; nothing else does. err is the error that wazero returned, not nil.
func (i *instance) classify(err error) *Error {
	var (
		refused   *Error // there is no room in the account
		told      *fault
		misused   *hostcall.Trap
		ended     *hostcall.Exit
		hostPanic runtime.Error
		limits    = i.call.limits
	)
	line, _, _ := strings.Cut(err.Error(), "\n")
	broke := strings.Contains(line, trapPrefix) || errors.As(err, &misused)
	if errors.As(err, &told) {
		broke = false
	}
	switch {
	case errors.As(err, &refused):
		return refused
	case broke && i.overflown(): // the used-up stack is the reason, whatever then broke the guest
		return &Error{Outcome: ToolStack, Message: "The tool used up the stack in its memory: it calls itself too deeply, or keeps too much in local variables. Build it with a larger stack.",
			Err: clip(err)}
	case told != nil:
		return &Error{Outcome: told.outcome, Message: told.message, Err: clip(err)}
	case misused != nil:
		return &Error{Outcome: ToolTrapped, Message: fmt.Sprintf("The tool broke: %s.", misused.Message), Err: clip(err)}
	case errors.Is(err, errTimeout):
		return &Error{Outcome: ToolTimeout, Message: fmt.Sprintf("The tool ran longer than its limit of %s%s.", limits.Timeout, i.where()), Err: clip(err)}
	case errors.Is(err, errFuel):
		return &Error{Outcome: ToolFuel, Message: fmt.Sprintf("The tool ran for more than its limit of %d instructions%s.", i.call.meter.most, i.where()), Err: clip(err)}
	case errors.Is(err, errCancelled):
		return &Error{Outcome: Cancelled, Message: "The caller gave up before the tool was done.", Err: clip(err)}
	case errors.Is(err, errClosing):
		return closing(err)
	case errors.As(err, &hostPanic):
		return internal(err)
	case i.starved():
		return i.wantedMemory(clip(err))
	case errors.As(err, &ended):
		return &Error{Outcome: ToolTrapped, Message: fmt.Sprintf("The tool ended itself with exit code %d instead of returning.", ended.Code), Err: clip(err)}
	case strings.HasSuffix(line, trapStack):
		return &Error{Outcome: ToolStack, Message: "The tool used up its call stack: it calls itself too deeply.", Err: clip(err)}
	case broke:
		_, trap, _ := strings.Cut(line, trapPrefix)
		return &Error{Outcome: ToolTrapped, Message: fmt.Sprintf("The tool broke: %s.", trap), Err: clip(err)}
	}
	return internal(err)
}

// wantedMemory returns the error of a guest that broke after it was refused memory.
func (i *instance) wantedMemory(err error) *Error {
	return &Error{Outcome: ToolMemory, Message: fmt.Sprintf("The tool needed more memory than its limit of %s.", text.Size(min(i.call.limits.Memory, i.most))), Err: err}
}

// overflown reports whether the guest has used up the stack in its memory, if it is known to have one.
func (i *instance) overflown() bool {
	return i.linear != nil && i.linear.Overflown(uint32(i.globals[i.linear.Pointer].Get()), i.guest.Memory().Size())
}

// asError turns any error of a call into an *Error.
func asError(err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	return internal(err)
}

// uncompiled returns the error of a call, or of Compile, if err is why the code can't be made.
func uncompiled(err error) *Error {
	switch {
	case errors.Is(err, foundry.ErrClosed):
		return closing(ErrClosed)
	case foundry.Scarce(err):
		return &Error{Outcome: Overloaded, Message: "The service has no memory for the tool's code at the moment. Try again later.", Err: err}
	}
	return &Error{Outcome: Internal, Message: "The tool could not be compiled.", Err: err}
}

func closing(err error) *Error {
	return &Error{Outcome: Cancelled, Message: "The service is shutting down.", Err: err}
}

// overloaded returns the error of a call for which there is no room. err is the system's error, or nil.
func overloaded(err error) *Error {
	return &Error{Outcome: Overloaded, Message: "Other calls use all of the service's memory for calls. Try again later.", Err: err}
}

// scarce reports whether the system refused memory or a descriptor.
func scarce(err error) bool {
	return errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// failed returns overloaded if the system refused memory or a descriptor, and internal otherwise.
func failed(err error) *Error {
	if scarce(err) {
		return overloaded(err)
	}
	return internal(err)
}

func internal(err error) *Error {
	return &Error{Outcome: Internal, Message: "The tool could not be run.", Err: clip(err)}
}

// notBegun returns the error of a call that ended while it waited, because of its deadline or its caller. The text what says what it waited for.
func notBegun(ctx context.Context, what string, timeout time.Duration) *Error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return &Error{Outcome: ToolTimeout, Message: fmt.Sprintf("The tool's time limit of %s expired while the call waited for %s.", timeout, what)}
	case errors.Is(cause, errClosing):
		return closing(nil)
	}
	return &Error{Outcome: Cancelled, Message: fmt.Sprintf("The caller gave up while the call waited for %s.", what), Err: context.Cause(ctx)}
}

// A clipped is an error whose text is bounded: the guest chooses the function names in a stack trace.
type clipped struct{ error }

const maxTrace = 16 << 10 // bytes

func clip(err error) error { return clipped{err} }

func (c clipped) Error() string {
	trace := strings.Replace(c.error.Error(), " (recovered by wazero)\n", "\n", -1) // which helps nobody
	return text.Clip(withoutNameless(trace), maxTrace)
}

// withoutNameless returns a trace without the functions that have no names, which say nothing. If all have names, it returns the trace unchanged.
func withoutNameless(trace string) string {
	var kept []string
	left := 0
	for line := range strings.SplitSeq(trace, "\n") {
		if strings.HasPrefix(line, "\t.$") {
			left++
			continue
		}
		kept = append(kept, line)
	}
	switch {
	case left == 0:
		return trace
	case kept[len(kept)-1] == "wasm stack trace:":
		kept[len(kept)-1] += " the module has no function names; what the tool printed may say more"
	default:
		kept = append(kept, fmt.Sprintf("\t... %d functions without names", left))
	}
	return strings.Join(kept, "\n")
}

func (c clipped) Unwrap() error { return c.error }
