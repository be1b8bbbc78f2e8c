package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
)

const (
	pythonTool = `from toolsrv import tool
import _words

@tool
def shout(text: str) -> str:
    """Shout."""
    return _words.LOUD + text.upper()
`
	typescriptTool = `import { tool } from "toolsrv";
import { half } from "./lib/_half.ts";

export const halve = tool({
  description: "Halve a number.",
  parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
  run: ({ n }) => half(n),
});
`
)

// scripted starts a service of scripts.
func scripted(t *testing.T, files map[string]string) (s *service, tools string) {
	t.Helper()
	enginetest.Need(t, "python", "javascript")
	content := map[string][]byte{}
	for name, text := range files {
		content[name] = []byte(text)
	}
	dir := site(t, "[tools]\nscripts = true\n", content)
	return start(t, dir), filepath.Join(dir, "tools")
}

// TestScripts changes scripts and their imports while a service runs.
func TestScripts(t *testing.T) {
	t.Parallel()
	s, tools := scripted(t, map[string]string{
		"texts/shout.py": pythonTool, "texts/_words.py": "LOUD = '! '\n", "texts/test_shout.py": "import pytest\n",
		"halve.ts": typescriptTool, "lib/_half.ts": "export const half = (n: number) => n / 2;\n", "halve.test.ts": "import 'node:test';\n",
		"texts/none.py": "x = 1\n",
	})
	answers := func(path, body, want string) func() bool {
		return func() bool { return s.post(path, body).body == want }
	}
	s.eventually("both answer", func() bool {
		return answers("/texts/shout", `{"text": "hey"}`, `"! HEY"`)() && answers("/halve", `{"n": 5}`, "2.5")()
	})
	var list []struct{ Path string }
	if err := json.Unmarshal([]byte(s.get("/tools").body), &list); err != nil || len(list) != 2 {
		t.Errorf("/tools has %d tools, %v: %s", len(list), err, s.get("/tools").body)
	}
	s.waitLine("the refusal of the script without a tool", func(line map[string]any) bool {
		return refusal("none.py")(line) && strings.Contains(fmt.Sprint(line["reason"]), "@tool")
	})
	if got := s.post("/texts/shout", `{"text": 1}`); got.status != http.StatusUnprocessableEntity {
		t.Errorf("arguments that don't fit: %d %s", got.status, got.body)
	}

	put(t, filepath.Join(tools, "texts", "_words.py"), []byte("LOUD = '!! '\n"))
	s.eventually("a changed module is noticed", answers("/texts/shout", `{"text": "hey"}`, `"!! HEY"`))
	put(t, filepath.Join(tools, "lib", "_half.ts"), []byte("export const half = (n: number) => n / 2 + 1;\n"))
	s.eventually("a changed file is noticed", answers("/halve", `{"n": 5}`, "3.5"))

	// A mistake is reported, and the previous version stays in service.
	put(t, filepath.Join(tools, "texts", "shout.py"), []byte(strings.Replace(pythonTool, "text.upper()", "text.upper(", 1)))
	s.waitLine("the place of the mistake", func(line map[string]any) bool {
		return refusal("shout.py")(line) && strings.HasPrefix(fmt.Sprint(line["reason"]), "shout.py:7:")
	})
	put(t, filepath.Join(tools, "halve.ts"), []byte(strings.Replace(typescriptTool, "lib/_half", "lib/_missing", 1)))
	s.waitLine("what is missing", func(line map[string]any) bool {
		return refusal("halve.ts")(line) && strings.Contains(fmt.Sprint(line["reason"]), "lib/_missing")
	})
	if got := s.post("/texts/shout", `{"text": "hey"}`); got.body != `"!! HEY"` {
		t.Errorf("after a mistake: %d %s", got.status, got.body)
	}
	put(t, filepath.Join(tools, "lib", "_missing.ts"), []byte("export const half = (n: number) => -n;\n"))
	s.eventually("a missing file is added", answers("/halve", `{"n": 5}`, "-5"))
	if err := os.Remove(filepath.Join(tools, "halve.ts")); err != nil {
		t.Fatal(err)
	}
	s.eventually("a script goes", func() bool { return s.post("/halve", `{"n": 5}`).status == http.StatusNotFound })
}

