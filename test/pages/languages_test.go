package pages_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/script/javascript"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

var update = flag.Bool("update", false, "write docs/generated/languages.md again")

// A probe is a row of the table: code for both languages, whose result the table shows. If code is missing, the language has nothing of the kind.
type probe struct{ what, python, javascript string }

// probes are the rows. The last expression of the code is the cell; an error is shown as such.
var probes = []probe{
	{"version", `import sys; "CPython " + sys.version.split()[0]`, `"QuickJS-ng, ECMAScript 2023 and later"`},
	{"time zones", `import zoneinfo; f"{len(zoneinfo.available_timezones()) // 100 * 100} and more"`, `"UTC only"`},
	{"Unicode", `import unicodedata; unicodedata.unidata_version`, `/\p{RGI_Emoji}/v.test("\u{1F6F8}") ? "properties and the flag v" : "properties"`},
	{"whole numbers", `"of any size" if 2 ** 1000 + 1 > 2 ** 1000 else "no"`, `2n ** 1000n + 1n > 2n ** 1000n ? "exact to 2^53, BigInt of any size" : "no"`},
	{"decimal numbers", `import decimal; "decimal, libmpdec " + decimal.__libmpdec_version__`, ``},
	{"digests", `import hashlib; ", ".join(sorted(a for a in hashlib.algorithms_available))`, `typeof crypto.subtle === "undefined" ? "none: bring a package" : "crypto.subtle"`},
	{"regular expressions", `import re; "re, with look-behind and named groups" if re.search(r"(?<=a)(?P<b>b)", "ab") else "no"`, `/(?<=a)(?<b>b)/d.exec("ab").indices ? "with look-behind, named groups and indices" : "no"`},
	{"levels of recursion", "import sys\ndef f(n):\n    try:\n        return f(n + 1)\n    except RecursionError:\n        return n\nf'RecursionError after {(f(0) + 50) // 100 * 100}'",
		`let n = 0; const f = () => { n++; f() }; try { f() } catch (e) { n = e instanceof RangeError ? n : 0 }; n > 1000 ? "RangeError after more than 1,000" : "RangeError after " + n`},
	{"code from a text", `eval("compile('1', '', 'eval') and 'eval, exec, compile'")`, `new Function("return 'eval, new Function'")()`},
	{"waiting for others", `import asyncio; asyncio.run(asyncio.sleep(0, "asyncio, on one thread"))`, `await Promise.resolve("promises and async functions")`},
	{"waiting", "import time\nt = time.monotonic(); time.sleep(0.02)\n'time.sleep and asyncio.sleep wait' if time.monotonic() - t >= 0.02 else 'no'",
		`const t = Date.now(); await new Promise((r) => setTimeout(r, 20)); Date.now() - t >= 19 ? "setTimeout waits, until the call ends" : "no"`},
	{"the environment", `import os; "empty" if not os.environ else "not empty"`, `typeof process === "undefined" ? "none" : "process"`},
	{"files", `open("/etc/passwd")`, `typeof require === "undefined" ? "none" : "require"`},
	{"the network", `import socket`, `fetch("https://example.com")`},
	{"threads", `import threading; threading.Thread(target=print).start()`, `new Worker("")`},
	{"processes", `import subprocess`, ``},
}

