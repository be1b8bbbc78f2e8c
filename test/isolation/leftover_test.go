package isolation_test

import (
	"strconv"
	"strings"
	"testing"
)

// A leftover is something that a call may leave behind. It has the code that leaves it behind, and an expression
// that finds it.
type leftover struct{ name, leave, see string }

var pythonLeftovers = []leftover{
	{"global", "count += 1", "count"},
	{"new global", "globals()['fresh'] = 1", "'fresh' in globals()"},
	{"list", "kept.append(1)", "len(kept)"},
	{"default argument", "default()", "default()"},
	{"function attribute", "default.mark = 1", "hasattr(default, 'mark')"},
	{"code of a function", "default.__code__ = (lambda x=None: 'replaced').__code__", "default() == 'replaced'"},
	{"class attribute", "Kept.shared['k'] = 1", "len(Kept.shared)"},
	{"method", "Kept.name = lambda self: 'patched'", "Kept().name()"},
	{"closure", "bump()", "bump()"},
	{"generator", "next(endless)", "next(endless)"},
	{"builtin function", "builtins.len = lambda x: 42", "builtins.len([])"},
	{"builtin exception", "builtins.ValueError = KeyError", "builtins.ValueError.__name__"},
	{"name hides a builtin", "globals()['sorted'] = lambda x: 'hidden'", "repr(sorted([1]))"},
	{"module in sys.modules", "sys.modules['json'] = 'fake'", "repr(type(__import__('json')))"},
	{"module taken out", "del sys.modules['re']", "'re' in sys.modules"},
	{"module attribute", "json.dumps = lambda *a, **k: 'patched'", "json.dumps(1)"},
	{"imported module", "import colorsys", "'colorsys' in sys.modules"},
	{"math.pi", "math.pi = 3", "math.pi"},
	{"sys.path", "sys.path.append('/x')", "sys.path"},
	{"sys.meta_path", "sys.meta_path.clear()", "len(sys.meta_path)"},
	{"recursion limit", "sys.setrecursionlimit(77)", "sys.getrecursionlimit()"},
	{"int digits", "sys.set_int_max_str_digits(0)", "sys.get_int_max_str_digits()"},
	{"switch interval", "sys.setswitchinterval(1)", "sys.getswitchinterval()"},
	{"stdout", "sys.stdout = io.StringIO()", "type(sys.stdout).__name__"},
	{"display hook", "sys.displayhook = print", "sys.displayhook is print"},
	{"exception hook", "sys.excepthook = print", "sys.excepthook is print"},
	{"trace", "sys.settrace(lambda *a: None)", "sys.gettrace() is None"},
	{"profile", "sys.setprofile(lambda *a: None)", "sys.getprofile() is None"},
	{"current exception", "keep_exception()", "repr(kept)"},
	{"environment", "os.environ['X'] = 'y'", "os.environ.get('X')"},
	{"decimal context", "decimal.getcontext().prec = 3", "str(decimal.Decimal(1) / 3)"},
	{"decimal traps", "decimal.getcontext().traps[decimal.DivisionByZero] = False", "decimal.getcontext().traps[decimal.DivisionByZero]"},
	{"context variable", "variable.set('set')", "variable.get('unset')"},
	{"thread-local", "local.x = 1", "hasattr(local, 'x')"},
	{"lru_cache", "cached(1)", "cached.cache_info().currsize"},
	{"cached_property", "shared.slow", "'slow' in vars(shared)"},
	{"cache of re", "re.compile('leftover')", "any('leftover' in str(k) for k in re._cache)"},
	{"warnings", "warnings.simplefilter('error')", "len(warnings.filters)"},
	{"warning registry", "warnings.warn('once')", "len(globals().get('__warningregistry__', {}))"},
	{"logging level", "logging.getLogger().setLevel(5)", "logging.getLogger().level"},
	{"logger", "logging.getLogger('a.b.c')", "'a.b.c' in logging.root.manager.loggerDict"},
	{"log handler", "logging.getLogger().addHandler(logging.NullHandler())", "len(logging.getLogger().handlers)"},
	{"subclass", "kept.append(type('Leftover', (Kept,), {}))", "len(Kept.__subclasses__())"},
	{"registered ABC", "collections.abc.Sized.register(Kept)", "isinstance(Kept(), collections.abc.Sized)"},
	{"singledispatch", "dispatch.register(int, lambda x: 'int')", "dispatch(1)"},
	{"copyreg", "copyreg.pickle(Kept, lambda k: 'x')", "Kept in copyreg.dispatch_table"},
	{"codec", "codecs.register(lambda name: None if name != 'leftover' else codecs.lookup('utf-8'))", "knows('leftover')"},
	{"interned string", "kept.append(sys.intern('left' + str(count) + 'over'))", "interned()"},
	{"object identity", "kept.extend(object() for _ in range(1000))", "len(kept)"},
	{"garbage", "cycle()", "len(gc.get_objects()) // 1000"},
	{"gc switched off", "gc.disable() if gc.isenabled() else gc.enable()", "gc.isenabled()"},
	{"gc thresholds", "gc.set_threshold(7, 7, 7)", "gc.get_threshold()"},
	{"gc callback", "gc.callbacks.append(print)", "len(gc.callbacks)"},
	{"weak reference", "weak[1] = shared", "len(weak)"},
	{"finalizer", "weakref.finalize(shared, print, 'x')", "len(weakref.finalize._registry)"},
	{"at exit", "atexit.register(print)", "atexit._ncallbacks()"},
	{"event loop", "asyncio.set_event_loop(asyncio.new_event_loop())", "asyncio.get_event_loop_policy()._local._loop is None"},
	{"function of random", "random.random = lambda: 0.5", "random.random() == 0.5"},
	{"time", "time.time = lambda: 0", "time.time() == 0"},
	{"locale of calendar", "calendar.setfirstweekday(6)", "calendar.firstweekday()"},
	{"time zone", "os.environ.__setitem__('TZ', 'X+5')", "os.environ.get('TZ')"},
	{"cache of zoneinfo", "kept.append(zoneinfo.ZoneInfo('Asia/Tokyo'))", "len(kept)"},
	{"csv dialect", "csv.register_dialect('mine', delimiter='|')", "csv.list_dialects()"},
	{"enum member", "Color._member_map_['GREEN'] = 2", "len(Color.__members__)"},
	{"dataclass field", "Point.__dataclass_fields__.clear()", "len(Point.__dataclass_fields__)"},
	{"docstring", "default.__doc__ = 'changed'", "default.__doc__"},
	{"annotations of the tool", "act.__annotations__.clear()", "len(act.__annotations__)"},
	{"SDK", "toolsrv.ToolError = RuntimeError", "toolsrv.ToolError.__name__"},
	{"SDK's insides", "setattr(sys.modules['toolsrv._guest'], 'call', None)", "sys.modules['toolsrv._guest'].call is None"},
	{"headers of all requests", "toolsrv.http._client.headers['X'] = 'y'", "'X' in toolsrv.http._client.headers"},
	{"opener of urllib", "urllib.request.install_opener(urllib.request.build_opener())", "urllib.request._opener is None"},
	{"functions of the host", "setattr(sys.modules['_toolsrv'], 'use', None)", "sys.modules['_toolsrv'].use is None"},
	{"bytes in a buffer", "buffer[:] = b'leftover'", "bytes(buffer)"},
	{"half a file", "text.write('leftover')", "text.getvalue()"},
	{"suspended coroutine", "keep_coroutine()", "len(kept)"},
}

