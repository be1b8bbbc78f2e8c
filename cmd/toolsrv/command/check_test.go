package command_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// TestCheckRules checks that the command's help lists each rule of the code.
func TestCheckRules(t *testing.T) {
	t.Parallel()
	_, help, _ := run("check", "--help")
	rules := 0
	for _, file := range []string{"../../../internal/toolfile/lint.go", "../../../internal/modelapi/modelapi.go"} {
		for _, rule := range regexp.MustCompile(`(?m)^\trule[A-Z][A-Za-z]* += "([a-z-]+)"`).FindAllStringSubmatch(string(testkit.Read(t, file)), -1) {
			if rule[1] == "strict" {
				continue // of --models
			}
			if rules++; !strings.Contains(help, "\n  "+rule[1]+" ") {
				t.Errorf("toolsrv check --help does not list %s of %s", rule[1], file)
			}
		}
	}
	if rules < 12 {
		t.Errorf("found only %d rules", rules)
	}
}

func TestCheckFiles(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	dir := t.TempDir()
	guest := testkit.Fixture(t, "e2e/guest")
	file := func(name, namespace string, tools ...string) string {
		return testkit.Put(t, dir, name, sandboxtest.WithManifest(t, guest, manifestOf(namespace, tools...)))
	}
	one, two := file("one.wasm", "a/b", "echo", "refuse"), file("two.wasm", "a", "echo")
	lint := testkit.Put(t, dir, "lint.wasm", sandboxtest.WithManifest(t, guest, strings.NewReplacer(`"item":{"type":"string"}`, `"item":{"$ref":"#/$defs/i","title":"I"}`,
		`"required"`, `"$defs":{"i":{}},"required"`).Replace(manifestOf("lint", "echo"))))
	example := testkit.Put(t, dir, "example.wasm", sandboxtest.WithManifest(t, guest, strings.Replace(manifestOf("example", "echo"), `"parameters"`, `"examples":[{"arguments":{"item":1}}],"parameters"`, 1)))
	described := testkit.Put(t, dir, "described.wasm", testkit.Fixture(t, "catalog/described"))
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stdout []string
		stderr string
	}{
		{"well", []string{one, two}, 0, []string{"ok       " + one + ": 2 tools: /a/b/echo, /a/b/refuse\n", "ok       " + two + ": 1 tool: /a/echo\n"}, ""},
		{"described", []string{described}, 0, []string{"described.wasm: 1 tool: /told\n"}, ""},
		{"the same path", []string{one, file("other.wasm", "a/b", "refuse")}, 1, []string{"ok       " + one, "refused  " + dir + "/other.wasm: path /a/b/refuse is taken: " + one}, "a server would refuse 1 of 2 files"},
		{"the same operation id", []string{one, file("id.wasm", "a-b", "echo")}, 1, []string{`id.wasm: operation id "a-b-echo" is taken`}, "1 of 2"},
		{"a path of the service", []string{file("own.wasm", "admin", "echo")}, 1, []string{"own.wasm: path /admin/echo is reserved for the service"}, "1 of 1"},
		{"no manifest", []string{testkit.Put(t, dir, "bare.wasm", guest)}, 1, []string{"`toolsrv pack`"}, "1 of 1"},
		{"an import that is not offered", []string{testkit.Put(t, dir, "import.wasm", testkit.Fixture(t, "wat/refused/import_function"))}, 1, []string{"is not offered"}, "1 of 1"},
		{"code that does not compile", []string{testkit.Put(t, dir, "code.wasm", sandboxtest.WithManifest(t, broken(t), manifestOf("", "x")))}, 1, []string{"refused  "}, "1 of 1"},
		{"a description that never ends", []string{testkit.Put(t, dir, "spin.wasm", testkit.Fixture(t, "wat/hostile/describe_spin"))}, 1, []string{"run toolsrv_describe: "}, "1 of 1"},
		{"no such file", []string{dir + "/nowhere.wasm", one}, 1, []string{"refused  " + dir + "/nowhere.wasm: ", "ok       " + one}, "1 of 2"},
		{"warnings", []string{lint}, 0, []string{"ok       " + lint, "warning  " + lint + ": tool echo, parameters/properties/item: ", "(ref-sibling)\n"}, ""},
		{"an example that does not fit", []string{example}, 0, []string{"warning  " + example + ": tool echo, examples/0/arguments: an agent that copies it is refused: item: Input should be a valid string", "(example)\n"}, ""},
		{"strict", []string{lint, "--strict"}, 1, []string{"(ref-sibling)"}, "warnings: 1, and --strict allows none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"check"}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.stderr) || (stderr == "") != (c.stderr == "") {
				t.Errorf("exit code %d, standard error %q; want %d and %q", code, stderr, c.code, c.stderr)
			}
			for _, want := range c.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("standard output %q, want %q", stdout, want)
				}
			}
		})
	}
	code, stdout, _ := run("check", "--json", one, lint, dir+"/nowhere.wasm")
	var got struct {
		Files []struct {
			File, Reason string
			OK           bool
			Tools        []string
			Warnings     []struct{ Rule, Tool, Place, Message string }
		}
		Refused, Warnings int
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 1 || got.Refused != 1 || got.Warnings != 1 || len(got.Files) != 3 {
		t.Fatalf("--json: exit code %d, %v, %s", code, err, stdout)
	}
	if f := got.Files; !f[0].OK || len(f[0].Tools) != 2 || f[1].Warnings[0].Rule != "ref-sibling" || f[2].OK || f[2].Reason == "" {
		t.Errorf("--json: got %+v", f)
	}
}

