package sandbox_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// importing returns a module like tool's, in which function 0 is one of WASI's, () -> i32 or (i32, i32, i32, i32) -> i32, and function 1
// is toolsrv_call.
func importing(name string, params int, body []byte) []byte {
	module := []byte("\x00asm\x01\x00\x00\x00")
	wanted := fmt.Sprintf("\x60%c%s\x01\x7f", params, strings.Repeat("\x7f", params))
	module = append(module, section(1, []byte("\x02\x60\x01\x7f\x01\x7f"+wanted))...)
	module = append(module, section(2, fmt.Appendf(nil, "\x01\x16wasi_snapshot_preview1%c%s\x00\x01", len(name), name))...)
	module = append(module, section(3, []byte{1, 0})...)
	module = append(module, section(5, []byte{1, 0, 1})...)
	module = append(module, section(7, []byte("\x02\x06memory\x02\x00\x0ctoolsrv_call\x00\x01"))...)
	return append(module, section(10, append([]byte{1}, append([]byte{byte(len(body))}, body...)...))...)
}

// times returns a body that repeats the code in what 2,000 times, and returns 0.
func times(what string) []byte {
	return []byte("\x01\x01\x7f\x03\x40" + what + "\x20\x01\x41\x01\x6a\x22\x01\x41\xd0\x0f\x49\x0d\x00\x0b\x41\x00\x0b")
}

// TestHostWorkIsCounted passes lists of a thousand empty buffers to the host: few instructions, but much work.
// Proves: A tool stops
func TestHostWorkIsCounted(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	limits := limits.Limits{Fuel: 10_000_000}
	for _, name := range []string{"fd_write", "fd_read"} {
		fd := "\x41\x00"
		if name == "fd_write" {
			fd = "\x41\x01"
		}
		p := sandboxtest.Load(t, e, importing(name, 4, times(fd+"\x41\x00\x41\x80\x08\x41\xe0\xd4\x03\x10\x00\x1a")))
		_, err := p.Tool("x", 0, limits).Call(t.Context(), sandbox.CallSpec{})
		wantError(t, err, sandbox.ToolFuel, "")
		p = sandboxtest.Load(t, e, importing(name, 4, times(fd+"\x41\x00\x41\x01\x41\xe0\xd4\x03\x10\x00\x1a")))
		_, err = p.Tool("x", 0, limits).Call(t.Context(), sandbox.CallSpec{})
		wantError(t, err, sandbox.ToolBadOutput, "without any output")
	}
}

// TestReferences takes references of a function again and again, each of which wazero would keep. It is not parallel, because it measures the
// process's allocations.
// Proves: Limits hold, one by one and in sum
func TestReferences(t *testing.T) {
	e := sandboxtest.Engine(t, sandbox.Config{})
	tool := sandboxtest.Load(t, e, tool(times(strings.Repeat("\xd2\x00\x1a", 500)))).Tool("x", 0, limits.Limits{})
	call := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := tool.Call(t.Context(), sandbox.CallSpec{})
		runtime.ReadMemStats(&after)
		wantError(t, err, sandbox.ToolBadOutput, "without any output")
		return after.TotalAlloc - before.TotalAlloc
	}
	call() // compiles
	if bytes := call(); bytes > 1<<20 {
		t.Errorf("a call of a million references took %d bytes", bytes)
	}
}

// TestFramesOfManyResults has a function call itself while it keeps many results of other calls, with few instructions. It is not parallel, because
// it measures the process's allocations.
// Proves: Limits hold, one by one and in sum
func TestFramesOfManyResults(t *testing.T) {
	e := sandboxtest.Engine(t, sandbox.Config{})
	const results, calls = "\xc8\x01", 100 // 200
	numbers := strings.Repeat("\x7f", 200)
	module := []byte("\x00asm\x01\x00\x00\x00")
	module = append(module, section(1, []byte("\x02\x60\x01\x7f\x01\x7f\x60\x00"+results+numbers))...)
	module = append(module, section(3, []byte{2, 0, 1})...)
	module = append(module, section(5, []byte{1, 0, 1})...)
	module = append(module, section(7, []byte("\x02\x06memory\x02\x00\x0ctoolsrv_call\x00\x00"))...)
	code := []byte{2}
	for _, body := range []string{
		"\x00" + strings.Repeat("\x10\x01", calls) + "\x20\x00\x10\x00" + strings.Repeat("\x73", 200*calls) + "\x0b",
		"\x00" + strings.Repeat("\x41\x07", 200) + "\x0b",
	} {
		code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
	}
	tool := sandboxtest.Load(t, e, append(module, section(10, code)...)).Tool("x", 0, limits.Limits{Stack: 1 << 20, Timeout: 10 * time.Minute})
	for i := range 2 { // the first compiles
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := tool.Call(t.Context(), sandbox.CallSpec{})
		runtime.ReadMemStats(&after)
		wantError(t, err, sandbox.ToolStack, "call stack of 1 MiB")
		if bytes := after.TotalAlloc - before.TotalAlloc; i > 0 && bytes > 4<<20 {
			t.Errorf("a stack of 1 MiB took %d MiB", bytes>>20)
		}
	}
}

// TestDeepCallsLeaveNothing has calls that need much call stack, and checks how much of it the idle instance keeps. It is not parallel, because it
// measures the process's memory.
// Proves: Limits hold, one by one and in sum
func TestDeepCallsLeaveNothing(t *testing.T) {
	e := sandboxtest.Engine(t, sandbox.Config{})
	// Calls itself with one less until it is called with 0.
	body := []byte("\x00\x20\x00\x45\x04\x40\x41\x00\x0f\x0b\x20\x00\x41\x01\x6b\x10\x00\x1a\x41\x00\x0b")
	p := sandboxtest.Load(t, e, tool(body))
	call := func(depth int32) uint64 {
		limits := limits.Limits{Stack: 16 << 20, Timeout: time.Minute}
		for range 2 {
			_, err := p.Tool("x", depth, limits).Call(t.Context(), sandbox.CallSpec{})
			wantError(t, err, sandbox.ToolBadOutput, "without any output")
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	shallow, deep := call(1), call(100_000)
	if kept := int64(deep) - int64(shallow); kept > 512<<10 {
		t.Errorf("an idle instance keeps %d KiB of a deep call", kept>>10)
	}
}