const pythonScript = `
import abc, array, asyncio, atexit, builtins, calendar, codecs, collections.abc, contextvars, copyreg, csv, dataclasses, decimal, enum, functools, gc, io, itertools
import json, logging, math, os, random, re, struct, sys, threading, time, warnings, weakref, zoneinfo
import toolsrv, toolsrv.http, urllib.request
from typing import Any
from toolsrv import tool

count = 0
kept = []
local = threading.local()
variable = contextvars.ContextVar("variable")
weak = weakref.WeakValueDictionary()
buffer = bytearray(8)
text = io.StringIO()
endless = itertools.count()

class Kept:
    shared = {}
    def name(self): return "own"
    @functools.cached_property
    def slow(self): return 1

shared = Kept()

class Color(enum.Enum):
    RED = 1

@dataclasses.dataclass
class Point:
    x: int = 0

def default(x=[]):
    x.append(1)
    return len(x)

def bumper():
    n = 0
    def bump():
        nonlocal n
        n += 1
        return n
    return bump

bump = bumper()

@functools.lru_cache
def cached(x): return x

@functools.singledispatch
def dispatch(x): return "object"

def keep_exception():
    try: 1 / 0
    except ZeroDivisionError as e: kept.append(e)

def cycle():
    for _ in range(20000):
        a = []
        a.append(a)
        kept.append(a)

async def wait(): await asyncio.sleep(0)

def keep_coroutine():
    c = wait()
    c.send(None)
    kept.append(c)

def knows(codec):
    try: codecs.lookup(codec)
    except LookupError: return False
    return True

def interned():
    s = "".join(["left", "0", "over"])
    return sys.intern(s) is not s

LEAVE = %LEAVE%
SEE = %SEE%

@tool
def act(leave: int = -1, see: int = -1) -> Any:
    """Leaves something behind, and checks whether it is there."""
    if leave >= 0:
        exec(LEAVE[leave], globals())
    return repr(eval(SEE[see], globals()))
`

