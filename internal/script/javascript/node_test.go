package javascript_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/script/javascript"
)

// A replacement for a module of Node is found with and without its prefix, by import and by require.
func TestStandIns(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, root func(dir string) javascript.Options) {
		dir := folder(t, "a.ts", `import { join } from "node:path"; import posix from "path/posix"; import { fileURLToPath } from "url";
import { setTimeout } from "node:timers/promises"; import { setImmediate } from "timers"; import { randomInt } from "node:crypto"; import { performance } from "perf_hooks";
import old from "old";
console.log(join, posix, fileURLToPath, setTimeout, setImmediate, randomInt, performance, old);`,
			"node_modules/old/index.js", `const { basename } = require("path"); module.exports = basename("a/b");`)
		files, _, err := javascript.Collect(context.Background(), filepath.Join(dir, "a.ts"), root(dir))
		if err != nil {
			t.Fatal(err)
		}
		if text := code(t, files); !strings.Contains(text, "function basename(") || strings.Contains(text, "not there") {
			t.Errorf("the bundle:\n%s", text)
		}
		if head, _, _ := strings.Cut(string(files[1].Data), "\n"); !strings.Contains(head, `["node_modules/node:path",null]`) {
			t.Errorf("the sources are %.1000s", head)
		}
	})
}
