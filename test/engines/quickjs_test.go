package engines_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// fetched is the folder in which `make test-engines` has put other projects' tests.
const fetched = "../../build/js-tests"

func needFetched(t *testing.T, folder string) string {
	t.Helper()
	dir := filepath.Join(fetched, folder)
	if _, err := os.Stat(dir); err != nil {
		t.Skip("others' tests are missing: make test-engines fetches them")
	}
	return dir
}

// notHere are tests of QuickJS-ng that make no sense in the sandbox, each with the reason.
var notHere = map[string]string{
	"atomics-store-leak.js":               "tests Atomics, which are not in the engine: there are no threads",
	"bug1301.js":                          "tests Atomics",
	"bug1302.js":                          "tests Atomics",
	"assert.js":                           "is a file that the others import",
	"bug832.js":                           "imports a file at run time",
	"dynamic_import_rejection_handled.js": "imports a file at run time",
	"reexport-error-module.js":            "imports files at run time",
	"bug567.js":                           "imports a file that imports it",
	"destructured-export.js":              "imports itself",
	"import-attributes-identity.js":       "imports files with attributes at run time",
	"test_string_exports.js":              "imports a file whose exports have names that are strings",
	"empty.js":                            "is for others to import",
	"fixture_cyclic_import.js":            "is for others to import",
	"fixture_reexport_direct.js":          "is for others to import",
	"fixture_reexport_missing.js":         "is for others to import",
	"fixture_reexport_source.js":          "is for others to import",
	"fixture_string_exports.js":           "is for others to import",
	"fixture_throwing_module.js":          "is for others to import",
	"microbench.js":                       "measures, and tests nothing",
	"test_bjson.js":                       "tests qjs:bjson, which is not in the engine: it reads bytecode and memory unchecked",
	"test_std.js":                         "tests qjs:std and qjs:os: files and processes",
	"test_worker.js":                      "tests threads",
	"test_worker_module.js":               "is for another to import",
}

var (
	importAssert = regexp.MustCompile(`(?m)^import\s*(\{[^}]*\})\s*from\s*["']\./assert\.js["'];?`)
	importOwn    = regexp.MustCompile(`(?m)^import \* as (std|os) from "qjs:(std|os)";`)
	negative     = regexp.MustCompile(`(?s)/\*---.*negative:.*type: (\w+).*---\*/`)
	isModule     = regexp.MustCompile(`(?m)^(import|export)\b`)
	// localDates are assertions about the form in which QuickJS-ng writes dates for people. The engine writes dates as ECMA-402, Node and
	// browsers do.
	localDates = regexp.MustCompile(`(?m)^ *assert\(new Date\("[^"]*"\)\.toLocaleString\(\), .*$`)
)

// around replaces the functions that the interpreter's own program gives its tests. For the functions that report the internal form of a
// string, the tests only check that they exist.
const around = `globalThis.print = () => {}; globalThis.gc = () => { for (let i = 0; i < 200000; i++) { const a = {}; a.a = a; } }; globalThis.__std = { gc }; globalThis.__os = { platform: "wasi" }; globalThis.qjs = { getStringKind: (s) => Number(s.length > 512) };`

// TestQuickJS runs QuickJS-ng's own tests in the sandbox.
func TestQuickJS(t *testing.T) {
	t.Parallel()
	dir := needFetched(t, "quickjs")
	need(t, "javascript")
	files, err := filepath.Glob(dir + "/*.js")
	if err != nil || len(files) < 80 {
		t.Fatalf("the tests are %q, %v", files, err)
	}
	for reason := range notHere {
		if _, err := os.Stat(filepath.Join(dir, reason)); err != nil {
			t.Errorf("notHere has a test that does not exist: %v", err)
		}
	}
	own := strings.ReplaceAll(string(testkit.Read(t, dir, "assert.js")), "export function", "function")
	asserts := line("(() => {" + own + "\nreturn { assert, assertThrows, assertArrayEquals }; })()")
	h, ran := newHost(t), 0
	for _, file := range files {
		name := filepath.Base(file)
		if notHere[name] != "" {
			continue
		}
		ran++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := localDates.ReplaceAllString(string(testkit.Read(t, file)), "")
			if isModule.MatchString(source) {
				// The code keeps its lines and columns, since some tests check them.
				source = importAssert.ReplaceAllString(source, "const $1 = (0, eval)("+strings.ReplaceAll(asserts, "$", "$$")+");")
				source = importOwn.ReplaceAllString(source, "const $1 = globalThis.__$2;")
			} else {
				source = "(0, eval)(" + line(source) + ");"
			}
			s := h.javascript(t, name, around+source+"\nimport { tool as __tool } from 'toolsrv';\nexport const __test = __tool({ description: 'Ran.', run: () => 'ran' });\n")
			err := s.call(t, new(string))
			if thrown := negative.FindStringSubmatch(source); thrown != nil && (err == nil || !strings.Contains(err.Error(), thrown[1])) {
				t.Errorf("got %v, want a %s", err, thrown[1])
			} else if thrown == nil && err != nil {
				t.Error(err)
			}
		})
	}
	t.Logf("%d of %d files ran", ran, len(files))
}

