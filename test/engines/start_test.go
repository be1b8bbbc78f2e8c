package engines_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// bundleOf builds a bundle from its parts, so that a test can make it invalid.
func bundleOf(magic string, count uint32, files ...engine.File) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(magic), count)
	for _, f := range files {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Name)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Data)))
		b = append(append(b, f.Name...), f.Data...)
	}
	return b
}

// A damaged bundle is an error that says so, and not a trap.
func TestDamagedBundle(t *testing.T) {
	t.Parallel()
	e := need(t, "javascript")
	h := newHost(t)
	parsed, err := wasmbin.Parse(e.Module())
	if err != nil {
		t.Fatal(err)
	}
	region, _ := parsed.Constant(engine.Region)
	good := engine.File{Name: "a.js", Data: []byte("export const a = 1;")}
	lengths := func(name, data uint32) []byte {
		b := bundleOf("TSB1", 1)
		return append(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, name), data), "a.js"...)
	}
	capacity := uint32(e.Capacity)
	for name, bundle := range map[string][]byte{
		"none":                    {},
		"another magic":           bundleOf("TSB2", 1, good),
		"no files":                bundleOf("TSB1", 0),
		"a file too many":         bundleOf("TSB1", 2, good), // an empty name
		"four billion files":      bundleOf("TSB1", 0xffffffff, good),
		"a name beyond the end":   lengths(capacity, 1),
		"data beyond the end":     lengths(4, capacity-20),
		"a name that wraps":       lengths(0xffffffff, 1),
		"data that wrap":          lengths(4, 0xffffffff),
		"both wrap":               lengths(0x80000000, 0x80000000),
		"a name of no bytes":      bundleOf("TSB1", 1, engine.File{Data: good.Data}),
		"a name with a zero byte": bundleOf("TSB1", 1, engine.File{Name: "a\x00b", Data: good.Data}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module, err := parsed.AppendData(region, bundle)
			if err != nil {
				t.Fatal(err)
			}
			p := sandboxtest.Load(t, h.engine, module)
			if err := p.Compile(t.Context()); err != nil {
				t.Fatal(err)
			}
			var failed *sandbox.Error
			if _, err := p.Describe(t.Context()); !errors.As(err, &failed) || failed.Outcome != sandbox.ToolError || !strings.Contains(failed.Message, "build") {
				t.Errorf("describe: %v", err)
			}
			if _, err := p.Tool("test", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{}); !errors.As(err, &failed) || failed.Outcome != sandbox.ToolError || failed.Status != 500 {
				t.Errorf("call: %v", err)
			}
		})
	}
}

// A script that fails while it is loaded says so when it is described, and in each call.
func TestLoadFails(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for name, c := range map[string]struct{ source, want string }{
		"syntax":                              {"export const a = ;", "test.js:1:18: "},
		"thrown":                              {"\nthrow new RangeError('too far');", "RangeError: too far"},
		"thrown text":                         {"throw 'text';", "text"},
		"rejected":                            {"await Promise.reject(new TypeError('no'));", "TypeError: no"},
		"awaits nothing":                      {"await new Promise(() => {});", "awaits a promise that nothing settles"},
		"imports a module that doesn't exist": {"import fs from 'node:fs';", "node:fs"},
		"imports later":                       {"await import('./other.js');", "./other.js"},
		"no tools":                            {"export const a = 1;", "no tool"},
		"recursion":                           {"const f = () => f() + 1; f();", "RangeError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := h.javascript(t, "test.js", c.source)
			var failed *sandbox.Error
			if _, err := s.program.Describe(t.Context()); !errors.As(err, &failed) || failed.Outcome != sandbox.ToolError || !strings.Contains(failed.Message, c.want) {
				t.Errorf("describe: got %v, want %q", err, c.want)
			}
			if err := s.call(t, new(any)); !errors.As(err, &failed) || failed.Status != 500 || !strings.Contains(failed.Message, c.want) {
				t.Errorf("call: got %v, want %q", err, c.want)
			}
		})
	}
}

