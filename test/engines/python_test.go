package engines_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/script/engine"
)

// python loads a script in Python whose first tool returns any JSON.
func python(t testing.TB, source string) script {
	t.Helper()
	return newHost(t).load(t, need(t, "python"), engine.File{Name: "script.py", Data: []byte("from typing import Any\nfrom toolsrv import tool\n" + source)})
}

// pythonResult loads a script and returns what its tool returns.
func pythonResult[T any](t testing.TB, source string) (result T) {
	t.Helper()
	if err := python(t, source).call(t, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// TestPythonModules imports every module of the engine, and all modules that scripts are promised.
func TestPythonModules(t *testing.T) {
	t.Parallel()
	broken := pythonResult[map[string]string](t, `
import _imp, importlib, sys
PROMISED = """json re math cmath statistics random decimal fractions datetime zoneinfo calendar collections itertools functools operator
    string textwrap unicodedata difflib html urllib.parse base64 binascii hashlib hmac secrets uuid struct csv io dataclasses enum typing abc
    copy pprint heapq bisect array graphlib contextlib traceback logging pathlib xml.etree.ElementTree zlib gzip email asyncio ast tokenize""".split()
@tool
def run() -> Any:
    "Imports all."
    broken = {}
    for name in [*PROMISED, *_imp._frozen_module_names(), *sys.builtin_module_names]:
        if not name.startswith("__"):
            try:
                importlib.import_module(name)
            except BaseException as error:
                broken[name] = repr(error)
    return broken
`)
	for name, said := range broken {
		t.Errorf("import %s: %s", name, said)
	}
}

// TestPythonAbsent imports modules that are not available: the error says so, and what to do instead. If a script does not catch it, the script is
// refused with this error.
func TestPythonAbsent(t *testing.T) {
	t.Parallel()
	got := pythonResult[map[string]string](t, `
import importlib
@tool
def run() -> Any:
    "Imports what is not there."
    said = {}
    for name in """socket subprocess sqlite3 multiprocessing.pool ctypes ssl bz2 tkinter unittest.mock toolsrv.testing requests""".split():
        try:
            importlib.import_module(name)
        except ImportError as error:
            said[name] = str(error)
    return said
`)
	if err := python(t, "import socket\n").call(t, new(any)); !strings.Contains(said(err), got["socket"]) {
		t.Errorf("got %v, want %q", err, got["socket"])
	}
	for name, want := range map[string]string{
		"socket":               "no sockets in the sandbox",
		"subprocess":           "no other processes",
		"sqlite3":              "lists, dicts",
		"multiprocessing.pool": "no other processes",
		"ctypes":               "no compiled code",
		"ssl":                  "urllib.request ask what the tool was granted",
		"bz2":                  "use zlib or gzip",
		"tkinter":              "no terminal",
		"unittest.mock":        "where your tests run",
		"toolsrv.testing":      "where your tests run",
		"requests":             "No module named 'requests'",
	} {
		if !strings.Contains(got[name], want) {
			t.Errorf("import %s: got %q, want %q", name, got[name], want)
		}
	}
}

// TestPythonRandom compares the random values of calls that begin with the same snapshot. Before the snapshot was made, an example had drawn some
// random values.
func TestPythonRandom(t *testing.T) {
	t.Parallel()
	s := python(t, `
import random, secrets, uuid
from toolsrv import Example
unseeded, seeded = random.Random(), random.Random(42)
random.random(), random.gauss(), unseeded.gauss(), seeded.gauss(), seeded.random()
@tool(examples=[Example({})])
def run() -> Any:
    "Draws."
    return {"random": random.random(), "gauss": random.gauss(), "unseeded": unseeded.gauss(), "bits": random.getrandbits(64),
            "choice": random.choice(range(10**9)), "shuffled": random.sample(range(100), 100), "token": secrets.token_hex(), "uuid": str(uuid.uuid4()),
            "state": hash(random.getstate()), "new": random.Random().random(),
            "seeded": [seeded.gauss(), seeded.random()], "same": [random.Random(1).random(), hash("a"), list({"a", "b", "c", "d"})]}
`)
	var calls [3]map[string]any
	for i := range calls {
		if err := s.call(t, &calls[i]); err != nil {
			t.Fatal(err)
		}
	}
	for key, first := range calls[0] {
		for _, other := range calls[1:] {
			if same := reflect.DeepEqual(first, other[key]); same != (key == "seeded" || key == "same") {
				t.Errorf("%s in two calls: %v and %v", key, first, other[key])
			}
		}
	}
	// A seed gives the same numbers on all machines: the expected ones are from Python 3.13 on another machine.
	if got := calls[0]["same"].([]any)[0]; got != 0.13436424411240122 {
		t.Errorf("random.Random(1).random(): got %v", got)
	}
}

// TestPythonRecursion recurses forever in many ways: each ends with a RecursionError that the script can catch.
func TestPythonRecursion(t *testing.T) {
	t.Parallel()
	s := python(t, `
import copy, json, re, sys
class Mirror:
    def __repr__(self): return repr(self)
    def __eq__(self, other): return self == other
    def __hash__(self): return hash((self,))
    def __getattr__(self, name): return getattr(self, name + "x")
    def __format__(self, spec): return f"{self:{spec}}"
    def __iter__(self): return iter(self)
    def __len__(self): return len(self)
    def __call__(self): return self()
def plain(n): return 1 + plain(n + 1)
def mapped(n): return list(map(mapped, [n]))
def sorting(n): return sorted([2, 1], key=sorting)
def replaced(m): return re.sub("x", replaced, "x")
def nested(n):
    value = []
    for _ in range(n): value = [value]
    return value
def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
WAYS = {
    "plain": lambda: plain(0), "repr": lambda: repr(Mirror()), "eq": lambda: Mirror() == Mirror(), "hash": lambda: hash(Mirror()),
    "getattr": lambda: Mirror().a, "format": lambda: f"{Mirror():x}", "iter": lambda: list(Mirror()), "len": lambda: len(Mirror()),
    "call": lambda: Mirror()(), "map": lambda: mapped(0), "sort": lambda: sorting(0), "sub": lambda: replaced(None),
    "dumps": lambda: json.dumps(nested(100000)), "loads": lambda: json.loads("[" * 100000), "nested repr": lambda: repr(nested(100000)),
    "compare": lambda: nested(100000) == nested(100000), "copy": lambda: copy.deepcopy(nested(100000)), "compile": lambda: eval("a" + ".b" * 100000),
}
def error_of(way):
    try:
        WAYS[way]()
    except BaseException as error:
        return type(error).__name__
@tool
def run() -> Any:
    "Recurses."
    return {way: error_of(way) for way in WAYS} | {"depth 900": depth(900)}
@tool
def uncaught() -> Any:
    "Recurses."
    return plain(0)
@tool
def raised(way: str) -> Any:
    "Recurses, with a higher limit."
    sys.setrecursionlimit(10**6)
    return error_of(way)
`)
	var got map[string]any
	if err := s.call(t, &got); err != nil {
		t.Fatal(err)
	}
	for way, ends := range got {
		want := any("RecursionError")
		if way == "depth 900" {
			want = 900.0
		}
		if ends != want {
			t.Errorf("%s: got %v, want %v", way, ends, want)
		}
	}
	if _, err := s.with(t, 1, "{}"); !strings.Contains(said(err), "RecursionError") {
		t.Errorf("a recursion whose error is not caught: got %v", err)
	}
	if log := s.log.String(); !strings.Contains(log, "script.py") || !strings.Contains(log, "plain(n + 1)") {
		t.Errorf("the log does not show the author's lines: %s", log)
	}
	for _, way := range []string{"repr", "eq", "getattr", "map", "sort", "dumps"} {
		arguments, _ := json.Marshal(map[string]string{"way": way})
		if got, err := s.with(t, 2, string(arguments)); err != nil || got != `"RecursionError"` {
			t.Errorf("%s with a higher limit: got %s, %v", way, got, err)
		}
	}
}

// said returns the error message that the client of a failed call gets.
func said(err error) string {
	if failed := new(sandbox.Error); errors.As(err, &failed) {
		return failed.Message
	}
	return ""
}

// TestPythonAlone lets a script with a single thread wait for something that never comes.
func TestPythonAlone(t *testing.T) {
	t.Parallel()
	got := pythonResult[map[string]string](t, `
import asyncio, threading, queue, time
def error_of(do):
    try:
        return repr(do())
    except Exception as error:
        return f"{type(error).__name__}: {error}"
def locked():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
def slept():
    begun = time.monotonic()
    time.sleep(0.02)
    threading.Event().wait(0.02)
    return 0.04 <= time.monotonic() - begun
async def together():
    return await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.wait_for(asyncio.sleep(0.02, 2), 1))
async def never():
    await asyncio.Event().wait()
@tool
def run() -> Any:
    "Waits."
    return {"lock": error_of(locked), "queue": error_of(lambda: queue.Queue().get()), "timeout": error_of(lambda: threading.Lock().acquire(timeout=0.01)),
            "thread": error_of(threading.Thread(target=print).start), "sleep": error_of(slept), "together": error_of(lambda: asyncio.run(together())),
            "never": error_of(lambda: asyncio.run(never())), "late": error_of(lambda: asyncio.run(asyncio.wait_for(never(), 0.01))),
            "in a thread": error_of(lambda: asyncio.run(asyncio.to_thread(print))), "connect": error_of(lambda: asyncio.run(asyncio.open_connection("localhost", 1))),
            "process": error_of(lambda: asyncio.run(asyncio.create_subprocess_shell("ls")))}
`)
	for key, want := range map[string]string{
		"lock": "^RuntimeError: deadlock", "queue": "^RuntimeError: deadlock", "timeout": "^True$", "thread": "no.* in the sandbox", "sleep": "^True$",
		"together": `^\[1, 2\]$`, "never": "^RuntimeError: the program waits for something that never comes", "late": "^TimeoutError",
		"in a thread": "no.* in the sandbox", "connect": "no sockets in the sandbox|NotImplementedError", "process": "NotImplementedError|no other processes",
	} {
		if !regexp.MustCompile(want).MatchString(got[key]) {
			t.Errorf("%s: got %q, want %q", key, got[key], want)
		}
	}
}

// TestPythonZones uses time zones, which are in the engine.
func TestPythonZones(t *testing.T) {
	t.Parallel()
	got := pythonResult[[]any](t, `
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones
def missing(name):
    try:
        return str(ZoneInfo(name))
    except Exception as error:
        return type(error).__name__
@tool
def run() -> Any:
    "Asks."
    return [datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")).isoformat(), len(available_timezones()) > 500, missing("Europe/Nowhere"),
            missing("../etc/passwd"), missing("Europe/\ud800"), [str(ZoneInfo(z)) != "" for z in available_timezones()].count(False)]
`)
	want := []any{"2026-07-01T12:00:00+02:00", true, "ZoneInfoNotFoundError", "ValueError", "ZoneInfoNotFoundError", 0.0}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestPythonFrozen calls functions of the library that usually read the files of their modules.
func TestPythonFrozen(t *testing.T) {
	t.Parallel()
	got := pythonResult[[]any](t, `
import datetime, importlib.resources, io, warnings, zipfile
@tool
def run() -> Any:
    "Calls."
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        day = datetime.datetime.strptime("Mar 1", "%b %d").day
        with zipfile.ZipFile(io.BytesIO(), "w") as archive:
            archive.writestr("a", "b")
            archive.writestr("a", "c")
    return [day, [w.category.__name__ for w in said], type(importlib.resources.files("toolsrv")).__name__ != ""]
`)
	if want := []any{1.0, []any{"DeprecationWarning", "UserWarning"}, true}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestPythonWarmUp checks that examples log nothing while they are run only to warm up a tool.
func TestPythonWarmUp(t *testing.T) {
	t.Parallel()
	s := python(t, `
from toolsrv import Example
print("loaded")
@tool(examples=[Example({}, result=1)])
def run() -> int:
    "Runs."
    print("running")
    return 1
`)
	var result int
	if err := s.call(t, &result); err != nil || result != 1 {
		t.Fatalf("got %d, %v", result, err)
	}
	if log := s.log.String(); strings.Count(log, "loaded") != 1 || strings.Count(log, "running") != 1 {
		t.Errorf("want one line of the load and one of the call, got\n%s", log)
	}
}

// TestPythonLicenses looks for the licences of all parts of the engine.
func TestPythonLicenses(t *testing.T) {
	t.Parallel()
	need(t, "python")
	text, err := engine.Carried().Licenses("python")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"PYTHON SOFTWARE FOUNDATION LICENSE", "Expat maintainers", "Jean-loup Gailly", "Apache License", "musl", "Mersenne Twister", "libmpdec"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the licences lack %s", part)
		}
	}
}
