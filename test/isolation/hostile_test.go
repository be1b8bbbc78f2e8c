package isolation_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// An attack is code for a call, and how the call must end: with one of these outcomes, or with a result if ok is true.
type attack struct{ name, code, want string }

const (
	timeout = "tool_timeout"
	memory  = "tool_memory"
	output  = "tool_bad_output"
	failure = "tool_error"
	trap    = "tool_trapped"
	anyhow  = "ok tool_timeout tool_memory tool_error tool_bad_output tool_stack tool_trapped"
)

var pythonAttacks = []attack{
	{"endless loop", "while True: pass", timeout},
	{"endless loop that catches everything", "while True:\n try:\n  while True: pass\n except BaseException: pass", timeout},
	{"endless loop in finally", "try: 1/0\nfinally:\n while True: pass", timeout},
	{"endless comprehension", "[0 for _ in iter(int, 1)].clear()", timeout + " " + memory},
	{"endless sum", "sum(iter(int, 1))", timeout},
	{"endless any", "any(itertools.cycle([0]))", timeout},
	{"endless sort", "class K:\n def __init__(s, x): pass\n def __lt__(s, o):\n  while True: pass\nsorted([1, 2], key=K)", timeout},
	{"endless hash", "class K:\n def __hash__(s):\n  while True: pass\n{K(): 1}", timeout},
	{"endless bool in C", "any(map(lambda x: 0, itertools.repeat(1)))", timeout},
	{"endless deque", "collections.deque(itertools.repeat(0), maxlen=1)", timeout},
	{"redos", "re.match('(a+)+$', 'a' * 60 + 'b')", timeout},
	{"repeats of a group", "re.match(r'(?:(?:a|a)*)*b', 'a' * 40)", timeout},
	{"huge power", "10 ** 10 ** 8", timeout + " " + memory},
	{"huge digits", "str(7 ** 9999999)", failure + " " + timeout},
	{"huge decimal", "decimal.getcontext().prec = 10**6\ndecimal.Decimal(2) ** decimal.Decimal('1e5') + decimal.Decimal(2).sqrt() + decimal.Decimal(3).ln()", anyhow},
	{"factorial", "math.factorial(10**6)", timeout},
	{"sleep", "time.sleep(3600)", timeout},
	{"sleep in pieces", "while True: time.sleep(0.001)", timeout},
	{"sleep of asyncio", "asyncio.run(asyncio.sleep(3600))", timeout},
	{"asyncio that spins", "async def spin():\n while True: await asyncio.sleep(0)\nasyncio.run(spin())", timeout},
	{"asyncio that waits for nothing", "async def stuck(): await asyncio.Future()\nasyncio.run(stuck())", timeout + " " + failure},
	{"arbitrary arguments to the host", "use = sys.modules['_toolsrv'].use\nfor name in ('http.send', 'kv.get', 'kv.set', 'kv.delete', 'kv.list', 'secrets.read', 'settings.read', 'tools.call', 'none', '', '\\0', 5, None):\n for first in (b'', 'x', '\\ud800', bytes(70000), bytearray(9), memoryview(b'abc')[::2], None, 5):\n  for x in (0, -1, 2**63 - 1, -2**63, 2**64, 1.5, None):\n   try: use(name, first, first, x, x)\n   except (TypeError, ValueError, OverflowError, BufferError): pass", "ok"},
	{"large arguments to the host", "use = sys.modules['_toolsrv'].use\nfor _ in range(1000): use('http.send', bytes(8 << 20), bytes(8 << 20))", "ok " + timeout + " " + memory},
	{"string bomb", "'x' * 10**9", memory},
	{"larger string", "'x' * 10**10", failure},
	{"list bomb", "[0] * 10**8", memory},
	{"larger list", "[0] * 10**9", failure},
	{"growing list", "a = []\nwhile True: a.append('x' * 1000)", memory},
	{"growing dict", "a = {}\nwhile True: a[len(a)] = 'x' * 100", memory},
	{"growing bytes", "a = bytearray()\nwhile True: a += bytes(10**6)", memory},
	{"memory errors that are caught", "a = []\nwhile True:\n try:\n  while True: a.append(bytes(10**6))\n except MemoryError: pass", timeout},
	{"memory errors down to the last byte", "a = []\nsize = 10**6\nwhile size > 1:\n try: a.append(bytes(size))\n except MemoryError: size //= 2\nkeep(a)", anyhow},
	{"format bomb", "'{:1000000000}'.format(1)", memory},
	{"percent bomb", "'%1000000000d' % 1", memory},
	{"zlib bomb", "d = zlib.compressobj(9)\nb = d.compress(bytes(10**6)) + d.flush()\nfor _ in range(3): b = zlib.compress(b * 400)\nfor _ in range(4): b = zlib.decompress(b) * 400", memory},
	{"entities", "xml.etree.ElementTree.fromstring('<!DOCTYPE x [<!ENTITY a \"' + 'A' * 1000 + '\"><!ENTITY b \"' + '&a;' * 1000 + '\"><!ENTITY c \"' + '&b;' * 1000 + '\">]><x>&c;</x>')", anyhow},
	{"product", "list(itertools.product(range(100), repeat=9))", memory + " " + timeout},
	{"recursion", "def f(): f()\nf()", failure},
	{"recursion that is caught", "def f():\n try: f()\n except RecursionError: f()\nf()", anyhow},
	{"recursion that is caught forever", "def f():\n try: f()\n finally: f()\nf()", timeout + " " + failure},
	{"recursion limit", "sys.setrecursionlimit(10**9)\ndef f(): f()\nf()", memory + " " + timeout + " " + failure},
	{"recursion limit through C", "sys.setrecursionlimit(10**9)\nclass A:\n def __repr__(s): return repr(s)\nrepr(A())", failure + " tool_stack " + memory},
	{"recursion through sort", "sys.setrecursionlimit(10**9)\ndef f(x): return sorted([1], key=f)\nf(1)", failure + " tool_stack"},
	{"recursion through getattr", "sys.setrecursionlimit(10**9)\nclass A:\n def __getattr__(s, n): return getattr(s, n + 'x')\nA().a", anyhow},
	{"recursion through comparison", "a = []\na.append(a)\nb = []\nb.append(b)\na == b", failure},
	{"recursion through hash", "t = ()\nfor _ in range(10**5): t = (t,)\nhash(t)", anyhow},
	{"repr of nested lists", "a = []\nfor _ in range(10**5): a = [a]\nrepr(a)", failure},
	{"nested lists are freed", "a = []\nfor _ in range(10**6): a = [a]\ndel a", "ok " + memory},
	{"nested JSON", "json.loads('[' * 10**5)", failure},
	{"dump of nested JSON", "a = []\nfor _ in range(10**5): a = [a]\njson.dumps(a)", failure},
	{"nested pattern", "re.compile('(' * 5000 + ')' * 5000)", failure + " ok " + timeout},
	{"nested expression", "eval('(' * 1000 + ')' * 1000)", failure},
	{"nested operators", "eval('-' * 10**5 + '1')", failure},
	{"nested tree", "ast.parse('[' * 100 + ']' * 100); compile('a.' * 10**5 + 'b', 'x', 'eval')", failure + " " + memory},
	{"nested pickle", "copy.deepcopy(functools.reduce(lambda a, _: [a], range(10**4), []))", failure},
	{"huge output", "return 'x' * 5_000_000", output + " " + memory},
	{"huge output of escapes", "return '\\0' * 1_000_000", output},
	{"output nested too deeply", "a = []\nfor _ in range(1500): a = [a]\nreturn a", output + " " + failure},
	{"output that contains itself", "a = []\na.append(a)\nreturn a", failure},
	{"output that is not a number", "return float('nan')", output + " " + failure},
	{"output that is not JSON", "return object()", failure},
	{"output of half a character", "return '\\ud800'", "ok " + output + " " + failure},
	{"output whose items spin", "class D(dict):\n def items(s):\n  while True: yield 1, 2\nreturn D(a=1)", anyhow},
	{"log flood", "while True: print('x' * 1000)", timeout},
	{"log line without end", "print('x' * 10**7)", "ok"},
	{"exit", "sys.exit(3)", failure},
	{"exit at once", "os._exit(0)", trap + " " + failure},
	{"abort", "os.abort()", trap + " " + failure},
	{"kill", "import signal\nsignal.raise_signal(signal.SIGTERM)", trap + " " + failure},
	{"thread", "threading.Thread(target=print).start()", failure},
	{"process", "import subprocess\nsubprocess.run(['ls'])", failure},
	{"fork", "os.fork()", failure},
	{"file", "open('/etc/passwd')", failure},
	{"file to write", "open('x', 'w')", failure},
	{"directory", "os.listdir('/')", failure},
	{"socket", "import socket\nsocket.create_connection(('127.0.0.1', 80))", failure},
	{"native code", "import ctypes\nctypes.string_at(0)", failure},
	{"wild bytecode", "def f(): pass\nf.__code__ = f.__code__.replace(co_code=bytes([100, 255, 83, 0] * 4), co_stacksize=0)\nf()", anyhow},
	{"exception with a huge message", "raise ValueError('x' * 10**6)", failure + " " + output},
	{"exception whose text spins", "class E(Exception):\n def __str__(s):\n  while True: pass\nraise E()", timeout},
	{"exception whose text raises", "class E(Exception):\n def __str__(s): raise E()\nraise E()", failure},
	{"exception whose text recurses", "class E(Exception):\n def __str__(s): return str(s)\nraise E()", failure},
	{"exception whose class lies", "class M(type):\n def __getattribute__(s, n): raise KeyboardInterrupt\nclass E(Exception, metaclass=M): pass\nraise E()", failure + " " + trap},
	{"exception that causes itself", "a = ValueError()\na.__cause__ = a.__context__ = a\nraise a", failure},
	{"chain of causes", "e = None\nfor _ in range(10**5):\n n = ValueError('x')\n n.__cause__ = e\n e = n\nraise e", failure + " " + timeout},
	{"group of exceptions", "e = ValueError()\nfor _ in range(2000): e = ExceptionGroup('g', [e])\nraise e", failure},
	{"base exception", "raise BaseException('x')", failure},
	{"keyboard interrupt", "raise KeyboardInterrupt", failure},
	{"generator exit", "raise GeneratorExit", failure},
	{"stop iteration", "raise StopIteration", failure},
	{"stop of asyncio", "raise asyncio.CancelledError", failure},
	{"raise in a finalizer", "class D:\n def __del__(s): raise ValueError('x')\nD()", "ok"},
	{"endless finalizer", "class D:\n def __del__(s):\n  while True: pass\nD()", timeout},
	{"finalizer that comes back", "class D:\n def __del__(s): keep(D())\nD()", anyhow},
	{"generator that refuses to close", "def g():\n while True:\n  try: yield\n  except GeneratorExit: pass\nx = g()\nnext(x)\ndel x", "ok"},
	{"generator that closes forever", "def g():\n try: yield\n finally:\n  while True: pass\nx = g()\nnext(x)\ndel x", timeout},
	{"output twice", "import _toolsrv\n_toolsrv.output(b'{')\n_toolsrv.output(b'x' * 10**8)", output + " " + memory},
	{"output that is not JSON, at once", "import _toolsrv\n_toolsrv.output(b'{')\nreturn 1", "ok " + output},
	{"failure that is not JSON", "import _toolsrv\n_toolsrv.fail(b'{')\nraise ValueError", failure + " " + output},
	{"deadline that is not a number", "import _toolsrv\n_toolsrv.progress(float('nan'), float('inf'), 'x' * 10**6)\n_toolsrv.log(10**6, 'x')\n_toolsrv.deadline()", "ok " + failure},
	{"frozen main", "sys.modules.clear()\nbuiltins.__dict__.clear()", anyhow},
	{"SDK taken apart", "import toolsrv._guest as g\nfor k in list(vars(g)): setattr(g, k, None)", anyhow},
	{"input read again", "import _toolsrv\nreturn _toolsrv.input().decode()", "ok"},
}

