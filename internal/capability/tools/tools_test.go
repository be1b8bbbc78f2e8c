package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// TestRefusedArgumentsAreCharged makes a tool call another one with long arguments. Invalid ones cost more than
// valid ones, since the errors must be located.
// Proves: A tool stops
func TestRefusedArgumentsAreCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Config{}, func(w *world) {
		w.limits["/a/once"] = limits.Limits{Fuel: 60 * 500_000, Timeout: time.Minute}
	}, gotool.New("go/sum", "Adds.", func(_ context.Context, in struct {
		Numbers []int `json:"numbers"`
	}) (int, error) {
		return len(in.Numbers), nil
	}))
	list := func(item string) string { return `{"numbers":[0` + strings.Repeat(","+item, 250_000-10) + `]}` }
	if result, f, err := w.call(t, "/a/once", wasmtools.Everybody(), "go/sum", list("1")); err != nil || f != nil || result != "249991" {
		t.Fatalf("valid arguments: got %s, %v, %v", result, f, err)
	}
	_, _, err := w.call(t, "/a/once", wasmtools.Everybody(), "go/sum", list(`""`)) // 1.5 times as many bytes
	wantCode(t, err, wasmtools.CodeToolFuel)
}

// TestCaller checks what a tool is told about its caller, also through another tool: the name, and whether it will always mean the same caller.
// Proves: Callers keep apart
func TestCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Config{}, nil)
	p, err := wasmtools.NewPrincipal("Ann \"\u00e9", "oidc", "*")
	if err == nil {
		p, err = p.WithRealm("https://id.example")
	}
	numbered, err2 := wasmtools.NewPrincipal("token-1", wasmtools.OriginToken, "*")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for want, who := range map[string]*wasmtools.Principal{
		`{"id":"oidc+https%3a%2f%2fid.example+%41nn%20%22%c3%a9","name":"Ann \"\u00e9","origin":"oidc","realm":"https://id.example"}`: p,
		`{"id":"","name":"token-1","origin":"token","realm":""}`:                                                                      numbered,
		`{"id":"","name":"everybody","origin":"open","realm":""}`:                                                                     wasmtools.Everybody(),
	} {
		for _, arguments := range []string{`{}`, `{"id":"issued+bob"}`} {
			if got, f, err := w.call(t, "/a/once", who, "toolsrv/caller", arguments); err != nil || f != nil || !sameJSON(t, got, want) {
				t.Errorf("%s: got %s, %v, %v, want %s", who, got, f, err, want)
			}
		}
		got, f, err := w.call(t, "/a/once", who, "b/once", `{"id":"toolsrv/caller","args":{}}`)
		var inner struct{ Result json.RawMessage }
		if err != nil || f != nil || json.Unmarshal([]byte(got), &inner) != nil || !sameJSON(t, string(inner.Result), want) {
			t.Errorf("%s, through another: got %s, %v, %v, want %s", who, got, f, err, want)
		}
	}
}

// sameJSON reports whether two texts are the same value.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// greeting is the arguments of the Go function in most tests.
type greeting struct {
	Name  string `json:"name" minLength:"1"`
	Times int    `json:"times" default:"2"`
}

// native returns a tool of the namespace "go" with no arguments.
func native(name string, f func(ctx context.Context, call *wasmtools.Call) (any, error)) *wasmtools.Tool {
	return gotool.NewWithCall("go/"+name, "A function.", func(ctx context.Context, call *wasmtools.Call, _ struct{}) (any, error) { return f(ctx, call) })
}

func fails(err error) func(context.Context, *wasmtools.Call) (any, error) {
	return func(context.Context, *wasmtools.Call) (any, error) { return nil, err }
}