// A script that needs more memory for loading than its limit is refused for that reason. If no amount of memory would suffice, the script itself is wrong.
func TestLoadStarves(t *testing.T) {
	t.Parallel()
	const pixel = "from toolsrv import tool\n@tool\ndef pixel() -> int:\n    \"\"\"P.\"\"\"\n    return 1\n"
	for name, c := range map[string]struct {
		source  string
		outcome sandbox.Outcome
		want    string
	}{
		"a large file":   {pixel + strings.Repeat("# "+strings.Repeat("x", 1<<20)+"\n", 15), sandbox.ToolMemory, "needed more memory than its limit of 64 MiB"},
		"what it keeps":  {pixel + "kept = bytearray(100 << 20)\n", sandbox.ToolMemory, "needed more memory than its limit of 64 MiB"},
		"more than fits": {pixel + "kept = [0] * (1 << 30)\n", sandbox.ToolError, "MemoryError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failed *sandbox.Error
			if _, err := python(t, c.source).program.Describe(t.Context()); !errors.As(err, &failed) || failed.Outcome != c.outcome || !strings.Contains(failed.Message, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

const startScript = `import { tool, log } from "toolsrv";
let timers = 0, drawn = [Math.random(), crypto.randomUUID()];
setTimeout(() => timers++, 1);
setInterval(() => timers++, 1);
console.log("loaded");
await new Promise((done) => setTimeout(done, 5));
const later = (ms) => new Promise((done) => setTimeout(done, ms));
export const state = tool({ description: "S.", examples: [{ arguments: {} }], async run() {
  console.log("example"); log.info("example");
  const before = timers;
  await later(20);
  return { ran: timers - before, drawn: [Math.random(), Math.random(), crypto.randomUUID()], started: drawn, clock: performance.now() };
} });
export const stuck = tool({ description: "S.", run: () => new Promise(() => {}) });
export const unhandled = tool({ description: "S.", run() { Promise.reject(new TypeError("left alone")); Promise.reject(1); return 1; } });
export const handledLater = tool({ description: "S.", async run() { const p = Promise.reject(1); await later(1); await p.catch(() => {}); return 1; } });
export const timer = tool({ description: "S.", async run() { setTimeout(() => { throw new EvalError("in a timer"); }, 1); await later(5); return 1; } });
export const microtask = tool({ description: "S.", run() { queueMicrotask(() => { throw new EvalError("in a job"); }); return 1; } });
export const left = tool({ description: "S.", run() { setTimeout(() => console.log("too late"), 1); setInterval(() => {}, 1); return 1; } });
export const long = tool({ description: "S.", run: () => later(600000) });
`

// TestCallsOfAScript checks what state a call finds, and what a call waits for.
func TestCallsOfAScript(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	s := h.javascript(t, "test.js", startScript)
	call := func(number int32, l limits.Limits) (string, *sandbox.Error) {
		t.Helper()
		out, err := s.program.Tool("test", number, l).Call(context.Background(), sandbox.CallSpec{Input: []byte("{}")})
		var failed *sandbox.Error
		if err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		return string(out), failed
	}
	var seen [2]struct {
		Ran            int
		Drawn, Started []any
		Clock          float64
	}
	for i := range seen {
		out, failed := call(0, limits.Limits{})
		if failed != nil {
			t.Fatal(failed)
		}
		if err := json.Unmarshal([]byte(out), &seen[i]); err != nil {
			t.Fatal(err)
		}
		if seen[i].Ran != 0 {
			t.Errorf("%d timers that were set during loading ran in a call", seen[i].Ran)
		}
		if seen[i].Clock > 60000 {
			t.Errorf("performance.now() is %v: it counts from a time before the call", seen[i].Clock)
		}
	}
	for i := range seen[0].Drawn {
		if seen[0].Drawn[i] == seen[1].Drawn[i] {
			t.Errorf("random number %d is the same in two calls: %v", i, seen[0].Drawn[i])
		}
	}
	if h.log.Count("msg=example") != 4 { // each of the two calls logs it twice
		t.Errorf("the log has what the example logged while it warmed up the script: %s", h.log)
	}
	if h.log.Count("msg=loaded") == 0 {
		t.Errorf("the log lacks what the script logged when it was loaded: %s", h.log)
	}
	for number, want := range map[int32]string{1: "never settled", 2: "TypeError: left alone", 4: "EvalError: in a timer", 5: "EvalError: in a job"} {
		if out, failed := call(number, limits.Limits{}); failed == nil || failed.Outcome != sandbox.ToolError || failed.Status != 500 && want != "" {
			t.Errorf("tool %d: got %s, %v", number, out, failed)
		} else if !strings.Contains(failed.Message, want) && !strings.Contains(h.log.String(), want) {
			t.Errorf("tool %d: got %v, want %q", number, failed, want)
		}
	}
	if out, failed := call(6, limits.Limits{}); out != "1" || failed != nil {
		t.Errorf("timers that are left at the end of a call: got %s, %v", out, failed)
	}
	if strings.Contains(h.log.String(), "too late") {
		t.Error("a timer ran after its call")
	}
	begun := time.Now()
	if _, failed := call(7, limits.Limits{Timeout: 100 * time.Millisecond}); failed == nil || failed.Outcome != sandbox.ToolTimeout || time.Since(begun) > time.Minute {
		t.Errorf("a long wait: %v after %v", failed, time.Since(begun))
	}
}