var javascriptAttacks = []attack{
	{"endless loop", "for (;;);", timeout},
	{"endless loop that catches all", "for (;;) { try { for (;;); } catch {} }", timeout},
	{"endless loop in finally", "try { throw 1; } finally { for (;;); }", timeout},
	{"endless labels", "a: for (;;) { b: for (;;) continue a; }", timeout},
	{"redos", "/(a+)+$/.exec('a'.repeat(60) + 'b')", timeout},
	{"slow regular expression that is caught", "for (;;) { try { /(?:a|a)*b/.exec('a'.repeat(40)); } catch {} }", timeout},
	{"endless microtasks", "const f = () => Promise.resolve().then(f); await f();", timeout + " " + failure + " " + memory},
	{"endless await", "for (;;) await null;", timeout},
	{"endless thenable", "await { then(f) { for (;;); } }", timeout},
	{"thenable of itself", "const t = { then(f) { f(t); } }; await t;", timeout + " " + memory},
	{"promise that never settles", "await new Promise(() => {})", failure},
	{"timer in the far future", "await new Promise((r) => setTimeout(r, 3600_000))", timeout},
	{"interval", "await new Promise(() => setInterval(() => {}, 1))", timeout},
	{"interval of zero", "await new Promise(() => setInterval(() => {}, 0))", timeout},
	{"timers that make timers", "const f = () => { setTimeout(f); setTimeout(f); }; f(); await new Promise(() => {});", timeout + " " + memory},
	{"timer that throws", "await new Promise(() => setTimeout(() => { throw new Error('x'); }))", failure},
	{"rejection that nobody handles", "Promise.reject(new Error('x')); return 1;", failure},
	{"huge power", "return String(2n ** 10_000_000n).length", timeout + " " + failure + " " + memory},
	{"huger power", "2n ** 100_000_000_000n", failure + " " + memory},
	{"string bomb", "'x'.repeat(2 ** 29).split('')", memory},
	{"growing string", "let s = 'x'; for (;;) s += s;", memory + " " + failure},
	{"growing array", "const a = []; for (;;) a.push('x'.repeat(1000) + a.length);", memory + " " + timeout},
	{"array bomb", "new Array(1e9).fill(0)", memory + " " + timeout},
	{"sparse array", "const a = []; a[2 ** 32 - 2] = 1; a.sort(); return a.length;", anyhow},
	{"join of a sparse array", "new Array(2 ** 32 - 1).join('x')", memory + " " + timeout},
	{"buffer bomb", "new ArrayBuffer(2 ** 40)", failure},
	{"growing buffer", "const a = []; for (;;) a.push(new Uint8Array(1e6));", memory},
	{"memory errors that are caught", "const a = []; for (;;) { try { for (;;) a.push(new Uint8Array(1e6)); } catch {} }", timeout},
	{"memory errors down to the last byte", "const a = []; let n = 1e6; while (n > 1) { try { a.push(new Uint8Array(n)); } catch { n = n / 2 | 0; } } return a.length;", anyhow},
	{"arguments bomb", "Math.max(...new Array(1e6))", anyhow},
	{"apply bomb", "Math.max.apply(null, { length: 2 ** 31 })", anyhow},
	{"recursion", "const f = () => f(); f();", failure},
	{"recursion that adds", "const f = () => 1 + f(); f();", failure},
	{"recursion that is caught", "const f = () => { try { f(); } catch { f(); } }; f();", anyhow},
	{"recursion in finally", "const f = () => { try { f(); } finally { f(); } }; f();", timeout + " " + failure},
	{"recursion through map", "const f = () => [1].map(f); f();", failure},
	{"recursion through sort", "const f = () => [2, 1].sort(f); f();", failure},
	{"recursion through replace", "const f = () => 'a'.replace(/a/, f); f();", failure},
	{"recursion through getters", "const o = { get a() { return this.a; } }; o.a;", failure},
	{"recursion through toString", "const o = { toString() { return '' + o; } }; '' + o;", failure},
	{"recursion through a proxy", "const p = new Proxy({}, { get: (t, k) => p[k] }); p.a;", failure},
	{"chain of proxies", "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.a;", failure},
	{"chain of prototypes", "let p = {}; for (let i = 0; i < 1e5; i++) p = Object.create(p); return p.nothing;", "ok"},
	{"chain of bound functions", "let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(); f();", failure + " " + memory},
	{"recursion through constructors", "class A { constructor() { new A(); } } new A();", failure},
	{"recursion through Reflect", "const f = () => Reflect.apply(f, null, []); f();", failure},
	{"recursion through JSON", "const o = { toJSON() { return JSON.stringify(o); } }; JSON.stringify(o);", failure},
	{"recursion through a reviver", "const f = () => JSON.parse('[1]', f); f();", failure},
	{"recursion through eval", "const f = () => eval('f()'); f();", failure},
	{"recursion of async functions", "const f = async () => { await f(); }; await f();", failure + " " + memory},
	{"recursion of generators", "function* f() { yield* f(); } [...f()];", failure},
	{"rope", "let s = ''; for (let i = 0; i < 1e5; i++) s = 'x' + s; return s.length;", "ok " + timeout},
	{"nested arrays", "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return String(a).length;", anyhow},
	{"nested arrays as JSON", "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a);", failure + " " + timeout},
	{"nested JSON", "JSON.parse('['.repeat(1e6))", failure},
	{"nested pattern", "new RegExp('('.repeat(1e5) + ')'.repeat(1e5))", failure},
	{"nested source", "eval('('.repeat(1e5) + ')'.repeat(1e5))", failure},
	{"nested source of operators", "eval('-'.repeat(1) + '~'.repeat(1e5) + '1')", failure},
	{"nested source of templates", "eval('`${'.repeat(1e4) + '}`'.repeat(1e4))", failure},
	{"nested clone", "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; structuredClone(a);", failure + " ok " + timeout},
	{"huge output", "return 'x'.repeat(5e6)", output},
	{"output nested too deeply", "let a = []; for (let i = 0; i < 1500; i++) a = [a]; return a;", output + " " + failure},
	{"output that contains itself", "const a = []; a.push(a); return a;", failure},
	{"output that is a function", "return () => 1", "ok " + output + " " + failure},
	{"output that is a symbol", "return Symbol('x')", "ok " + output + " " + failure},
	{"output that is a big number", "return 1n", failure},
	{"output of half a character", "return '\\ud800'", "ok"},
	{"output whose toJSON spins", "return { toJSON() { for (;;); } }", timeout},
	{"output whose toJSON throws", "return { toJSON() { throw undefined; } }", failure},
	{"output that is a proxy", "return new Proxy({}, { ownKeys() { for (;;); } })", timeout},
	{"log flood", "for (;;) console.log('x'.repeat(1000));", timeout},
	{"log of values of all kinds", "console.log(Symbol(), 1n, null, undefined, new Proxy({}, {}), globalThis, new Error('x'), [[[[[]]]]])", "ok"},
	{"log that throws", "console.log({ get a() { throw 1; }, toString() { throw 2; } }); return 1;", anyhow},
	{"log of nested arrays", "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; console.log(a);", "ok " + failure},
	{"throw of nothing", "throw undefined", failure},
	{"throw of null", "throw null", failure},
	{"throw of a symbol", "throw Symbol('x')", failure},
	{"throw of a function", "throw () => 1", failure},
	{"throw of a proxy", "throw new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 2; } })", failure},
	{"throw of a revoked proxy", "const r = Proxy.revocable({}, {}); r.revoke(); throw r.proxy;", failure},
	{"message that throws", "throw { get message() { throw 1; } }", failure},
	{"message that spins", "const e = new Error('x'); Object.defineProperty(e, 'message', { get() { for (;;); } }); throw e;", timeout},
	{"message that is huge", "throw new Error('x'.repeat(1e7))", failure + " " + output},
	{"stack that spins", "const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { for (;;); } }); throw e;", timeout},
	{"stack that is not a string", "const e = new Error('x'); e.stack = 5; throw e;", failure},
	{"error that causes itself", "const e = new Error('x'); e.cause = e; throw e;", failure},
	{"trace that spins", "Error.prepareStackTrace = () => { for (;;); }; null.x;", timeout},
	{"trace that throws", "Error.prepareStackTrace = () => { throw 1; }; null.x;", failure},
	{"generator that does not return", "for (const x of (function* () { try { yield 1; } finally { for (;;); } })()) break;", timeout},
	{"iterator whose return throws", "const i = { [Symbol.iterator]: () => ({ next: () => ({}), return() { throw 5; } }) }; for (const x of i) break;", failure},
	{"toPrimitive that spins", "+{ [Symbol.toPrimitive]() { for (;;); } }", timeout},
	{"species that spins", "const a = [1]; a.constructor = { [Symbol.species]: function () { for (;;); } }; a.map((x) => x);", timeout},
	{"arbitrary arguments to the host", "const { use } = await import('#host'); const gone = new ArrayBuffer(9); gone.transfer(); const growing = new ArrayBuffer(9, { maxByteLength: 99 }); for (const name of ['http.send', 'kv.get', 'kv.set', 'kv.delete', 'kv.list', 'secrets.read', 'settings.read', 'tools.call', 'none', '', '\\0', 5, null, Symbol()]) for (const first of ['', '\\ud800', new ArrayBuffer(0), new ArrayBuffer(70000), gone, growing, new Uint8Array(3), null, 5, {}]) for (const x of [0, -1, 2 ** 63, -1n, 2n ** 64n, NaN, null, { valueOf() { growing.resize(0); gone.transfer?.(); throw 1; } }]) { try { use(name, first, first, x, x); } catch {} }", "ok"},
	{"empty arguments to the host", "const { use } = await import('#host'); for (const args of [[], ['kv.get'], ['kv.set', 'a'], ['kv.list', undefined, undefined, 1n << 70n]]) { try { use(...args); } catch {} }", "ok"},
	{"large arguments to the host", "const { use } = await import('#host'); const body = new ArrayBuffer(8 << 20); for (let i = 0; i < 1000; i++) use('http.send', '{}', body);", "ok " + timeout + " " + memory},
	{"headers without end", "const h = new Headers(); for (let i = 0; ; i++) h.append('a' + i, 'b'.repeat(1000));", memory + " " + timeout},
	{"event dispatched within itself", "const t = new EventTarget(); t.addEventListener('a', () => t.dispatchEvent(new Event('a'))); t.dispatchEvent(new Event('a'));", failure},
	{"import of a file", "await import('/etc/passwd')", failure},
	{"import of node", "await import('node:fs')", failure},
	{"module std", "return [typeof std, typeof os, typeof scriptArgs, typeof require, typeof process]", "ok"},
	{"wait", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)", failure + " " + timeout},
	{"toJSON of all", "Object.prototype.toJSON = () => { for (;;); }; return {};", timeout},
	{"then of all", "Object.prototype.then = function () { for (;;); }; return {};", timeout + " ok"},
	{"then of promises", "Promise.prototype.then = () => 1; return 1;", anyhow},
	{"JSON taken away", "delete globalThis.JSON; JSON = undefined; return 1;", anyhow},
	{"everything taken away", "for (const k of Reflect.ownKeys(globalThis)) try { delete globalThis[k]; } catch {} return 1;", anyhow},
	{"prototypes taken apart", "for (const C of [Array, Object, Function, String, Promise]) for (const k of Reflect.ownKeys(C.prototype)) try { C.prototype[k] = null; delete C.prototype[k]; } catch {} return 1;", anyhow},
	{"setters of all", "Object.defineProperty(Object.prototype, 'message', { set() { for (;;); }, get() { for (;;); }, configurable: true }); null.x;", failure + " " + timeout},
	{"numeric setters", "Object.defineProperty(Object.prototype, 0, { set() { throw 1; }, get() { throw 2; }, configurable: true }); return [1];", anyhow},
}