func mustPrincipal(t *testing.T, scopes ...string) *wasmtools.Principal {
	t.Helper()
	p, err := wasmtools.NewPrincipal("somebody", "test", scopes...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCall calls tools in every way, and checks what the guest is told.
// Proves: A call inside a call gets no further
func TestCall(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 2<<20)
	natives := []*wasmtools.Tool{
		gotool.NewWithCall("go/greet", "Greets.", func(_ context.Context, call *wasmtools.Call, in greeting) (string, error) {
			return fmt.Sprintf("%s %s %d times, %d deep", call.Principal, in.Name, in.Times, call.Outer.Depth()+1), nil
		}),
		gotool.New("go/private", "Is granted to nobody.", func(context.Context, struct{}) (int, error) { return 1, nil }),
		gotool.New("go/off", "Is switched off.", func(context.Context, struct{}) (int, error) { return 1, nil }),
		native("plain", fails(errors.New("a plain error"))),
		native("coded", fails(&wasmtools.Error{Code: wasmtools.CodeToolError, Message: "no", ToolCode: "too_late", Data: json.RawMessage(`{"n":1}`), Status: 409})),
		native("not-json", fails(&wasmtools.Error{Code: wasmtools.CodeToolError, Message: "no", Data: json.RawMessage(`{"n":`)})),
		native("huge", fails(&wasmtools.Error{Code: wasmtools.CodeToolError, Message: large, ToolCode: large, Data: json.RawMessage(`"` + large + `"`)})),
		native("inner", fails(&wasmtools.Error{Code: wasmtools.CodeInternal, Message: "hunter22", Err: errors.New("hunter22")})),
		native("mute", fails(&wasmtools.Error{Code: wasmtools.CodeOverloaded})),
		native("bad", func(context.Context, *wasmtools.Call) (any, error) { return make(chan int), nil }),
	}
	w := newWorld(t, sandbox.Config{}, nil, natives...)
	if err := w.table.Disable("go/off", "being repaired"); err != nil {
		t.Fatal(err)
	}
	all := mustPrincipal(t, "*")
	few := mustPrincipal(t, "a/*", "go/coded")
	const ok = `{"name":"Ada"}`
	for _, test := range []struct {
		name, id, arguments string
		principal           *wasmtools.Principal
		want                string // the result, or the code and parts of the message
		data                string
	}{
		{name: "by its path", id: "go/greet", arguments: ok, want: `"somebody Ada 2 times, 1 deep"`},
		{name: "with a slash", id: "/go/greet", arguments: `{"name":"Ada","times":3}`, want: `"somebody Ada 3 times, 1 deep"`},
		{name: "by its operation id", id: "go-greet", arguments: ok, want: `"somebody Ada 2 times, 1 deep"`},
		{name: "not granted", id: "go/private", arguments: `{}`, want: `not_granted:may not call "go/private"`},
		{name: "not granted, and not there", id: "no/such", arguments: `{}`, want: `not_granted:may not call "no/such"`},
		{name: "pattern", id: "go/*", arguments: `{}`, want: "not_granted"},
		{name: "no name", id: "", arguments: `{}`, want: "not_granted"},
		{name: "dots", id: "go/../go/greet", arguments: ok, want: "not_granted"},
		{name: "upper case", id: "GO/greet", arguments: ok, want: "not_granted"},
		{name: "not there", id: "go/gone", arguments: `{}`, want: "not_found:There is no tool /go/gone, or the caller may not call it."},
		{name: "a tool that the caller may not call", id: "go/greet", principal: few, arguments: ok, want: "not_found:There is no tool /go/greet, or the caller may not call it."},
		{name: "for the caller", id: "go/coded", principal: few, arguments: `{}`, want: "tool_error:no", data: `{"n":1}`},
		{name: "switched off", id: "go/off", arguments: `{}`, want: "tool_disabled:being repaired"},
		{name: "wrong arguments", id: "go/greet", arguments: `{"name":""}`, want: "invalid_arguments:The arguments do not fit the schema of /go/greet: name: "},
		{name: "not an object", id: "go/greet", arguments: `7`, want: "invalid_arguments"},
		{name: "nothing", id: "go/greet", arguments: `{}`, want: "invalid_arguments:name: Field required"},
		{name: "too large", id: "go/greet", arguments: `{"name":"` + strings.Repeat("x", 1<<20-40) + `x"}`, want: "input_too_large"},
		{name: "a plain error", id: "go/plain", arguments: `{}`, want: "tool_error:a plain error"},
		{name: "a coded error", id: "go/coded", arguments: `{}`, want: "tool_error:no", data: `{"n":1}`},
		{name: "data that is not JSON", id: "go/not-json", arguments: `{}`, want: "tool_error:no"},
		{name: "a huge error", id: "go/huge", arguments: `{}`, want: "tool_error:xxx"},
		{name: "an internal error", id: "go/inner", arguments: `{}`, want: "internal:/go/inner failed as internal."},
		{name: "without a message", id: "go/mute", arguments: `{}`, want: "overloaded:/go/mute failed as overloaded."},
		{name: "a bad result", id: "go/bad", arguments: `{}`, want: "tool_bad_output"},
	} {
		if test.principal == nil {
			test.principal = all
		}
		if test.name == "too large" { // a limit of the called tool, not of the caller
			w.tools[0].MaxInput = 1000
		}
		result, f, err := w.call(t, "/a/once", test.principal, test.id, test.arguments)
		w.tools[0].MaxInput = 0
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if f == nil {
			if result != test.want {
				t.Errorf("%s: got %s, want %s", test.name, result, test.want)
			}
			continue
		}
		code, message, _ := strings.Cut(test.want, ":")
		if f.Code != code || !strings.Contains(f.Message, message) || test.data != "" && string(f.Data) != test.data {
			t.Errorf("%s: got %.300s, %.300s, %.300s, want %s %s", test.name, f.Code, f.Message, f.Data, test.want, test.data)
		}
		if n := len(f.Message) + len(f.Data) + len(f.ToolCode); n > 200<<10 || strings.Contains(f.Message, "hunter22") {
			t.Errorf("%s: the failure has %d bytes: %.300s", test.name, n, f.Message)
		}
		if test.name == "wrong arguments" && !strings.Contains(string(f.Data), `"loc":["body","name"]`) {
			t.Errorf("%s: got the data %s, want the violations", test.name, f.Data)
		}
	}
	if got := w.log.Count("a call inside another failed", "hunter22", "tool=/go/inner"); got != 1 {
		t.Errorf("the log has %d lines of the internal error:\n%s", got, w.log.String())
	}
	_, _, err := w.call(t, "/a/wild", all, "go/greet", ok)
	wantCode(t, err, wasmtools.CodeToolTrapped)
	_, f, err := w.call(t, "/a/long", all, "go/greet", ok)
	if err != nil {
		t.Fatal(err)
	}
	wantFailure(t, f, "invalid", "1048576 bytes")
}

// TestPanic has a tool call a Go function that panics. The panic ends only that call, as it would end a client's.
func TestPanic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Config{}, func(w *world) { w.all = limits.Limits{Concurrency: 1} }, native("panics", func(context.Context, *wasmtools.Call) (any, error) { panic("hunter22") }))
	for range 2 {
		_, _, err := w.call(t, "/a/once", wasmtools.Everybody(), "go/panics", `{}`)
		wantCode(t, err, wasmtools.CodeInternal)
	}
	if _, f, err := w.call(t, "/a/once", wasmtools.Everybody(), "go/gone", `{}`); err != nil || f == nil || f.Code != "not_found" {
		t.Errorf("afterwards: got %+v, %v", f, err)
	}
}

