package isolation_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A grammar has the parts from which programs in a language are made. The words NAME, OTHER, FIELD, NUMBER, TEXT and BODY in them are replaced.
type grammar struct {
	language   language
	statements []string
	program    string
}

var pythonGrammar = grammar{python, []string{
	"NAME = NUMBER",
	"NAME = [OTHER, NUMBER, TEXT]",
	"NAME = {TEXT: OTHER, 'k': NUMBER}",
	"NAME = TEXT * (NUMBER % 50)",
	"NAME.append(NUMBER)",
	"NAME[TEXT] = OTHER",
	"NAME = sorted([NUMBER, 3, 5], key=lambda x: -x)",
	"NAME = [y for y in range(NUMBER % 200) if y % 3]",
	"NAME = {y: str(y) for y in range(NUMBER % 100)}",
	"NAME = frozenset([NUMBER, 1, 2])",
	"NAME = (OTHER, NAME) if len(repr(NAME)) < 500 else None",
	"NAME = copy.deepcopy(OTHER)",
	"NAME = json.loads(json.dumps([NUMBER, TEXT]))",
	"NAME = re.sub('[aeiou]', str(NUMBER), TEXT)",
	"NAME = len(re.findall(TEXT, TEXT * 3))",
	"NAME = decimal.Decimal(NUMBER) / 7",
	"decimal.getcontext().prec = NUMBER % 20 + 1",
	"NAME = random.Random(NUMBER).random()",
	"NAME = functools.reduce(lambda a, b: a * 31 + b, range(NUMBER % 50), 7)",
	"NAME = bytes(NUMBER % 256 for _ in range(NUMBER % 3000))",
	"NAME = bytearray(NUMBER * 100)[:5]",
	"NAME = zlib.crc32(TEXT.encode() * NUMBER)",
	"NAME = next(COUNTER)",
	"NAME = cached(NUMBER % 5)",
	"Thing.FIELD = NUMBER",
	"Thing.FIELD = lambda self: TEXT",
	"thing.FIELD = OTHER",
	"del thing.FIELD",
	"NAME = type('T' + TEXT, (Thing,), {'FIELD': NUMBER}).__name__",
	"setattr(builtins, 'extra', NUMBER)",
	"math.pi = NUMBER",
	"sys.modules['m' + TEXT] = OTHER",
	"default(NUMBER)",
	"NAME = bump()",
	"NAME = gen.send(None)",
	"sys.setrecursionlimit(300 + NUMBER)",
	"depth(NUMBER)",
	"raise ValueError(TEXT)",
	"1 / (NUMBER % 3)",
	"warnings.filters.append(NUMBER)",
	"variable.set(OTHER)",
	"NAME = asyncio.run(later(NUMBER))",
	"NAME = datetime.date.fromordinal(NUMBER * 1000 + 1).isoformat()",
	"for i in range(NUMBER % 20):\n    if i == 7: break\n    BODY",
	"try:\n    BODY\nexcept Exception as error: NAME = str(error)[:50]\nfinally:\n    BODY",
	"with contextlib.suppress(Exception):\n    BODY",
	"while NUMBER % 2:\n    BODY\n    break",
	"global_state['FIELD'] = [NAME, global_state.get('FIELD')] if len(repr(global_state)) < 2000 else None",
	"kept.extend([[NUMBER]] * (NUMBER % 2000))",
	"kept[:] = kept[: NUMBER]",
	"gc.collect() if NUMBER > 90 else None",
}, `
import asyncio, builtins, contextlib, contextvars, copy, datetime, decimal, functools, gc, itertools, json, math, random, re, sys, warnings, zlib
from typing import Any
from toolsrv import tool

a = b = c = d = e = None
kept, global_state = [], {}
COUNTER = itertools.count()
variable = contextvars.ContextVar("variable", default=None)

class Thing:
    FIELD = 0

thing = Thing()

def default(x, seen=[]): seen.append(x); return len(seen)
def bumper():
    n = 0
    def bump():
        nonlocal n
        n += 1
        return n
    return bump
bump = bumper()
@functools.lru_cache
def cached(x): return [x, cached.cache_info().currsize]
def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
def generator():
    n = 0
    while True:
        n += 1
        yield n
gen = generator()
async def later(x):
    await asyncio.sleep(0)
    return x

def run(statement):
    try: statement()
    except BaseException as error: return type(error).__name__

def state():
    return [repr(x)[:300] for x in (a, b, c, d, e, global_state, variable.get())] + [
        len(kept), next(COUNTER), default(0), bump(), cached.cache_info().currsize, sorted(k for k in vars(Thing) if k != "__dict__"), sorted(map(str, vars(thing))),
        hasattr(builtins, "extra"), math.pi, sorted(k for k in sys.modules if k.startswith("m")), sys.getrecursionlimit(), decimal.getcontext().prec, repr(warnings.filters)[:500]]

STATEMENTS

@tool
def act(order: list[int] = []) -> Any:
    """Runs statements in an order."""
    return [[run(ALL[n % len(ALL)]) for n in order], state()]
`}

