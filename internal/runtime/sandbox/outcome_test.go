package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestOutcomes makes guests end in every possible way.
// Proves: A tool stops
// Proves: Limits hold, one by one and in sum
func TestOutcomes(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	soon := limits.Limits{Timeout: 200 * time.Millisecond}
	ample := limits.Limits{Timeout: time.Minute}
	tests := []struct {
		name    string
		fixture string
		index   int32
		limits  limits.Limits
		outcome sandbox.Outcome
		message string // or the output, if the outcome is OK
	}{
		{"spin", "hostile/spin", 0, soon, sandbox.ToolTimeout, "ran longer than its limit of 200ms"},
		{"spin calling the host", "hostile/spin", 1, soon, sandbox.ToolTimeout, ""},
		{"spin filling memory", "hostile/spin", 2, soon, sandbox.ToolTimeout, ""},
		{"spin drawing randomness", "hostile/spin", 3, soon, sandbox.ToolTimeout, ""},
		{"sleep", "hostile/spin", 4, soon, sandbox.ToolTimeout, ""},
		{"sleep until", "hostile/spin", 5, soon, sandbox.ToolTimeout, ""},
		{"spin polling", "hostile/spin", 6, soon, sandbox.ToolTimeout, ""},
		{"spin in calls", "hostile/spin", 7, soon, sandbox.ToolTimeout, ""},
		{"spin growing by nothing", "hostile/spin", 8, soon, sandbox.ToolTimeout, ""},
		{"spin asking for the deadline", "hostile/deadline", 2, soon, sandbox.ToolTimeout, ""},
		{"spin beyond the deadline", "hostile/deadline", 3, soon, sandbox.ToolTimeout, "ran longer than its limit of 200ms"},
		{"start never ends", "hostile/start_spin", 0, soon, sandbox.ToolTimeout, ""},
		{"initialize never ends", "hostile/initialize_spin", 0, soon, sandbox.ToolTimeout, ""},
		{"warm never ends", "hostile/warm_spin", 0, soon, sandbox.ToolTimeout, ""},
		{"recursion in two branches", "hostile/recurse", 1, soon, sandbox.ToolTimeout, ""},

		{"endless recursion", "hostile/recurse", 0, ample, sandbox.ToolStack, "call stack"},
		{"endless recursion with large frames", "hostile/recurse", 2, ample, sandbox.ToolStack, "call stack"},
		{"endless recursion through a table", "hostile/recurse", 3, ample, sandbox.ToolStack, "call stack"},

		{"deep stack within a small limit", "hostile/recurse", 0, limits.Limits{Timeout: time.Minute, Stack: 16 << 10}, sandbox.ToolStack, "call stack of 16 KiB"},
		{"deep stack within a large limit", "hostile/recurse", 0, limits.Limits{Timeout: time.Minute, Stack: 64 << 20}, sandbox.ToolStack, "call stack of 64 MiB"},

		{"fuel, spinning", "hostile/spin", 0, limits.Limits{Timeout: time.Minute, Fuel: 1000}, sandbox.ToolFuel, "more than its limit of 1000 instructions"},
		{"fuel, host", "hostile/spin", 1, limits.Limits{Timeout: time.Minute, Fuel: 10_000_000}, sandbox.ToolFuel, ""},
		{"fuel, deadline", "hostile/deadline", 2, limits.Limits{Timeout: time.Minute, Fuel: 10_000_000}, sandbox.ToolFuel, ""},
		{"deadline while it starts", "hostile/deadline", 1, ample, sandbox.OK, "-1"},
		{"fuel, filling memory", "hostile/spin", 2, limits.Limits{Timeout: time.Minute, Fuel: 10_000_000}, sandbox.ToolFuel, ""},
		{"fuel, randomness", "hostile/spin", 3, limits.Limits{Timeout: time.Minute, Fuel: 10_000_000}, sandbox.ToolFuel, ""},
		{"fuel, recursion", "hostile/recurse", 1, limits.Limits{Timeout: time.Minute, Fuel: 10_000_000}, sandbox.ToolFuel, ""},
		{"fuel, start", "hostile/start_spin", 0, limits.Limits{Timeout: time.Minute, Fuel: 10_000}, sandbox.ToolFuel, ""},
		{"fuel, warm", "hostile/warm_spin", 0, limits.Limits{Timeout: time.Minute, Fuel: 10_000}, sandbox.ToolFuel, ""},
		{"fuel that suffices", "good/stages", 0, limits.Limits{Timeout: time.Minute, Fuel: 100_000}, sandbox.OK, "1234"},
		{"more memory than the module declares", "hostile/declared", 0, ample, sandbox.ToolMemory, "more memory than its limit of 128 KiB"},

		{"memory page by page", "hostile/memory", 0, ample, sandbox.ToolMemory, "more memory than its limit of 64 MiB"},
		{"memory at once", "hostile/memory", 1, ample, sandbox.ToolMemory, "64 MiB"},
		{"memory, then exit", "hostile/memory", 2, ample, sandbox.ToolMemory, "64 MiB"},
		{"memory, then another return value", "hostile/memory", 5, ample, sandbox.ToolMemory, "64 MiB"},
		{"refused memory that the tool can do without", "hostile/memory", 3, ample, sandbox.OK, `"still here"`},
		{"table", "hostile/memory", 4, ample, sandbox.OK, `"still here"`},
		{"memory declared", "hostile/memory_4gib", 0, ample, sandbox.ToolMemory, "needs 4 GiB of memory to start; its limit is 64 MiB"},
		{"memory declared, all allowed", "hostile/memory_4gib", 0, limits.Limits{Memory: 1 << 40}, sandbox.ToolMemory, "to start"},

		{"no output", "hostile/output", 0, ample, sandbox.ToolBadOutput, "without any output"},
		{"empty output", "hostile/output", 1, ample, sandbox.ToolBadOutput, "output is empty"},
		{"cut output", "hostile/output", 2, ample, sandbox.ToolBadOutput, "not valid JSON"},
		{"output not UTF-8", "hostile/output", 3, ample, sandbox.ToolBadOutput, "not UTF-8"},
		{"two values", "hostile/output", 4, ample, sandbox.ToolBadOutput, "not valid JSON"},
		{"NaN", "hostile/output", 5, ample, sandbox.ToolBadOutput, "not valid JSON"},
		{"blank", "hostile/output", 6, ample, sandbox.ToolBadOutput, "output is empty"},
		{"deep output", "hostile/output", 7, ample, sandbox.ToolBadOutput, "nested deeper than 1000 levels"},
		{"output replaced", "hostile/output", 8, ample, sandbox.OK, `"good"`},
		{"large output", "hostile/output", 9, ample, sandbox.ToolBadOutput, "larger than its limit of 4 MiB"},
		{"returns -1", "hostile/output", 10, ample, sandbox.ToolBadOutput, "returned -1"},
		{"returns 1 without fail", "hostile/output", 12, ample, sandbox.ToolBadOutput, "did not call fail"},
		{"returns 2", "hostile/output", 13, ample, sandbox.ToolBadOutput, "returned 2"},
		{"stdout without end", "hostile/flood", 0, ample, sandbox.ToolBadOutput, "larger than its limit of 4 MiB"},

		{"proc_exit 0", "hostile/exit", 0, ample, sandbox.ToolTrapped, "ended itself with exit code 0"},
		{"proc_exit 3", "hostile/exit", 3, ample, sandbox.ToolTrapped, "ended itself with exit code 3"},
		{"proc_exit like a deadline", "hostile/exit", -0x10000001, ample, sandbox.ToolTrapped, "ended itself"},
		{"proc_exit like a cancellation", "hostile/exit", -1, ample, sandbox.ToolTrapped, "ended itself"},
		{"proc_exit in initialize", "hostile/initialize_exits", 0, ample, sandbox.ToolTrapped, "ended itself"},
		{"data outside of memory", "hostile/start_breaks", 0, ample, sandbox.ToolTrapped, "broke"},

		{"endless log", "hostile/log", 0, soon, sandbox.ToolTimeout, ""},
		{"endless stdout of a reactor", "hostile/log", 1, soon, sandbox.ToolTimeout, ""},
		{"endless line", "hostile/log", 2, soon, sandbox.ToolTimeout, ""},

		{"stages", "good/stages", 0, ample, sandbox.OK, "1234"},
		{"output of the start does not count", "good/stages", 1, ample, sandbox.ToolBadOutput, "without any output"},
		{"fail of the start does not count", "good/stages", 2, ample, sandbox.ToolBadOutput, "did not call fail"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/"+test.fixture))
			if err := p.Compile(t.Context()); err != nil {
				t.Fatal(err)
			}
			tool := p.Tool("x", test.index, test.limits)
			begun := time.Now()
			out, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`{}`)})
			if took := time.Since(begun); test.outcome == sandbox.ToolTimeout && took > time.Minute {
				t.Errorf("took %v", took)
			}
			if test.outcome == sandbox.OK {
				if err != nil || string(out) != test.message {
					t.Fatalf("got %s, %v, want %s", out, err, test.message)
				}
				return
			}
			if got := wantError(t, err, test.outcome, test.message); strings.Contains(got.Message, "wazero") || strings.Contains(got.Message, "/") {
				t.Errorf("the message %q names the host", got.Message)
			}
			if out != nil {
				t.Errorf("got the output %q along with the error", out)
			}
		})
	}
}

