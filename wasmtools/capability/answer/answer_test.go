package answer_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/answer"
)

// TestAnswers calls Give and Fail in turn, and reads each answer as a guest does.
func TestAnswers(t *testing.T) {
	t.Parallel()
	g := hosttest.Begin(t, make([]byte, 4096), 1, hostcall.Run{Serving: true})
	read := answer.Read()
	for _, step := range []struct {
		name    string
		give    []byte
		fail    *answer.Failure
		want    string
		failure bool
	}{
		{"an answer", []byte("first"), nil, "first", false},
		{"an empty one", []byte{}, nil, "", false},
		{"a failure", nil, answer.Failf(answer.Limit, "%d are <too> many", 7), `{"code":"limit","message":"7 are <too> many"}`, true},
		{"another tool's failure", nil, &answer.Failure{Code: "tool_error", Message: "no", ToolCode: "x", Data: json.RawMessage(`{"a":1}`)},
			`{"code":"tool_error","message":"no","tool_code":"x","data":{"a":1}}`, true},
		{"data that is not JSON", nil, &answer.Failure{Code: "tool_error", Message: "no", Data: json.RawMessage(`{`)}, `{"code":"tool_error","message":"no"}`, true},
		{"an answer after it", []byte("last"), nil, "last", false},
	} {
		n := int(int32(uint32(g.Do(&hostabi.Function{Name: "f", Do: func(c *hostabi.Call, stack []uint64) {
			if step.fail != nil {
				answer.Fail(c, stack, step.fail)
			} else {
				answer.Give(c, stack, step.give)
			}
		}}, 0))))
		if (n < 0) != step.failure || max(n, -n) != len(step.want) || g.Held != int64(len(step.want)) {
			t.Errorf("%s: returned %d and holds %d bytes, want %d", step.name, n, g.Held, len(step.want))
			continue
		}
		for range 2 { // as often as the guest likes
			clear(g.Memory)
			g.Do(&read, 0, 8)
			if got := string(g.Memory[8 : 8+len(step.want)]); got != step.want || g.Memory[8+len(step.want)] != 0 {
				t.Errorf("%s: read %q, want %q", step.name, got, step.want)
			}
		}
	}
}

// TestReadTooEarly traps a guest that reads before there is an answer, or to a place outside its memory.
func TestReadTooEarly(t *testing.T) {
	t.Parallel()
	g := hosttest.Begin(t, make([]byte, 8), 1, hostcall.Run{Serving: true})
	read := answer.Read()
	trapped := func(want string) {
		t.Helper()
		if got := hosttest.Trapped(func() { g.Do(&read, 0, 0) }); !strings.Contains(got, want) {
			t.Errorf("got the trap %q, want one with %q", got, want)
		}
	}
	trapped("before any other function")
	g.Do(&hostabi.Function{Do: func(c *hostabi.Call, stack []uint64) { answer.Give(c, stack, make([]byte, 9)) }}, 0)
	trapped("outside its memory")
}

// TestStateEnds checks that the value that a set keeps is closed once, when the call ends.
func TestStateEnds(t *testing.T) {
	t.Parallel()
	g := hosttest.Begin(t, nil, 1, hostcall.Run{})
	closed := 0
	for call := range 2 {
		g.ABI.Begin(hostcall.Run{Serving: true})
		for range 3 {
			g.Do(&hostabi.Function{Do: func(c *hostabi.Call, _ []uint64) {
				used, _ := answer.Kept(c).(int)
				answer.Keep(c, used+1, func() {
					if closed++; used != 2 {
						t.Errorf("used %v times, want 3", used+1)
					}
				})
			}}, 0)
		}
		g.ABI.End()
		if closed != call+1 {
			t.Errorf("closed %d times after %d calls", closed, call+1)
		}
	}
}

// TestNotDeclared checks that the refusal depends on whether the guest is starting.
func TestNotDeclared(t *testing.T) {
	t.Parallel()
	for _, serving := range []bool{true, false} {
		g := hosttest.Begin(t, nil, 1, hostcall.Run{Serving: serving})
		f := answer.NotDeclared((*hostabi.Call)(&g.ABI), "http")
		if f.Code != answer.NotGranted || strings.Contains(f.Message, "starts") == serving {
			t.Errorf("serving %t: got %+v", serving, f)
		}
	}
}

// TestAnswersAreCharged checks that an answer costs according to its length.
// Proves: A tool stops
func TestAnswersAreCharged(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 100, 100_000} {
		text := strings.Repeat("x", n)
		for name, test := range map[string]struct {
			do    func(c *hostabi.Call, stack []uint64)
			least int
		}{
			"a message": {func(c *hostabi.Call, stack []uint64) { answer.Fail(c, stack, answer.Failf(answer.Invalid, "%s", text)) }, 1000 + 10*n},
			"data": {func(c *hostabi.Call, stack []uint64) {
				answer.Fail(c, stack, &answer.Failure{Data: json.RawMessage(`"` + text + `"`)})
			}, 1000 + 10*n},
			"an answer": {func(c *hostabi.Call, stack []uint64) { answer.Give(c, stack, []byte(text)) }, n / 4},
		} {
			g := hosttest.Begin(t, make([]byte, 8), 1, hostcall.Run{Serving: true})
			g.Do(&hostabi.Function{Do: test.do, Cost: 1}, 0)
			if got := g.Charged(); got < int64(test.least) {
				t.Errorf("%s of %d bytes: %d ns were charged, want %d at least", name, n, got, test.least)
			}
		}
	}
}
