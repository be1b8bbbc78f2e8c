package engines_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	bundler "github.com/toolsrv/toolsrv/internal/script/javascript"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// bundled writes files, given as names and contents in turn, bundles the first one, and loads the bundle.
func bundled(t testing.TB, files ...string) script {
	t.Helper()
	log := &testkit.Log{}
	need(t, "javascript")
	return bundledFor(t, sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: sandboxtest.CodeDir(), Logger: log.Logger(slog.LevelDebug)}), log, files...)
}

// bundledFor is bundled for a host, so that several scripts share the engine's code.
func bundledFor(t testing.TB, host *sandbox.Engine, log *testkit.Log, files ...string) script {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, filepath.FromSlash(files[i]))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	bundle, _, err := bundler.Collect(t.Context(), filepath.Join(dir, files[0]), bundler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	module, err := need(t, "javascript").Append(bundle)
	if err != nil {
		t.Fatal(err)
	}
	return script{sandboxtest.Load(t, host, module), log}
}

// with calls the script's tool with arguments.
func (s script) with(t testing.TB, tool int32, arguments string) (string, error) {
	t.Helper()
	output, err := s.program.Tool("test", tool, limits.Limits{Timeout: time.Minute, Memory: 512 << 20}).Call(t.Context(), sandbox.CallSpec{Input: []byte(arguments)})
	return string(output), err
}

const greeting = `import { tool, ToolError, log, module, progress, timeLeft } from "toolsrv";
import { louder } from "./lib/louder";
module({ namespace: "texts", version: "1.0" });
let calls: number = 0;

export const greet = tool({
  description: "Greets somebody.",
  parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  examples: [{ arguments: { name: "Ada" }, result: "Hello, Ada!" }],
  run({ name }: { name: string }): string {
    calls++;
    log.info("greeting", { name, calls });
    if (name === "") {
      throw new ToolError("Nobody is there.", { code: "nobody", status: 404, data: { calls } });
    }
    return louder(` + "`Hello, ${name}`" + `);
  },
});
export const later = tool({
  description: "Answers later.",
  run: async () => {
    await new Promise((done) => setTimeout(done, 5));
    progress(1, 2, "half");
    return { left: timeLeft() === Infinity ? "no end" : "some" };
  },
});
`

const louder = `interface Nothing {
  is: "erased";
}
export function louder(text: string): string {
  if (text.includes("nobody")) {
    throw new RangeError("too quiet");
  }
  return text + "!";
}
`

func TestBundle(t *testing.T) {
	t.Parallel()
	s := bundled(t, "hello.ts", greeting, "lib/louder.ts", louder)
	manifest, err := s.program.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"abi":1,"namespace":"texts","version":"1.0","sdk":"js/0.1.0","tools":[{"name":"greet","description":"Greets somebody.","parameters":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"result":{"type":"string"},"examples":[{"arguments":{"name":"Ada"},"result":"Hello, Ada!"}]},{"name":"later","description":"Answers later.","parameters":{"type":"object","properties":{},"additionalProperties":false}}]}`
	if string(manifest) != want {
		t.Errorf("got  %s\nwant %s", manifest, want)
	}
	for range 2 { // each call begins with the state after the start, in which the tool was already called once, for the example
		if got, err := s.with(t, 0, `{"name": "Ada"}`); err != nil || got != `"Hello, Ada!"` {
			t.Errorf("got %s, %v", got, err)
		}
		if text := s.log.String(); !strings.Contains(text, `greeting {\"name\":\"Ada\",\"calls\":2}`) {
			t.Errorf("the log: %s", text)
		}
	}
	_, err = s.with(t, 0, `{"name": ""}`)
	var failure *sandbox.Error
	if !errors.As(err, &failure) || failure.Message != "Nobody is there." || failure.Status != 404 || failure.Code != "nobody" || string(failure.Data) != `{"calls":2}` {
		t.Errorf("got %+v", err)
	}
	_, err = s.with(t, 0, `{"name": "nobody"}`)
	if !errors.As(err, &failure) || failure.Message != "RangeError: too quiet" || failure.Status != 500 {
		t.Errorf("got %+v", err)
	}
	if text := s.log.String(); !strings.Contains(text, `RangeError: too quiet\n    at louder (lib/louder.ts:6:15)\n    at run (hello.ts:16:29)`) {
		t.Errorf("the log: %s", text)
	}
	got, err := s.with(t, 1, `{}`)
	var result struct{ Left string }
	if err != nil || json.Unmarshal([]byte(got), &result) != nil || result.Left != "some" {
		t.Errorf("got %s, %v", got, err)
	}
}