// TestScriptsHostile has scripts that try to read files outside the directory, or to stop the service. The service refuses them and serves the
// others.
// Proves: Files of others are not trusted
func TestScriptsHostile(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "python", "javascript")
	if testing.Short() {
		t.Skip("endless scripts run into their limits: not with -short")
	}
	dir := site(t, "[tools]\nscripts = true\ndescribe_fuel = 4_000_000_000\n", nil) // CPython takes more than half of this to start
	tools := filepath.Join(dir, "tools")
	const secret = "t0p-s3cret"
	put(t, filepath.Join(dir, "secret.ts"), []byte(`export const s = "`+secret+`";`))
	put(t, filepath.Join(dir, "secret.py"), []byte(`S = "`+secret+`"`))
	run := ";\nimport { tool } from \"toolsrv\";\nexport const t = tool({ description: \"x\", parameters: { type: \"object\" }, run: () => s });\n"
	var hostile []string
	for name, text := range map[string]string{
		"up.ts":        `import { s } from "../secret.ts"` + run,
		"absolute.ts":  `import { s } from "` + filepath.Join(dir, "secret.ts") + `"` + run,
		"linked.ts":    `import { s } from "./_link.ts"` + run,
		"linked.py":    "import _link\nraise ValueError(_link.S)\n",
		"package.ts":   `import { s } from "evil"` + run,
		"node.ts":      `import fs from "node:fs"; const s = fs` + run,
		"address.ts":   `import { s } from "https://example.com/x.js"` + run,
		"pipe.ts":      `import { s } from "./_pipe.ts"` + run,
		"power.ts":     "x=2" + strings.Repeat("**2", 500_000),
		"brackets.py":  strings.Repeat("(", 100_000),
		"endless.py":   "while True: pass\n",
		"endless.ts":   "for (;;);\n",
		"bomb.py":      "x = []\nwhile True: x.append(bytes(1 << 20))\n",
		"exits.py":     "import os\nos._exit(0)\n",
		"recursion.py": "def f(): f()\nf()\n",
		"recursion.ts": "const f = () => { f(); }; f();\n",
		"binary.py":    "\x00\xff\xfe",
		"empty.ts":     "",
	} {
		hostile = append(hostile, name)
		put(t, filepath.Join(tools, name), []byte(text))
	}
	put(t, filepath.Join(tools, "node_modules/evil/package.json"), []byte(`{"name": "evil", "main": "../../../secret.ts", "exports": "./../../../secret.ts"}`))
	put(t, filepath.Join(tools, "good.py"), []byte("from toolsrv import tool\n@tool\ndef good() -> int:\n    'x'\n    return 1\n"))
	for link, to := range map[string]string{"_link.ts": "../secret.ts", "_link.py": "../secret.py", "outside.py": "../secret.py", "passwd.ts": "/etc/passwd"} {
		if err := os.Symlink(to, filepath.Join(tools, link)); err != nil {
			t.Skip(err)
		}
	}
	hostile = append(hostile, "outside.py", "passwd.ts")
	makePipe(t, filepath.Join(tools, "_pipe.ts"))
	s := start(t, dir)
	s.eventually("the good script answers", func() bool { return s.post("/good", "{}").body == "1" })
	for len(hostile) > 0 {
		s.waitLine("refusals of "+strings.Join(hostile, ", "), func(line map[string]any) bool {
			hostile = slices.DeleteFunc(hostile, func(name string) bool { return refusal(name)(line) })
			return len(hostile) == 0
		})
	}
	if got := s.post("/good", "{}"); got.body != "1" {
		t.Errorf("after all hostile scripts, the good one answers %d %s", got.status, got.body)
	}
	for _, endless := range []string{"endless.py", "endless.ts"} {
		if place := "; it was at " + endless + ":1."; !strings.Contains(strings.Join(s.log.all(), "\n"), place) {
			t.Errorf("the log does not say %q", place)
		}
	}
	for _, line := range s.log.all() {
		if strings.Contains(line, secret) || strings.Contains(line, "root:x:") || strings.Contains(line, "panic") {
			t.Errorf("the log has %.300s", line)
		}
	}
}
