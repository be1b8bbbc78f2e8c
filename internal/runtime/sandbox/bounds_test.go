package sandbox_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// section frames a section, or anything else that begins with its length.
func section(id byte, content []byte) []byte {
	return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
}

// tool returns a module whose toolsrv_call has that body, with more sections at its end.
func tool(body []byte, more ...[]byte) []byte {
	module := []byte("\x00asm\x01\x00\x00\x00")
	module = append(module, section(1, []byte{1, 0x60, 1, 0x7f, 1, 0x7f})...)
	module = append(module, section(3, []byte{1, 0})...)
	module = append(module, section(5, []byte{1, 0, 1})...)
	module = append(module, section(7, []byte("\x02\x06memory\x02\x00\x0ctoolsrv_call\x00\x00"))...)
	code := binary.AppendUvarint([]byte{1}, uint64(len(body)))
	module = append(module, section(10, append(code, body...))...)
	return append(module, bytes.Join(more, nil)...)
}

// repeat returns a body without locals: n copies of the code in what, n copies of the code in then, and 0 as the result.
func repeat(n int, what, then string) []byte {
	return []byte("\x00" + strings.Repeat(what, n) + strings.Repeat(then, n) + "\x41\x00\x0b")
}

// TestCompileBombs loads small modules that would take the compiler hours, or all memory.
// Proves: Compiling is bounded
func TestCompileBombs(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	e := sandboxtest.Engine(t, sandbox.Config{})
	wide := []byte("\x00asm\x01\x00\x00\x00")
	types := append([]byte{2, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 0xe8, 7}, bytes.Repeat([]byte{0x7e}, 1000)...)
	types = append(append(types, 0xe8, 7), bytes.Repeat([]byte{0x7e}, 1000)...)
	wide = append(wide, section(1, types)...)
	wide = append(wide, tool(repeat(100_000, "\x10\x00", ""))[8+8:]...)
	tests := []struct {
		name   string
		module []byte
		want   string
	}{
		{"nested blocks", tool(repeat(100_000, "\x02\x40", "\x0b")), "deeper than 20000"},
		{"nested loops", tool(repeat(100_000, "\x03\x40", "\x0b")), "deeper than 20000"},
		{"ifs", tool(repeat(30_000, "\x20\x00\x04\x40\x0b", "")), "very many branches"},
		{"targets", tool([]byte("\x00\x02\x40\x20\x00\x0e\xc0\x84\x3d" + strings.Repeat("\x00", 1_000_001) + "\x0b\x41\x00\x0b")), "very many branches"},
		{"wide calls", wide, "would take too much"},
		{"unknown instruction", tool([]byte("\x00\x06\x40\x0b\x41\x00\x0b")), "instruction 0x6 is not supported"},
		{"atomics", tool([]byte("\x00\xfe\x03\x00\x41\x00\x0b")), "instruction 0xfe is not supported"},
		{"unknown bulk", tool([]byte("\x00\xfc\x20\x41\x00\x0b")), "0xfc 0x20 is not supported"},
		{"unknown vector", tool([]byte("\x00\xfd\x80\x02\x41\x00\x0b")), "0xfd 0x80 0x2 is not supported"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			_, err := e.Load(test.module, abi1.Modules()...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
	t.Run("all together", func(t *testing.T) {
		t.Parallel()
		body := repeat(9_000, "\x20\x00\x04\x40\x0b", "")
		const n = 20
		module := []byte("\x00asm\x01\x00\x00\x00")
		module = append(module, section(1, []byte{1, 0x60, 1, 0x7f, 1, 0x7f})...)
		module = append(module, section(3, append([]byte{n}, make([]byte, n)...))...)
		module = append(module, section(5, []byte{1, 0, 1})...)
		module = append(module, section(7, []byte("\x02\x06memory\x02\x00\x0ctoolsrv_call\x00\x00"))...)
		one := append(binary.AppendUvarint(nil, uint64(len(body))), body...)
		module = append(module, section(10, append([]byte{n}, bytes.Repeat(one, n)...))...)
		if _, err := e.Load(module, abi1.Modules()...); err == nil || !strings.Contains(err.Error(), "would take too much") {
			t.Errorf("got %v, want an error", err)
		}
	})
}

// TestCostlyInstances loads small modules whose instances would take a lot of memory that no limit counts.
// Proves: Compiling is bounded
func TestCostlyInstances(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, so the race detector would only slow it down")
	}
	e := sandboxtest.Engine(t, sandbox.Config{})
	const header, types = 8, 8 // bytes at the beginning of tool's result
	plain := tool(repeat(1, "\x01", ""))
	insert := func(at int, s []byte) []byte {
		return append(append(append([]byte(nil), plain[:at]...), s...), plain[at:]...)
	}
	many := func(n int, one string) []byte {
		return append(binary.AppendUvarint(nil, uint64(n)), strings.Repeat(one, n)...)
	}
	exports := bytes.Index(plain, []byte("\x02\x06memory")) - 2
	code := exports + 2 + int(plain[exports+1])
	for name, module := range map[string][]byte{
		"imports":  insert(header+types, section(2, many(100_000, "\x0atoolsrv_v1\x04fail\x00\x00"))),
		"globals":  insert(exports, section(6, many(100_000, "\x7f\x00\x41\x00\x0b"))),
		"elements": insert(code, section(9, append([]byte{1, 1, 0}, many(5_000_000, "\x00")...))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := e.Load(module, abi1.Modules()...); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "the limit is") && !strings.Contains(err.Error(), "more than") {
				t.Errorf("got %v, want an error with the limit", err)
			}
		})
	}
	if _, err := e.Load(plain, abi1.Modules()...); err != nil {
		t.Error(err)
	}
}

