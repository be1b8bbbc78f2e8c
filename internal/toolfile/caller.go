package toolfile

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// A caller calls a tool of one version of its module. It still works after that version was replaced: a call that was about to begin runs on the old
// version.
type caller struct{ tool *sandbox.Tool }

var (
	_ wasmtools.Caller = caller{}
	_ tools.Bounded    = caller{}
)

// IsRunner marks a Runner: the sandbox has checked the result.
func (caller) IsRunner() {}

// IsBounded marks a Bounded: the sandbox ends a nested call in time.
func (caller) IsBounded() {}

// Places returns how many calls of the tool run and wait for their turn, and how many may.
func (c caller) Places() (running, waiting, places, queue int) {
	s, most := c.tool.State(), c.tool.Limits()
	return s.Running, s.Waiting, most.Concurrency, most.Queue
}

// Holding returns how much the tool's program holds.
func (c caller) Holding() sandbox.Holding { return c.tool.Holding() }

// Call runs the tool in the sandbox.
func (c caller) Call(ctx context.Context, call *wasmtools.Call) ([]byte, error) {
	spec := sandbox.CallSpec{Input: call.Arguments, Principal: (*tools.Origin)(call), Listener: call.Listener, Counter: (*counter)(call), Fuel: &call.Fuel}
	if w, ok := ctx.(hostcall.Watcher); ok { // the call is being recorded
		spec.Counter = watched{(*counter)(call), w}
	}
	if call.Outer != nil {
		outer, ok := call.Outer.(hostcall.Outer)
		if !ok {
			return nil, fmt.Errorf("the outer call is a %T, not a call of the sandbox", call.Outer)
		}
		spec.Outer = outer
	}
	if call.Times != nil {
		var times sandbox.Times
		spec.Times = &times
		defer func() {
			t := call.Times
			t.Turn, t.Compile, t.Ready, t.Run, t.Reset = times.Turn, times.Compile, times.Ready, times.Run, times.Reset
		}()
	}
	result, err := c.tool.Call(ctx, spec)
	if err != nil {
		return nil, translate(err)
	}
	return result, nil
}

// A counter is a wasmtools.Call for which the sandbox counts uses. It is a conversion of the call's type, so it costs no allocation.
type counter wasmtools.Call

// Used counts a use.
func (c *counter) Used(u hostcall.Use) {
	use := wasmtools.Use{Capability: u.Capability, Count: 1, Sent: u.Sent, Received: u.Received, Took: u.Took}
	if u.Outcome != "" {
		use.Failed = 1
	}
	if u.Outcome == answer.NotGranted {
		use.Refused = 1
	}
	(*wasmtools.Call)(c).Used(use)
}

// A watched is a counter that also reports each single use.
type watched struct {
	*counter
	hostcall.Watcher
}

// translate turns an error of the sandbox into one of the service.
func translate(err error) error {
	var failed *sandbox.Error
	if !errors.As(err, &failed) {
		return err
	}
	return &wasmtools.Error{
		Code:     code(failed.Outcome),
		Message:  failed.Message,
		Status:   failed.Status,
		ToolCode: failed.Code,
		Data:     failed.Data,
		Err:      failed.Err,
	}
}

// code maps outcomes to codes. An outcome that is not in the table is a bug of ours, not the client's fault.
func code(o sandbox.Outcome) wasmtools.Code {
	switch o {
	case sandbox.ToolError:
		return wasmtools.CodeToolError
	case sandbox.ToolTrapped:
		return wasmtools.CodeToolTrapped
	case sandbox.ToolTimeout:
		return wasmtools.CodeToolTimeout
	case sandbox.ToolFuel:
		return wasmtools.CodeToolFuel
	case sandbox.ToolMemory:
		return wasmtools.CodeToolMemory
	case sandbox.ToolStack:
		return wasmtools.CodeToolStack
	case sandbox.ToolBadOutput:
		return wasmtools.CodeToolBadOutput
	case sandbox.InputTooLarge:
		return wasmtools.CodeInputTooLarge
	case sandbox.Cancelled:
		return wasmtools.CodeCancelled
	case sandbox.Overloaded:
		return wasmtools.CodeOverloaded
	}
	return wasmtools.CodeInternal
}