// TestHidden compares the answers for a tool that the caller may not call and for one that does not exist: whether the tool is enabled or not, the
// answers differ only in the name.
// Proves: A call inside a call gets no further
func TestHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Config{}, nil, native("one", nil1), native("off", nil1))
	if err := w.table.Disable("go/off", "secret reason"); err != nil {
		t.Fatal(err)
	}
	few := mustPrincipal(t, "a/*")
	var told []string
	for _, id := range []string{"go/one", "go/off", "go/gone"} {
		_, f, err := w.call(t, "/a/once", few, id, `{}`)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(f)
		told = append(told, strings.ReplaceAll(string(text), id, "X"))
	}
	if told[0] != told[2] || told[1] != told[2] {
		t.Errorf("the answers differ: %q", told)
	}
}

func nil1(context.Context, *wasmtools.Call) (any, error) { return 1, nil }

// A screen is the grant of a tool that uses the secret "hunter2!" without seeing it. It does not filter what the tool says, so that a test sees what
// the tool was told.
type screen struct{}

func (screen) Screen(b []byte, _ fmt.Stringer) []byte {
	return bytes.ReplaceAll(b, []byte("hunter2!"), []byte("[secret]"))
}

// TestScreened makes tools pass a secret, in a result and in every part of a failure, to a tool that uses it without seeing it.
// Proves: Secrets stay secret
func TestScreened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Config{}, func(w *world) { w.more = []hostcall.Grant{{Module: http.Module, Value: screen{}}} },
		native("tells", func(context.Context, *wasmtools.Call) (any, error) { return "it is hunter2!", nil }),
		native("fails", func(context.Context, *wasmtools.Call) (any, error) {
			return nil, &wasmtools.Error{Code: wasmtools.CodeToolError, ToolCode: "hunter2!", Message: "it is hunter2!", Data: []byte(`"hunter2!"`)}
		}))
	if result, f, err := w.call(t, "/a/once", wasmtools.Everybody(), "go/tells", `{}`); result != `"it is [secret]"` {
		t.Errorf("got %s, %+v, %v", result, f, err)
	}
	_, f, err := w.call(t, "/a/once", wasmtools.Everybody(), "go/fails", `{}`)
	if err != nil || f == nil || f.Message != "it is [secret]" || f.ToolCode != "[secret]" || string(f.Data) != `"[secret]"` {
		t.Errorf("got %+v, %v", f, err)
	}
}

