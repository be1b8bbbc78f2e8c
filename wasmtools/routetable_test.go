package wasmtools_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
)

func newTable(t testing.TB, tools ...*wasmtools.Tool) *wasmtools.RouteTable {
	t.Helper()
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// someTools are tools at the top level, in namespaces, and in a namespace below another one.
func someTools() []*wasmtools.Tool {
	return []*wasmtools.Tool{tool("web", "get"), tool("math", "add"), tool("math", "div"), tool("math/big", "add"), tool("mathematics", "prove"), tool("", "now")}
}

// states returns the tools of a table as "path", or "path!" for a disabled one, or "path!reason" if there is a reason.
func states(g *wasmtools.Generation) string {
	var all []string
	for _, r := range g.Routes() {
		state := r.Tool.Path()
		if !r.Enabled {
			state += "!" + r.Reason
		}
		all = append(all, state)
	}
	return strings.Join(all, " ")
}

// setPolicy configures a table and keeps its tools.
func setPolicy(t *testing.T, table *wasmtools.RouteTable, p wasmtools.Policy) {
	t.Helper()
	var tools []*wasmtools.Tool
	for _, r := range table.Current().Routes() {
		tools = append(tools, r.Tool)
	}
	if err := table.Configure(tools, table.Current().Refused(), wasmtools.Configuration{Policy: p}); err != nil {
		t.Fatal(err)
	}
}

// TestComing checks which tools may come, with generations from before and after SetComing.
func TestComing(t *testing.T) {
	t.Parallel()
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		t.Fatal(err)
	}
	before := table.Current()
	if before.Coming("/a") || (*wasmtools.Generation)(nil).Coming("/a") || new(wasmtools.Generation).Coming("/a") {
		t.Error("a tool may come before SetComing")
	}
	table.SetComing(func(path string) bool { return path == "/a" })
	if err := table.Replace(nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, g := range []*wasmtools.Generation{before, table.Current()} {
		if !g.Coming("/a") || g.Coming("/b") {
			t.Errorf("generation %d: /a may come: %t, /b may come: %t", g.Number(), g.Coming("/a"), g.Coming("/b"))
		}
	}
}

func TestRouteTableIsSorted(t *testing.T) {
	t.Parallel()
	tools := someTools()
	before := slices.Clone(tools)
	table := newTable(t, tools...)
	const want = "/math/add /math/big/add /math/div /mathematics/prove /now /web/get"
	if got := states(table.Current()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !slices.Equal(tools, before) {
		t.Error("the caller's slice was sorted")
	}
	if got := table.Tools(); len(got) != len(tools) || got[0].Tool != tools[1] {
		t.Errorf("Tools: got %+v", got)
	}
}

func TestRouteTableLookup(t *testing.T) {
	t.Parallel()
	tools := someTools()
	table := newTable(t, tools...)
	for _, want := range tools {
		if got, ok := table.Lookup(want.Path()); !ok || got.Tool != want || !got.Enabled {
			t.Errorf("Lookup(%s): got %+v, %v", want.Path(), got, ok)
		}
	}
	for _, path := range []string{"", "/", "/math", "math/add", "/math/add/", "/MATH/add", "/math/add?x"} {
		if got, ok := table.Lookup(path); ok {
			t.Errorf("Lookup(%q): got %+v", path, got)
		}
	}
}

func TestEmptyRouteTable(t *testing.T) {
	t.Parallel()
	g := newTable(t).Current()
	if _, ok := g.Lookup("/a"); ok || g.Number() != 1 || len(g.Routes())+len(g.Refused()) != 0 {
		t.Errorf("got %+v", g)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	const all = "/math/add /math/big/add /math/div /mathematics/prove /now /web/get"
	const none = "/math/add! /math/big/add! /math/div! /mathematics/prove! /now! /web/get!"
	for name, c := range map[string]struct {
		policy wasmtools.Policy
		want   string
	}{
		"zero":                {wasmtools.Policy{}, all},
		"namespace off":       {wasmtools.Policy{Disabled: []string{"math"}}, "/math/add! /math/big/add! /math/div! /mathematics/prove /now /web/get"},
		"tool off":            {wasmtools.Policy{Disabled: []string{"math/div", "/now", "web/get/"}}, "/math/add /math/big/add /math/div! /mathematics/prove /now! /web/get!"},
		"namespace below off": {wasmtools.Policy{Disabled: []string{"math/big"}}, "/math/add /math/big/add! /math/div /mathematics/prove /now /web/get"},
		"unknown off":         {wasmtools.Policy{Disabled: []string{"mat", "math/ad", "add"}}, all},
		"all off":             {wasmtools.Policy{Disabled: []string{"/"}}, none},
		"empty entry off":     {wasmtools.Policy{Disabled: []string{""}}, all},
		"reasons": {wasmtools.Policy{
			Disabled: []string{"math", "math/div", "/math/big", "now"},
			Reasons:  map[string]string{"/math": "audit", "math/big": "too slow", "web": "not in the list"},
		}, "/math/add!audit /math/big/add!too slow /math/div!audit /mathematics/prove /now! /web/get"},
		"reasons in a denylist": {wasmtools.Policy{Allowlist: true, Disabled: []string{"math"}, Reasons: map[string]string{"math": "audit"}}, none},
		"Enabled is not used":   {wasmtools.Policy{Enabled: []string{"math"}}, all},
		"nothing on":            {wasmtools.Policy{Allowlist: true}, none},
		"disabled not read":     {wasmtools.Policy{Allowlist: true, Enabled: []string{"/"}, Disabled: []string{"math"}}, all},
		"empty entry on":        {wasmtools.Policy{Allowlist: true, Enabled: []string{""}}, none},
		"namespace on":          {wasmtools.Policy{Allowlist: true, Enabled: []string{"math"}}, "/math/add /math/big/add /math/div /mathematics/prove! /now! /web/get!"},
		"tool on":               {wasmtools.Policy{Allowlist: true, Enabled: []string{"math/big/add"}}, "/math/add! /math/big/add /math/div! /mathematics/prove! /now! /web/get!"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t, someTools()...)
			setPolicy(t, table, c.policy)
			clear(c.policy.Enabled) // the table must not keep the caller's map
			clear(c.policy.Disabled)
			clear(c.policy.Reasons)
			if err := table.Replace(someTools(), nil); err != nil {
				t.Fatal(err)
			}
			if got := states(table.Current()); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	type step struct {
		path, reason string
		on           bool
	}
	off := func(path, reason string) step { return step{path: path, reason: reason} }
	on := func(path string) step { return step{path: path, on: true} }
	for name, c := range map[string]struct {
		policy wasmtools.Policy
		steps  []step
		want   string // of math's tools
	}{
		"tool off":                     {steps: []step{off("/math/add", "")}, want: "/math/add! /math/big/add /math/div"},
		"with a reason":                {steps: []step{off("math/add", "broken")}, want: "/math/add!broken /math/big/add /math/div"},
		"off and on":                   {steps: []step{off("/math/add", "broken"), on("math/add")}, want: "/math/add /math/big/add /math/div"},
		"another reason":               {steps: []step{off("/math/add", "broken"), off("/math/add", "slow")}, want: "/math/add!slow /math/big/add /math/div"},
		"namespace off":                {steps: []step{off("math", "audit")}, want: "/math/add!audit /math/big/add!audit /math/div!audit"},
		"namespace with a slash":       {steps: []step{off("/math/", "audit")}, want: "/math/add!audit /math/big/add!audit /math/div!audit"},
		"namespace off, tool on":       {steps: []step{off("math", "audit"), on("math/div")}, want: "/math/add!audit /math/big/add!audit /math/div"},
		"tool off, namespace on":       {steps: []step{off("math/div", "x"), on("math")}, want: "/math/add /math/big/add /math/div"},
		"tool off, namespace off":      {steps: []step{off("math/div", "x"), off("math", "y")}, want: "/math/add!y /math/big/add!y /math/div!y"},
		"namespace off, one below on":  {steps: []step{off("math", "y"), on("math/big")}, want: "/math/add!y /math/big/add /math/div!y"},
		"all off, then a namespace on": {steps: []step{off("/", "z"), on("math"), off("math/big", "b")}, want: "/math/add /math/big/add!b /math/div"},
		"all on again":                 {steps: []step{off("math/add", "x"), off("web", "y"), on("/")}, want: "/math/add /math/big/add /math/div"},
		"above the denylist":           {policy: wasmtools.Policy{Disabled: []string{"math"}}, steps: []step{on("math/add")}, want: "/math/add /math/big/add! /math/div!"},
		"above the allowlist":          {policy: wasmtools.Policy{Allowlist: true, Enabled: []string{"math"}}, steps: []step{off("math/big", "r")}, want: "/math/add /math/big/add!r /math/div"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t, someTools()...)
			setPolicy(t, table, c.policy)
			for _, s := range c.steps {
				var err error
				if s.on {
					err = table.Enable(s.path)
				} else {
					err = table.Disable(s.path, s.reason)
				}
				if err != nil {
					t.Fatalf("%+v: %v", s, err)
				}
			}
			got, _, _ := strings.Cut(states(table.Current()), " /mathematics")
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			// The same tools from new files keep their switches.
			if err := table.Replace(someTools(), nil); err != nil {
				t.Fatal(err)
			}
			setPolicy(t, table, c.policy)
			if again, _, _ := strings.Cut(states(table.Current()), " /mathematics"); again != c.want {
				t.Errorf("after Replace: got %s, want %s", again, c.want)
			}
		})
	}
}

func TestSwitchesOfWhatComesLater(t *testing.T) {
	t.Parallel()
	table := newTable(t, tool("math", "add"))
	if err := table.Disable("math", "audit"); err != nil {
		t.Fatal(err)
	}
	if err := table.Replace([]*wasmtools.Tool{tool("math", "add"), tool("math", "new"), tool("web", "new")}, nil); err != nil {
		t.Fatal(err)
	}
	const want = "/math/add!audit /math/new!audit /web/new"
	if got := states(table.Current()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := table.Replace(nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := table.Replace([]*wasmtools.Tool{tool("math", "add")}, nil); err != nil {
		t.Fatal(err)
	}
	if got := states(table.Current()); got != "/math/add!audit" {
		t.Errorf("after the tool was removed and added again: got %s", got)
	}
}

// TestSwitchTimes checks the list of switches, with the time of each.
func TestSwitchTimes(t *testing.T) {
	t.Parallel()
	began := time.Now()
	table := newTable(t, tool("math", "add"), tool("math", "sub"), tool("web", "get"))
	setPolicy(t, table, wasmtools.Policy{Disabled: []string{"web"}})
	if err := errors.Join(table.Disable("math/sub", "wrong sums"), table.Disable("/math", "audit"), table.Enable("math/add")); err != nil {
		t.Fatal(err)
	}
	if err := table.Replace([]*wasmtools.Tool{tool("math", "add"), tool("math", "sub"), tool("web", "get")}, []wasmtools.Refusal{{Source: "x", Err: errors.New("bad")}}); err != nil {
		t.Fatal(err)
	}
	now := table.Current()
	if len(now.Refused()) != 1 || now.Published().Before(began) {
		t.Errorf("got %v refused at %v, want one file, after %v", now.Refused(), now.Published(), began)
	}
	for _, route := range now.Routes() {
		if want := route.Path == "/math/add"; route.Enabled != want {
			t.Errorf("%s: enabled is %t, want %t", route.Path, route.Enabled, want)
		}
	}
	if len(now.Switches()) != 2 {
		t.Fatalf("got the switches %+v, want those of /math and /math/add", now.Switches())
	}
	for i, want := range []wasmtools.Switch{{Scope: "/math", Reason: "audit"}, {Scope: "/math/add", Enabled: true}} {
		got := now.Switches()[i]
		if got.Since.Before(began) || got.Since.After(now.Published()) {
			t.Errorf("%s: since %v, want a time between %v and %v", got.Scope, got.Since, began, now.Published())
		}
		if got.Since = (time.Time{}); got != want {
			t.Errorf("got the switch %+v, want %+v", got, want)
		}
	}
}

func TestSwitchOfNothing(t *testing.T) {
	t.Parallel()
	table := newTable(t, someTools()...)
	before := table.Current()
	for _, path := range []string{"", "/mat", "/math/ad", "/math/add/x", "//math//add", "/nope", strings.Repeat("x", 100000)} {
		for _, err := range []error{table.Enable(path), table.Disable(path, "r")} {
			if e, ok := errors.AsType[*wasmtools.Error](err); !ok || e.Code != wasmtools.CodeNotFound {
				t.Errorf("%.20q: got %v, want not_found", path, err)
			} else if len(e.Message) > 200 {
				t.Errorf("%.20q: a message of %d bytes", path, len(e.Message))
			}
		}
	}
	if table.Current() != before {
		t.Error("switching nothing made a new generation")
	}
}

func TestReplaceRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tools []*wasmtools.Tool
		want  string
	}{
		"bad name":        {[]*wasmtools.Tool{tool("", "a b")}, `"a b" is not a valid name`},
		"reserved":        {[]*wasmtools.Tool{tool("", "tools")}, "path /tools is reserved for the service"},
		"same path":       {[]*wasmtools.Tool{from("1.wasm", "a", "b"), tool("z", "z"), from("2.wasm", "a", "b")}, "1.wasm and 2.wasm both declare it"},
		"same id":         {[]*wasmtools.Tool{from("1.wasm", "a", "b-c"), from("2.wasm", "a/b", "c")}, "/a/b-c of 1.wasm and /a/b/c of 2.wasm both have it"},
		"without schema":  {[]*wasmtools.Tool{{Name: "a", Caller: echo}}, "has no Parameters"},
		"the same, twice": {slices.Repeat([]*wasmtools.Tool{from("1.wasm", "", "a")}, 2), "path /a is taken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(t, someTools()...)
			before := table.Current()
			err := table.Replace(c.tools, []wasmtools.Refusal{{Source: "x"}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			if table.Current() != before {
				t.Error("the table changed")
			}
			if made, err := wasmtools.NewRouteTable(c.tools...); err == nil || made != nil {
				t.Errorf("NewRouteTable: got %v, %v", made, err)
			}
		})
	}
}

func TestGenerations(t *testing.T) {
	t.Parallel()
	table := newTable(t, someTools()...)
	first := table.Current()
	want := states(first)
	refused := []wasmtools.Refusal{{Source: "bad.wasm", Err: errors.New("no module")}}
	if err := table.Disable("math", "r"); err != nil {
		t.Fatal(err)
	}
	if err := table.Replace([]*wasmtools.Tool{tool("", "other")}, refused); err != nil {
		t.Fatal(err)
	}
	setPolicy(t, table, wasmtools.Policy{Disabled: []string{"/"}})
	last := table.Current()
	if first.Number() != 1 || last.Number() != 4 {
		t.Errorf("numbers: got %d and %d, want 1 and 4", first.Number(), last.Number())
	}
	if got := states(first); got != want {
		t.Errorf("the first generation is %s now, it was %s", got, want)
	}
	if r, ok := first.Lookup("/math/add"); !ok || !r.Enabled || len(first.Refused()) != 0 {
		t.Errorf("the first generation has %+v, %v, %v", r, ok, first.Refused())
	}
	refused[0].Source = "changed"
	if got := last.Refused(); len(got) != 1 || got[0].Source != "bad.wasm" {
		t.Errorf("Refused: got %+v", got)
	}
	if got := states(last); got != "/other!" {
		t.Errorf("the last generation: got %s", got)
	}
}

func TestSubscribe(t *testing.T) {
	t.Parallel()
	table := newTable(t, someTools()...)
	var calls []string
	subscribe := func(name string) func() {
		return table.Subscribe(func(g *wasmtools.Generation) {
			if g != table.Current() {
				t.Errorf("%s: generation %d is not the current one", name, g.Number())
			}
			calls = append(calls, fmt.Sprintf("%s%d", name, g.Number()))
		})
	}
	change := func() {
		t.Helper()
		if err := table.Disable("math", "r"); err != nil {
			t.Fatal(err)
		}
	}
	endA := subscribe("a")
	endB := subscribe("b")
	change() // 2
	_ = table.Enable("nothing")
	setPolicy(t, table, wasmtools.Policy{}) // 3
	endA()
	endA()
	change() // 4
	endC := subscribe("c")
	if err := table.Replace(nil, nil); err != nil { // 5
		t.Fatal(err)
	}
	endB()
	endC()
	setPolicy(t, table, wasmtools.Policy{})
	const want = "a2 b2 a3 b3 b4 b5 c5"
	if got := strings.Join(calls, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// While tools and switches change, readers see only complete generations, in order, and subscribers get every generation.
func TestRouteTableHammer(t *testing.T) {
	t.Parallel()
	const rounds = 200
	sets := [2][]*wasmtools.Tool{}
	for i := range 20 {
		name := fmt.Sprintf("t%d", i)
		sets[0] = append(sets[0], from("0", "even", name), from("0", "both", name))
		sets[1] = append(sets[1], from("1", "odd", name), from("1", "both", name))
	}
	table := newTable(t, sets[0]...)
	var seen uint64 = 1
	table.Subscribe(func(g *wasmtools.Generation) {
		if g.Number() != seen+1 {
			t.Errorf("generation %d follows %d", g.Number(), seen)
		}
		seen = g.Number() // the race detector would notice concurrent calls
	})
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	writers.Go(func() {
		for i := range rounds {
			if err := table.Replace(sets[i%2], []wasmtools.Refusal{{Source: sets[i%2][0].Source}}); err != nil {
				t.Error(err)
			}
		}
	})
	writers.Go(func() {
		for range rounds {
			if err := errors.Join(table.Disable("both", "r"), table.Enable("/both")); err != nil {
				t.Error(err)
			}
		}
	})
	writers.Go(func() {
		for i := range rounds {
			if err := table.Configure(sets[i%2], nil, wasmtools.Configuration{Policy: wasmtools.Policy{Allowlist: i%2 == 0, Enabled: []string{"both"}}}); err != nil {
				t.Error(err)
			}
			table.Subscribe(func(*wasmtools.Generation) {})()
		}
	})
	for range 2 {
		readers.Go(func() {
			last := uint64(0)
			for {
				g := table.Current()
				if g.Number() < last {
					t.Errorf("generation %d after %d", g.Number(), last)
				}
				last = g.Number()
				checkGeneration(t, g)
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	if want := uint64(1 + 4*rounds); seen != want || table.Current().Number() != want {
		t.Errorf("got %d generations, the table says %d, want %d", seen, table.Current().Number(), want)
	}
}

// checkGeneration checks that a generation of the hammer is consistent.
func checkGeneration(t *testing.T, g *wasmtools.Generation) {
	t.Helper()
	routes := g.Routes()
	if len(routes) != 40 {
		t.Errorf("%d routes", len(routes))
		return
	}
	both := routes[0] // "both" comes before "even" and "odd"
	for _, r := range routes {
		if r.Tool.Source != both.Tool.Source {
			t.Errorf("tools of %s and %s in one generation", both.Tool.Source, r.Tool.Source)
		}
		if r.Tool.Namespace == "both" && (r.Enabled != both.Enabled || r.Reason != both.Reason) {
			t.Errorf("%s is %+v, %s is %+v", both.Tool.Path(), both, r.Tool.Path(), r)
		}
		if found, ok := g.Lookup(r.Tool.Path()); !ok || found != r {
			t.Errorf("Lookup(%s): got %+v, want %+v", r.Tool.Path(), found, r)
		}
	}
	if refused := g.Refused(); len(refused) > 0 && refused[0].Source != both.Tool.Source {
		t.Errorf("refusals of %s beside tools of %s", refused[0].Source, both.Tool.Source)
	}
}

func BenchmarkRouteTable(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		var tools []*wasmtools.Tool
		for i := range n {
			tools = append(tools, tool(fmt.Sprintf("n%d", i%100), fmt.Sprintf("t%d", i)))
		}
		table := newTable(b, tools...)
		b.Run(fmt.Sprintf("lookup/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := table.Lookup("/n1/t1"); !ok {
					b.Fatal("not there")
				}
			}
		})
		b.Run(fmt.Sprintf("disable/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := table.Disable("/n1/t1", "r"); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("replace/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := table.Replace(tools, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestUngranted has tools that lack a grant: they are not enabled, and the operator's switch is reported first.
func TestUngranted(t *testing.T) {
	t.Parallel()
	lacks, off := tool("math", "add"), tool("math", "sub")
	lacks.Missing, off.Missing = []wasmtools.Missing{{Capability: "kv"}}, []wasmtools.Missing{{Capability: "kv"}}
	get := tool("web", "get")
	table := newTable(t, lacks, off, get)
	if err := table.Disable("math/sub", "wrong sums"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]wasmtools.Route{
		"/math/add": {Tool: lacks, Path: "/math/add", Ungranted: true},
		"/math/sub": {Tool: off, Path: "/math/sub", Reason: "wrong sums"},
	} {
		got, _ := table.Lookup(path)
		if shown := (wasmtools.Route{Tool: got.Tool, Path: got.Path, Enabled: got.Enabled, Ungranted: got.Ungranted, Reason: got.Reason}); shown != want {
			t.Errorf("%s: got %+v, want %+v", path, shown, want)
		}
	}
	if err := table.Enable("math"); err != nil {
		t.Fatal(err)
	}
	for _, route := range table.Tools() {
		if route.Ungranted != (route.Tool != get) || route.Enabled == route.Ungranted {
			t.Errorf("switched on, %s: got %+v, want it enabled, or not granted", route.Path, route)
		}
	}
}