// TestTraps checks the texts by which wazero's traps are told apart.
func TestTraps(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/hostile/traps"))
	for i, want := range []string{
		"unreachable",
		"out of bounds memory access", "out of bounds memory access",
		"integer divide by zero", "integer overflow", "invalid conversion to integer", "integer overflow",
		"invalid table access", "invalid table access", "indirect call type mismatch",
		"invalid table access", "invalid table access",
		"out of bounds memory access", "out of bounds memory access", "out of bounds memory access",
	} {
		t.Run(fmt.Sprint(i, " ", want), func(t *testing.T) {
			t.Parallel()
			_, err := p.Tool("x", int32(i), limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Input: []byte(`{}`)})
			e := wantError(t, err, sandbox.ToolTrapped, "The tool broke: "+want+".")
			if e.Err == nil || !strings.Contains(e.Err.Error(), "wasm stack trace") {
				t.Errorf("got cause %v, want a cause with a stack trace", e.Err)
			}
		})
	}
}

// TestWildPointers passes addresses outside the guest's memory to every host function that takes one.
// Proves: A tool touches no memory but its own
func TestWildPointers(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/hostile/wild"))
	for i, function := range []string{
		"input_read", "output_write", "output_write", "output_write", "fail", "log", "log",
		"args_sizes_get", "args_sizes_get", "environ_sizes_get", "clock_res_get", "clock_time_get",
		"fd_fdstat_get", "fd_filestat_get", "fd_read", "fd_read", "", "fd_write", "fd_write", "fd_write", "fd_write", "fd_write",
		"poll_oneoff", "poll_oneoff", "poll_oneoff", "poll_oneoff", "random_get", "random_get",
	} {
		if function == "" {
			continue // a reactor's stdin is empty, so the buffer is never used
		}
		t.Run(fmt.Sprint(i, " ", function), func(t *testing.T) {
			t.Parallel()
			_, err := p.Tool("x", int32(i), limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Input: []byte(`{}`)})
			wantError(t, err, sandbox.ToolTrapped, "it gave "+function+" a place outside its memory")
		})
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/good/echo"))
	long := strings.Repeat("x", 200)
	tests := []struct {
		name, json string
		want       sandbox.Error
		bad        string // what the sentence says if the JSON is refused
	}{
		{name: "message", json: `{"message": "no"}`, want: sandbox.Error{Message: "no"}},
		{name: "all", json: `{"message":"no","code":"c","status":409,"data":{"a":[1]}}`, want: sandbox.Error{Message: "no", Code: "c", Status: 409, Data: json.RawMessage(`{"a":[1]}`)}},
		{name: "null data", json: `{"message":"no","data":null}`, want: sandbox.Error{Message: "no", Data: json.RawMessage(`null`)}},
		{name: "empty", json: ``, bad: "fail is empty"},
		{name: "text", json: `no`, bad: "not valid JSON"},
		{name: "string", json: `"no"`, bad: "is not an object"},
		{name: "array", json: `[]`, bad: "is not an object"},
		{name: "no message", json: `{"code":"c"}`, bad: "has no message"},
		{name: "empty message", json: `{"message":""}`, bad: "has no message"},
		{name: "null message", json: `{"message":null}`, bad: "has no message"},
		{name: "number", json: `{"message":1}`, bad: `has a message of the wrong type`},
		{name: "case", json: `{"Message":"no"}`, bad: `unknown member "Message"`},
		{name: "unknown", json: `{"message":"no","detail":1}`, bad: `unknown member "detail"`},
		{name: "twice", json: `{"message":"no","message":"yes"}`, bad: "twice"},
		{name: "status 399", json: `{"message":"no","status":399}`, bad: "not within 400 to 599"},
		{name: "status 600", json: `{"message":"no","status":600}`, bad: "not within 400 to 599"},
		{name: "status 0", json: `{"message":"no","status":0}`, bad: "not within 400 to 599"},
		{name: "status 1e2", json: `{"message":"no","status":4e2}`, bad: "wrong type"},
		{name: "huge status", json: `{"message":"no","status":` + strings.Repeat("9", 1000) + `}`, bad: "wrong type"},
		{name: "long code", json: `{"message":"no","code":"` + long + `"}`, bad: "a code of 200 bytes"},
		{name: "deep", json: `{"message":"no","data":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`, bad: "nested deeper"},
		{name: "long", json: `{"message":"` + strings.Repeat("x", 70<<10) + `"}`, bad: "the limit is 64 KiB"},
		{name: "not UTF-8", json: "{\"message\":\"\xff\"}", bad: "not UTF-8"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := p.Tool("x", 1, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Input: []byte(test.json)})
			if test.bad != "" {
				wantError(t, err, sandbox.ToolBadOutput, test.bad)
				return
			}
			got := wantError(t, err, sandbox.ToolError, "")
			if got.Message != test.want.Message || got.Code != test.want.Code || got.Status != test.want.Status || string(got.Data) != string(test.want.Data) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// Proves: A tool stops
func TestDescribe(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{})
	if out, err := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/good/stages")).Describe(t.Context()); err != nil || string(out) != "12" && string(out) != "123" {
		t.Errorf("got %s, %v, want 123", out, err)
	}
	_, err := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/good/echo")).Describe(t.Context())
	wantError(t, err, sandbox.Internal, "no export toolsrv_describe")

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = sandboxtest.Load(t, e, testkit.Fixture(t, "wat/hostile/describe_spin")).Describe(ctx)
	wantError(t, err, sandbox.Cancelled, "gave up")
}