var javascriptGrammar = grammar{javascript, []string{
	"NAME = NUMBER;",
	"NAME = [OTHER, NUMBER, TEXT];",
	"NAME = { [TEXT]: OTHER, k: NUMBER };",
	"NAME = TEXT.repeat(NUMBER % 50);",
	"NAME.push(NUMBER);",
	"NAME[TEXT] = OTHER;",
	"NAME = [NUMBER, 3, 5].sort((x, y) => y - x);",
	"NAME = Array.from({ length: NUMBER % 200 }, (_, i) => i * 3).filter((x) => x % 2);",
	"NAME = new Map([[TEXT, NUMBER]]).size;",
	"NAME = structuredClone([NUMBER, { t: TEXT }]);",
	"NAME = JSON.parse(JSON.stringify([NUMBER, TEXT]));",
	"NAME = TEXT.replace(/[aeiou]/g, NUMBER);",
	"NAME = pattern.exec('aXbXc');",
	"NAME = 2n ** BigInt(NUMBER) + '';",
	"NAME = new Uint8Array(NUMBER * 50).fill(NUMBER).length;",
	"NAME = gen.next().value;",
	"NAME = bump();",
	"NAME = [...TEXT].reverse().join('');",
	"NAME = new Date(NUMBER * 1e9).toISOString();",
	"NAME = String(Symbol(TEXT));",
	"NAME = eval('NUMBER + 1');",
	"NAME = new Function('x', 'return x * NUMBER')(3);",
	"Thing.prototype.FIELD = NUMBER;",
	"Thing.prototype.FIELD = () => TEXT;",
	"Thing.FIELD = NUMBER;",
	"thing.FIELD = NUMBER;",
	"delete thing.FIELD;",
	"Object.prototype.FIELD = NUMBER;",
	"Array.prototype.FIELD = NUMBER;",
	"String.prototype.trim = () => NUMBER;",
	"Object.defineProperty(globalThis, 'FIELD', { value: NUMBER, configurable: true });",
	"globalThis[TEXT] = OTHER;",
	"Math.PI2 = NUMBER;",
	"Math.max = () => NUMBER;",
	"Error.stackTraceLimit = NUMBER;",
	"depth(NUMBER);",
	"throw new TypeError(TEXT);",
	"null.FIELD;",
	"Object.freeze(thing);",
	"Object.setPrototypeOf(thing, { FIELD: NUMBER });",
	"queueMicrotask(() => { log.push(NUMBER); });",
	"setTimeout(() => { log.push(NUMBER); }, NUMBER % 3);",
	"new Promise(() => {}).then(() => log.push(1));",
	"weak.set(thing, OTHER);",
	"symbols.add(Symbol.for(TEXT));",
	"for (let i = 0; i < NUMBER % 20; i++) { if (i === 7) break; BODY }",
	"try { BODY } catch (e) { NAME = String(e).slice(0, 50); } finally { BODY }",
	"for (const k in { x: 1, y: 2 }) { BODY }",
	"switch (NUMBER % 3) { case 0: BODY break; default: BODY }",
	"for (let i = 0; i < NUMBER * 20; i++) kept.push([i]);",
	"kept.length = NUMBER;",
	"log.push(NAME === undefined ? 0 : stringify(NAME)?.length);",
}, `
import { tool } from "toolsrv";
const { stringify } = JSON, { from } = Array, text = String, keysOf = Reflect.ownKeys;
let a, b, c, d, e;
const kept = [], log = [], symbols = new Set(), weak = new WeakMap(), pattern = /X/g;
class Thing {}
const thing = new Thing();
const bump = ((n) => () => ++n)(0);
const gen = (function* () { for (let i = 0; ; i++) yield i; })();
const depth = (n) => (n === 0 ? 0 : 1 + depth(n - 1));
const run = (f) => { try { f(); return null; } catch (e) { return text(e).slice(0, 60); } };
const show = (x) => { try { return (stringify(x) ?? typeof x).slice(0, 300); } catch (e) { return text(e).slice(0, 60); } };
const state = () => [show(a), show(b), show(c), show(d), show(e), kept.length, show(log), symbols.size, weak.has(thing), pattern.lastIndex, bump(), gen.next().value,
  keysOf(Thing.prototype).map(text), keysOf(Thing).map(text), keysOf(thing).map(text), keysOf(Object.prototype).map(text), keysOf(Array.prototype).length,
  keysOf(globalThis).map(text), keysOf(Math).length, Object.isFrozen(thing), show(Object.getPrototypeOf(thing)), Error.stackTraceLimit, " x ".trim(), Math.max(1, 2)];

STATEMENTS

export const act = tool({
  description: "Runs statements in an order.",
  parameters: { type: "object" },
  run: async ({ order = [] }) => {
    const errors = [];
    for (const n of order) errors[errors.length] = run(ALL[n % ALL.length]);
    await null;
    return show([errors, state()].map(show)) + show(state());
  },
});
`}