// If a script has no other tools, a function with a comment is a tool.
func TestBundleOfFunctions(t *testing.T) {
	t.Parallel()
	s := bundled(t, "hello.ts", "/** Repeats a text.\n * @param text What to repeat.\n */\n"+
		"export function repeat(text: string, times = 2): string {\n  return text.repeat(times);\n}\n\n"+
		"/** Adds two numbers. */\nexport default async function add({ a, b = 1 }: { a: number; b?: number }) { return a + b; }\n")
	manifest, err := s.program.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"abi":1,"sdk":"js/0.1.0","tools":[{"name":"repeat","description":"Repeats a text.","parameters":{"type":"object","properties":{"text":{"type":"string","description":"What to repeat."},"times":{"type":"number","default":2}},"required":["text"],"additionalProperties":false},"result":{"type":"string"}},` +
		`{"name":"add","description":"Adds two numbers.","parameters":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number","default":1}},"required":["a"],"additionalProperties":false}}]}`
	if string(manifest) != want {
		t.Errorf("got  %s\nwant %s", manifest, want)
	}
	if got, err := s.with(t, 0, `{"text": "a", "times": 3}`); err != nil || got != `"aaa"` {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := s.with(t, 1, `{"a": 1, "b": 3}`); err != nil || got != `4` {
		t.Errorf("got %s, %v", got, err)
	}
}

// Errors in a script are found when it is built. They show the place, the line of the source, and what to do.
func TestBundleErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{"thrown at the top", []string{"a.ts", "import { f } from './b';\nf();\n", "b.ts", "\nexport function f(): void {\n\tconst x: any = null;\n\tx.y;\n}\n"},
			"b.ts:4:4: TypeError: cannot read property 'y' of null\n    \tx.y;\n    \t  ^"},
		{"rejected at the top", []string{"a.js", "await null;\nthrow new Error('late');\nexport {};"},
			"a.js:2:11: Error: late\n    throw new Error('late');\n              ^"},
		{"a wrong definition", []string{"a.ts", "import { tool } from 'toolsrv';\nexport const a = tool({\n  description: 'A.',\n  execute: () => 1,\n} as any);"},
			"a.ts:2:18: tool: it has no member \"execute\": did you mean run?\n    export const a = tool({\n                     ^"},
		{"no tool", []string{"a.ts", "export const a = 1;"},
			"a.ts: the script exports no tool: write export const NAME = tool({ description: \"…\", run: (args) => … }), or a comment /** … */ above an exported function"},
		{"no description", []string{"a.ts", "import { tool } from 'toolsrv';\n\nexport const a = tool({ run: () => 1 });"},
			"a.ts:3:14: tool \"a\" has no description: say what it does and when to use it\n    export const a = tool({ run: () => 1 });\n                 ^"},
		{"a type that JSON doesn't have", []string{"a.ts", "/** Says which day it is. */\nexport function day(at: Date): number { return at.getDay(); }"},
			"a.ts:2:17: the parameter at: neither JSON nor this file has a type Date: state a schema instead, as in tool({ parameters: … })\n    export function day(at: Date): number { return at.getDay(); }\n                    ^"},
		{"no promise comes", []string{"a.ts", "await new Promise(() => {});"},
			"a.ts: TypeError: the script awaits a promise that nothing settles"},
	}
	need(t, "javascript")
	host := sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: sandboxtest.CodeDir()})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := bundledFor(t, host, nil, test.files...).program.Describe(t.Context())
			var failure *sandbox.Error
			if !errors.As(err, &failure) || !strings.HasPrefix(failure.Message, test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}
