package javascript_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/script/javascript"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		files  []string // the script is a.ts
		author string   // the error's beginning
		served string   // the confined error, if it differs
	}{
		{"syntax", []string{"a.ts", "const ä = 1;\n\tlet x = = 2;"},
			"a.ts:2:10: Unexpected \"=\"\n    \tlet x = = 2;\n    \t        ^", ""},
		{"a file that is missing", []string{"a.ts", `import "./b.js";`},
			"a.ts:1:8: there is no file \"./b.js\"\n    import \"./b.js\";\n           ^", ""},
		{"a package that is missing", []string{"a.ts", `import { z } from "zod"; z();`},
			"a.ts:1:19: there is no package \"zod\" here: run npm install zod\n", "a.ts:1:19: there is no package \"zod\" in a node_modules"},
		{"a name that is missing", []string{"a.ts", "import { b } from './b';\nconsole.log(b)", "b.ts", "export const c = 1"},
			"a.ts:1:10: No matching export in \"b.ts\" for import \"b\"", "a.ts:1:10: No matching export in \"b.ts\" for import \"b\""},
		{"in another file", []string{"a.ts", `import "./lib/b"`, "lib/b.ts", "\n\n  )"},
			"lib/b.ts:3:3: Unexpected \")\"", ""},
		{"JSON", []string{"a.ts", `import "./b.json"`, "b.json", `{"a": }`},
			"b.json:1:7: Unexpected \"}\"", ""},
		{"a module of Node's", []string{"a.ts", `import "./b"`, "b.ts", `import { readFile } from "node:fs/promises"; readFile();`},
			"b.ts:1:26: node:fs/promises is not available: a tool has only granted files, which toolsrv:files reads (b.ts imports it)\n    import", ""},
		{"a module of Node's, without its prefix", []string{"a.ts", `import net from "net"; net();`},
			"a.ts:1:17: net is not available: a tool has no sockets: use fetch (a.ts imports it)", ""},
		{"a module that a package stands in for", []string{"a.ts", `import { Buffer } from "node:buffer"; Buffer();`},
			"a.ts:1:24: node:buffer is not available: the engine is not Node; npm has a replacement: run npm install buffer (a.ts imports it)", ""},
		{"in a package", []string{"a.ts", `import "p"`, "node_modules/p/index.js", `import os from "os"`},
			"node_modules/p/index.js:1:16: os is not available: a tool is not an operating system (node_modules/p/index.js imports it)", ""},
		{"tests", []string{"a.ts", `import { call } from "toolsrv/testing"; call();`},
			"a.ts:1:22: \"toolsrv/testing\" is only available in tests", ""},
		{"require", []string{"a.ts", `const { tool } = require("toolsrv"); tool();`},
			"a.ts:1:26: require(\"toolsrv\") is not available: the engine's modules are imported, as in import { tool } from \"toolsrv\"", ""},
		{"a misspelt module", []string{"a.ts", `import kv from "toolsrv:kvs"; kv.get("a");`},
			"a.ts:1:16: there is no module \"toolsrv:kvs\": a script imports \"toolsrv\", \"toolsrv:files\"", ""},
		{"two", []string{"a.ts", "import './x'\nimport './y'"},
			"a.ts:1:8: there is no file \"./x\"\n    import './x'\n           ^\na.ts:2:8: there is no file", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, test.files...)
			_, _, err := javascript.Collect(context.Background(), filepath.Join(dir, "a.ts"), javascript.Options{})
			if err == nil || !strings.HasPrefix(err.Error(), test.author) {
				t.Errorf("got %v\nwant %s", err, test.author)
			}
			if test.served == "" {
				test.served = test.author
			}
			_, _, err = javascript.Collect(context.Background(), filepath.Join(dir, "a.ts"), javascript.Options{Root: dir})
			if err == nil || !strings.HasPrefix(err.Error(), test.served) {
				t.Errorf("confined: got %v\nwant %s", err, test.served)
			}
			if err != nil && strings.Contains(err.Error(), dir) {
				t.Errorf("the error names a folder of this machine: %v", err)
			}
		})
	}
}

// A package may try to load what it can do without.
func TestRequireOfWhatIsAbsent(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, root func(dir string) javascript.Options) {
		dir := folder(t, "a.js", `import "p"`, "node_modules/p/index.js", `try { module.exports = require("fs") } catch {}`)
		files, _, err := javascript.Collect(context.Background(), filepath.Join(dir, "a.js"), root(dir))
		if err != nil {
			t.Fatal(err)
		}
		if text := code(t, files); !strings.Contains(text, `throw new Error("fs is not available: a tool has only granted files, which toolsrv:files reads")`) {
			t.Errorf("the bundle:\n%s", text)
		}
	})
}

// A package installed under the name of one of Node's modules replaces it.
func TestInstalledForNode(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, root func(dir string) javascript.Options) {
		dir := folder(t, "a.js", `import { Buffer } from "node:buffer"; import { on } from "events"; console.log(Buffer, on)`,
			"node_modules/buffer/index.js", `exports.Buffer = "from the package buffer"`,
			"node_modules/events/index.js", `exports.on = "from the package events"`)
		files, _, err := javascript.Collect(context.Background(), filepath.Join(dir, "a.js"), root(dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"from the package buffer", "from the package events"} {
			if text := code(t, files); !strings.Contains(text, want) {
				t.Errorf("the bundle doesn't have %q:\n%s", want, text)
			}
		}
	})
}

// If esbuild can't leave out unused parts of an import, the import is rewritten to a form in which it can.
func TestNamespaceOfZod(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, root func(dir string) javascript.Options) {
		for _, line := range []string{`import { z } from "zod";`, `import {z} from 'zod'`, `import z from "zod";`, `import { z, type ZodType } from "zod";`, `import { z, used } from "zod/v4";`} {
			dir := folder(t, "a.ts", "// a\n"+line+"\nconsole.log(z.used());\nthrow 1;",
				"node_modules/zod/package.json", `{"type": "module", "sideEffects": false, "exports": {".": "./index.js", "./v4": "./index.js"}}`,
				"node_modules/zod/index.js", `import * as z from "./all.js"; export * from "./all.js"; export { z, z as default };`,
				"node_modules/zod/all.js", `export const used = () => 1; export const unused = () => 2;`)
			files, _, err := javascript.Collect(context.Background(), filepath.Join(dir, "a.ts"), root(dir))
			if err != nil {
				t.Fatal(line, err)
			}
			if text := code(t, files); strings.Contains(text, "unused") || !strings.Contains(text, "console.log(used())") {
				t.Errorf("%s: the bundle:\n%s", line, text)
			}
		}
	})
}