// drawn is code whose results are compared between calls.
var drawn = []probe{
	{"random numbers", `import random; random.random()`, `Math.random()`},
	{"secrets, UUIDs", `import secrets, uuid; [secrets.token_hex(8), str(uuid.uuid4())]`, `[crypto.randomUUID(), ...crypto.getRandomValues(new Uint8Array(8))]`},
	{"hashes of texts", `hash("a")`, ``},
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t)
	enginetest.Need(t, "python", "javascript")
	python, js := newInterpreter(t, "code-python/code_python.py"), newInterpreter(t, "code-javascript/code_javascript.js")

	side := &strings.Builder{}
	side.WriteString("| | Python | JavaScript |\n|---|---|---|\n")
	for _, p := range probes {
		fmt.Fprintf(side, "| %s | %s | %s |\n", p.what, python.cell(p.python), js.cell(p.javascript))
	}
	for _, p := range drawn {
		fmt.Fprintf(side, "| %s | %s | %s |\n", p.what, python.draws(p.python), js.draws(p.javascript))
	}

	names := map[string]string{"side by side": side.String()}
	names["modules"], names["missing modules"] = modules(t, python)
	names["globals"] = list(js, `Object.getOwnPropertyNames(globalThis).filter((n) => n !== "Intl" && n !== "input").sort()`)
	names["intl"] = "`Intl` has " + list(js, `typeof Intl === "undefined" ? [] : Object.getOwnPropertyNames(Intl).sort()`)
	names["missing globals"] = list(js, `[`+quoted(expected)+`].filter((n) => !(n in globalThis))`)
	names["node"] = node(t)

	const page = "../../docs/generated/languages.md"
	text := string(testkit.Read(t, page))
	want := regexp.MustCompile(`(?s)<!-- ([a-z ]+) -->\n.*?<!-- end -->`).ReplaceAllStringFunc(text, func(part string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(part, "<!-- "), " -->")
		content, ok := names[name]
		if !ok {
			t.Errorf("%s has a placeholder %q that no result fills", page, name)
		}
		delete(names, name)
		return "<!-- " + name + " -->\n" + strings.TrimSuffix(content, "\n") + "\n<!-- end -->"
	})
	for name := range names {
		t.Errorf("%s has no place for %q", page, name)
	}
	switch {
	case want == text:
	case *update:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("%s is not what the engines say: go test ./test/pages -run TestLanguages -update, and look at the difference", page)
	}
}

// An interpreter runs code, each time in a new instance.
type interpreter struct {
	t    *testing.T
	tool *sandbox.Tool
}

func newInterpreter(t *testing.T, example string) *interpreter {
	t.Helper()
	module, _, err := script.Build(t.Context(), filepath.Join("../../examples", example), script.Options{})
	if err != nil {
		t.Fatal(err)
	}
	program := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{CacheDir: sandboxtest.CodeDir()}), module)
	return &interpreter{t, program.Tool("code", 0, limits.Limits{Timeout: 10 * time.Minute})}
}

// run returns the result of code, or its error.
func (i *interpreter) run(code string) (result json.RawMessage, failed string) {
	i.t.Helper()
	text, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		i.t.Fatal(err)
	}
	out, err := i.tool.Call(i.t.Context(), sandbox.CallSpec{Input: text})
	if err != nil {
		i.t.Fatalf("%s: %v", code, err)
	}
	var outcome struct {
		Result json.RawMessage
		Error  *struct{ Type, Message string }
	}
	if err := json.Unmarshal(out, &outcome); err != nil {
		i.t.Fatalf("%s: %v in %s", code, err, out)
	}
	if outcome.Error != nil {
		return nil, outcome.Error.Type + ": " + outcome.Error.Message
	}
	return outcome.Result, ""
}

// cell returns the result of code as a cell of a table.
func (i *interpreter) cell(code string) string {
	i.t.Helper()
	if code == "" {
		return "none"
	}
	result, failed := i.run(code)
	if failed != "" {
		return "`" + failed + "`"
	}
	var text string
	if err := json.Unmarshal(result, &text); err != nil {
		i.t.Errorf("%s: got %s, want a text", code, result)
	}
	return text
}

// draws returns whether code has a different result in each call.
func (i *interpreter) draws(code string) string {
	i.t.Helper()
	if code == "" {
		return "none"
	}
	first, failed := i.run(code)
	second, _ := i.run(code)
	switch {
	case failed != "":
		return "`" + failed + "`"
	case string(first) == string(second):
		return "the same in every call"
	}
	return "others in each call"
}

