package examples_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// buildPlain builds examples/plain-go like any Go program, embeds its manifest, and puts it beside the examples/plain-c module in git (make
// example-c-check compares that module with its source).
func buildPlain(t *testing.T, tools string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plain.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s", "-o", file, "./plain-go")
	cmd.Dir = "../../examples"
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build ./plain-go: %v\n%s", err, out)
	}
	module, manifest := testkit.Read(t, file), testkit.Read(t, "../../examples/plain-go/tool.json")
	module, err := wasmbin.SetCustom(module, "toolsrv.manifest", manifest)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"plain-go": module, "plain-c": testkit.Read(t, "../../examples/plain-c/plain-c.wasm")} {
		if err := os.WriteFile(filepath.Join(tools, name+".wasm"), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// checkPlain calls the plain programs with mistakes that users make.
func checkPlain(t *testing.T, table *wasmtools.RouteTable) {
	for _, test := range []struct{ name, path, arguments, want string }{
		{"alone", "/net/cidr", `{"network": "10.1.2.3"}`, `"hosts":"1"`},
		{"netmask", "/net/cidr", `{"network": "10.1.2.3 255.254.0.0"}`, `"network":"10.0.0.0/15"`},
		{"everything", "/net/cidr", `{"network": "0.0.0.0/0"}`, `"netmask":"0.0.0.0","first":"0.0.0.0","last":"255.255.255.255","addresses":"4294967296"`},
		{"everything of IPv6", "/net/cidr", `{"network": "::/0"}`, `"addresses":"340282366920938463463374607431768211456"`},
		{"the last addresses", "/net/cidr", `{"network": "255.255.255.254/31", "split": 32}`, `"split":["255.255.255.254/32","255.255.255.255/32"]`},
		{"split into itself", "/net/cidr", `{"network": "10.0.0.0/8", "split": 8}`, `"split":["10.0.0.0/8"]`},
		{"no network", "/net/cidr", `{"network": "10.0.0"}`, `!"10.0.0" is not a valid network: write it as`},
		{"odd netmask", "/net/cidr", `{"network": "10.0.0.0/255.0.255.0"}`, `!is not a valid netmask`},
		{"prefix too long", "/net/cidr", `{"network": "10.0.0.0/33"}`, `!is not a valid network`},
		{"no address", "/net/cidr", `{"network": "10.0.0.0/8", "contains": ["10.0.0.1", "home"]}`, `!contains[1]: "home" is not a valid IP address`},
		{"split into larger ones", "/net/cidr", `{"network": "10.0.0.0/8", "split": 7}`, `!split: /7 is larger`},
		{"split into too many", "/net/cidr", `{"network": "::/0", "split": 128}`, `!split in several steps`},
		{"split beyond", "/net/cidr", `{"network": "10.0.0.0/8", "split": 64}`, `!/64 is longer than an address has bits`},
		{"same", "/fuzzy/distance", `{"a": "same", "b": "same"}`, `{"distance":0,"similarity":1}`},
		{"nothing alike", "/fuzzy/distance", `{"a": "abc", "b": ""}`, `{"distance":3,"similarity":0}`},
		{"escapes", "/fuzzy/distance", `{"b": "\ud83d\ude00\u00e4\n\"", "a": "😀ä\n\""}`, `{"distance":0,"similarity":1}`},
		{"long", "/fuzzy/distance", `{"a": "` + strings.Repeat("😀", 10000) + `", "b": "` + strings.Repeat(`\ud83d\ude01`, 10000) + `"}`, `{"distance":10000,"similarity":0}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := call(t, table, test.path, test.arguments)
			if want, fails := strings.CutPrefix(test.want, "!"); fails {
				if err == nil || err.Code != wasmtools.CodeToolError || !strings.Contains(err.Message, want) {
					t.Errorf("got %.200s, %v, want a tool error with %q", got, err, want)
				}
			} else if err != nil || !strings.Contains(got, want) {
				t.Errorf("got %.200s, %v, want %q in it", got, err, want)
			}
		})
	}
}

// TestPlainCParser gives the C program input that no schema would accept: each input is refused with a message, and none breaks the
// program.
func TestPlainCParser(t *testing.T) {
	t.Parallel()
	engine := sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: sandboxtest.CodeDir()})
	program, err := engine.Load(testkit.Read(t, "../../examples/plain-c/plain-c.wasm"), engine.Modules()...)
	if err != nil {
		t.Fatal(err)
	}
	tool := program.Tool("distance", 0, limits.Limits{})
	for _, test := range []struct{ name, input, want string }{
		{"nothing", ``, "no JSON object"},
		{"list", `[]`, "no JSON object"},
		{"no members", `{}`, "missing"},
		{"one member", `{"a": ""}`, "missing"},
		{"twice", `{"a": "", "a": ""}`, "each once"},
		{"another member", `{"a": "", "b": "", "c": ""}`, "each once"},
		{"a long name", `{"` + strings.Repeat("a", 100) + `": ""}`, "too long"},
		{"number", `{"a": 1, "b": ""}`, "no JSON object"},
		{"more", `{"a": "", "b": ""} x`, "more behind"},
		{"comma", `{"a": "", "b": "",}`, "no JSON object"},
		{"not closed", `{"a": "x`, "not closed"},
		{"ends in an escape", `{"a": "\`, "within an escape"},
		{"ends in digits", `{"a": "\u12`, "within an escape"},
		{"no digits", `{"a": "\u12g4"}`, "hexadecimal"},
		{"unknown escape", `{"a": "\x"}`, "unknown escape"},
		{"half a pair", `{"a": "\ud83d"}`, "surrogate"},
		{"the second half", `{"a": "\ude00\ud83d"}`, "surrogate"},
		{"the first half of a pair, twice", `{"a": "\ud83d\ud83d"}`, "surrogate"},
		{"control character", "{\"a\": \"\n\"}", "control character"},
		{"cut UTF-8", "{\"a\": \"\xf0\x9f\"}", "UTF-8"},
		{"cut UTF-8 at the end", "{\"a\": \"\xf0\x9f", "UTF-8"},
		{"overlong UTF-8", "{\"a\": \"\xe0\x80\x80\"}", "UTF-8"},
		{"surrogate in UTF-8", "{\"a\": \"\xed\xa0\x80\"}", "UTF-8"},
		{"beyond Unicode", "{\"a\": \"\xf4\x90\x80\x80\"}", "UTF-8"},
		{"a text that is too long", `{"a": "` + strings.Repeat("x", 10001) + `"}`, "10000 characters"},
		{"too long", strings.Repeat(" ", 600_000), "512 KiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(test.input)})
			var failed *sandbox.Error
			if !errors.As(err, &failed) || failed.Outcome != sandbox.ToolError || !strings.Contains(failed.Message, test.want) {
				t.Errorf("got %s, %v, want a tool error with %q", got, err, test.want)
			}
		})
	}
}