// TestCheckModels checks that check says which model APIs accept each tool, and warns of tools that APIs refuse even outside strict mode.
func TestCheckModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	guest := testkit.Fixture(t, "e2e/guest")
	file := func(name, namespace, from, to string) string {
		return testkit.Put(t, dir, name, sandboxtest.WithManifest(t, guest, strings.NewReplacer(from, to).Replace(manifestOf(namespace, "echo"))))
	}
	plain := file("plain.wasm", "", "", "")
	list := file("list.wasm", "shop", `"item":{"type":"string"}`, `"item":{"type":"array"}`)
	digit := file("digit.wasm", "2d", "", "")
	blank := file("blank.wasm", "blank", `"item"`, `"the item"`)
	header := file("header.wasm", "header", `"item":{"type":"string"}`, `"item":{"type":"object","x-mcp-header":"Item"}`)
	listed := file("listed.wasm", "listed", `"parameters":{"type":"object",`, `"parameters":{"type":["object"],`)
	for _, c := range []struct {
		name string
		args []string
		want []string
		not  string
	}{
		{"plain", []string{plain}, []string{"ok       " + plain}, "models"},
		{"plain, asked", []string{"--models", "--strict", plain}, []string{
			"models   " + plain + ": tool echo: taken by openai, anthropic, gemini\n",
			"models   " + plain + ": tool echo: refused by openai-strict: parameters: every member must be in \"required\", but \"count\" is not: add it, with \"null\" among its types (and 1 more)\n",
			"models   " + plain + ": tool echo: refused by anthropic-strict: parameters/properties/count: it doesn't document the keyword minimum",
		}, "warning"},
		{"an array of anything", []string{list}, []string{"warning  " + list + ": tool echo, parameters/properties/item: refused by openai, openai-strict: an array without a schema for its elements", "(array-items)\n"}, "models"},
		{"a namespace that begins with a digit", []string{"--models", digit}, []string{
			"warning  " + digit + ": tool echo, name: refused by gemini: it begins with neither a letter nor _", "(tool-name)\n", "tool echo: taken by openai, anthropic\n",
		}, ""},
		{"a schema that MCP clients are not shown", []string{header}, []string{"warning  " + header + ": tool echo, parameters: MCP clients won't be asked to repeat a tool's arguments in headers: ", "(mcp)\n"}, "refused"},
		{"the schema that MCP shows rather than the written one", []string{"--models", listed}, []string{"(root-object)\n", "tool echo: taken by openai, anthropic, gemini\n"}, ""},
		{"a finding that the lint has as well", []string{blank}, []string{"(name)\n"}, "refused by"},
	} {
		code, stdout, stderr := run(append([]string{"check"}, c.args...)...)
		if code != 0 || stderr != "" || c.not != "" && strings.Contains(stdout, c.not) {
			t.Errorf("%s: exit code %d, standard error %q, standard output without %q: %s", c.name, code, stderr, c.not, stdout)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, stdout)
			}
		}
	}
	if _, stdout, _ := run("check", "--models", "--json", list); !strings.Contains(stdout, `"takers": [
            "anthropic",
            "gemini"
          ]`) || strings.Count(stdout, `"rule": "array-items"`) != 2 {
		t.Errorf("--models --json: %s", stdout)
	}
	if _, stdout, _ := run("check", "--json", list); strings.Contains(stdout, "takers") || strings.Count(stdout, `"rule": "array-items"`) != 1 {
		t.Errorf("--json: %s", stdout)
	}
}