// list returns the text of a list of names in a result.
func list(i *interpreter, code string) string {
	i.t.Helper()
	var names []string
	result, failed := i.run(code)
	if err := json.Unmarshal(result, &names); err != nil {
		i.t.Errorf("%s: got %s %s", code, result, failed)
	}
	if len(names) == 0 {
		return "nothing."
	}
	return "`" + strings.Join(names, "`, `") + "`."
}

// modules returns which modules of Python's library can be imported, and a table of the others.
func modules(t *testing.T, python *interpreter) (there, missing string) {
	t.Helper()
	const code = `
import importlib, sys
found, failed = [], {}
for name in sorted(sys.stdlib_module_names):
    if name.startswith("_") or name in ("antigravity", "this"):
        continue
    try:
        importlib.import_module(name)
        found.append(name)
    except BaseException as e:
        failed.setdefault(str(e).removeprefix(f"toolsrv's Python has no module {name}: "), []).append(name)
[found, failed]`
	result, failed := python.run(code)
	var both [2]json.RawMessage
	var found []string
	why := map[string][]string{}
	if err := errors.Join(json.Unmarshal(result, &both), json.Unmarshal(both[0], &found), json.Unmarshal(both[1], &why)); err != nil {
		t.Fatalf("%v, %s", err, failed)
	}
	var rows []string
	for reason, names := range why {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", strings.Join(names, "`, `"), reason))
	}
	slices.Sort(rows)
	return "`" + strings.Join(found, "`, `") + "`.", "| modules | why |\n|---|---|\n" + strings.Join(rows, "\n")
}

// expected are names that scripts find on other platforms.
var expected = []string{"AbortController", "Blob", "Buffer", "CompressionStream", "DOMParser", "Event", "EventTarget", "File", "FormData", "Headers", "Intl", "MessageChannel", "ReadableStream",
	"Request", "Response", "SharedArrayBuffer", "Temporal", "WebAssembly", "WebSocket", "Worker", "XMLHttpRequest", "document", "fetch", "localStorage", "process", "require", "setImmediate",
	"window"}

func quoted(names []string) string { return `"` + strings.Join(names, `","`) + `"` }

// nodeModules are the modules that Node's documentation lists.
var nodeModules = []string{"assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram", "diagnostics_channel", "dns", "domain", "events", "fs", "fs/promises",
	"http", "http2", "https", "inspector", "module", "net", "os", "path", "perf_hooks", "process", "punycode", "querystring", "readline", "repl", "stream", "string_decoder", "test", "timers",
	"timers/promises", "tls", "tty", "url", "util", "v8", "vm", "wasi", "worker_threads", "zlib"}

// node returns which of Node's modules a script may import, and the build's errors about the others.
func node(t *testing.T) string {
	t.Helper()
	var there []string
	why := map[string][]string{}
	file := filepath.Join(t.TempDir(), "a.js")
	for _, name := range nodeModules {
		if err := os.WriteFile(file, []byte("import * as a from \"node:"+name+"\";\nexport const b = a;\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := javascript.Collect(t.Context(), file, javascript.Options{})
		if err == nil {
			there = append(there, name)
			continue
		}
		line, _, _ := strings.Cut(err.Error(), "\n")
		_, reason, ok := strings.Cut(line, "is not available: ")
		if !ok {
			t.Errorf("node:%s: %v", name, err)
		}
		reason = strings.TrimSuffix(reason, " (a.js imports it)")
		why[reason] = append(why[reason], name)
	}
	rows := []string{"| `" + strings.Join(there, "`, `") + "` | available |"}
	if len(there) == 0 {
		rows = nil
	}
	for reason, names := range why {
		rows = append(rows, "| `"+strings.Join(names, "`, `")+"` | "+reason+" |")
	}
	slices.Sort(rows)
	return "| modules | |\n|---|---|\n" + strings.Join(rows, "\n")
}
