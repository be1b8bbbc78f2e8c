package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

const order = `{"item":"tea","count":2}`

// TestCallOutcomes tries every way in which a call can end, with its exit code.
func TestCallOutcomes(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	file := shop(t)
	config := testkit.Put(t, t.TempDir(), "toolsrv.toml", []byte(`
[[override]]
match = "shop/spin"
timeout = "50ms"
[[override]]
match = "shop/trap"
fuel = 1
[[override]]
match = "shop/echo"
input = "30B"
`))
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stdout string // whole
		stderr []string
	}{
		{"done", []string{"echo", order}, 0, order + "\n", nil},
		{"by its path", []string{"/shop/echo", order}, 0, order + "\n", nil},
		{"by its path without the first slash", []string{"shop/echo", order}, 0, order + "\n", nil},
		{"a default", []string{"echo", `{"item":"tea"}`}, 0, `{"item":"tea","count":1}` + "\n", nil},
		{"tool_error with its parts", []string{"refuse", order}, 4, "",
			[]string{"toolsrv: tool_error: Only 2 are left.\n", "code: out_of_stock\n", "status: 409\n", `data: {"left":2}`}},
		{"tool_error", []string{"reject", order}, 4, "", []string{"No such city."}},
		{"tool_trapped", []string{"trap", order}, 5, "", []string{"tool_trapped: The tool broke: unreachable.", "wasm stack trace"}},
		{"tool_bad_output", []string{"garble", order}, 6, "", []string{"tool_bad_output: "}},
		{"no output", []string{"silent", order}, 6, "", []string{"tool_bad_output: "}},
		{"tool_timeout", []string{"spin", order, "--timeout", "20ms"}, 7, "", []string{"limit of 20ms"}},
		{"tool_timeout by the configuration", []string{"spin", order, "--config", config}, 7, "", []string{"limit of 50ms"}},
		{"flags win over the configuration", []string{"spin", order, "--config", config, "--timeout", "30ms"}, 7, "", []string{"limit of 30ms"}},
		{"tool_fuel", []string{"trap", order, "--config", config}, 8, "", []string{"tool_fuel: "}},
		{"tool_memory", []string{"grow", order, "--memory", "1MiB"}, 9, "", []string{"limit of 1 MiB"}},
		{"too little memory to start", []string{"echo", order, "--memory", "64KiB"}, 9, "", []string{"limit is 64 KiB"}},
		{"tool_stack", []string{"recurse", order}, 10, "", []string{"tool_stack: "}},
		{"input_too_large", []string{"echo", `{"item":"a very long name indeed"}`, "--config", config}, 11, "", []string{"larger than 30 bytes"}},
		{"invalid_arguments", []string{"echo", `{"count":0,"x":1}`}, 3, "",
			[]string{"toolsrv: invalid_arguments: ", "  item: Field required\n", "  count: Input should be greater than or equal to 1 (got 0)\n", "  x: Extra inputs"}},
		{"no JSON", []string{"echo", `{"item"`}, 3, "", []string{"toolsrv: invalid_arguments: the body is not valid JSON\n", "  at byte 7: JSON decode error: ", "  what to do: write the arguments as one JSON object, such as '{\"item\":"}},
		{"no JSON at all", []string{"echo", "item=pen"}, 3, "", []string{"  what to do: write the arguments as one JSON object, such as '{\"item\":"}},
		{"a misspelt member", []string{"echo", `{"itme":"tea"}`}, 3, "", []string{"  itme: Extra inputs are not permitted: did you mean 'item'? (got \"tea\")\n"}},
		{"no object", []string{"echo", `["item"]`}, 3, "", []string{"(all): "}},
		{"no arguments", []string{"echo"}, 3, "", []string{"item: Field required"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"call", file}, c.args...)...)
			if code != c.code || stdout != c.stdout || (len(c.stderr) == 0) != (stderr == "") {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d and %q", code, stdout, stderr, c.code, c.stdout)
			}
			for _, says := range c.stderr {
				if !strings.Contains(stderr, says) {
					t.Errorf("standard error %q, want %q", stderr, says)
				}
			}
		})
	}
}

