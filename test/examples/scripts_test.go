package examples_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// scriptsOf returns the examples that are scripts in these languages and need no grant. Each folder has one script, which has the name of
// the folder.
func scriptsOf(t *testing.T, endings ...string) []string {
	t.Helper()
	var scripts []string
	for _, ending := range endings {
		files, err := filepath.Glob("../../examples/*/*" + ending)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			folder := filepath.Base(filepath.Dir(file))
			if strings.TrimSuffix(filepath.Base(file), ending) == strings.ReplaceAll(folder, "-", "_") && !slices.Contains(grantedScripts, folder) {
				scripts = append(scripts, file)
			}
		}
	}
	return scripts
}

// serveScripts builds scripts, and returns the table of a catalog that serves them.
func serveScripts(t *testing.T, scripts []string, paths ...string) *wasmtools.RouteTable {
	t.Helper()
	tools := t.TempDir()
	for _, file := range scripts {
		module, _, err := script.Build(t.Context(), file, script.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tools, filepath.Base(file)+".wasm"), module, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return serve(t, tools, nil, paths...)
}

func TestPythonExamples(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "python")
	table := serveScripts(t, scriptsOf(t, ".py"), "/code/python", "/cron/explain", "/dates/meeting", "/dates/series", "/invoice/total", "/prose/readability")
	checkManifests(t, table)
	t.Run("readmes", func(t *testing.T) { checkReadmes(t, table, ".py") })
	checkHardScripts(t, table, []hardCall{
		{"prose: many words", "/prose/readability", fmt.Sprintf(`{"text": %q}`, strings.Repeat("a ", 100_000)), `"words":100000,`},
		{"prose: one word", "/prose/readability", fmt.Sprintf(`{"text": %q}`, strings.Repeat("e", 200_000)), `"words":1,`},
		{"prose: initials", "/prose/readability", fmt.Sprintf(`{"text": %q}`, strings.Repeat("A. ", 66_000)), `"sentences":1,`},
		{"prose: quotes", "/prose/readability", fmt.Sprintf(`{"text": %q}`, strings.Repeat(`."`, 99_999)+"a"), `"words":1,`},
		{"cron: leap days", "/cron/explain", `{"expression": "0 0 29 2 *", "after": "2026-01-01T00:00:00Z", "count": 100}`, "2424-02-29"},
		{"cron: never", "/cron/explain", `{"expression": "* * 30 2 *", "count": 100}`, `"next":[]`},
		{"dates: many", "/dates/series", `{"start": "1926-01-31T02:30", "every": "P1M1DT1M", "zone": "America/New_York", "count": 500}`, "1968-"},
		{"dates: fifty people", "/dates/meeting", fmt.Sprintf(`{"people": [%s], "from_date": "2026-01-01", "days": 60, "begin": "00:00", "end": "23:59"}`, everybody(50)), `"start"`},
		{"invoice: a thousand lines", "/invoice/total", fmt.Sprintf(`{"lines": [%s]}`, strings.TrimSuffix(strings.Repeat(`{"quantity": "0.333333333", "price": 9.99, "tax": 19},`, 1000), ",")), `"net":"3330.00"`},
		{"code: a loop", "/code/python", `{"code": "while True: pass"}`, "!tool_timeout"},
		{"code: a loop that catches all", "/code/python", `{"code": "while True:\n  try:\n    while True: pass\n  except BaseException: pass"}`, "!tool_timeout"},
		{"code: a slow expression", "/code/python", `{"code": "import re\nre.match('(a+)+$', 'a' * 40 + 'b')"}`, "!tool_timeout"},
		{"code: much memory", "/code/python", `{"code": "a = 'a' * (1 << 20)\nb = []\nwhile True: b.append(a + str(len(b)))"}`, `"MemoryError"`},
		{"code: much output", "/code/python", `{"code": "'a' * 4_200_000"}`, "!"},
		{"code: recursion", "/code/python", `{"code": "def f(n): return f(n + 1)\nf(0)"}`, `"RecursionError"`},
		{"code: recursion in C", "/code/python", `{"code": "a = []\nfor _ in range(100000): a = [a]\nstr(a)"}`, `"RecursionError"`},
		{"code: a file", "/code/python", `{"code": "open('/etc/passwd')"}`, `Error","message"`},
		{"code: an exit of the process", "/code/python", `{"code": "import os\nos._exit(0)"}`, "!tool_trapped"},
	})
	t.Run("nothing is left", func(t *testing.T) {
		leave := `{"code": "import builtins, json, sys, string\nbuiltins.len = lambda _: 7\njson.dumps = None\nsys.modules['math'] = 3\nstring.digits = 'x'\ntype(input).x = 1"}`
		look := `{"code": "import json, math, string\n[len([]), json.dumps(1), math.pi > 3, string.digits, 'leave' in globals()]"}`
		for range 3 {
			_, _ = call(t, table, "/code/python", leave) // the script has broken its own interpreter, so it may fail
			if got, err := call(t, table, "/code/python", look); err != nil || !strings.Contains(got, `"result":[0,"1",true,"0123456789",false]`) {
				t.Errorf("got %s, %v", got, err)
			}
		}
	})
}