const pythonHostile = `
import ast, asyncio, builtins, collections, copy, decimal, functools, itertools, json, math, os, re, sys, threading, time, xml.etree.ElementTree, zlib
from typing import Any
from toolsrv import tool

kept = []
keep = kept.append

%ATTACKS%

@tool
def act(attack: int = -1) -> Any:
    """Does things that it should not do."""
    return ATTACKS[attack]() if attack >= 0 else "well"
`

const javascriptHostile = `
import { tool } from "toolsrv";
const ATTACKS = [%ATTACKS%];
export const act = tool({
  description: "Does what it should not.",
  parameters: { type: "object" },
  run: async ({ attack = -1 }) => attack >= 0 ? await (0, eval)("(async () => {" + ATTACKS[attack] + "\n})")() : "well",
});
`

// TestAttacks lets scripts do work that never ends, and things that no script should do. Each call ends as it must, in time, and the next one works.
// Proves: Limits hold, one by one and in sum
func TestAttacks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("makes one call after another, so the race detector would only slow it down")
	}
	for _, test := range []struct {
		language language
		script   string
		write    func(int, attack) string
		all      []attack
	}{
		{python, pythonHostile, func(i int, a attack) string {
			return "def attack_" + strconv.Itoa(i) + "():\n  " + strings.ReplaceAll(a.code, "\n", "\n  ") + "\n"
		}, pythonAttacks},
		{javascript, javascriptHostile, func(_ int, a attack) string { return strconv.Quote(a.code) + ",\n" }, javascriptAttacks},
	} {
		t.Run(test.language.name, func(t *testing.T) {
			t.Parallel()
			test.language.need(t)
			var written strings.Builder
			for i, a := range test.all {
				written.WriteString(test.write(i, a))
			}
			if test.language == python {
				written.WriteString("ATTACKS = [v for k, v in list(globals().items()) if k.startswith('attack_')]\n")
			}
			p := test.language.load(t, host(t), strings.Replace(test.script, "%ATTACKS%", written.String(), 1))
			l := limits.Limits{Timeout: 500 * time.Millisecond, Concurrency: 1}
			for i, a := range test.all {
				got := a.run(t, p, i, l)
				if got == timeout && !a.wants(got) { // the machine is busy with other work
					got = a.run(t, p, i, ample)
				}
				if !a.wants(got) {
					t.Errorf("%s: got %s, want %s", a.name, got, a.want)
				}
				if result, err := call(t, p, "{}", ample); err != nil || result != `"well"` {
					t.Errorf("%s: the next call gets %s, %v", a.name, result, err)
				}
			}
		})
	}
}

// wants reports whether a call may have that outcome.
func (a attack) wants(got string) bool { return slices.Contains(strings.Fields(a.want), got) }

// run calls the attack, and returns how the call ended.
func (a attack) run(t *testing.T, p *sandbox.Program, number int, l limits.Limits) string {
	t.Helper()
	begun := time.Now()
	result, err := call(t, p, `{"attack": `+strconv.Itoa(number)+`}`, l)
	took := time.Since(begun)
	if took > l.Timeout+10*time.Second {
		t.Errorf("%s: took %v with a limit of %v", a.name, took, l.Timeout)
	}
	var e *sandbox.Error
	if errors.As(err, &e) {
		t.Logf("%-40s %s after %v: %s", a.name, e.Outcome, took.Round(time.Millisecond), clip(e.Error()))
		return string(e.Outcome)
	}
	t.Logf("%-40s ok after %v: %s", a.name, took.Round(time.Millisecond), clip(result))
	return "ok"
}

func clip(s string) string { return s[:min(len(s), 200)] }