// TestDepth makes tools call each other down to the limit, and one level further.
// Proves: A call inside a call gets no further
func TestDepth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Config{}, func(w *world) { w.all = limits.Limits{Concurrency: 20} }, gotool.NewWithCall("go/depth", "Says how deep it is.",
		func(_ context.Context, call *wasmtools.Call, _ struct{}) (int, error) {
			return call.Outer.Depth() + 1, nil
		}))
	p := mustPrincipal(t, "*")
	for _, path := range []string{"/a/once", "/b/once"} { // a tool that calls itself, and two that call each other
		for n := 1; n <= tools.MaxDepth+2; n++ {
			text, err := w.raw(t.Context(), &wasmtools.Call{Principal: p, Arguments: []byte(nested(n, "a/once", "go/depth", `{}`))}, path)
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf(`{"result":%d}`, n)
			if n > tools.MaxDepth {
				want = `{"failure":{"code":"depth"`
			}
			if !strings.Contains(string(text), want) {
				t.Errorf("%s, %d deep: got %s, want %s in it", path, n, text, want)
			}
		}
	}
}

// TestCircle makes a tool that can run only one call at a time call itself. The inner call is refused at once.
// Proves: A call inside a call gets no further
func TestCircle(t *testing.T) {
	t.Parallel()
	one := limits.Limits{Concurrency: 1, Timeout: time.Hour}
	w := newWorld(t, sandbox.Config{}, func(w *world) { w.all = one })
	p := mustPrincipal(t, "*")
	result, _, err := w.call(t, "/a/once", p, "a/once", `{"id":"go/gone","args":{}}`)
	if err != nil || result != "" {
		t.Fatalf("got %s, %v", result, err)
	}
	text, err := w.raw(t.Context(), &wasmtools.Call{Principal: p, Arguments: []byte(nested(3, "b/once", "a/once", `{}`))}, "/a/once")
	if err != nil || !strings.Contains(string(text), `"code":"overloaded"`) {
		t.Errorf("got %s, %v, want it refused as overloaded", text, err)
	}
	if result, f, err := w.call(t, "/a/once", p, "b/once", `{"id":"go/gone","args":{}}`); err != nil || f != nil || !strings.Contains(result, "not_found") {
		t.Errorf("got %s, %+v, %v after it", result, f, err)
	}
}

