package invoker_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// codeOf returns the code of a call's error, or "".
func codeOf(err error) wasmtools.Code {
	if err == nil {
		return ""
	}
	failed, ok := err.(*wasmtools.Error)
	if !ok {
		return wasmtools.Code(fmt.Sprintf("a %T: %v", err, err))
	}
	return failed.Code
}

func call(body string) *wasmtools.Call {
	return &wasmtools.Call{Arguments: []byte(body), Principal: wasmtools.Everybody()}
}

// TestChangesBetweenFindAndCall changes the table after a route was found: the call continues with that route.
// Proves: Nothing stops the server
func TestChangesBetweenFindAndCall(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*wasmtools.RouteTable) error{
		"removed":  func(r *wasmtools.RouteTable) error { return r.Replace(nil, nil) },
		"disabled": func(r *wasmtools.RouteTable) error { return r.Disable("/echo", "late") },
		"replaced": func(r *wasmtools.RouteTable) error {
			return r.Replace([]*wasmtools.Tool{tool("echo", ends(`"new"`, nil))}, nil)
		},
	} {
		v, table := invoker.New(invoker.Options{}), tableOf(t, tool("echo", ends(`"old"`, nil)))
		route, err := invoke.Find(table.Current(), "/echo", wasmtools.Everybody())
		if err != nil {
			t.Fatal(err)
		}
		admitted, err := v.Begin(route, call(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := change(table); err != nil {
			t.Fatal(err)
		}
		if result, err := admitted.Run(t.Context()); string(result) != `"old"` || err != nil {
			t.Errorf("%s, after it was admitted: got %s, %v", name, result, err)
		}
		admitted.End(nil)
		if result, err := v.Call(t.Context(), route, call(`{}`)); string(result) != `"old"` || err != nil {
			t.Errorf("%s, after it was found: got %s, %v", name, result, err)
		}
	}
}

// TestRefusals checks that calls are refused before their arguments are looked at, for the first reason in this order: the call has no principal, the
// principal may not call the tool, the tool is disabled.
// Proves: A caller reaches its own tools only
func TestRefusals(t *testing.T) {
	t.Parallel()
	on, off := invoker.RouteTo(tool("echo", echo)), invoker.RouteTo(tool("echo", echo))
	off.Enabled = false
	lacks := tool("echo", echo)
	lacks.Missing = []wasmtools.Missing{{Capability: "http", Entry: "https://api.example.com"}, {Capability: "kv"}}
	ungranted := invoker.RouteTo(lacks)
	v := invoker.New(invoker.Options{})
	for _, test := range []struct {
		name      string
		route     wasmtools.Route
		principal *wasmtools.Principal
		want      wasmtools.Code
	}{
		{"everybody", on, wasmtools.Everybody(), ""},
		{"the process", on, wasmtools.Self(), ""},
		{"within the scope", on, principal(t, "none", "echo"), ""},
		{"nil", on, nil, wasmtools.CodeInternal},
		{"nil, and disabled", off, nil, wasmtools.CodeInternal},
		{"zero", on, &wasmtools.Principal{}, wasmtools.CodeNotFound},
		{"without a scope", on, principal(t), wasmtools.CodeNotFound},
		{"out of scope", on, principal(t, "echo/*", "math"), wasmtools.CodeNotFound},
		{"out of scope, and disabled", off, principal(t, "math"), wasmtools.CodeNotFound},
		{"disabled", off, principal(t, "*"), wasmtools.CodeToolDisabled},
		{"out of scope, and not granted", ungranted, principal(t, "math"), wasmtools.CodeNotFound},
		{"not granted", ungranted, principal(t, "*"), wasmtools.CodeToolNotGranted},
	} {
		// The arguments are invalid, too, but a caller that may not call the tool is not told so.
		_, err := v.Call(t.Context(), test.route, &wasmtools.Call{Arguments: []byte(`{"n":1}`), Principal: test.principal})
		if got := codeOf(err); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestOwnTools calls one of the service's own tools: a principal without any scope may, but a call without a principal is refused.
func TestOwnTools(t *testing.T) {
	t.Parallel()
	var records recorder
	v := invoker.New(invoker.Options{Observers: []invoke.Observer{&records}})
	own := tool("find", echo)
	i, err := v.BeginOwn(own, &wasmtools.Call{Arguments: []byte(`{"n":1}`), Principal: principal(t)})
	if err != nil {
		t.Fatal(err)
	}
	if result, err := i.Run(t.Context()); err != nil || string(result) != `{"n":1}` {
		t.Errorf("got %s, %v", result, err)
	}
	i.End(nil)
	if _, err := v.BeginOwn(own, &wasmtools.Call{}); codeOf(err) != wasmtools.CodeInternal {
		t.Errorf("without a principal: got %v", err)
	}
	if got := records.all(); got != "began /find by test: 7>0 \nended /find by test: 7>7 \nrefused /find by : 0>0 internal\n" {
		t.Errorf("got %s", got)
	}
}

// TestMemory checks that large arguments that are already in memory, and large results, count as used memory until the calls end, like arguments
// that are read.
// Proves: Limits hold, one by one and in sum
func TestMemory(t *testing.T) {
	t.Parallel()
	large := `{"n":1` + strings.Repeat(" ", 300<<10) + `}`
	wide := func(path string, f wasmtools.CallerFunc) wasmtools.Route {
		t := tool(path, f)
		t.MaxInput = 1 << 20
		return invoker.RouteTo(t)
	}
	v := invoker.New(invoker.Options{Memory: 600 << 10})
	idle := func(step string) {
		t.Helper()
		if _, err := v.Call(t.Context(), wide("echo", echo), call(large)); err != nil {
			t.Fatalf("%s: got %v: the memory was not given back", step, err)
		}
	}
	idle("at first")
	begin := func(f wasmtools.CallerFunc, body string) *invoker.Invocation {
		i, err := v.Begin(wide("echo", f), call(body))
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	refused := func(step string) {
		t.Helper()
		if _, err := v.Call(t.Context(), wide("echo", echo), call(large)); codeOf(err) != wasmtools.CodeOverloaded {
			t.Errorf("%s: got %v, want overloaded", step, err)
		}
		if _, err := v.Call(t.Context(), wide("small", ends("1", nil)), call(`{}`)); err != nil {
			t.Errorf("%s: a small call: got %v", step, err)
		}
	}
	i := begin(ends("1", nil), large)
	if _, err := i.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused("large arguments beside others")
	i.End(nil)
	idle("after large arguments")

	i = begin(ends("1", nil), "")
	if err := i.Read(strings.NewReader(large), -1); err != nil {
		t.Fatal(err)
	}
	refused("large arguments beside those that were read")
	i.End(nil)
	idle("after arguments that were read")

	i = begin(ends("1", nil), "")
	if err := i.Read(iotest.TimeoutReader(strings.NewReader(large)), -1); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("got %v, want the reader's error", err)
	}
	i.End(nil)
	idle("after a body that could not be read")

	i = begin(ends("1", nil), `{}`)
	if err := i.Hold(int64(len(large))); err != nil {
		t.Error(err)
	}
	refused("beside a large answer")
	i.End(nil)
	idle("after a large answer")

	i = begin(ends(`"`+strings.Repeat("x", 300<<10)+`"`, nil), `{}`)
	if _, err := i.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused("beside a large result")
	i.End(nil)
	idle("after a large result")

	func() {
		defer func() { _ = recover() }()
		_, _ = v.Call(t.Context(), wide("echo", func(context.Context, *wasmtools.Call) ([]byte, error) { panic("odd") }), call(large))
		t.Error("the panic does not reach the door")
	}()
	idle("after a panic")

	// While a call is the only one, it may hold more than the whole memory budget.
	huge := begin(ends("1", nil), `{"n":1`+strings.Repeat(" ", 800<<10)+`}`)
	if _, err := huge.Run(t.Context()); err != nil {
		t.Errorf("alone: got %v", err)
	}
	refused("beside a call that holds more than all memory")
	huge.End(nil)
	idle("after a call that held more than all memory")
}

// TestUnreadResults calls a tool with large results for clients that don't read them. The first calls are made all at once. The results can't take
// more memory than there is: a result that does not fit is dropped, and further calls are refused before they run. Small calls still work, and so
// do those of other callers.
// Proves: Limits hold, one by one and in sum
// Proves: Clients keep nobody out
func TestUnreadResults(t *testing.T) {
	t.Parallel()
	v := invoker.New(invoker.Options{Memory: 4 << 20})
	runs := 0
	report := invoker.RouteTo(tool("report", func(context.Context, *wasmtools.Call) ([]byte, error) {
		runs++
		return []byte(`"` + strings.Repeat("x", 300<<10) + `"`), nil
	}))
	begin := func() (*invoker.Invocation, error) { return v.Begin(report, call(`{}`)) }
	var begun, unread []*invoker.Invocation
	for range 20 {
		i, err := begin()
		if err != nil {
			t.Fatal(err)
		}
		begun = append(begun, i)
	}
	for _, i := range begun {
		if _, err := i.Run(t.Context()); err == nil {
			unread = append(unread, i)
		} else if i.End(err); codeOf(err) != wasmtools.CodeOverloaded {
			t.Error(err)
		}
	}
	if len(unread) != 10 {
		t.Errorf("%d results are held, want 10, which fill three quarters of the memory", len(unread))
	}
	runs = 0
	if _, err := begin(); codeOf(err) != wasmtools.CodeOverloaded || runs != 0 {
		t.Errorf("a further call: got %v after %d runs, want overloaded", err, runs)
	}
	if _, err := v.Call(t.Context(), invoker.RouteTo(tool("small", ends("1", nil))), call(`{}`)); err != nil {
		t.Errorf("a small call beside them: got %v", err)
	}
	if _, err := v.Call(t.Context(), report, &wasmtools.Call{Arguments: []byte(`{}`), Principal: principal(t, "*")}); err != nil {
		t.Errorf("somebody else's call beside them: got %v", err)
	}
	for _, i := range unread {
		i.End(nil)
	}
	if _, err := v.Call(t.Context(), report, call(`{}`)); err != nil {
		t.Errorf("after they were read: got %v", err)
	}
}

// TestShares lets one caller after another make as many large calls as it can. Each caller gets a part of what the callers before it have left
// free. A caller's only call gets room if there is any, and no memory is lost or counted twice.
// Proves: Clients keep nobody out
func TestShares(t *testing.T) {
	t.Parallel()
	const size = 100 << 10
	v := invoker.New(invoker.Options{Memory: 64 * size})
	report := invoker.RouteTo(tool("report", ends(`"`+strings.Repeat("x", size-2)+`"`, nil)))
	named := func(name string) *wasmtools.Principal {
		p, err := wasmtools.NewPrincipal(name, "test", "*")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	by := func(p *wasmtools.Principal, address string) *wasmtools.Call {
		c := &wasmtools.Call{Arguments: []byte(`{}`), Principal: p}
		if address != "" {
			c.Client = at{netip.MustParseAddr(address)}
		}
		return c
	}
	within := func(name string, of *wasmtools.Principal) *wasmtools.Principal {
		return named(name).WithRate(wasmtools.Rate{}, of)
	}
	realm, err := named("ann").WithRealm("elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice, since all memory must have been given back
		var held []*invoker.Invocation
		for _, test := range []struct {
			name string
			call *wasmtools.Call
			want int // how many calls it can make
		}{
			{"the first", by(named("ann"), ""), 48},
			{"a narrower token from it", by(within("ann/a", named("ann")), ""), 0},
			{"a narrower token from that", by(within("ann/a/b", within("ann/a", named("ann"))), "203.0.113.1"), 0},
			{"a namesake", by(realm, ""), 12},
			{"an address", by(wasmtools.Everybody(), "203.0.113.1"), 3},
			{"an address of IPv6", by(wasmtools.Everybody(), "2001:db8::1"), 1},
			{"the last one", by(wasmtools.Everybody(), "2001:db8:0:1::1"), 0},
			{"the first again", by(named("ann"), ""), 0},
		} {
			n := 0
			for ; n < 64; n++ {
				i, err := v.Begin(report, test.call)
				if err == nil {
					_, err = i.Run(t.Context())
				}
				if codeOf(err) == wasmtools.CodeOverloaded {
					if i != nil {
						i.End(err)
					}
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, i)
			}
			if n != test.want {
				t.Errorf("%s holds %d results, want %d", test.name, n, test.want)
			}
		}
		// Answers that doors make of results are counted, too.
		if err := held[0].Hold(size); codeOf(err) != wasmtools.CodeOverloaded {
			t.Errorf("an answer: got %v", err)
		}
		for _, i := range held {
			i.End(nil)
		}
	}
}

// at is a client at an address.
type at struct{ address netip.Addr }

func (a at) Now() (*wasmtools.Generation, *wasmtools.Principal, error) { return nil, nil, nil }
func (a at) Finally(func())                                            {}
func (a at) Address() netip.Addr                                       { return a.address }

// TestRead reads no more than one byte above the limit.
func TestRead(t *testing.T) {
	t.Parallel()
	v := invoker.New(invoker.Options{})
	for _, test := range []struct {
		size, length, want int64
		code               wasmtools.Code
	}{
		{0, -1, 0, ""}, {0, 50, 0, ""}, {10, 1 << 40, 10, ""}, {100, 100, 100, ""}, {100, -1, 100, ""},
		{101, 101, 101, wasmtools.CodeInputTooLarge}, {5000, -1, 101, wasmtools.CodeInputTooLarge},
	} {
		c := call("")
		i, err := v.Begin(invoker.RouteTo(tool("echo", echo)), c) // the tool's limit is 100 bytes
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Read(strings.NewReader(strings.Repeat("x", int(test.size))), test.length); codeOf(err) != test.code || int64(len(c.Arguments)) != test.want {
			t.Errorf("%+v: got %d bytes, %v", test, len(c.Arguments), err)
		}
		i.End(nil)
		if c.Arguments != nil {
			t.Error("the call keeps memory that the next one reads into")
		}
		own := call(`{}`) // perhaps with a reused buffer
		if _, err := v.Call(t.Context(), invoker.RouteTo(tool("echo", echo)), own); err != nil || string(own.Arguments) != `{"n":7}` {
			t.Errorf("a call whose arguments are in memory: got %v, its arguments are %s", err, own.Arguments)
		}
	}
}

// TestAccount checks that an observer is told of each call once, however it ends.
func TestAccount(t *testing.T) {
	t.Parallel()
	var told recorder
	v := invoker.New(invoker.Options{Observers: []invoke.Observer{&told}})
	last := func(name string, want string) {
		t.Helper()
		got := told.all()
		how, was, _ := strings.Cut(strings.TrimSuffix(got, "\n"), " ")
		if how == "began" {
			_, was, _ = strings.Cut(was, "\nended ")
		}
		if was != want || strings.Count(got, "\n") > 2 {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	off := invoker.RouteTo(tool("math/off", echo))
	off.Enabled = false
	lacks := tool("math/lacks", echo)
	lacks.Missing = []wasmtools.Missing{{Capability: "kv"}}
	for _, test := range []struct {
		name  string
		route wasmtools.Route
		body  string
		want  string
	}{
		{"a result", invoker.RouteTo(tool("echo", echo)), `{}`, "/echo by everybody: 2>7 "},
		{"not valid", invoker.RouteTo(tool("echo", echo)), `[]`, "/echo by everybody: 2>0 invalid_arguments"},
		{"too large", invoker.RouteTo(tool("echo", echo)), strings.Repeat(" ", 101), "/echo by everybody: 101>0 input_too_large"},
		{"an error", invoker.RouteTo(tool("math/f", ends("", errors.New("odd")))), `{}`, "/math/f by everybody: 2>0 tool_error"},
		{"disabled", off, `{}`, "/math/off by everybody: 0>0 tool_disabled"},
		{"not granted", invoker.RouteTo(lacks), `{}`, "/math/lacks by everybody: 0>0 tool_not_granted"},
	} {
		_, _ = v.Call(t.Context(), test.route, call(test.body))
		last(test.name, test.want)
	}
	_, _ = v.Call(t.Context(), off, &wasmtools.Call{Principal: principal(t, "echo")})
	last("out of scope", "/math/off by test: 0>0 not_found")

	func() {
		defer func() { _ = recover() }()
		_, _ = v.Call(t.Context(), invoker.RouteTo(tool("f", func(context.Context, *wasmtools.Call) ([]byte, error) { panic("odd") })), call(`{}`))
	}()
	last("a panic", "/f by everybody: 2>0 internal")

	i, err := v.Begin(invoker.RouteTo(tool("echo", echo)), call(""))
	if err != nil {
		t.Fatal(err)
	}
	i.End(&wasmtools.Error{Code: wasmtools.CodeRequestTimeout})
	last("the door's own error", "/echo by everybody: 0>0 request_timeout")
}

// TestTimes checks that the phases of a call are measured if that is requested.
func TestTimes(t *testing.T) {
	t.Parallel()
	var told recorder
	v := invoker.New(invoker.Options{Observers: []invoke.Observer{&told}})
	typed := gotool.New("typed", "A function.", func(context.Context, struct{}) (int, error) { return 0, errors.New("odd") })
	for _, tool := range []*wasmtools.Tool{tool("echo", echo), typed} {
		var times wasmtools.Times
		c := call(`{}`)
		c.Times = &times
		_, _ = v.Call(t.Context(), invoker.RouteTo(tool), c)
		if times.Validate <= 0 || times.Run <= 0 || times.Ready != 0 || times.Reset != 0 || told.times != times || told.took < times.Run {
			t.Errorf("%s: got %+v, told %+v in %v", tool.Path(), times, told.times, told.took)
		}
	}
	bare := call(`{}`)
	if _, err := v.Call(t.Context(), invoker.RouteTo(typed), bare); codeOf(err) != wasmtools.CodeToolError || told.times.Run <= 0 || bare.Times != nil {
		t.Errorf("a call without times: got %+v, and the call keeps %+v", told.times, bare.Times)
	}
	if _, err := invoker.New(invoker.Options{}).Call(t.Context(), invoker.RouteTo(typed), bare); codeOf(err) != wasmtools.CodeToolError || bare.Times != nil {
		t.Errorf("unobserved: got %+v", bare.Times)
	}
}

// TestConcurrentCalls runs calls of several principals concurrently: no data of one appears in another.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	v := invoker.New(invoker.Options{})
	who := tool("who", func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
		return fmt.Appendf(nil, `"%s %s"`, call.Principal, strings.Trim(string(call.Arguments), "{}\"n: ")), nil
	})
	route := invoker.RouteTo(who)
	var calls sync.WaitGroup
	for n := range 8 {
		p, err := wasmtools.NewPrincipal(fmt.Sprint("p", n), "test", "who")
		if err != nil {
			t.Fatal(err)
		}
		calls.Go(func() {
			for range 200 {
				i, err := v.Begin(route, &wasmtools.Call{Principal: p})
				if err != nil {
					t.Error(err)
					return
				}
				err = i.Read(strings.NewReader(fmt.Sprintf(`{"n":%d}`, n)), -1)
				var result []byte
				if err == nil {
					result, err = i.Run(t.Context())
				}
				if want := fmt.Sprintf(`"p%d %d"`, n, n); string(result) != want || err != nil {
					t.Errorf("got %s, %v, want %s", result, err, want)
				}
				i.End(err)
			}
		})
	}
	calls.Wait()
}

func TestCallAllocatesLittle(t *testing.T) {
	result := []byte("3")
	bare := tool("echo", func(context.Context, *wasmtools.Call) ([]byte, error) { return result, nil })
	bare.Parameters = anything
	v, route, c := invoker.New(invoker.Options{}), invoker.RouteTo(bare), call(`{}`)
	body := c.Arguments
	if n := testing.AllocsPerRun(100, func() {
		c.Arguments = body
		if _, err := v.Call(t.Context(), route, c); err != nil {
			t.Fatal(err)
		}
	}); n > 3 {
		t.Errorf("got %v allocations, want three of the validation", n)
	}
}

// anything accepts all arguments.
var anything = schema.MustCompile(`{"type":"object"}`)

func BenchmarkCall(b *testing.B) {
	result := []byte("3")
	quick := tool("echo", func(context.Context, *wasmtools.Call) ([]byte, error) { return result, nil })
	bare := *quick
	bare.Parameters = anything
	scoped, err := wasmtools.NewPrincipal("test", "test", "math", "echo")
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		name      string
		tool      *wasmtools.Tool
		principal *wasmtools.Principal
		times     *wasmtools.Times
	}{
		{"without validation", &bare, wasmtools.Everybody(), nil},
		{"without validation, with scopes", &bare, scoped, nil},
		{"without validation, measured", &bare, wasmtools.Everybody(), new(wasmtools.Times)},
		{"validated", quick, wasmtools.Everybody(), nil},
	} {
		b.Run(bb.name, func(b *testing.B) {
			v, route := invoker.New(invoker.Options{}), invoker.RouteTo(bb.tool)
			body := []byte(`{"n":1}`)
			c := &wasmtools.Call{Principal: bb.principal, Times: bb.times}
			b.ReportAllocs()
			for b.Loop() {
				c.Arguments = body
				if _, err := v.Call(b.Context(), route, c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
