package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A censor is a grant that removes a word.
type censor string

func (w censor) Filter(b []byte, _ fmt.Stringer) []byte {
	return bytes.ReplaceAll(b, []byte(w), []byte("***"))
}

// speaker is a guest whose tools return what touch returns: its toolsrv_call only calls touch.
var speaker = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x06\x01\x60\x01\x7f\x01\x7f" +
	"\x02\x10\x01\x06toy_v1\x05touch\x00\x00" +
	"\x03\x02\x01\x00" +
	"\x05\x03\x01\x00\x01" +
	"\x07\x19\x02\x06memory\x02\x00\x0ctoolsrv_call\x00\x01" +
	"\x0a\x08\x01\x06\x00\x20\x00\x10\x00\x0b")

// TestFilter has a guest say a word in every way, with a grant that removes the word, and without.
// Proves: Secrets stay secret
func TestFilter(t *testing.T) {
	t.Parallel()
	const word = "hunter2hunter2"
	long := strings.Repeat("x", hostcall.MaxLine-10) + word
	for _, c := range []struct {
		name string
		say  func(c *hostcall.Call) (code uint64)
		want string // what is heard
	}{
		{"result", func(c *hostcall.Call) uint64 { c.SetOutput([]byte(`["` + word + `"]`)); return 0 }, `["***"]`},
		{"result in parts", func(c *hostcall.Call) uint64 {
			c.AppendOutput([]byte(`["hunter2`))
			c.AppendOutput([]byte(`hunter2"]`))
			return 0
		}, `["***"]`},
		{"result that is not JSON without the word", func(c *hostcall.Call) uint64 {
			c.SetOutput([]byte(`{"` + word + `":` + word + `}`))
			return 0
		}, "tool_bad_output: The tool's output is not valid JSON"},
		{"failure", func(c *hostcall.Call) uint64 {
			c.Fail([]byte(`{"message":"no ` + word + `","code":"` + word + `","data":["` + word + `"]}`))
			return 1
		}, `tool_error: no *** *** ["***"]`},
		{"failure that is not JSON", func(c *hostcall.Call) uint64 { c.Fail([]byte(word)); return 1 }, "tool_bad_output: What the tool passed to fail is not valid JSON"},
		{"end of a program", func(c *hostcall.Call) uint64 { c.Exit(1, word); return 0 }, "tool_trapped"},
		{"line", func(c *hostcall.Call) uint64 {
			c.Log(slog.LevelInfo, "log", []byte("it is "+word))
			c.SetOutput([]byte("1"))
			return 0
		}, "it is ***"},
		{"line that is cut", func(c *hostcall.Call) uint64 {
			c.Log(slog.LevelInfo, "log", []byte(long))
			c.SetOutput([]byte("1"))
			return 0
		}, "xxx***"},
		{"progress", func(c *hostcall.Call) uint64 {
			c.Progress(1, 2, []byte("it is "+word))
			c.SetOutput([]byte("1"))
			return 0
		}, "1/2 it is ***"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, grant := range []any{censor(word), "no filter"} {
				var log testkit.Log
				touch := func(call *hostcall.Call, stack []uint64) { stack[0] = c.say(call) }
				e := sandboxtest.Engine(t, sandbox.Config{
					Logger:  log.Logger(slog.LevelDebug),
					Imports: append(abi1.Sets(), &hostcall.Set{Module: toyModule, Functions: []hostcall.Function{{Name: "touch", Params: "i", Results: "i", Do: touch}}}),
				})
				p, err := e.Load(speaker, withToy()...)
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				var heard said
				out, err := p.Tool("x", 0, limits.Limits{}, hostcall.Grant{Module: toyModule, Value: grant}).Call(t.Context(), sandbox.CallSpec{Listener: &heard})
				all := fmt.Sprint(string(out), heard.String(), log.String())
				var failed *sandbox.Error
				if errors.As(err, &failed) {
					all += fmt.Sprintf("%v: %s %s %s %v", failed.Outcome, failed.Message, failed.Code, failed.Data, failed.Err)
				}
				warnings := log.Count(`msg="a secret was removed" tool=x where=`)
				if _, filters := grant.(hostcall.Filter); !filters {
					if warnings > 0 {
						t.Errorf("without a filter, the log has %s", log.String())
					}
					if strings.Contains(c.want, "***") && !strings.Contains(all, word[:5]) {
						t.Errorf("without a filter, %q is not said in %.200s", word, all)
					}
					continue
				}
				if c.name != "end of a program" && warnings != 1 {
					t.Errorf("%d lines say that something was taken out, want 1:\n%s", warnings, log.String())
				}
				if strings.Contains(all, word[:5]) || !strings.Contains(all, c.want) {
					t.Errorf("got %.2000s, want %q in it and no %q", all, c.want, word)
				}
			}
		})
	}
}

// TestNestedWarning has a tool say a secret in each of many calls inside one call. The log reports it once for each tool.
func TestNestedWarning(t *testing.T) {
	t.Parallel()
	n := &nest{}
	says := &hostcall.Set{Module: toyModule, Functions: []hostcall.Function{{Name: "touch", Params: "i", Results: "i", Do: func(c *hostcall.Call, stack []uint64) {
		c.SetOutput([]byte(`"hunter2"`))
		stack[0] = 0
	}}}}
	var log testkit.Log
	e := sandboxtest.Engine(t, sandbox.Config{Imports: append(abi1.Sets(), n.set(), says), Logger: log.Logger(slog.LevelDebug)})
	speaks, err := e.Load(speaker, withToy()...)
	if err != nil {
		t.Fatal(err)
	}
	defer speaks.Close()
	secret := hostcall.Grant{Module: toyModule, Value: censor("hunter2")}
	tools := []*sandbox.Tool{speaks.Tool("one", 0, limits.Limits{}, secret), speaks.Tool("two", 0, limits.Limits{}, secret)}
	outer := nestProgram(t, e, nester(false)).Tool("outer", nestCalls, limits.Limits{Timeout: time.Minute}, mayNest())
	n.do = func(c *hostcall.Call, _ int32) {
		for range 20 {
			for _, tool := range tools {
				if err := inside(c, tool); err != nil {
					t.Error(err)
				}
			}
		}
	}
	for calls := range 2 {
		if _, err := outer.Call(t.Context(), sandbox.CallSpec{}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"one", "two"} {
			if got, want := log.Count(`msg="a secret was removed" tool=`+name), calls+1; got != want {
				t.Errorf("after %d calls, %d lines say that a secret of %s was taken out, want %d", calls+1, got, name, want)
			}
		}
	}
}

// said records everything that a call tells a listener.
type said struct{ strings.Builder }

func (s *said) Log(_ slog.Level, _, line string) { s.WriteString(line + "\n") }

func (s *said) Progress(done, total float64, message string) {
	fmt.Fprintf(s, "%v/%v %s\n", done, total, message)
}
