package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
)

const (
	addPython = `from toolsrv import Example, ToolError, module, tool

module(namespace="sums", version="1.2.3")

@tool(examples=[Example({"a": 2, "b": 3}, result=5)])
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    if a < 0:
        raise ToolError("a is negative", code="negative", status=409)
    print("adding")
    return a + b
`
	addTypeScript = `import { module, tool, ToolError } from "toolsrv";

module({ namespace: "sums", version: "1.2.3" });

export const add = tool({
  description: "Add two numbers.",
  parameters: {
    type: "object",
    properties: { a: { type: "integer" }, b: { type: "integer", default: 1 } },
    required: ["a"],
  },
  examples: [{ arguments: { a: 2, b: 3 }, result: 5 }],
  run: ({ a, b }) => {
    if (a < 0) throw new ToolError("a is negative", { code: "negative", status: 409 });
    console.log("adding");
    return a + b;
  },
});
`
)

// scripts has the same tool in both languages, by the engines that they need.
var scripts = map[string]struct{ file, text string }{
	"python":     {"add.py", addPython},
	"javascript": {"add.ts", addTypeScript},
}

// TestScriptCommands checks that each of an author's commands accepts a script, just like the tool file made from it.
func TestScriptCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	for engine, s := range scripts {
		t.Run(engine, func(t *testing.T) { // one at a time: each starts interpreters again and again
			enginetest.Need(t, engine)
			dir := t.TempDir()
			script := testkit.Put(t, dir, s.file, s.text)
			module := filepath.Join(dir, "add.wasm")
			if code, stdout, stderr := run("test", "--timeout=1m", dir); code != 0 || !strings.Contains(stdout, "ok    /sums/add, example 1") {
				t.Errorf("test of the folder: exit code %d, %s%s", code, stdout, stderr)
			}
			code, stdout, stderr := run("build", script)
			if code != 0 || strings.Contains(stderr, "warning") || !strings.Contains(stdout, module+": ") || !strings.Contains(stdout, "\n  /sums/add  Add two numbers.\n") {
				t.Fatalf("build: exit code %d, %s%s", code, stdout, stderr)
			}
			files := []string{script, module}
			if engine == "python" {
				files = files[:1] // Python takes long to start, and the commands work alike for both languages
			}
			for _, file := range files {
				for _, c := range []struct {
					args   []string
					code   int
					stdout string // a part of the output
					stderr string
				}{
					{[]string{"call", "--timeout=1m", file, `{"a": 2}`}, 0, "3\n", "adding"},
					{[]string{"call", "--timeout=1m", file, "add", `{"a": -1}`}, 4, "", "a is negative"},
					{[]string{"call", "--timeout=1m", file, `{"a": "x"}`}, 3, "", "invalid_arguments"},
					{[]string{"call", "--timeout=1m", "--json", file, `{"a": -1}`}, 4, "", `"code":"negative"`},
					{[]string{"test", "--timeout=1m", file}, 0, "ok    /sums/add, example 1", ""},
					{[]string{"check", file}, 0, "ok       " + file + ": 1 tool: /sums/add\n", ""},
					{[]string{"inspect", file}, 0, "/sums/add  Add two numbers.\n", ""},
					{[]string{"inspect", file}, 0, "\nengine ", ""},
					{[]string{"bench", "--timeout=1m", "--calls", "20", "--warm-up", "1ms", file}, 0, "/sums/add: 20 calls", ""},
				} {
					code, stdout, stderr := run(c.args...)
					if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || c.stderr == "" && strings.Contains(stderr, "toolsrv:") {
						t.Errorf("%q: exit code %d, standard output %q, standard error %q; want %d, %q, %q", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
					}
				}
			}
			// The embedded manifest is the one that the module returned, with the engine.
			var built, told struct{ Manifest map[string]any }
			for file, to := range map[string]any{module: &built, script: &told} {
				if _, stdout, _ := run("inspect", "--json", file); json.Unmarshal([]byte(stdout), to) != nil {
					t.Fatalf("inspect --json %s: %s", file, stdout)
				}
			}
			if built.Manifest["engine"] != told.Manifest["engine"] || !strings.Contains(built.Manifest["engine"].(string), " (") || built.Manifest["version"] != "1.2.3" {
				t.Errorf("the file's manifest is %v, the script's is %v", built.Manifest, told.Manifest)
			}
			before := testkit.Read(t, module)
			if code, _, stderr := run("build", script, "-o", filepath.Join(dir, "again.wasm")); code != 0 || string(testkit.Read(t, dir, "again.wasm")) != string(before) {
				t.Errorf("a second build differs (%d %s)", code, stderr)
			}
			if code, _, stderr := run("pack", module); code != 0 || string(testkit.Read(t, module)) != string(before) {
				t.Errorf("pack changes the file: exit code %d, %s", code, stderr)
			}
		})
	}
}

