package answer_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/runtime/hostabi"
	"github.com/toolsrv/toolsrv/wasmtools/capability/internal/answer"
)

// A memory is that of a guest.
type memory []byte

func (m memory) Size() uint32 { return uint32(len(m)) }
func (m memory) Read(offset, length uint32) ([]byte, bool) {
	if uint64(offset)+uint64(length) > uint64(len(m)) {
		return nil, false
	}
	return m[offset : offset+length], true
}

// A host counts what is held.
type host struct {
	hostabi.Host // nil: answers ask for nothing else
	held         int64
}

func (*host) Look()          {}
func (h *host) Hold(n int64) { h.held += n }

// TestAnswers gives and fails in turn, and reads each answer as a guest does.
func TestAnswers(t *testing.T) {
	t.Parallel()
	h, m := &host{}, make(memory, 4096)
	c := hostabi.NewCall(h, hostabi.Guest{Memory: m, Sets: 1})
	c.Begin(hostabi.Run{Serving: true})
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
		stack := []uint64{0}
		c.Invoke(&hostabi.Function{Name: "f", Do: func(c *hostabi.Call, stack []uint64) {
			if step.fail != nil {
				answer.Fail(c, stack, step.fail)
			} else {
				answer.Give(c, stack, step.give)
			}
		}}, 0, stack)
		n := int(int32(uint32(stack[0])))
		if (n < 0) != step.failure || max(n, -n) != len(step.want) || h.held != int64(len(step.want)) {
			t.Errorf("%s: returned %d and holds %d bytes, want %d", step.name, n, h.held, len(step.want))
			continue
		}
		for range 2 { // as often as the guest likes
			clear(m)
			c.Invoke(&read, 0, []uint64{8})
			if got := string(m[8 : 8+len(step.want)]); got != step.want || m[8+len(step.want)] != 0 {
				t.Errorf("%s: read %q, want %q", step.name, got, step.want)
			}
		}
	}
}

// TestReadTooEarly traps a guest that reads what is not there, or to a place outside its memory.
func TestReadTooEarly(t *testing.T) {
	t.Parallel()
	c := hostabi.NewCall(&host{}, hostabi.Guest{Memory: make(memory, 8), Sets: 1})
	c.Begin(hostabi.Run{Serving: true})
	read := answer.Read()
	trapped := func(want string) {
		t.Helper()
		defer func() {
			if trap, ok := recover().(*hostabi.Trap); !ok || !strings.Contains(trap.Message, want) {
				t.Errorf("got %v, want a trap with %q", trap, want)
			}
		}()
		c.Invoke(&read, 0, []uint64{0})
	}
	trapped("before another function")
	c.Invoke(&hostabi.Function{Do: func(c *hostabi.Call, stack []uint64) { answer.Give(c, stack, make([]byte, 9)) }}, 0, []uint64{0})
	trapped("outside its memory")
}

// TestStateEnds has a set keep something, which is closed with the call, once.
func TestStateEnds(t *testing.T) {
	t.Parallel()
	c := hostabi.NewCall(&host{}, hostabi.Guest{Sets: 1})
	closed := 0
	for call := range 2 {
		c.Begin(hostabi.Run{Serving: true})
		for range 3 {
			c.Invoke(&hostabi.Function{Do: func(c *hostabi.Call, _ []uint64) {
				s := answer.Of(c)
				s.Count++
				s.Close = func() {
					if closed++; s.Count != 3 {
						t.Errorf("used %d times, want 3", s.Count)
					}
				}
			}}, 0, nil)
		}
		c.End()
		if closed != call+1 {
			t.Errorf("closed %d times after %d calls", closed, call+1)
		}
	}
}

// TestNotDeclared words the refusal by what the guest does.
func TestNotDeclared(t *testing.T) {
	t.Parallel()
	for _, serving := range []bool{true, false} {
		c := hostabi.NewCall(&host{}, hostabi.Guest{Sets: 1})
		c.Begin(hostabi.Run{Serving: serving})
		f := answer.NotDeclared(&c, "http")
		if f.Code != answer.NotGranted || strings.Contains(f.Message, "starts") == serving {
			t.Errorf("serving %t: got %+v", serving, f)
		}
	}
}

// TestAnswersAreCharged holds that what is answered costs by its length.
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
			c := hostabi.NewCall(&host{}, hostabi.Guest{Memory: make(memory, 8), Sets: 1})
			c.Begin(hostabi.Run{Serving: true})
			c.Invoke(&hostabi.Function{Do: test.do, Cost: 1}, 0, []uint64{0})
			if got := c.Spent(); got < int64(test.least) {
				t.Errorf("%s of %d bytes: %d ns were charged, want %d at least", name, n, got, test.least)
			}
		}
	}
}