func TestJavaScriptExamples(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "javascript")
	if _, err := os.Stat("../../examples/node_modules"); err != nil {
		t.Skip("there are no packages of npm for the examples: make examples-npm installs them")
	}
	table := serveScripts(t, scriptsOf(t, ".js", ".ts"), "/code/javascript", "/diff/unified", "/liquid/render", "/table/convert", "/toc/insert", "/toc/list")
	checkManifests(t, table)
	t.Run("readmes", func(t *testing.T) { checkReadmes(t, table, ".js", ".ts") })
	checkHardScripts(t, table, []hardCall{
		{"table: many rows", "/table/convert", fmt.Sprintf(`{"data": [%s0], "limit": 20000}`, strings.Repeat(`{"a": 1, "b": "x"},`, 19_999)), "|   1 | x   |"},
		{"table: deep", "/table/convert", fmt.Sprintf(`{"data": [%s1%s]}`, strings.Repeat(`{"a":`, 60), strings.Repeat("}", 60)), "a.a.a.a.a"},
		{"diff: many lines", "/diff/unified", fmt.Sprintf(`{"before": %q, "after": %q}`, strings.Repeat("a\n", 100_000), strings.Repeat("a\n", 100_001)), `+a`},
		{"diff: other lines", "/diff/unified", fmt.Sprintf(`{"before": %q, "after": %q}`, strings.Repeat("a\n", 100_000), strings.Repeat("b\n", 100_000)), "!differ by more than 1000 lines"},
		{"diff: a thousand lines", "/diff/unified", fmt.Sprintf(`{"before": %q, "after": %q}`, strings.Repeat("a\n", 500), strings.Repeat("b\n", 500)), `+b`},
		{"toc: many headings", "/toc/list", fmt.Sprintf(`{"text": %q}`, strings.Repeat("## a\n"+strings.Repeat("word ", 40)+"\n", 300)), "(#a-299)"},
		{"toc: emphasis marks", "/toc/list", fmt.Sprintf(`{"text": %q}`, "## "+strings.Repeat("*a **b ", 2000)), "- ["},
		{"liquid: a long loop", "/liquid/render", `{"template": "{% for i in (1..100000000) %}x{% endfor %}"}`, "!limit"},
		{"liquid: doubling", "/liquid/render", `{"template": "{% assign a = 'aaaaaaaaaa' %}{% for i in (1..60) %}{% assign a = a | append: a %}{% endfor %}{{ a }}"}`, "!limit"},
		{"liquid: itself", "/liquid/render", `{"template": "{% render 'a' %}", "partials": {"a": "{% render 'a' %}"}}`, "!"},
		{"code: a loop", "/code/javascript", `{"code": "for (;;);"}`, "!tool_timeout"},
		{"code: a loop that catches all", "/code/javascript", `{"code": "for (;;) { try { for (;;); } catch {} }"}`, "!tool_timeout"},
		{"code: a slow expression", "/code/javascript", `{"code": "/(a+)+$/.test('a'.repeat(40) + 'b')"}`, "!tool_timeout"},
		{"code: jobs forever", "/code/javascript", `{"code": "for (;;) await null"}`, "!tool_timeout"},
		{"code: a promise that is never kept", "/code/javascript", `{"code": "await new Promise(() => {})"}`, "!"},
		{"code: recursion", "/code/javascript", `{"code": "function f() { return 1 + f() }\nf()"}`, `"RangeError"`},
		{"code: recursion in JSON", "/code/javascript", `{"code": "let a = []; for (let i = 0; i < 100000; i++) a = [a]; JSON.stringify(a)"}`, `"error":{`},
		{"code: no process", "/code/javascript", `{"code": "[typeof process, typeof require, typeof WebSocket, typeof WebAssembly]"}`, `["undefined","undefined","undefined","undefined"]`},
	})
	t.Run("nothing is left", func(t *testing.T) {
		leave := `{"code": "Array.prototype.map = null; Object.prototype.x = 1; globalThis.left = 1; JSON.parse = null; setTimeout(() => { globalThis.late = 1 }, 0); 1"}`
		look := `{"code": "[[1].map(String), ({}).x === undefined, typeof left, JSON.parse('1'), typeof late]"}`
		for range 3 {
			_, _ = call(t, table, "/code/javascript", leave) // as above
			if got, err := call(t, table, "/code/javascript", look); err != nil || !strings.Contains(got, `"result":[["1"],true,"undefined",1,"undefined"]`) {
				t.Errorf("got %s, %v", got, err)
			}
		}
	})
}

// A hardCall is a call with large, deep or endless arguments. It wants a part of the result or, after "!", the code or the message of an error.
type hardCall struct{ name, path, arguments, want string }

func checkHardScripts(t *testing.T, table *wasmtools.RouteTable, calls []hardCall) {
	for _, test := range calls {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			timeout := time.Minute
			if strings.HasSuffix(test.want, "tool_timeout") {
				timeout = time.Second // this stands for a client's time limit, which is shorter than the tool's own
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			got, err := callWithin(ctx, t, table, test.path, test.arguments)
			want, fails := strings.CutPrefix(test.want, "!")
			switch {
			case fails && err == nil:
				t.Errorf("got %.200s, want an error with %q", got, want)
			case fails && want == "tool_timeout":
				if err.Code != wasmtools.CodeCancelled && err.Code != wasmtools.CodeToolTimeout {
					t.Errorf("got %+v, want a call that ended at its time limit", err)
				}
			case fails && string(err.Code) != want && !strings.Contains(err.Message, want):
				t.Errorf("got %+v, want an error with %q", err, want)
			case !fails && (err != nil || !strings.Contains(got, want)):
				t.Errorf("got %.300s, %v, want %q in it", got, err, want)
			}
		})
	}
}

// everybody returns n people in different zones.
func everybody(n int) string {
	zones := []string{"Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Pacific/Chatham", "UTC"}
	people := make([]string, n)
	for i := range people {
		people[i] = fmt.Sprintf(`{"name": "%d", "zone": %q}`, i, zones[i%len(zones)])
	}
	return strings.Join(people, ", ")
}