func TestCallInput(t *testing.T) {
	t.Parallel()
	file := shop(t)
	if code, stdout, stderr := runWith(order, "call", file, "echo", "-"); code != 0 || stdout != order+"\n" {
		t.Errorf("exit code %d, standard output %q, standard error %q; want 0 and what was on standard input", code, stdout, stderr)
	}
	if code, _, stderr := runWith(`{"item":"`+strings.Repeat("x", 2<<20), "call", file, "echo", "-"); code != 11 {
		t.Errorf("2 MiB on standard input: exit code %d, standard error %q; want 11", code, stderr)
	}
	single := testkit.Put(t, t.TempDir(), "single.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), manifestOf("", "echo")))
	for _, args := range [][]string{{order}, {"-"}, {"echo", order}, {"/echo", "-"}} {
		if code, stdout, stderr := runWith(order, append([]string{"call", single}, args...)...); code != 0 || stdout != order+"\n" {
			t.Errorf("%q: exit code %d, standard output %q, standard error %q; want 0 and the order", args, code, stdout, stderr)
		}
	}
}

// TestCallJSON checks that standard error has one object, the server's error, and nothing else.
func TestCallJSON(t *testing.T) {
	t.Parallel()
	file := shop(t)
	for _, c := range []struct{ tool, body, want string }{
		{"refuse", order, `{"detail":"Only 2 are left.","code":"tool_error","error":{"code":"out_of_stock","data":{"left":2}}}`},
		{"echo", `{}`, `{"detail":[{"type":"missing","loc":["body","item"],"msg":"Field required","input":{}}],"code":"invalid_arguments"}`},
		{"trap", order, `{"detail":"The tool broke: unreachable.","code":"tool_trapped"}`},
	} {
		if code, stdout, stderr := run("call", "--json", file, c.tool, c.body); code < 3 || stdout != "" || stderr != c.want+"\n" {
			t.Errorf("%s: exit code %d, standard output %q, standard error %q; want %s", c.tool, code, stdout, stderr, c.want)
		}
	}
}

func TestCallLog(t *testing.T) {
	t.Parallel()
	file := shop(t)
	for _, c := range []struct {
		name string
		args []string
		logs bool
	}{
		{"text", nil, true},
		{"JSON", []string{"--json"}, false},
		{"JSON with a level", []string{"--json", "--log-level", "info"}, true},
		{"a level above", []string{"--log-level", "warn"}, false},
	} {
		t.Run(c.name, func(t *testing.T) { // in parallel, because the tool waits for seconds
			t.Parallel()
			code, stdout, stderr := run(append([]string{"call", file, "wait", order, "--timeout", "1m"}, c.args...)...)
			if code != 0 || stdout != "\"waited\"\n" || strings.Contains(stderr, `"msg":"waiting"`) != c.logs || (stderr == "") == c.logs {
				t.Errorf("exit code %d, standard output %q, standard error %q; want the result, and a log line: %v", code, stdout, stderr, c.logs)
			}
		})
	}
}

func TestCallTime(t *testing.T) {
	t.Parallel()
	file := shop(t)
	code, stdout, stderr := run("call", "--time", file, "echo", order)
	if code != 0 || stdout != order+"\n" {
		t.Errorf("exit code %d, standard output %q", code, stdout)
	}
	for _, phase := range []string{"load ", "compile ", "ready ", "call ", "reset ", "reset the instance"} {
		if !strings.Contains(stderr, phase) {
			t.Errorf("no %q in %q", phase, stderr)
		}
	}
	if _, _, stderr = run("call", "--time", file, "trap", order); !strings.Contains(stderr, "not reset: the instance was closed") {
		t.Errorf("got %q for a tool that broke", stderr)
	}
	_, _, stderr = run("call", "--time", "--json", file, "echo", order)
	var times struct{ Microseconds map[string]float64 }
	if err := json.Unmarshal([]byte(stderr), &times); err != nil || len(times.Microseconds) != 5 || times.Microseconds["load"] <= 0 {
		t.Errorf("--json: got %q, %v", stderr, err)
	}
}

func TestCallRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := shop(t)
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"nothing", nil, 2, "FILE is missing"},
		{"an address", []string{"https://tools.example.com/calc"}, 2, "FILE is an address: toolsrv call takes a file"},
		{"no such tool", []string{file, "ehco", order}, 2, `has no tool "ehco": it has echo, refuse`},
		{"several tools, and none is named", []string{file}, 2, "has several tools: name one of them (echo, "},
		{"an empty tool", []string{file, "", order}, 2, "TOOL is empty"},
		{"JSON in pieces", []string{file, "echo", `{"item":`, `"tea"}`}, 2, `unexpected argument "\"tea\"}"`},
		{"two words of JSON without a tool", []string{file, `{"item":`, `"tea"}`}, 2, "quote the JSON"},
		{"no time", []string{file, "echo", order, "--timeout", "5"}, 2, `"5" is not a time`},
		{"not a size", []string{file, "echo", order, "--memory", "much"}, 2, "not a size"},
		{"too small", []string{file, "echo", order, "--memory", "1B"}, 2, "out of range"},
		{"no such file", []string{dir + "/nowhere.wasm", "echo"}, 1, "nowhere.wasm: no such file"},
		{"a folder", []string{dir, "echo"}, 1, "is a folder: name a .wasm file in it"},
		{"no module", []string{testkit.Put(t, dir, "elf.wasm", []byte("\x7fELF")), "echo"}, 1, "elf.wasm: wasm: offset 0x0: this is not a WebAssembly module"},
		{"an empty file", []string{testkit.Put(t, dir, "empty.wasm", ""), "echo"}, 1, "this is not a WebAssembly module"},
		{"no manifest", []string{testkit.Put(t, dir, "bare.wasm", testkit.Fixture(t, "e2e/guest")), "echo"}, 1, "`toolsrv pack`"},
		{"no configuration", []string{file, "echo", order, "--config", dir + "/nowhere.toml"}, 1, "nowhere.toml"},
		{"a configuration without a name", []string{file, "echo", order, "--config", ""}, 2, "it is empty: name a file"},
		{"a name with an escape sequence", []string{testkit.Put(t, dir, "odd.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "e2e/guest"), `{"abi":1,"\u001b[31m":1}`)), "echo"}, 1, "unknown member"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(append([]string{"call"}, c.args...)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) || strings.Contains(stderr, "\x1b") {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d, nothing, and %q", code, stdout, stderr, c.code, c.says)
			}
		})
	}
}