// TestFanOut makes many clients call tools that may run few calls at a time. Each call makes three, four levels deep. Whichever calls are
// refused, all of them end, and no place stays taken.
// Proves: A call inside a call gets no further
func TestFanOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Config{}, func(w *world) { w.all = limits.Limits{Concurrency: 2, Queue: 100, Timeout: time.Minute} }, native("one", nil1))
	arguments := `{"id":"b/thrice","args":{"id":"a/thrice","args":{"id":"b/thrice","args":{"id":"go/one","args":{}}}}}`
	var calls sync.WaitGroup
	for i := range 16 {
		calls.Go(func() {
			text, err := w.raw(t.Context(), &wasmtools.Call{Principal: wasmtools.Everybody(), Arguments: []byte(arguments)}, []string{"/a/thrice", "/b/thrice"}[i%2])
			if err != nil || !strings.Contains(string(text), `{"result":1}`) && !strings.Contains(string(text), "overloaded") {
				t.Errorf("got %s, %v", text, err)
			}
		})
	}
	calls.Wait()
	if text, err := w.raw(t.Context(), &wasmtools.Call{Principal: wasmtools.Everybody(), Arguments: []byte(arguments)}, "/a/once"); err != nil || !strings.Contains(string(text), `{"result":1}`) {
		t.Errorf("afterwards: got %s, %v", text, err)
	}
}

// TestFuel makes a tool with little fuel call tools that have no limit of fuel, again and again.
// Proves: A call inside a call gets no further
func TestFuel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Config{}, func(w *world) {
		w.all = limits.Limits{Timeout: time.Minute}
		w.limits["/a/loops"] = limits.Limits{Fuel: 2_000_000}
	}, native("one", nil1))
	for _, id := range []string{"go/one", "b/once"} {
		_, _, err := w.call(t, "/a/loops", wasmtools.Everybody(), id, `{"id":"go/one","args":{}}`)
		if id == "go/one" {
			_, _, err = w.call(t, "/a/loops", wasmtools.Everybody(), id, `{}`)
		}
		wantCode(t, err, wasmtools.CodeToolFuel)
	}
	// A call without a limit has no more fuel than its outer call.
	_, _, err := w.call(t, "/a/loops", wasmtools.Everybody(), "b/loops", `{"id":"go/one","args":{}}`)
	wantCode(t, err, wasmtools.CodeToolFuel)
}

// TestDeadline makes a tool call another one that waits. The waiting call and its context end when the outer call does.
// Proves: A call inside a call gets no further
func TestDeadline(t *testing.T) {
	t.Parallel()
	var began, ended atomic.Int32
	cancel := func() {}
	w := newWorld(t, sandbox.Config{}, func(w *world) {
		w.limits["/a/once"] = limits.Limits{Timeout: 300 * time.Millisecond}
	}, native("waits", func(ctx context.Context, _ *wasmtools.Call) (any, error) {
		began.Add(1)
		cancel()
		<-ctx.Done()
		ended.Add(1)
		return nil, ctx.Err()
	}))
	check := func() {
		t.Helper()
		if b, e := began.Load(), ended.Load(); b != e {
			t.Errorf("%d calls have begun, %d ended", b, e)
		}
	}
	if _, _, err := w.call(t, "/b/once", wasmtools.Everybody(), "a/once", `{"id":"go/gone","args":{}}`); err != nil { // so that it is compiled
		t.Fatal(err)
	}
	_, _, err := w.call(t, "/a/once", wasmtools.Everybody(), "go/waits", `{}`)
	wantCode(t, err, wasmtools.CodeToolTimeout)
	check()
	// The outermost call is told of the failure of the call in between.
	_, f, err := w.call(t, "/b/once", wasmtools.Everybody(), "a/once", `{"id":"go/waits","args":{}}`)
	if err != nil {
		t.Fatal(err)
	}
	wantFailure(t, f, "tool_timeout", "limit of 300ms")
	check()
	// A client that goes away ends all calls.
	ctx, stop := context.WithCancel(t.Context())
	cancel = stop
	_, err = w.raw(ctx, &wasmtools.Call{Principal: wasmtools.Everybody(), Arguments: []byte(`{"id":"go/waits","args":{}}`)}, "/b/once")
	wantCode(t, err, wasmtools.CodeCancelled)
	check()
}

