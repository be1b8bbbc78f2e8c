package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// newTool returns a tool that is never called.
func newTool(t *testing.T, name, digest, description string) *wasmtools.Tool {
	t.Helper()
	parameters, err := schema.Compile(json.RawMessage(`{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}`))
	if err != nil {
		t.Fatal(err)
	}
	return &wasmtools.Tool{Name: name, Description: description, Parameters: parameters, Digest: digest, Source: name + ".py",
		Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return nil, nil })}
}

// An announced is a table with the text that an announcer has written about it.
type announced struct {
	t     *testing.T
	table *wasmtools.RouteTable
	a     announcer
	out   strings.Builder
}

func newAnnounced(t *testing.T) *announced {
	t.Helper()
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		t.Fatal(err)
	}
	s := &announced{t: t, table: table}
	s.a = announcer{w: &s.out, server: "localhost:8000", empty: "No tool."}
	return s
}

// next replaces the tools of the table, and returns what the announcer prints about that.
func (s *announced) next(tools []*wasmtools.Tool, refused ...wasmtools.Refusal) string {
	s.t.Helper()
	if err := s.table.Replace(tools, refused); err != nil {
		s.t.Fatal(err)
	}
	s.out.Reset()
	s.a.tell(s.table.Current())
	return s.out.String()
}

func TestAnnouncer(t *testing.T) {
	t.Parallel()
	s := newAnnounced(t)
	one, two := newTool(t, "one", "1", "Does one.\nIn lines."), newTool(t, "two", "1", "")
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
		}
	}
	const call = " -H 'Content-Type: application/json' -d '{\"n\":1}'\n"
	want("nothing", s.next(nil), "\nNo tool.\n")
	want("the first", s.next([]*wasmtools.Tool{one}), "\n1 tool. To call it, in another terminal:\n\n  /one  Does one.\n    curl -s localhost:8000/one"+call)
	want("the same", s.next([]*wasmtools.Tool{one}), "")
	want("another", s.next([]*wasmtools.Tool{one, two}), "\nNew:\n\n  /two\n    curl -s localhost:8000/two"+call)
	want("changed", s.next([]*wasmtools.Tool{newTool(t, "one", "2", "Does one."), two}), "\nChanged: /one\n")
	broken := wasmtools.Refusal{Source: "two.py", Err: &toolfile.ScriptError{Text: "two.py:1:2: no\n  x = = 1\n"}}
	want("a broken file, with its old version in service", s.next([]*wasmtools.Tool{one, two}, broken),
		"\nChanged: /one\n\nNot loaded, so the previous version stays in service: two.py\ntwo.py:1:2: no\n  x = = 1\n")
	want("still", s.next([]*wasmtools.Tool{one, two}, broken), "")
	want("gone", s.next([]*wasmtools.Tool{one}, broken), "\nGone: /two\n")
	want("all gone", s.next(nil, wasmtools.Refusal{Source: "x.wasm", Err: errors.New("is not a module")}),
		"\nGone: /one\n\nNot served: x.wasm: is not a module\n\nNo tool.\n")

	s = newAnnounced(t)
	loading := []string{"two.py"}
	s.a.loading = func() []string { return loading }
	want("while files are read", s.next(nil), "\nReading two.py.\n")
	want("still", s.next(nil), "")
	loading = nil
	want("in vain", s.next(nil), "\nNo tool.\n")
	want("at last", s.next([]*wasmtools.Tool{two}), "\n1 tool. To call it, in another terminal:\n\n  /two\n    curl -s localhost:8000/two"+call)
	s.a.needsToken = true
	want("with tokens", s.next([]*wasmtools.Tool{one, two}),
		"\nNew:\n\n  /one  Does one.\n    curl -s localhost:8000/one -H \"Authorization: Bearer $TOKEN\""+call)
}

// TestAnnouncerBounds announces thousands of tools and errors.
func TestAnnouncerBounds(t *testing.T) {
	t.Parallel()
	s := newAnnounced(t)
	var tools []*wasmtools.Tool
	var refused []wasmtools.Refusal
	for i := range 5000 {
		tools = append(tools, newTool(t, fmt.Sprintf("t%05d", i), "1", strings.Repeat("long ", 100_000/5000*50)))
		refused = append(refused, wasmtools.Refusal{Source: fmt.Sprint(i, ".py"), Err: errors.New(strings.Repeat("line\n", 1000))})
	}
	for what, got := range map[string]string{
		"all":     s.next(tools, refused...),
		"none":    s.next(nil),
		"changed": func() string { s.next(tools); return s.next(tools[2500:]) }(),
	} {
		if lines := strings.Count(got, "\n"); lines > 200 || lines == 0 || len(got) > 30_000 {
			t.Errorf("%s: %d lines and %d bytes", what, lines, len(got))
		}
	}
	s = newAnnounced(t)
	if got := s.next(tools, refused...); !strings.Contains(got, "and 4990 more: curl -s localhost:8000/tools\n") || !strings.Contains(got, "4990 files more") {
		t.Errorf("it does not say how many more there are:\n%.3000s", got)
	}
}

// TestAnnouncerHostile has texts with control characters. None of these reaches the terminal.
func TestAnnouncerHostile(t *testing.T) {
	t.Parallel()
	const bad = "\x1b]0;owned\x07 \x9b31m \r\n \u202e \x00"
	s := newAnnounced(t)
	tool := newTool(t, "one", "1", "Says "+bad)
	tool.Examples = []wasmtools.Example{{Arguments: json.RawMessage("{\"n\":\r\n\t1, \"x\": \"\u202e\u009b'; rm -rf ~; '\"}")}}
	got := s.next([]*wasmtools.Tool{tool}, wasmtools.Refusal{Source: bad + ".py", Err: errors.New("no " + bad)},
		wasmtools.Refusal{Source: "b.py", Err: &toolfile.ScriptError{Text: "b.py:1: " + bad}})
	if strings.ContainsAny(got, "\x1b\x07\r\x00\u009b\u202e") || strings.Contains(got, "\x9b") {
		t.Errorf("a terminal would obey %q", got)
	}
	if want := `-d '{"n":1,"x":"\u202e\u009b'\''; rm -rf ~; '\''"}'` + "\n"; !strings.Contains(got, want) {
		t.Errorf("no %s in %s", want, got)
	}
}

// TestStyle checks that only terminals get colours.
func TestStyle(t *testing.T) {
	var file strings.Builder
	if got := styleOf(&file).wrong("no"); got != "no" {
		t.Errorf("a file gets %q", got)
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil || !isTerminal(terminal) {
		t.Skipf("needs a pseudo-terminal: %v", err)
	}
	defer terminal.Close()
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	if got := styleOf(terminal).wrong("no"); got != "\x1b[1;31mno\x1b[0m" {
		t.Errorf("a terminal gets %q", got)
	}
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if got := styleOf(terminal).bold("no"); got != "no" {
				t.Errorf("with %s=%s a terminal gets %q", name, value, got)
			}
		})
	}
}
