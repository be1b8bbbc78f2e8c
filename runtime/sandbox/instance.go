package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// newCall returns the state of a call that has not begun.
func (m *module) newCall(tool string, limits Limits, input []byte) *call {
	return &call{
		limits:  limits,
		command: m.shape.command,
		input:   input,
		memory:  memory{limit: limits.Memory},
		lines:   lines{log: m.engine.log, tool: tool, left: limits.LogLines},
	}
}

// serve starts an instance, runs one export in it, and returns what the guest has to say. It is the one place where
// guest code runs, and the one place that recovers from a panic on its way.
func (m *module) serve(ctx context.Context, c *call, export string, params ...uint64) (output []byte, err error) {
	code, err := m.compile(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = notBegun(ctx, "the tool to be compiled", c.limits.Timeout)
		}
		return nil, err
	}
	if m.shape.memory > c.limits.Memory {
		return nil, &Error{Outcome: ToolMemory, Message: fmt.Sprintf("The tool needs %s of memory to start; its limit is %s.", size(m.shape.memory), size(c.limits.Memory))}
	}
	ctx = &callContext{ctx, c}
	defer c.lines.flush(ctx)
	defer func() {
		if r := recover(); r != nil {
			output, err = nil, internal(fmt.Errorf("panic: %v\n%s", r, debug.Stack()))
		}
	}()
	instance, err := m.start(ctx, code, c)
	if err != nil {
		return nil, c.classify(ctx, err)
	}
	defer instance.Close(ctx)
	c.serving = true
	results, err := instance.ExportedFunction(export).Call(ctx, params...)
	if export == exportStart {
		return c.ended(ctx, err)
	}
	if err != nil {
		return nil, c.classify(ctx, err)
	}
	return c.result(uint32(results[0]))
}

// start makes an instance and runs what comes before a call.
func (m *module) start(ctx context.Context, code wazero.CompiledModule, c *call) (api.Module, error) {
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	instance, err := m.engine.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, &c.memory), code, config)
	if err != nil {
		return nil, err
	}
	for _, step := range []struct {
		there  bool
		export string
	}{{m.shape.initialize, exportInitialize}, {m.shape.warm, exportWarm}} {
		if !step.there {
			continue
		}
		if _, err := instance.ExportedFunction(step.export).Call(ctx); err != nil {
			return nil, errors.Join(err, instance.Close(ctx))
		}
	}
	return instance, nil
}

// ended is what a plain WASI program has to say whose _start returned, or ended with err.
func (c *call) ended(ctx context.Context, err error) ([]byte, error) {
	c.lines.flush(ctx)
	var e *exit
	switch {
	case err == nil:
		return c.exited(0)
	case errors.As(err, &e) && (e.code == 0 || !c.memory.refused):
		return c.exited(e.code)
	}
	return nil, c.classify(ctx, err)
}

// pageSize is the unit in which memories grow, in bytes.
const pageSize = 64 << 10

// maxMemory is the largest limit of a memory: one page below 4 GiB, so that its size fits into 32 bits.
const maxMemory = 4<<30 - pageSize

// A memory is a guest's linear memory with a limit. It belongs to one instance.
type memory struct {
	bytes []byte
	limit int64
	// refused tells that the guest asked for more than the limit. What breaks after that broke for want of memory.
	refused bool
}

var (
	_ experimental.MemoryAllocator = (*memory)(nil)
	_ experimental.LinearMemory    = (*memory)(nil)
)

// Allocate returns m: a module has one memory.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate makes the memory size bytes long, or returns nil where that is above the limit.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(m.limit) {
		m.refused = true
		return nil
	}
	if size <= uint64(cap(m.bytes)) {
		m.bytes = m.bytes[:size]
		return m.bytes
	}
	// Half as much again, so that a guest that grows page by page is not copied page by page.
	room := min(max(size, uint64(cap(m.bytes))*3/2), uint64(m.limit))
	grown := make([]byte, size, room)
	copy(grown, m.bytes)
	m.bytes = grown
	return grown
}

// Free lets go of the memory.
func (m *memory) Free() { m.bytes = nil }