// TestChanges switches a called tool off, and replaces and removes it while it runs. The call continues, and the next one sees the change.
// Proves: A call inside a call gets no further
func TestChanges(t *testing.T) {
	t.Parallel()
	var w *world
	var change func()
	w = newWorld(t, sandbox.Config{}, nil, native("old", func(context.Context, *wasmtools.Call) (any, error) {
		change()
		return "old", nil
	}))
	other := native("old", func(context.Context, *wasmtools.Call) (any, error) { return "new", nil })
	replace := func(tools ...*wasmtools.Tool) {
		if err := w.table.Replace(tools, nil); err != nil {
			t.Error(err)
		}
	}
	for _, test := range []struct {
		name   string
		change func()
		want   string
	}{
		{"replaced", func() { replace(append(w.tools[1:len(w.tools):len(w.tools)], other)...) }, `"new"`},
		{"removed", func() { replace(w.tools[1:]...) }, "not_found"},
		{"switched off", func() { _ = w.table.Disable("go/old", "") }, "tool_disabled"},
	} {
		replace(w.tools...)
		change = test.change
		if result, f, err := w.call(t, "/a/once", wasmtools.Everybody(), "go/old", `{}`); err != nil || result != `"old"` {
			t.Errorf("%s while it runs: got %s, %+v, %v", test.name, result, f, err)
		}
		change = func() {}
		result, f, err := w.call(t, "/a/once", wasmtools.Everybody(), "go/old", `{}`)
		if err != nil || result != test.want && (f == nil || f.Code != test.want) {
			t.Errorf("%s: got %s, %+v, %v, want %s", test.name, result, f, err, test.want)
		}
	}
}

// TestReplacedUnderWay replaces a tool during the first of three calls, together with another change. No later call runs the replaced version, which
// may be the reason for the change, and no call gets what only the new configuration grants.
// Proves: A call inside a call gets no further
func TestReplacedUnderWay(t *testing.T) {
	t.Parallel()
	var w *world
	var change func()
	old := native("old", func(context.Context, *wasmtools.Call) (any, error) {
		change()
		return "old", nil
	})
	old.Digest = "1"
	other := native("old", func(context.Context, *wasmtools.Call) (any, error) { return "new", nil })
	other.Digest = "2"
	w = newWorld(t, sandbox.Config{}, nil, old)
	configure := func(value any, first *wasmtools.Tool) {
		if err := w.table.Configure(append([]*wasmtools.Tool{first}, w.tools[1:]...), nil, wasmtools.Configuration{Value: value}); err != nil {
			t.Error(err)
		}
	}
	replace := func() {
		if err := w.table.Replace(append([]*wasmtools.Tool{other}, w.tools[1:]...), nil); err != nil {
			t.Error(err)
		}
	}
	for _, test := range []struct {
		name   string
		change func()
		want   string
	}{
		{"the file", replace, `"new"`},
		{"the file and a switch", func() { replace(); _ = w.table.Disable("b/once", "") }, `"new"`},
		{"a switch and the file", func() { _ = w.table.Disable("b/once", ""); replace() }, `"new"`},
		{"the configuration", func() { configure(2, old) }, `"old"`},
		{"the file and the configuration", func() { configure(2, other) }, "not_ready"},
		{"the file and a configuration that can't be compared", func() { configure([]int{2}, other) }, "not_ready"},
	} {
		configure(1, old)
		change = sync.OnceFunc(test.change)
		call := &wasmtools.Call{Principal: wasmtools.Everybody(), Generation: w.table.Current(), Arguments: []byte(`{"id":"go/old","args":{}}`)}
		text, err := w.raw(t.Context(), call, "/a/thrice")
		if err != nil || !strings.Contains(string(text), test.want) {
			t.Errorf("%s: got %s, %v, want %s", test.name, text, err, test.want)
		}
		if err := w.table.Enable("b/once"); err != nil {
			t.Error(err)
		}
	}
}