var javascriptLeftovers = []leftover{
	{"module variable", "count += 1", "count"},
	{"global", "globalThis.fresh = 1", "typeof fresh"},
	{"global taken out", "delete globalThis.structuredClone", "typeof structuredClone"},
	{"array", "kept.push(1)", "kept.length"},
	{"map", "map.set(1, 2)", "map.size"},
	{"weak map", "weak.set(kept, 1)", "weak.has(kept)"},
	{"property of a function", "bump.mark = 1", "'mark' in bump"},
	{"closure", "bump()", "bump()"},
	{"generator", "endless.next()", "endless.next().value"},
	{"static field", "Kept.shared = 1", "Kept.shared"},
	{"private static field", "Kept.raise()", "Kept.secret()"},
	{"method", "Kept.prototype.name = () => 'patched'", "new Kept().name()"},
	{"prototype of objects", "Object.prototype.polluted = 1", "({}).polluted"},
	{"prototype of arrays", "Array.prototype.map = () => 'patched'", "[1].map((x) => x)"},
	{"iterator of arrays", "Array.prototype[Symbol.iterator] = function* () {}", "Array.from([1, 2]).length"},
	{"prototype of functions", "Function.prototype.call = () => 'patched'", "bump.call()"},
	{"prototype of strings", "String.prototype.trim = () => 'patched'", "' x '.trim()"},
	{"prototype of promises", "Promise.prototype.leftover = 1", "'leftover' in Promise.prototype"},
	{"prototype chain", "Object.setPrototypeOf(Kept.prototype, Array.prototype)", "new Kept() instanceof Array"},
	{"toJSON of all", "Object.defineProperty(Object.prototype, 'leftover', { get: () => 1, configurable: true })", "({}).leftover"},
	{"frozen", "Object.freeze(kept)", "Object.isFrozen(kept)"},
	{"not extensible", "Object.preventExtensions(globalThis)", "Object.isExtensible(globalThis)"},
	{"Math.random", "Math.random = () => 0.5", "Math.random() === 0.5"},
	{"Date", "globalThis.Date = class { static now() { return 0; } }", "Date.now() === 0"},
	{"Date.now", "Date.now = () => 0", "Date.now() === 0"},
	{"JSON", "JSON.stringify = () => '1'", "JSON.stringify({ a: 1 })"},
	{"console", "console.log = 5", "typeof console.log"},
	{"crypto", "crypto.randomUUID = () => 'same'", "crypto.randomUUID() === 'same'"},
	{"performance", "performance.now = () => 0", "performance.now() === 0"},
	{"error's limit", "Error.stackTraceLimit = 1", "Error.stackTraceLimit"},
	{"error's trace", "Error.prepareStackTrace = () => 'patched'", "String(new Error('x').stack).includes('patched')"},
	{"symbol in the registry", "kept.push(Symbol.for('leftover'))", "kept.length"},
	{"last index", "pattern.exec('aaa')", "pattern.lastIndex"},
	{"legacy statics of RegExp", "/(b)/.exec('abc'); count += 1", "count"},
	{"timer", "setTimeout(() => kept.push(1), 0); count += 1", "[kept.length, count]"},
	{"interval", "kept.push(setInterval(() => { throw new Error('leftover'); }, 1))", "kept.length"},
	{"pending promise", "kept.push(new Promise(() => {}))", "kept.length"},
	{"microtask", "queueMicrotask(() => {}); count += 1", "count"},
	{"suspended async function", "kept.push((async () => { await new Promise(() => {}); })())", "kept.length"},
	{"fetch", "globalThis.fetch = 1", "typeof fetch"},
	{"method of headers", "Headers.prototype.get = () => 'patched'", "new Headers().get('a')"},
	{"headers", "asked.headers.set('a', 'b')", "asked.headers.get('a')"},
	{"body that was read", "asked.text()", "asked.bodyUsed"},
	{"signal", "controller.abort()", "controller.signal.aborted"},
	{"listener", "target.addEventListener('a', () => kept.push(1))", "(target.dispatchEvent(new Event('a')), kept.length)"},
	{"shared buffer", "bytes[0] = 255", "bytes[0]"},
	{"detached buffer", "structuredClone(bytes.buffer, { transfer: [bytes.buffer] })", "bytes.length"},
	{"resized buffer", "growing.resize(16)", "growing.byteLength"},
	{"finalizer", "registry.register({}, 1); count += 1", "count"},
	{"weak reference", "globalThis.ref = new WeakRef({})", "typeof ref"},
	{"getter", "Object.defineProperty(globalThis, 'escape', { get: () => 'patched' })", "typeof escape"},
	{"proxy in a prototype", "Object.setPrototypeOf(Kept.prototype, new Proxy({}, { get: () => 'trapped' }))", "new Kept().nothing"},
	{"exported tool", "act.leftover = 1", "'leftover' in act"},
	{"TextEncoder", "TextEncoder.prototype.encode = () => 'patched'", "String(new TextEncoder().encode('a'))"},
	{"URL", "URL.prototype.toString = () => 'patched'", "new URL('http://a/').toString()"},
	{"Intl", "globalThis.Intl = 5", "typeof Intl"},
	{"species", "Object.defineProperty(Array, Symbol.species, { value: Map })", "Array[Symbol.species] === Array"},
	{"eval'd variable", "(0, eval)('var leftover = 1')", "typeof leftover"},
	{"eval'd function", "(0, eval)('function parseInt() { return 5; }')", "parseInt('7')"},
	{"garbage", "for (let i = 0; i < 20000; i++) { const a = []; a.push(a); kept.push(a); }", "kept.length"},
}

