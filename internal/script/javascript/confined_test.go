package javascript_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/script/javascript"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A confined script can't make Collect read anything outside its root, or wait.
func TestConfined(t *testing.T) {
	t.Parallel()
	outside := folder(t, "secret.js", `export const secret = "SECRET";`, "node_modules/up/index.js", `export const secret = "SECRET";`)
	tests := []struct {
		name, script, want string
		prepare            func(root string) error
	}{
		{"up", `import "../secret.js"`, `"../secret.js" leads out of the tools directory`, nil},
		{"up by a detour", `import "./lib/../../secret.js"`, `leads out of the tools directory`, nil},
		{"an absolute path", `import "` + outside + `/secret.js"`, `write a path that begins with ./ or ../`, nil},
		{"a URL of a file", `import "file://` + outside + `/secret.js"`, `write a path that begins with ./ or ../`, nil},
		{"a URL", `import "https://example.com/a.js"`, `write a path that begins with ./ or ../`, nil},
		{"a data URL", `import "data:text/javascript,1"`, `write a path that begins with ./ or ../`, nil},
		{"a package above", `import { secret } from "up"; secret()`, `there is no package "up"`, nil},
		{"a package that leads up", `import "../up"`, `leads out`, nil},
		{"a link out", `import "./link.js"`, `there is no file "./link.js"`, func(root string) error {
			return os.Symlink(filepath.Join(outside, "secret.js"), filepath.Join(root, "link.js"))
		}},
		{"a relative link out", `import "./link.js"`, `there is no file "./link.js"`, func(root string) error {
			return os.Symlink("../../../../../../etc/hostname", filepath.Join(root, "link.js"))
		}},
		{"a linked folder", `import "./lib/secret.js"`, `there is no file "./lib/secret.js"`, func(root string) error {
			return os.Symlink(outside, filepath.Join(root, "lib"))
		}},
		{"a linked package", `import "up"`, `there is no package "up"`, func(root string) error {
			return os.Symlink(filepath.Join(outside, "node_modules"), filepath.Join(root, "node_modules"))
		}},
		{"main that leads out", `import "p"`, `the package has no file for "p"`, func(root string) error {
			return write(root, "node_modules/p/package.json", `{"main": "../../../secret.js"}`)
		}},
		{"exports that lead out", `import "p"`, `the package has no file for "p"`, func(root string) error {
			return write(root, "node_modules/p/package.json", `{"exports": "./../../a.ts"}`)
		}},
		{"a package.json that is a pipe", `import "p"`, `the package has no file for "p"`, func(root string) error {
			if err := os.MkdirAll(filepath.Join(root, "node_modules/p"), 0o777); err != nil {
				return err
			}
			return pipe(filepath.Join(root, "node_modules/p/package.json"))
		}},
		{"a pipe", `import "./pipe.js"`, `there is no file "./pipe.js"`, func(root string) error {
			return pipe(filepath.Join(root, "pipe.js"))
		}},
		{"a tsconfig.json", "const a: string = <any>1", "", func(root string) error {
			return write(root, "tsconfig.json", `{"extends": "../secret.json", "compilerOptions": {"paths": {"*": ["../*"]}}}`)
		}},
		{"a source map of its own", "export {}\n//# sourceMappingURL=../secret.js", "", nil},
		{"JSX", `import "./a.tsx"`, "JSX is not supported here", func(root string) error { return write(root, "a.tsx", "<a/>") }},
		{"a large file", `import "./large.js"`, "it has more than 2 MiB", func(root string) error {
			return write(root, "large.js", strings.Repeat("//\n", 1<<20))
		}},
		{"large files", `import "./1.txt"; import "./2.txt"; import "./3.txt"; import "./4.txt"; import "./5.txt"; import "./6.txt"; import "./7.txt"; import "./8.txt"; import "./9.txt"`,
			"the script imports more than 16 MiB", func(root string) error {
				for _, name := range strings.Split("1 2 3 4 5 6 7 8 9", " ") {
					if err := write(root, name+".txt", strings.Repeat("x", 2<<20)); err != nil {
						return err
					}
				}
				return nil
			}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root := folder(t, "a.ts", test.script)
			if test.prepare != nil {
				if err := test.prepare(root); err != nil {
					t.Fatal(err)
				}
			}
			files, inputs, err := javascript.Collect(context.Background(), filepath.Join(root, "a.ts"), javascript.Options{Root: root})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && (strings.Contains(err.Error(), root) || strings.Contains(err.Error(), "SECRET")) {
				t.Errorf("the error says too much: %v", err)
			}
			for _, f := range files {
				if strings.Contains(string(f.Data), "SECRET") {
					t.Errorf("%s has the secret", f.Name)
				}
			}
			for _, input := range inputs {
				if !strings.HasPrefix(input, root+string(filepath.Separator)) {
					t.Errorf("it reads %s", input)
				}
			}
		})
	}
}

func write(root, name, content string) error {
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o666)
}

