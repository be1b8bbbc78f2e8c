package javascript_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/script/javascript"
)

// folder writes files, given as name and content in turn, and returns their folder.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// code returns the script of a bundle.
func code(t *testing.T, files []engine.File) string {
	t.Helper()
	if len(files) != 3 || files[2].Name != "tools.json" || files[1].Name != "source.map" {
		t.Fatalf("the bundle has %d files", len(files))
	}
	return string(files[0].Data)
}

// both runs a test in both ways of bundling: as on an author's machine, and confined as on a server.
func both(t *testing.T, f func(t *testing.T, root func(dir string) javascript.Options)) {
	t.Run("author", func(t *testing.T) {
		t.Parallel()
		f(t, func(string) javascript.Options { return javascript.Options{} })
	})
	t.Run("confined", func(t *testing.T) {
		t.Parallel()
		f(t, func(dir string) javascript.Options { return javascript.Options{Root: dir} })
	})
}

func TestCollect(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, root func(dir string) javascript.Options) {
		dir := folder(t,
			"hello.ts", `import { tool } from "toolsrv";
import * as kv from "toolsrv:kv";
import { read } from "toolsrv/settings";
import { upper } from "./lib/words.js";
import data from "./data.json";
import page from "./page.html";
import bytes from "./dot.png";
import pad from "leftpad";
import { deep } from "scoped/deep";
export const greet = tool({ description: "Greets.", run: ({ name }: { name: string }): string => upper(name) + data.mark + page + kv.get(read()) + bytes.length + pad(deep) });
`,
			"lib/words.ts", "enum Case { Up }\nexport const upper = (s: string) => Case.Up === 0 ? s.toUpperCase() : s;\n",
			"data.json", `{"mark": "!"}`,
			"page.html", "<p>page</p>",
			"dot.png", "\x89PNG\x00",
			"node_modules/leftpad/package.json", `{"main": "./lib/main"}`,
			"node_modules/leftpad/lib/main.js", "module.exports = (s) => ' ' + s;",
			"node_modules/scoped/package.json", `{"exports": {".": "./no.js", "./deep": {"node": "./node.js", "import": {"worker": "./worker.mjs"}, "default": "./no.js"}}}`,
			"node_modules/scoped/worker.mjs", "export const deep = 'from worker';",
		)
		files, inputs, err := javascript.Collect(context.Background(), filepath.Join(dir, "hello.ts"), root(dir))
		if err != nil {
			t.Fatal(err)
		}
		if files[0].Name != "hello.ts" {
			t.Errorf("the script is called %q", files[0].Name)
		}
		text := code(t, files)
		for _, want := range []string{`import { tool } from "toolsrv"`, `from "toolsrv:kv"`, `from "toolsrv:settings"`, "export {\n  greet\n}", `"<p>page</p>"`, "from worker"} {
			if !strings.Contains(text, want) {
				t.Errorf("the bundle doesn't have %q:\n%s", want, text)
			}
		}
		for _, want := range []string{"hello.ts", "lib/words.ts", "data.json", "node_modules/leftpad/lib/main.js"} {
			if !slices.Contains(inputs, filepath.Join(dir, filepath.FromSlash(want))) {
				t.Errorf("the inputs don't have %s: %q", want, inputs)
			}
		}
		head, _, _ := strings.Cut(string(files[1].Data), "\n")
		for _, want := range []string{`["lib/words.ts","enum Case`, `["hello.ts","import { tool }`, `["node_modules/leftpad/lib/main.js",null]`} {
			if !strings.Contains(head, want) {
				t.Errorf("the source map doesn't have %q:\n%s", want, head)
			}
		}
	})
}

// The field "browser" of a package.json names replacements for files that need Node, in two forms.
func TestBrowserField(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, root func(dir string) javascript.Options) {
		dir := folder(t, "a.js", `import p from "p"; import q from "q"; console.log(p, q)`,
			"node_modules/p/package.json", `{"main": "./node.js", "browser": "./browser.js"}`,
			"node_modules/p/browser.js", `export default "p of browsers"`,
			"node_modules/q/package.json", `{"main": "./main.js", "browser": {"./lib/node.js": "./lib/browser.js", "fs": false, "other": "./lib/other.js"}}`,
			"node_modules/q/main.js", `require("fs").nothing; exports.default = require("./lib/node") + require("other")`,
			"node_modules/q/lib/node.js", `module.exports = "q of Node"`,
			"node_modules/q/lib/browser.js", `module.exports = "q of browsers"`,
			"node_modules/q/lib/other.js", `module.exports = "other of q"`)
		files, _, err := javascript.Collect(context.Background(), filepath.Join(dir, "a.js"), root(dir))
		if err != nil {
			t.Fatal(err)
		}
		text := code(t, files)
		for _, want := range []string{"p of browsers", "q of browsers", "other of q"} {
			if !strings.Contains(text, want) {
				t.Errorf("the bundle doesn't have %q:\n%s", want, text)
			}
		}
		for _, never := range []string{"of Node", "not there"} {
			if strings.Contains(text, never) {
				t.Errorf("the bundle has %q:\n%s", never, text)
			}
		}
	})
}
