package sandbox

import (
	"context"
	"fmt"
	"log/slog"
)

// abiModule is the import module of ABI 1.
const abiModule = "toolsrv_v1"

// maxFailure is the largest JSON of fail in bytes.
const maxFailure = 64 << 10

// abiFuncs returns the functions of ABI 1. docs/abi.md describes them.
func abiFuncs() []hostFunc {
	return []hostFunc{
		{abiModule, "input_size", "", "i", inputSize},
		{abiModule, "input_read", "i", "", inputRead},
		{abiModule, "output_write", "ii", "", outputWrite},
		{abiModule, "fail", "ii", "", fail},
		{abiModule, "log", "iii", "", logLine},
	}
}

func inputSize(_ context.Context, c *call, _ guestMemory, stack []uint64) {
	stack[0] = uint64(len(c.visible()))
}

func inputRead(_ context.Context, c *call, mem guestMemory, stack []uint64) {
	mem.put(stack[0], c.visible())
}

// visible is the input as the guest may see it: none while it starts.
func (c *call) visible() []byte {
	if !c.serving {
		return nil
	}
	return c.input
}

func outputWrite(_ context.Context, c *call, mem guestMemory, stack []uint64) {
	c.write(mem.view(stack[0], stack[1]), true)
}

func fail(_ context.Context, c *call, mem guestMemory, stack []uint64) {
	text := mem.view(stack[0], stack[1])
	if !c.serving {
		return
	}
	if len(text) > maxFailure {
		panic(&fault{ToolBadOutput, fmt.Sprintf("The tool reported its failure in %d bytes; the limit is %s.", len(text), size(maxFailure))})
	}
	c.failure = append(make([]byte, 0, len(text)), text...)
}

// logLine logs at the next level where the guest's is none of the four: a log line is no reason to break a call.
func logLine(ctx context.Context, c *call, mem guestMemory, stack []uint64) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	level := min(max(int32(uint32(stack[0])), 0), int32(len(levels)-1))
	c.lines.emit(ctx, levels[level], "log", mem.view(stack[1], stack[2]))
}
