//go:build wasip1 || tinygo.wasm

package toolsrv

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/toolsrv/toolsrv/sdk/go/internal/typed"
)

// The host's functions. A pointer is an address in this module's memory; the host copies before it returns.

//go:wasmimport toolsrv_v1 input_size
func hostInputSize() uint32

//go:wasmimport toolsrv_v1 input_read
func hostInputRead(ptr unsafe.Pointer)

//go:wasmimport toolsrv_v1 output_write
func hostOutputWrite(ptr unsafe.Pointer, size uint32)

//go:wasmimport toolsrv_v1 fail
func hostFail(ptr unsafe.Pointer, size uint32)

//go:wasmimport toolsrv_v1 log
func hostLog(level int32, ptr unsafe.Pointer, size uint32)

// A guest whose tools don't ask for the deadline does not import this: the linker leaves it out.
//
//go:wasmimport toolsrv_v1 deadline
func hostDeadline() int64

// A guest whose tools don't report progress does not import this, either.
//
//go:wasmimport toolsrv_v1 progress
func hostProgress(done, total float64, ptr unsafe.Pointer, size uint32)

// What toolsrv_call and toolsrv_describe return.
const (
	statusOK     = 0 // the output is the result
	statusFailed = 1 // fail has told the host why
	statusBroken = 2 // the tool is at fault; the log says how
)

// exported is the module's state, the only global state of this package: the ABI's functions take no pointer to it. It is
// written during initialisation and only read after that.
var exported struct {
	module Module
	done   bool
}

func export(m Module) {
	if exported.done {
		panic("toolsrv.Export is called twice: put all tools of the file into one Module")
	}
	exported.module, exported.done = m, true
}

//go:wasmexport toolsrv_call
func guestCall(tool int32) int32 {
	c := NewCall(writeLog)
	tools := exported.module.Tools
	if tool < 0 || int(tool) >= len(tools) {
		c.Errorf("there is no tool number %d in the module", tool)
		return statusBroken
	}
	output, err := tools[tool].run(c, readInput())
	if err != nil {
		return fail(c, err)
	}
	writeOutput(output)
	return statusOK
}

//go:wasmexport toolsrv_describe
func guestDescribe() int32 {
	text, err := exported.module.Manifest()
	if err != nil {
		return fail(NewCall(writeLog), err)
	}
	writeOutput(text)
	return statusOK
}

// guestWarm has encoding/json build its caches before the snapshot: without that, each call would do so again.
//
//go:wasmexport toolsrv_warm
func guestWarm() {
	for _, t := range exported.module.Tools {
		if t.warm != nil {
			t.warm()
		}
	}
}

// fail tells the host about err and returns the status for it.
func fail(c *Call, err error) int32 {
	if _, broken := AsType[*brokenResult](err); !broken {
		text, unwritable := typed.Encode(AsError(err))
		if unwritable == nil {
			writeFailure(text)
			return statusFailed
		}
		c.Log(LevelError, "the data of an error can't be written as JSON: "+unwritable.Error())
	}
	c.Log(LevelError, err.Error())
	return statusBroken
}

// left asks the host each time: a guest without WASI has no clock of its own.
func (c *Call) left() (time.Duration, bool) {
	left := hostDeadline()
	return time.Duration(left) * time.Millisecond, left >= 0
}

// Value implements [context.Context]. It returns nil.
func (c *Call) Value(any) any { return nil }

// report tells the host about progress. A Call that the tool made itself reports, too, since a guest has only one call.
func (c *Call) report(done, total float64, message string) {
	hostProgress(done, total, unsafe.Pointer(unsafe.StringData(message)), uint32(len(message)))
	runtime.KeepAlive(message)
}

func readInput() []byte {
	size := hostInputSize()
	if size == 0 {
		return nil
	}
	input := make([]byte, size)
	hostInputRead(unsafe.Pointer(unsafe.SliceData(input)))
	return input
}

func writeLog(level Level, message string) {
	hostLog(int32(level), unsafe.Pointer(unsafe.StringData(message)), uint32(len(message)))
	runtime.KeepAlive(message)
}

func writeOutput(text []byte) {
	hostOutputWrite(unsafe.Pointer(unsafe.SliceData(text)), uint32(len(text)))
	runtime.KeepAlive(text)
}

func writeFailure(text []byte) {
	hostFail(unsafe.Pointer(unsafe.SliceData(text)), uint32(len(text)))
	runtime.KeepAlive(text)
}