// broken is a module with valid sections and invalid code.
func broken(t *testing.T) []byte {
	t.Helper()
	module := string(testkit.Fixture(t, "catalog/answer"))
	const body = "\x41\x00\x0b" // i32.const 0, end
	if strings.Count(module, body) != 2 {
		t.Fatal("the fixture has changed")
	}
	return []byte(strings.Replace(module, body, "\x01\x01\x0b", 1))
}

// TestCheckPins checks that a file whose digest differs from its pin is refused, and that useless pins are named.
func TestCheckPins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := release(t, "math", "add", "1")
	testkit.Put(t, dir, "tools/good.wasm", good)
	testkit.Put(t, dir, "tools/bad.wasm", release(t, "shop", "buy", "1"))
	pin := fmt.Sprintf("sha256 = \"%x\"\n", sha256.Sum256(good))
	config := testkit.Put(t, dir, "toolsrv.toml", "[[pin]]\nmatch = \"math\"\n"+pin+"[[pin]]\nmatch = \"shop/*\"\n"+pin+"[[pin]]\nmatch = \"bed.wasm\"\n"+pin)
	code, stdout, _ := run("check", "--config", config)
	for _, want := range []string{
		"ok       " + dir + "/tools/good.wasm: 1 tool: /math/add\n",
		"refused  " + dir + "/tools/bad.wasm: /shop/buy is pinned to ",
		`pin[2].match: no file has the name "bed.wasm": did you mean "bad.wasm"? (unmatched)`,
	} {
		if code != 1 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, stdout)
		}
	}
	if strings.Contains(stdout, "pin[0]") || strings.Contains(stdout, "pin[1]") {
		t.Errorf("got\n%s", stdout)
	}
}

func TestCheckConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	guest := testkit.Fixture(t, "e2e/guest")
	testkit.Put(t, dir, "tools/shop/a.wasm", sandboxtest.WithManifest(t, guest, manifestOf("", "echo")))
	testkit.Put(t, dir, "tools/b.wasm", sandboxtest.WithManifest(t, guest, manifestOf("shop", "echo")))
	testkit.Put(t, dir, "tools/c.wasm", testkit.Fixture(t, "catalog/described"))
	testkit.Put(t, dir, "tools/d.wasm", sandboxtest.WithManifest(t, guest, manifestOf("", "told"))) // its name comes later, but it has a manifest
	testkit.Put(t, dir, "tools/e f/g.wasm", sandboxtest.WithManifest(t, guest, manifestOf("", "echo")))
	testkit.Put(t, dir, "tools/.hidden.wasm", []byte("no module"))
	testkit.Put(t, dir, "tools/small.wasm", sandboxtest.WithManifest(t, guest, manifestOf("small", "echo")))
	config := testkit.Put(t, dir, "toolsrv.toml", []byte("[tools]\ndirectory = \"tools\"\n[[override]]\nmatch = \"small/*\"\nmemory = \"64KiB\"\n"))
	code, stdout, stderr := run("check", "--config", config)
	if code != 1 || !strings.Contains(stderr, "a server would refuse 4 of 6 files") || strings.Contains(stdout, "hidden") {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
	tools := filepath.Join(dir, "tools")
	for _, want := range []string{
		"ok       " + tools + "/b.wasm: 1 tool: /shop/echo\n",
		"refused  " + tools + "/shop/a.wasm: path /shop/echo is taken: " + tools + "/b.wasm and ",
		"ok       " + tools + "/d.wasm: 1 tool: /told\n",
		"refused  " + tools + "/c.wasm: path /told is taken: ",
		"refused  " + tools + "/e f/g.wasm: its folder is its namespace: ",
		"refused  " + tools + "/small.wasm: /small/echo needs 128 KiB of memory to start, but its limit is 64 KiB",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}

	settings := testkit.Put(t, dir, "settings.toml", []byte(`[tools]
directory = "tools"
disabled = ["shop", {tool = "small/ecco", reason = "x"}]
[[override]]
match = "small/echo" # of a file that is refused
memory = "64KiB"
[[override]]
match = "shop/*/*"
queue = 1
`))
	_, stdout, _ = run("check", "--config", settings)
	for _, want := range []string{
		"warning  " + settings + `: tools.disabled[1]: "small/ecco" matches no tool: did you mean "small/echo"? (unmatched)` + "\n",
		"warning  " + settings + `: override[1].match: "shop/*/*" matches no tool (unmatched)` + "\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if n := strings.Count(stdout, "(unmatched)"); n != 2 {
		t.Errorf("%d entries match nothing, want 2:\n%s", n, stdout)
	}
	if _, stdout, _ := run("check", "--config", settings, "--json"); !strings.Contains(stdout, `"key": "override[1].match"`) || !strings.Contains(stdout, `"warnings": 2`) {
		t.Errorf("--json: %s", stdout)
	}

	testkit.Put(t, dir, "tools/greet.py", []byte("from toolsrv import tool"))
	script := "warning  " + tools + "/greet.py: it is not served: set tools.scripts = true, or scripts in its [[source]], to serve scripts (unserved)\n"
	if code, stdout, _ := run("check", "--config", settings, "--strict"); code != 1 || !strings.Contains(stdout, script) {
		t.Errorf("a script that nobody serves: exit code %d, want 1 and %q in\n%s", code, script, stdout)
	}

	empty := testkit.Put(t, t.TempDir(), "empty.toml", "")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"nothing", nil, 2, "nothing to check"},
		{"an empty name", []string{""}, 2, "the name of a file is empty"},
		{"both", []string{config, "--config", config}, 2, "leave out --config, or the files"},
		{"packages for a configuration", []string{"--config", config, "--with", dir}, 2, "leave out --config, or --with"},
		{"no name", []string{"--config", ""}, 2, "it is empty"},
		{"no configuration", []string{"--config", dir + "/nowhere.toml"}, 1, "nowhere.toml"},
		{"no directory", []string{"--config", empty}, 1, "empty.toml: there is no tools directory " + filepath.Join(filepath.Dir(empty), "tools") + ": make it"},
		{"a configuration that is wrong", []string{"--config", testkit.Put(t, dir, "wrong.toml", []byte("[tool]\n"))}, 1, "wrong.toml:1"},
	} {
		if code, stdout, stderr := run(append([]string{"check"}, c.args...)...); code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d, standard output %q, standard error %q; want %d, nothing, and %q", c.name, code, stdout, stderr, c.code, c.says)
		}
	}
}

// TestCheckEscapes checks that no control characters from the names of files or of a schema's members are in the findings.
// Proves: Answers and logs show what is meant to be seen
func TestCheckEscapes(t *testing.T) {
	t.Parallel()
	const foreign = "a\u202eb\u009b31m\x1b"
	guest := testkit.Fixture(t, "e2e/guest")
	dir := t.TempDir()
	bad := testkit.Put(t, dir, foreign+".wasm", []byte("no module"))
	odd := testkit.Put(t, dir, foreign+"-odd.wasm", sandboxtest.WithManifest(t, guest, strings.ReplaceAll(manifestOf("odd", "echo"), `"item"`, `"it\u202eem\u009b"`)))
	for _, args := range [][]string{{"check", bad, odd}, {"check", "--json", bad, odd}} {
		_, stdout, stderr := run(args...)
		if text := stdout + stderr; strings.ContainsAny(text, "\u202e\u009b\x1b") || !strings.Contains(text, `a\u202eb\u009b31m\u001b-odd.wasm`) {
			t.Errorf("%s prints %q", args[:len(args)-2], text)
		}
	}
}