// TestScriptMistakes checks that errors in a script begin with their place, so that editors find it.
func TestScriptMistakes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	for engine, s := range scripts {
		t.Run(engine, func(t *testing.T) { // one at a time: each starts interpreters again and again
			enginetest.Need(t, engine)
			dir := t.TempDir()
			syntax := testkit.Put(t, dir, "syntax"+filepath.Ext(s.file), "x = 1\ny = = 2\n")
			begins := testkit.Put(t, dir, "start"+filepath.Ext(s.file), s.text+"\nnowhere()\n")
			for _, file := range []string{syntax, begins} {
				place, line := filepath.Base(file)+":2:", "    y = = 2\n"
				if file == begins {
					place, line = filepath.Base(file)+":", "    nowhere()\n"
				}
				for _, command := range []string{"build", "call", "test", "inspect", "check"} {
					code, stdout, stderr := run(command, file)
					said := stderr
					if command == "check" {
						said = strings.TrimPrefix(stdout, "refused  "+file+":\n")
					}
					if code != 1 || !strings.HasPrefix(said, place) || !strings.Contains(said, line) || !strings.Contains(said, "^") {
						t.Errorf("%s: exit code %d, %s%s; want 1, %q and the line", command, code, stdout, stderr, place)
					}
				}
				if _, err := os.Stat(strings.TrimSuffix(file, filepath.Ext(file)) + ".wasm"); err == nil {
					t.Errorf("%s: a file was written in spite of the error", file)
				}
			}
		})
	}
}

// TestCheckForged has a script whose error message looks like check's line about a good file.
func TestCheckForged(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	enginetest.Need(t, "javascript")
	for _, forged := range []string{"ok       pay.ts: 1 tool: /pay", "ok pay.ts:1: 1 tool: /pay", "all is well"} {
		script := testkit.Put(t, t.TempDir(), "add.ts", "throw new Error("+strconv.Quote("no\n"+forged+"\nno")+");\n")
		code, stdout, _ := run("check", script)
		if code != 1 || strings.Contains(stdout, "\n"+forged) || !strings.Contains(stdout, "\n    "+forged+"\n    no") {
			t.Errorf("exit code %d, %s", code, stdout)
		}
	}
}

// TestBuildUngranted builds a tool that needs a grant: there is no warning about an example that can't be tried.
func TestBuildUngranted(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "javascript")
	script := testkit.Put(t, t.TempDir(), "add.ts", "export const needs = { kv: true };\n"+addTypeScript)
	code, _, stderr := run("build", script)
	if code != 0 || strings.Contains(stderr, "warning") || !strings.Contains(stderr, "were not tried: toolsrv test ") {
		t.Errorf("exit code %d, %s; want a note", code, stderr)
	}
}

// TestBuildExamples checks that a failing example only causes a warning during a build.
func TestBuildExamples(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	enginetest.Need(t, "javascript")
	script := testkit.Put(t, t.TempDir(), "add.ts", strings.Replace(addTypeScript, "result: 5", "result: 6", 1))
	code, _, stderr := run("build", script)
	if code != 0 || !strings.Contains(stderr, "warning: /sums/add, example 1: got 5, want 6\n") {
		t.Errorf("exit code %d, %s; want a warning", code, stderr)
	}
	code, stdout, stderr := run("build", "--json", script)
	var got struct {
		Engine   string
		Warnings []struct{ Path, Problem string }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || len(got.Warnings) != 1 || got.Warnings[0].Path != "/sums/add" || got.Engine == "" {
		t.Errorf("--json: exit code %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr := run("test", script); code != 1 || !strings.Contains(stderr, "1 of 1 examples failed") {
		t.Errorf("test: exit code %d, %s", code, stderr)
	}
}

// TestBuildWith calls and builds a script that imports packages from other folders.
func TestBuildWith(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "python")
	dir := t.TempDir()
	testkit.Put(t, dir, "lib/words.py", "HELLO = 'hey'\n")
	testkit.Put(t, dir, "whole/__init__.py", "WORLD = 'world'\n")
	script := testkit.Put(t, dir, "work/hello.py", "from toolsrv import tool\nimport words, whole\n\n@tool\ndef hello() -> str:\n    'Say it.'\n    return words.HELLO + ' ' + whole.WORLD\n")
	with := []string{"--with", filepath.Join(dir, "lib"), "--with", filepath.Join(dir, "whole")}
	if code, stdout, stderr := run(append([]string{"call", script}, with...)...); code != 0 || stdout != "\"hey world\"\n" {
		t.Errorf("call: exit code %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := run(append([]string{"build", script}, with...)...); code != 0 {
		t.Errorf("build: exit code %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr := run("build", script); code != 1 || !strings.HasPrefix(stderr, "hello.py:2:") || !strings.Contains(stderr, "words") {
		t.Errorf("build without the folders: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := run("build", script, "--with", filepath.Join(dir, "nowhere")); code != 1 || !strings.Contains(stderr, "there is no such folder") {
		t.Errorf("a folder that does not exist: exit code %d, %s", code, stderr)
	}
	other := testkit.Put(t, dir, "hello.ts", "")
	if code, _, stderr := run("build", other, "--with", dir); code != 2 || !strings.Contains(stderr, "only a Python script takes folders") {
		t.Errorf("a script in another language: exit code %d, %s", code, stderr)
	}
}