// TestParser lets the engine parse TC39's parser tests, which are valid and invalid programs.
func TestParser(t *testing.T) {
	t.Parallel()
	dir := needFetched(t, "parser")
	cases := map[string]map[string]string{}
	for _, kind := range []string{"pass", "pass-explicit", "early", "fail"} {
		files, err := filepath.Glob(filepath.Join(dir, kind, "*.js"))
		if err != nil || len(files) < 100 {
			t.Fatalf("found %d programs of the kind %s, and the error %v", len(files), kind, err)
		}
		cases[kind] = map[string]string{}
		for _, file := range files {
			if !strings.HasSuffix(file, ".module.js") { // modules can't be parsed at run time
				cases[kind][filepath.Base(file)] = string(testkit.Read(t, file))
			}
		}
	}
	s := newHost(t).javascript(t, "test.js", `import { tool } from "toolsrv";
const stop = { stop: true };
globalThis.__stop = () => { throw stop; };
const evaluate = eval; // some programs declare a function of that name, which replaces this one from their beginning
// parse returns whether a program is valid, without running it.
function parse(source) {
  const strict = /^(\s|\/\*.*?\*\/|\/\/.*\n)*(["'])use strict\2/.test(source) ? '"use strict";' : "";
  try {
    evaluate(strict + "__stop();\n" + source);
  } catch (thrown) {
    if (thrown === stop || thrown instanceof SyntaxError || thrown instanceof InternalError) {
      return thrown === stop;
    }
    throw thrown;
  }
}
export const test = tool({ description: "Parses.", parameters: { type: "object" }, run: (programs) => Object.keys(programs).filter((name) => parse(programs[name])) });
`)
	for kind, programs := range cases {
		text, err := json.Marshal(programs)
		if err != nil {
			t.Fatal(err)
		}
		var valid []string
		if err := s.callWith(t, string(text), &valid); err != nil {
			t.Fatal(err)
		}
		isValid := map[string]bool{}
		for _, name := range valid {
			isValid[name] = true
		}
		wrong := 0
		for name := range programs {
			want := strings.HasPrefix(kind, "pass")
			reason := misparsed[kind+"/"+name]
			if isValid[name] != want {
				wrong++
			}
			if (isValid[name] != want) != (reason != "") {
				t.Errorf("%s/%s: valid is %v, want %v (%s): %q", kind, name, isValid[name], want, reason, programs[name])
			}
		}
		t.Logf("%s: %d of %d programs are right", kind, len(programs)-wrong, len(programs))
	}
}