// Proves: Answers and logs show what is meant to be seen
// Proves: Limits hold, one by one and in sum
func TestLog(t *testing.T) {
	t.Parallel()
	var r testkit.Log
	e := sandboxtest.Engine(t, sandbox.Config{Logger: r.Logger(slog.LevelDebug)})
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/hostile/log"))
	call := func(index int32, limits limits.Limits) {
		t.Helper()
		if _, err := p.Tool("noisy", index, limits).Call(t.Context(), sandbox.CallSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	call(4, limits.Limits{})
	if n := strings.Count(r.String(), "level=WARN msg=line tool=noisy source=log"); n != 100 {
		t.Errorf("got %d lines, want 100", n)
	}
	call(4, limits.Limits{LogLines: 7})
	if n := strings.Count(r.String(), "msg=line"); n != 107 {
		t.Errorf("got %d lines, want 107", n)
	}
	call(4, limits.Limits{LogLines: -1})
	if n := strings.Count(r.String(), "msg=line"); n != 107 {
		t.Errorf("got %d lines, want 107", n)
	}
	if n := strings.Count(r.String(), `msg="further lines dropped" tool=noisy`); n != 3 {
		t.Errorf("got %d notes of dropped lines, want 3", n)
	}
	before := len(r.String())
	call(3, limits.Limits{})
	added := r.String()[before:]
	if len(added) > 20<<10 || !strings.Contains(added, "level=ERROR") || !strings.Contains(added, "level=DEBUG msg=line") {
		t.Errorf("got %d bytes of log for one long line: %.200s", len(added), added)
	}
}

// TestListener compares what a listener receives with what is logged.
func TestListener(t *testing.T) {
	t.Parallel()
	var r testkit.Log
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{Logger: r.Logger(slog.LevelDebug)}), testkit.Fixture(t, "wat/hostile/log"))
	for _, test := range []struct {
		index  int32
		limits limits.Limits
		want   string
	}{
		{4, limits.Limits{LogLines: 7}, strings.Repeat("WARN log line\n", 7)},
		{4, limits.Limits{LogLines: -1}, ""},
		{3, limits.Limits{}, "ERROR log \uFFFD\nDEBUG log line\n"},
	} {
		var heard listener
		if _, err := p.Tool("noisy", test.index, test.limits).Call(t.Context(), sandbox.CallSpec{Listener: &heard}); err != nil {
			t.Fatal(err)
		}
		if got := heard.text.String(); got != test.want {
			t.Errorf("tool %d: heard %q, want %q", test.index, got, test.want)
		}
	}
	if n := strings.Count(r.String(), "msg=line tool=noisy source=log"); n != 8 {
		t.Errorf("got %d lines in the log, want 8", n)
	}
}

// TestLogIsBoundedEscaped has a guest log bytes that must be escaped, which makes them six times as long.
// Proves: Answers and logs show what is meant to be seen
func TestLogIsBoundedEscaped(t *testing.T) {
	t.Parallel()
	var r testkit.Log
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{Logger: slog.New(slog.NewJSONHandler(&r, nil))}), testkit.Fixture(t, "wat/hostile/log"))
	if _, err := p.Tool("noisy", 5, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(r.String(), "\n")
	for _, line := range lines {
		if len(line) > 4<<10+200 {
			t.Fatalf("got a line of %d bytes, want 4 KiB plus the log line's other fields: %.100s", len(line), line)
		}
	}
	if n := strings.Count(r.String(), `"tool":"noisy","source":"log"`); n != 100 {
		t.Errorf("got %d lines, want 100", n)
	}
}