const javascriptScript = `
import { tool } from "toolsrv";
let count = 0;
const kept = [], map = new Map(), weak = new WeakMap(), bytes = new Uint8Array(8), growing = new ArrayBuffer(8, { maxByteLength: 64 });
const asked = new Request("https://example.com", { method: "POST", body: "x" }), controller = new AbortController(), target = new EventTarget();
const pattern = /a/g, registry = new FinalizationRegistry(() => {});
class Kept {
  static shared = 0;
  static #secret = 0;
  static raise() { Kept.#secret++; }
  static secret() { return Kept.#secret; }
  name() { return "own"; }
}
const bump = ((n) => () => ++n)(0);
const endless = (function* () { for (let i = 0; ; i++) yield i; })();
const LEAVE = %LEAVE%;
const SEE = %SEE%;
const { stringify } = JSON, text = String;

export const act = tool({
  description: "Leaves something, and sees whether it is there.",
  parameters: { type: "object" },
  run: ({ leave = -1, see = -1 }) => {
    if (leave >= 0) eval(LEAVE[leave]);
    return text(stringify(eval(SEE[see])));
  },
});
`

// filled puts the leftovers into a script.
func filled(script string, all []leftover) string {
	var leave, see []string
	for _, l := range all {
		leave, see = append(leave, strconv.Quote(l.leave)), append(see, strconv.Quote(l.see))
	}
	return strings.NewReplacer("%LEAVE%", "["+strings.Join(leave, ",")+"]", "%SEE%", "["+strings.Join(see, ",")+"]").Replace(script)
}

// TestLeftovers lets calls leave something behind. The call itself finds it, and the next call, in the same instance, finds only what the first of
// all calls found.
// Proves: Nothing is left of a call
func TestLeftovers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		language language
		script   string
		all      []leftover
	}{
		{python, pythonScript, pythonLeftovers},
		{javascript, javascriptScript, javascriptLeftovers},
	} {
		t.Run(test.language.name, func(t *testing.T) {
			t.Parallel()
			test.language.need(t)
			p := test.language.load(t, host(t), filled(test.script, test.all))
			for i, l := range test.all {
				see := `{"see": ` + strconv.Itoa(i) + `}`
				leave := `{"leave": ` + strconv.Itoa(i) + `, "see": ` + strconv.Itoa(i) + `}`
				first, err := call(t, p, see, ample)
				if err != nil {
					t.Errorf("%s: %v", l.name, err)
					continue
				}
				for range 2 {
					left, err := call(t, p, leave, ample)
					if err != nil {
						t.Errorf("%s: %v", l.name, err)
						break
					}
					if left == first {
						t.Errorf("%s: the call that leaves it behind still sees %s", l.name, left)
					}
					if next, err := call(t, p, see, ample); err != nil || next != first {
						t.Errorf("%s: the next call sees %s, %v, want %s", l.name, next, err, first)
					}
				}
			}
		})
	}
}
