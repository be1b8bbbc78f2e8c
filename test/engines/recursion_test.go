package engines_test

import (
	"fmt"
	"testing"
)

// endless are ways in which a script can call itself or nest values forever; n counts the levels that were reached. least is the depth that ordinary
// programs need.
var endless = map[string]struct {
	source string
	least  int
}{
	"a function":           {`const f = () => { n++; f(); n; }; f();`, 1000},
	"with arguments":       {`const f = (a, b, c, d, e, g) => { n++; const x = [a, b]; f(a, b, c, d, e, g); return x; }; f(1, 2, 3, 4, 5, 6);`, 1000},
	"a method":             {`class A { m() { n++; return this.m() + 1; } } new A().m();`, 1000},
	"a constructor":        {`class A { constructor() { n++; new A(); } } new A();`, 1000},
	"a derived class":      {`class B { constructor() { n++; new A(); } } class A extends B { constructor() { super(); } } new A();`, 500},
	"an async function":    {`const f = async () => { n++; await f(); }; await f();`, 500},
	"a generator":          {`function* g() { n++; yield* g(); } g().next();`, 500},
	"a callback of map":    {`const f = () => { n++; [1].map(f); }; f();`, 500},
	"a getter":             {`const o = { get a() { n++; return this.a; } }; o.a;`, 500},
	"a proxy":              {`const p = new Proxy({}, { get(t, k, r) { n++; return r[k]; } }); p.a;`, 500},
	"toString":             {`const o = { toString() { n++; return "" + o; } }; String(o);`, 500},
	"toJSON":               {`const o = { toJSON() { n++; return JSON.stringify(o); } }; JSON.stringify(o);`, 300},
	"Reflect.apply":        {`const f = () => { n++; Reflect.apply(f, null, [1, 2, 3]); return 0; }; f();`, 300},
	"eval":                 {`globalThis.f = () => { n++; eval("f()"); }; f();`, 300},
	"a replacement":        {`const f = () => { n++; return "a".replace(/a/, f); }; f();`, 300},
	"a comparison":         {`const f = () => { n++; [1, 2].sort(f); return 0; }; f();`, 300},
	"JSON that is parsed":  {`for (let d = 1; ; d *= 2) { JSON.parse("[".repeat(d) + "]".repeat(d)); n = d; }`, 1000},
	"JSON that is written": {`for (let d = 1, a = []; ; n = d, d *= 2) { for (let i = 0; i < d; i++) a = [a]; JSON.stringify(a); }`, 1000},
	"parentheses":          {`for (let d = 1; ; d *= 2) { (0, eval)("(".repeat(d) + "1" + ")".repeat(d)); n = d; }`, 500},
	"brackets":             {`for (let d = 1; ; d *= 2) { (0, eval)("[".repeat(d) + "1" + "]".repeat(d)); n = d; }`, 500},
	"blocks":               {`for (let d = 1; ; d *= 2) { (0, eval)("{".repeat(d) + "1" + "}".repeat(d)); n = d; }`, 500},
	"flat":                 {`let a = []; for (n = 0; n < 100000; n++) a = [a]; a.flat(Infinity);`, 0},
	"join":                 {`let a = []; for (n = 0; n < 100000; n++) a = [a]; a.join();`, 0},
	"structuredClone":      {`let a = []; for (n = 0; n < 100000; n++) a = [a]; structuredClone(a);`, 0},
	"proxies of proxies":   {`let p = {}; for (n = 0; n < 100000; n++) p = new Proxy(p, {}); p.a;`, 0},
}

// TestEndlessRecursion checks that endless recursion ends with a RangeError, which the script can catch, before the host ends the call. The error
// must not come at a depth that ordinary programs reach.
func TestEndlessRecursion(t *testing.T) {
	t.Parallel()
	source := "import { tool } from 'toolsrv';\nconst shapes = {\n"
	for name, shape := range endless {
		source += fmt.Sprintf("%q: async () => { let n = 0; try { %s } catch (e) { return [n, e.name]; } return [n, 'none']; },\n", name, shape.source)
	}
	source += "};\nexport const test = tool({ description: 'Recurses.', parameters: { type: 'object' }, run: ({ shape }) => shapes[shape]() });\n"
	s := newHost(t).javascript(t, "test.js", source)
	for name, shape := range endless {
		var got [2]any
		if err := s.callWith(t, fmt.Sprintf(`{"shape": %q}`, name), &got); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if levels, _ := got[0].(float64); got[1] != "RangeError" || int(levels) < shape.least {
			t.Errorf("%s: got %v after %v levels, want a RangeError after %d or more", name, got[1], got[0], shape.least)
		}
	}
}

// If nothing catches it, the call fails as with any other error, with the script's stack in the log.
func TestRecursionFails(t *testing.T) {
	t.Parallel()
	s := newHost(t).javascript(t, "test.js", `import { tool } from "toolsrv";
const down = (n) => down(n + 1) + 1;
export const test = tool({ description: "Recurses.", run: () => down(0) });
`)
	err := s.call(t, new(any))
	if want := "RangeError: Maximum call stack size exceeded"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	s.log.Wait(t, "at down (test.js:2")
}