// TestCallOtherPrograms calls programs that are not a reactor with a manifest: one that describes itself, and a plain WASI program.
func TestCallOtherPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	described := testkit.Put(t, dir, "described.wasm", testkit.Fixture(t, "catalog/described"))
	if code, stdout, stderr := run("call", described); code != 0 || stdout != "\"v0000\"\n" {
		t.Errorf("described: exit code %d, standard output %q, standard error %q", code, stdout, stderr)
	}
	plain := testkit.Put(t, dir, "plain.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/command"), manifestOf("", "plain")))
	if code, stdout, stderr := run("call", plain, order); code != 0 || stdout == "" {
		t.Errorf("plain: exit code %d, standard output %q, standard error %q", code, stdout, stderr)
	}
}

// TestCallCompletes completes a tool's name from the manifest.
func TestCallCompletes(t *testing.T) {
	t.Parallel()
	file := shop(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"call", file, ""}, "echo\tDoes echo.\n"},
		{[]string{"bench", file, "re"}, "refuse\tDoes refuse.\nreject\tDoes reject.\nrecurse\t"},
		{[]string{"call", ""}, "py\njs\nmjs\nts\nmts\nwasm\n:8\n"}, // filter by extension
		{[]string{"call", file + "/nowhere", ""}, ":4\n"},
		{[]string{"call", file, "echo", ""}, ":4\n"},
	} {
		_, stdout, _ := run(append([]string{"__complete"}, c.args...)...)
		if !strings.HasPrefix(stdout, c.want) {
			t.Errorf("%q: got %q, want %q", c.args, stdout, c.want)
		}
	}
}

// TestCallProgress checks that progress is only printed on request, since standard error is not a terminal.
func TestCallProgress(t *testing.T) {
	t.Parallel()
	file := testkit.Put(t, t.TempDir(), "reports.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/hostile/progress"),
		manifestOf("reports", "flood", "senseless", "wild", "long", "sleep", "spin", "trap", "burst")))
	const object = `{"progress":{"done":1,"message":"step","total":10}}` + "\n"
	for _, test := range []struct{ flags, want string }{
		{"", ""},
		{"--progress=false", ""},
		{"--json", ""},
		{"--progress", "progress: 10 %, 1 of 10: step\nprogress: 20 %, 2 of 10: step\nprogress: 30 %, 3 of 10: step\nprogress: 40 %, 4 of 10: step\n"},
		{"--json --progress", object},
	} {
		code, stdout, stderr := run(append([]string{"call", file, "burst", order}, strings.Fields(test.flags)...)...)
		if code != 0 || stdout != "0\n" || !strings.HasPrefix(stderr, test.want) || test.want == "" && stderr != "" {
			t.Errorf("%q: exit code %d, standard output %q, standard error %q; want %q", test.flags, code, stdout, stderr, test.want)
		}
	}
}