// statement writes a statement.
func (g *grammar) statement(r *rand.Rand, depth int) string {
	for {
		s := g.statements[r.IntN(len(g.statements))]
		if strings.Contains(s, "BODY") && depth > 2 {
			continue
		}
		for strings.Contains(s, "BODY") {
			body := g.statement(r, depth+1)
			at := strings.LastIndex(s[:strings.Index(s, "BODY")], "\n")
			indent := s[at+1 : strings.Index(s, "BODY")]
			if g.language == python {
				body = strings.ReplaceAll(body, "\n", "\n"+indent)
			}
			s = strings.Replace(s, "BODY", body, 1)
		}
		for word, fill := range map[string]func() string{
			"NUMBER": func() string { return fmt.Sprint(r.IntN(100)) },
			"TEXT":   func() string { return []string{"'ab'", "'north'", "'x'"}[r.IntN(3)] },
			"NAME":   func() string { return string(rune('a' + r.IntN(5))) },
			"OTHER":  func() string { return string(rune('a' + r.IntN(5))) },
			"FIELD":  func() string { return "field" + fmt.Sprint(r.IntN(4)) },
		} {
			for strings.Contains(s, word) {
				s = strings.Replace(s, word, fill(), 1)
			}
		}
		return s
	}
}

// write writes a program.
func (g *grammar) write(r *rand.Rand) string {
	var out strings.Builder
	const statements = 40
	if g.language == javascript {
		out.WriteString("const ALL = [\n")
		for range statements {
			out.WriteString("() => { " + g.statement(r, 0) + " },\n")
		}
		out.WriteString("];\n")
	} else {
		for i := range statements {
			out.WriteString(fmt.Sprintf("def s%d():\n    global a, b, c, d, e\n    %s\n", i, strings.ReplaceAll(g.statement(r, 0), "\n", "\n    ")))
		}
		out.WriteString("ALL = [v for k, v in list(globals().items()) if k[0] == 's' and k[1:].isdigit()]\n")
	}
	return strings.Replace(g.program, "STATEMENTS", out.String(), 1)
}

// differ runs a generated program with some inputs: once with all of them in the same instance, again and again, and once with each input
// in a program that was loaded for that call alone.
func (g *grammar) differ(t *testing.T, host *sandbox.Engine, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	source := g.write(r)
	var inputs []string
	for range 3 {
		var order []string
		for range 5 + r.IntN(30) {
			order = append(order, fmt.Sprint(r.IntN(1000)))
		}
		inputs = append(inputs, `{"order": [`+strings.Join(order, ", ")+`]}`)
	}
	alone := func(input string) string {
		p := g.language.load(t, host, source+fmt.Sprintf("\n%s seed %d, %d\n", map[language]string{python: "#", javascript: "//"}[g.language], seed, r.Int()))
		defer p.Close()
		return answer(t, p, input)
	}
	want := make([]string, len(inputs))
	for i, input := range inputs {
		if want[i] = alone(input); !strings.HasPrefix(want[i], "[") && !strings.HasPrefix(want[i], `"[`) {
			t.Fatalf("seed %d, input %s: got %s from program:\n%s", seed, input, want[i], source)
		}
	}
	p := g.language.load(t, host, source)
	defer p.Close()
	for range 12 {
		i := r.IntN(len(inputs))
		if got := answer(t, p, inputs[i]); got != want[i] {
			t.Fatalf("seed %d, input %s:\n%s\nalone\n%s\nprogram:\n%s", seed, inputs[i], got, want[i], source)
		}
	}
}

// answer calls a tool, and returns the outcome as text.
func answer(t *testing.T, p *sandbox.Program, input string) string {
	t.Helper()
	result, err := call(t, p, input, ample)
	if err != nil {
		return "error: " + clip(err.Error())
	}
	return result
}

// FuzzPrograms compares an instance that was reset with a new one: generated programs leave things behind, and the answer to a call must not depend
// on earlier calls.
// Proves: Nothing is left of a call
func FuzzPrograms(f *testing.F) {
	if testing.Short() {
		f.Skip("runs programs for half a minute: not with -short")
	}
	if testkit.Race(f) {
		f.Skip("runs one program after the other, so the race detector would only slow it down")
	}
	for seed := range uint64(24) {
		f.Add(seed, seed%2 == 0)
	}
	host := host(f)
	for l, source := range well {
		l.load(f, host, source) // made before fuzzing, since the fuzzer says after 10 s that an input hangs
	}
	f.Fuzz(func(t *testing.T, seed uint64, inPython bool) {
		g := &javascriptGrammar
		if inPython {
			g = &pythonGrammar
		}
		g.differ(t, host, seed)
	})
}
