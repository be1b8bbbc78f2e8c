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

// Module is the name of the import module by which a tool talks to the host.
const Module = "toolsrv_v1"

// Modules returns the import modules of ABI 1. They grant nothing.
func Modules() []string { return []string{Module, wasi.Module} }

// Sets returns the functions of these modules.
func Sets() []*hostcall.Set { return []*hostcall.Set{set(), wasi.Set()} }

// set returns the functions of Module.
func set() *hostcall.Set {
	return &hostcall.Set{Module: Module, Functions: []hostcall.Function{
		{Name: "input_size", Results: "i", Do: inputSize},
		{Name: "input_read", Params: "i", Do: inputRead},
		{Name: "output_write", Params: "ii", Do: outputWrite},
		{Name: "fail", Params: "ii", Do: fail},
		{Name: "log", Params: "iii", Do: logLine},
		{Name: "deadline", Results: "I", Do: deadline},
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

// logLine logs at the next level where the guest's is none of the four: a log line is not a reason to break a call.
func logLine(c *hostcall.Call, stack []uint64) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	level := min(max(int32(uint32(stack[0])), 0), int32(len(levels)-1))
	if c.Log(levels[level], "log", c.View(stack[1], stack[2])) {
		c.Charge(hostcall.LineCost)
	}
}

// deadline tells how many milliseconds the call has left; 0 when there are none. A start is not told, so that it is the same
// for all calls.
func deadline(c *hostcall.Call, stack []uint64) {
	left := int64(-1)
	if c.Serving() {
		left = max(0, time.Until(c.Deadline()).Milliseconds())
	}
	stack[0] = uint64(left)
}

// progressCost is the cost of a report that is kept for later: it reads the time and copies the message.
const progressCost = 300

// progress reports how far the call is. Senseless numbers are not a reason to break a call.
func progress(c *hostcall.Call, stack []uint64) {
	done, total := math.Float64frombits(stack[0]), math.Float64frombits(stack[1])
	if c.Progress(done, total, c.View(stack[2], stack[3])) {
		c.Charge(hostcall.LineCost)
	}
}