// TestLargeResult passes on results of 8 MiB, as often as the caller wants: only one result is held at a time.
// Proves: A call inside a call gets no further
func TestLargeResult(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	w := newWorld(t, sandbox.Config{Memory: 256 << 20}, func(w *world) {
		w.all = limits.Limits{Output: 2 * size, Memory: 64 << 20, Timeout: time.Minute}
	}, native("large", func(context.Context, *wasmtools.Call) (any, error) { return strings.Repeat("x", size), nil }))
	for _, path := range []string{"/a/once", "/a/thrice"} {
		result, f, err := w.call(t, path, wasmtools.Everybody(), "go/large", `{}`)
		if err != nil || f != nil || len(result) != size+2 {
			t.Errorf("%s: got %d bytes, %+v, %v", path, len(result), f, err)
		}
	}
	// If the process has no room for the result, the call ends.
	w = newWorld(t, sandbox.Config{Memory: 8 << 20}, func(w *world) { w.all = limits.Limits{Timeout: time.Minute} },
		native("large", func(context.Context, *wasmtools.Call) (any, error) { return strings.Repeat("x", size), nil }))
	_, _, err := w.call(t, "/a/once", wasmtools.Everybody(), "go/large", `{}`)
	wantCode(t, err, wasmtools.CodeToolMemory)
}

// TestLogLines makes a tool with two log lines call a broken tool three times. The log lines about inner calls count as lines of the outer call.
// Proves: A call inside a call gets no further
func TestLogLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Config{}, func(w *world) {
		w.all = limits.Limits{LogLines: 2, Timeout: time.Minute}
	})
	for n := 1; n <= 2; n++ {
		if _, f, err := w.call(t, "/b/thrice", wasmtools.Everybody(), "a/wild", `{"id":"go/gone","args":{}}`); err != nil || f == nil || f.Code != "tool_trapped" {
			t.Fatalf("got %+v, %v", f, err)
		}
		if failed, dropped := w.log.Count("a call inside another failed", "tool=/a/wild"), w.log.Count("further lines dropped", "tool=/b/thrice"); failed != 2*n || dropped != n {
			t.Errorf("the log has %d lines of %d calls, and says %d times that there were more", failed, n, dropped)
		}
	}
}

// TestUses checks that calls at all depths are counted for the outermost one.
func TestUses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.Config{}, nil, native("one", nil1))
	call := &wasmtools.Call{Principal: wasmtools.Everybody(), Arguments: []byte(`{"id":"b/thrice","args":{"id":"go/one","args":{}}}`)}
	if _, err := w.raw(t.Context(), call, "/a/once"); err != nil {
		t.Fatal(err)
	}
	if len(call.Uses) != 1 || call.Uses[0].Capability != "tools" || call.Uses[0].Count != 4 || call.Uses[0].Failed != 0 {
		t.Errorf("got the uses %+v, want 4 of tools", call.Uses)
	}
	if got := w.log.Count("msg=used", "tool=/b/thrice", "target=/go/one"); got != 3 {
		t.Errorf("the log has %d lines, want 3", got)
	}
}