// TestInvalidCode loads modules whose sections are valid, but whose code is not. The compiler refuses them, and each caller gets the reason.
func TestInvalidCode(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	for name, body := range map[string]string{
		"empty stack":  "\x00\x1a\x41\x00\x0b",
		"no end":       "\x00\x41\x00",
		"type":         "\x00\x42\x00\x0b",
		"local":        "\x00\x20\x63\x0b",
		"global":       "\x00\x23\x00\x0b",
		"function":     "\x00\x41\x00\x10\x63\x0b",
		"branch":       "\x00\x0c\x63\x0b",
		"behind end":   "\x00\x41\x00\x0b\x0b",
		"large locals": "\x02\xff\xff\xff\xff\x0f\x7f\xff\xff\xff\xff\x0f\x7f\x41\x00\x0b",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := e.Load(tool([]byte(body)), abi1.Modules()...)
			if err != nil {
				return
			}
			defer p.Close()
			wantError(t, p.Compile(t.Context()), sandbox.Internal, "could not be compiled")
			_, err = p.Tool("x", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{})
			wantError(t, err, sandbox.Internal, "could not be compiled")
		})
	}
}

// TestNames checks that the error of a trap stays small, however long the guest's function names are, and is readable if they are short.
func TestNames(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	names := func(name string) []byte {
		function := append(binary.AppendUvarint([]byte{1, 0}, uint64(len(name))), name...)
		return section(0, append([]byte("\x04name"), section(1, function)...))
	}
	unreachable := []byte("\x00\x00\x41\x00\x0b")
	for _, test := range []struct {
		name, function string
		in             bool
	}{{"short", "the_culprit", true}, {"long", strings.Repeat("x", 1<<20), false}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := sandboxtest.Load(t, e, tool(unreachable, names(test.function))).Tool("x", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{})
			got := wantError(t, err, sandbox.ToolTrapped, "unreachable").Err.Error()
			if len(got) > 17<<10 {
				t.Errorf("the trace has %d bytes", len(got))
			}
			if strings.Contains(got, test.function) != test.in {
				t.Errorf("got trace %s, want the name in it: %t", got, test.in)
			}
		})
	}
}

// FuzzLoad loads, compiles and calls anything. Nothing may panic, hang or end the process.
// Proves: Compiling is bounded
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"good/echo", "good/stages", "good/command", "good/engine", "hostile/traps", "hostile/recurse", "hostile/memory", "hostile/wild", "hostile/log"} {
		f.Add(testkit.Fixture(f, "wat/"+name))
	}
	f.Add(tool(repeat(10, "\x02\x40", "\x0b")))
	engine, err := wasmbin.Parse(testkit.Fixture(f, "wat/good/engine_fresh"))
	if err != nil {
		f.Fatal(err)
	}
	script, err := engine.AppendData(1024, []byte("1"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(script)
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	e := sandboxtest.Engine(f, sandbox.Config{})
	limits := limits.Limits{Timeout: 50 * time.Millisecond, Memory: 4 << 20, Output: 1 << 10}
	f.Fuzz(func(t *testing.T, module []byte) {
		p, err := e.Load(module, abi1.Modules()...)
		if err != nil {
			return
		}
		defer p.Close()
		if err := p.Compile(t.Context()); err != nil {
			return
		}
		for index := range int32(2) {
			out, err := p.Tool("fuzz", index, limits).Call(t.Context(), sandbox.CallSpec{Input: []byte(`{"message":"no"}`)})
			if err == nil && len(out) > 1<<10 {
				t.Errorf("got %d bytes of output", len(out))
			}
		}
	})
}
