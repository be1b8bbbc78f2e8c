// Package abi1 is what tools of ABI 1 import, as docs/abi.md describes it: WASI, and the module toolsrv_v1, with which a
// tool reads its arguments and gives its result, its failure, log lines and progress.
package abi1

import (
	"log/slog"
	"math"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/wasi"
)

// Module is the name of the import module through which a tool talks to the host.
const Module = "toolsrv_v1"

// Modules returns the import modules of ABI 1. They grant nothing.
func Modules() []string { return []string{Module, wasi.Module} }

// Sets returns the sets of functions of these modules.
func Sets() []*hostcall.Set { return []*hostcall.Set{set(), wasi.Set()} }

// set returns the functions of Module. The comment above each is its entry in docs/generated/functions.md, and begins with its parameters;
// TestFunctions in test/examples writes the page.
func set() *hostcall.Set {
	return &hostcall.Set{Module: Module, Functions: []hostcall.Function{
		// ()
		// Returns the size of the call's arguments in bytes.
		{Name: "input_size", Results: "i", Do: inputSize},
		// (ptr)
		// Copies the arguments, `input_size` bytes, to `ptr`. They are a JSON object that fits the schema, with defaults filled in and whole numbers
		// [rewritten as integers](tools.md#arguments); otherwise byte for byte what the client sent. They can be read more than once. They may be
		// empty only if a program embeds the host and skips validation; treat that as `{}`.
		{Name: "input_read", Params: "i", Do: inputRead},
		// (ptr, len)
		// Takes `len` bytes as the result: one JSON value of any kind, without a byte order mark, nested at most 1,000 deep. Clients get the bytes as
		// they are. A second call replaces the first. Above the tool's limit (4 MiB by default), the call ends as `tool_bad_output`.
		{Name: "output_write", Params: "ii", Do: outputWrite},
		// (ptr, len)
		// Takes `len` bytes, 64 KiB at most, as the failure. A second call replaces the first. It is a JSON object:
		// `{"message": "The divisor is 0: pass another number.", "code": "division_by_zero", "status": 409, "data": {"dividend": 1}}`
		//
		// `message` is required and not empty. `code` is a stable word for programs, at most 128 bytes; `status` is an HTTP status from 400 to 599,
		// 400 where it is left out; `data` is any JSON. Other or repeated members are an error.
		{Name: "fail", Params: "ii", Do: fail},
		// (level, ptr, len)
		// Writes one line to the host's log. The level is 0 debug, 1 info, 2 warn or 3 error; any other is taken for the nearest of these. A line
		// has at most 4 KiB, and a call 100 lines by default; the rest is dropped. Bytes that are not UTF-8 are replaced, here and in messages of
		// progress.
		{Name: "log", Params: "iii", Do: logLine},
		// ()
		// Returns how many milliseconds the call has left, by the tool's limit and the caller's; 0 when there are none, -1 while the module starts.
		// Older hosts don't have it: import it only if you use it.
		{Name: "deadline", Results: "I", Do: deadline},
		// (done, total, ptr, len)
		// Reports [how far the call is](tools.md#progress), with a message of `len` bytes, which may be empty and ends at 1 KiB. `total` is how much there
		// is to do, 0 if that is unknown; one that is not finite, or less than `done`, counts as 0. Reports while the module starts, and those not greater
		// than the last, are dropped. Ten are passed on in any second, the first three at once; one that comes too soon waits until the next takes
		// its place, its time comes, or the call ends. Older hosts don't have it.
		{Name: "progress", Params: "FFii", Cost: progressCost, Do: progress},
	}}
}

func inputSize(c *hostcall.Call, stack []uint64) {
	stack[0] = uint64(len(c.Input()))
}

func inputRead(c *hostcall.Call, stack []uint64) {
	c.Write(stack[0], c.Input())
}

func outputWrite(c *hostcall.Call, stack []uint64) {
	c.SetOutput(c.View(stack[0], stack[1]))
}

func fail(c *hostcall.Call, stack []uint64) {
	c.Fail(c.View(stack[0], stack[1]))
}

// logLine takes an unknown level for the nearest one: a log line is no reason to end a call.
func logLine(c *hostcall.Call, stack []uint64) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	level := min(max(int32(uint32(stack[0])), 0), int32(len(levels)-1))
	if c.Log(levels[level], "log", c.View(stack[1], stack[2])) {
		c.Charge(hostcall.LineCost)
	}
}

// deadline returns how many milliseconds the call has left; 0 when none are left. A start gets -1, so that it is the same for all calls.
func deadline(c *hostcall.Call, stack []uint64) {
	left := int64(-1)
	if c.Serving() {
		left = max(0, time.Until(c.Deadline()).Milliseconds())
	}
	stack[0] = uint64(left)
}

// progressCost is the cost of a report that is kept for later, for which the host reads the time and copies the message.
const progressCost = 300

// progress reports how far the call is. Senseless numbers are no reason to end a call.
func progress(c *hostcall.Call, stack []uint64) {
	done, total := math.Float64frombits(stack[0]), math.Float64frombits(stack[1])
	if c.Progress(done, total, c.View(stack[2], stack[3])) {
		c.Charge(hostcall.LineCost)
	}
}