// misparsed are the programs about whose validity the engine and TC39's tests disagree, with the reasons.
var misparsed = func() map[string]string {
	byName := map[string]string{}
	for reason, names := range map[string]string{
		"the web's grammar allows two functions of one name in a block": "early/12a74c60f52a60de early/1aff49273f3e3a98 early/be7329119eaa3d47 early/ec31fa5e521c5df4",
		"QuickJS-ng takes a class whose name is eval or arguments":      "early/4286a88aed2001ee early/84ef3bbaa772075f early/987442878ab414e7 early/f1de9fc3ec4637cc",
		"QuickJS-ng lets a variable hide a parameter that is a pattern": "early/14c149e612ab4111 early/58bb4a3a2d717d4f early/627ae2300901a0b1 early/6bb272e52a903c4c early/7a916ef0ccd4ea9c early/93b1547f64fd0370 " +
			"early/9ef7cc46ec36bb51 early/b01e3a73a92863c5 early/cc23480bdd763207 early/d1779a4749085a10 early/d412cecc75edd30d early/e1831477442a7ebf",
		"QuickJS-ng lets the variable of a loop hide that of a catch":                       "early/0f5f47108da5c34e",
		"the language has it by now: fields of classes, and separators of lines in strings": "fail/98204d734f8c72b3 fail/ef81b93cf9bdb4ec fail/647e21f8f157c338 fail/8af69d8f15295ed2",
		"the web's grammar allows it":                                                       "fail/748656edbfb2d0bb fail/79f882da06f88c9f fail/92b6af54adef3624 fail/0d5e450f1da8a92a fail/e3fbcf63d7e43ead",
		"QuickJS-ng takes a comma in a computed name":                                       "fail/3a9fa392421db6dd fail/58707e130fe451a8 fail/ed0332c84e50834c fail/ea9e5f218423bd4f",
		"QuickJS-ng takes the rest of arguments in a setter":                                "fail/2f95824f19005b11 fail/aae5dc521eff47c4",
		"QuickJS-ng takes a loop over let.a":                                                "fail/ef2d369cccc5386c",
		"QuickJS-ng takes an octal escape before 'use strict'":                              "fail/3bc2b27a7430f818",
		"QuickJS-ng takes a default for the pattern of a catch":                             "fail/831b4a1caf3c5a06",
		"QuickJS-ng knows the last of two labels only":                                      "pass/1f3808cbdfab97e4 pass/7a405ea1fdb6a26e pass-explicit/1f3808cbdfab97e4 pass-explicit/7a405ea1fdb6a26e",
	} {
		for _, name := range strings.Fields(names) {
			byName[name+".js"] = reason
		}
	}
	return byName
}()

// TestURL runs the tests of web-platform-tests for URLs.
func TestURL(t *testing.T) {
	t.Parallel()
	dir := needFetched(t, "url")
	s := newHost(t).javascript(t, "test.js", `import { tool } from "toolsrv";
const parts = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];
const read = (url, wanted) => Object.fromEntries(parts.filter((p) => p in wanted).map((p) => [p, url[p]]));
const same = (a, b) => parts.every((p) => !(p in b) || a[p] === b[p]);
export const test = tool({ description: "Tests URLs.", parameters: { type: "object" }, run: ({ urls, setters }) => {
  const wrong = {};
  let count = 0;
  for (const c of urls) {
    if (typeof c === "string") continue;
    count++;
    const url = URL.parse(c.input, c.base ?? undefined);
    if (url === null ? !c.failure : c.failure || !same(url, c)) {
      wrong[JSON.stringify([c.input, c.base])] = url === null ? null : read(url, c);
    }
  }
  for (const [property, list] of Object.entries(setters)) {
    if (property === "comment") continue;
    for (const c of list) {
      count++;
      const url = new URL(c.href);
      url[property] = c.new_value;
      if (!same(url, c.expected)) {
        wrong[JSON.stringify([c.href, property, c.new_value])] = read(url, c.expected);
      }
    }
  }
  return { wrong, count };
} });
`)
	var got struct {
		Wrong map[string]json.RawMessage
		Count int
	}
	arguments := fmt.Sprintf(`{"urls": %s, "setters": %s}`, testkit.Read(t, dir, "urltestdata.json"), testkit.Read(t, dir, "setters_tests.json"))
	if err := s.callWith(t, arguments, &got); err != nil {
		t.Fatal(err)
	}
	for name, what := range got.Wrong {
		if !strings.Contains(name, "^_`") && !strings.Contains(name, " ?") && !strings.Contains(name, " #") {
			t.Errorf("%s: %s", name, what)
		}
	}
	// The data predates two changes of the standard. Now ^ is written as %5E in a path. If an opaque path ends in spaces, the last one
	// is written as %20.
	if got.Count < 1000 || len(got.Wrong) > 11 {
		t.Errorf("%d of %d are wrong", len(got.Wrong), got.Count)
	}
	t.Logf("%d of %d are right", got.Count-len(got.Wrong), got.Count)
}