func TestConfinedElsewhere(t *testing.T) {
	t.Parallel()
	a, b := folder(t, "a.js", "1"), folder(t)
	if _, _, err := javascript.Collect(context.Background(), filepath.Join(a, "a.js"), javascript.Options{Root: b}); err == nil || !strings.Contains(err.Error(), " is not in ") {
		t.Errorf("got %v", err)
	}
	if err := os.Symlink(filepath.Join(a, "a.js"), filepath.Join(b, "a.js")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := javascript.Collect(context.Background(), filepath.Join(b, "a.js"), javascript.Options{Root: b}); err == nil {
		t.Error("a script that is a link out of the root was read")
	}
}

// Whatever a file contains, the process survives: esbuild's recursion stays far from the end of its stack, and soon ends.
func TestDeepFiles(t *testing.T) {
	if testkit.Race(t) {
		t.Skip("nothing runs concurrently here, and the race detector would take twenty times as long")
	}
	const size = 200_000
	deep := map[string][3]string{ // what comes before, what is repeated, and what comes after
		"parentheses": {"x=", "(", ""}, "lists": {"x=", "[", ""}, "objects": {"x=", "{a:", ""}, "blocks": {"", "{", ""},
		"not": {"x=", "!", "1"}, "not, by lines": {"x=", "!\n", "1"}, "minus": {"x=", "- ", "1"}, "typeof": {"x=", "typeof\n", "1"}, "void": {"x=", "void ", "1"},
		"arrows": {"x=", "a=>", "1"}, "arrows with parentheses": {"x=", "(a)=>", "1"}, "arrows in defaults": {"x=", "(a=", "1"}, "generic arrows": {"x=", "<T>(a)=>", "1"},
		"if": {"", "if(x)", ";"}, "if, by lines": {"", "if(x)\n", ";"}, "else": {"", "if(x);else ", ";"}, "else, by blocks": {"", "if(x){}else\n", ";"}, "for": {"", "for(;;)\n", ";"},
		"for await": {"async function f(){", "for await(x of y)\n", ";}"}, "while": {"", "while(x)", ";"}, "do": {"", "do\n", ";"}, "with": {"", "with(x)\n", ";"},
		"assignments": {"", "a=", "1"}, "sums": {"x=1", "+a", ""}, "powers": {"x=1", "**a", ""}, "conditions": {"x=", "a?b:", "1"}, "conditions before": {"x=", "a?", "b"},
		"members": {"x=a", ".a", ""}, "members, by lines": {"x=a", "\n.a", ""}, "calls": {"x=a", "()", ""}, "indices": {"x=a", "[0]", ""}, "chains": {"x=a", "?.a", ""}, "new": {"x=", "new ", "a"},
		"and": {"x=a", "&&a", ""}, "nullish": {"x=a", "??a", ""}, "templates": {"x=", "`${", ""}, "tags": {"x=a", "``", ""},
		"yield": {"function*f(){", "yield\n", "1}"}, "await": {"async function f(){", "await ", "1}"}, "classes": {"x=", "class extends ", "a"},
		"keyof": {"let x:", "keyof\n", "a"}, "conditional types": {"let x:", "a extends b?c:", "a"}, "function types": {"let x:", "()=>", "a"}, "generic types": {"let x:", "A<", ""}, "generic types with commas": {"let x:", "A<b,", ""},
		"comparisons": {"x=", "a<", "b"}, "casts": {"x=", "<a>", "1"}, "as": {"x=a", " as b", ""}, "not null": {"x=a", "!", ""}, "nested namespaces": {"", "namespace a{", ""},
		"conditions or arrows": {"x=", "a?(b):", "c"}, "conditions or arrows, nested": {"x=", "a?(", "c"}, "generic calls": {"x=", "a<b>(", "1"}, "async": {"x=", "async(", "1"}, "async arrows": {"x=", "async a=>", "1"},
		"decorators": {"", "@a ", "class x{}"}, "patterns": {"let ", "[", "a"}, "declare": {"", "declare\n", "x"}, "declare, on a line": {"", "declare ", "x"}, "functions": {"", "function f(){", ""}, "optional types": {"let x:[", "a?:", "b]"},
		"switch": {"", "switch(x){case ", "1"}, "labels": {"", "", ""},
	}
	dir := folder(t)
	for name, parts := range deep {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{size, 1000} {
				var source strings.Builder
				source.WriteString(parts[0])
				for i := 0; source.Len() < size; i++ {
					if name == "labels" {
						source.WriteString("a" + strings.Repeat("b", i%9) + string(rune('a'+i%26)) + ":")
						continue
					}
					source.WriteString(parts[1])
				}
				source.WriteString(parts[2])
				if err := write(dir, "a.ts", source.String()); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				_, _, err := javascript.Collect(ctx, filepath.Join(dir, "a.ts"), javascript.Options{Root: dir})
				cancel()
				if took := time.Since(begun); took > time.Minute || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%d bytes took %v: %.100v", size, took, err)
				}
			}
		})
	}
}
