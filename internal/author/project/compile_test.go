package project_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

const (
	shoutManifest = `{"abi": 1, "tools": [{"name": "shout", "description": "Make a text loud.",
		"parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}]}`
	goMod   = "module example.com/work\n\ngo 1.24\n"
	shoutGo = `package main

import (
	"encoding/json"
	"os"
	"strings"
)

func main() {
	var in struct{ Text string }
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(strings.ToUpper(in.Text))
}
`
	shoutRust = `use std::io::{stdin, Read};
fn main() {
    let mut text = String::new();
    stdin().read_to_string(&mut text).unwrap();
    println!("{}", text.len());
}
`
	reactor = `#[no_mangle]
pub extern "C" fn toolsrv_call(_tool: i32) -> i32 { 1 }
#[cfg(target_os = "wasi")]
#[no_mangle]
pub extern "C" fn on_wasi() {}
`
)

// program returns the Cargo.toml of a package, and library the Cargo.toml of one that makes a module. Packages that are built at the same time must
// have different names, because all of Cargo's output goes to one folder here.
func program(name string) string {
	return "[package]\nname = \"" + name + "\"\nedition = \"2021\"\n\n[workspace]\n"
}

func library(name string) string { return program(name) + "[lib]\ncrate-type = [\"cdylib\"]\n" }

func TestCompilePlain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, program, target string
		files                 map[string]string
		want                  string
	}{
		{"go", "go", "", map[string]string{"go.mod": goMod, "main.go": shoutGo, "tool.json": shoutManifest}, "\"HEY\"\n"},
		{"with a byte order mark", "go", "", map[string]string{"go.mod": goMod, "main.go": shoutGo, "tool.json": "\ufeff" + shoutManifest}, "\"HEY\"\n"},
		{"rust", "cargo", "wasm32-wasip1", map[string]string{"Cargo.toml": program("plain"), "src/main.rs": shoutRust, "tool.json": shoutManifest}, "15\n"},
		// TinyGo makes a program from the same source.
		{"tinygo", "tinygo", "", map[string]string{"go.mod": goMod, "main.go": "//toolsrv:tinygo\n" + shoutGo, "tool.json": shoutManifest}, "\"HEY\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testkit.NeedBuild(t, c.program)
			if c.target != "" {
				needTarget(t, c.target)
			}
			module, said, err := compile(t, folder(t, c.files))
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			tools := load(t, module)
			if got, err := call(t, tools[0], `{"text": "hey"}`); err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestCompileSame checks that the same source gives the same file, in whichever folder it is.
func TestCompileSame(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "go")
	files := map[string]string{"go.mod": goMod, "main.go": shoutGo, "tool.json": shoutManifest}
	one, said, err := compile(t, folder(t, files))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	two, _, err := compile(t, folder(t, files))
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("two builds differ (%d and %d bytes, %v)", len(one), len(two), err)
	}
}

// TestCargoTarget chooses the target in .cargo/config.toml.
func TestCargoTarget(t *testing.T) {
	t.Parallel()
	needTarget(t, "wasm32-wasip1")
	needTarget(t, "wasm32-unknown-unknown")
	for i, c := range []struct {
		name, config string
		wasi         bool
	}{
		{"none", "", false},
		{"another setting", "[net]\noffline = true\n", false},
		{"a native target", "[build]\ntarget = \"x86_64-unknown-linux-gnu\"\n", false},
		{"wasip1", "[build]\ntarget = \"wasm32-wasip1\" # with clocks\n", true},
		{"wasip1 by a dotted key", "build.target = 'wasm32-wasip1'\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			module, said, err := compile(t, folder(t, map[string]string{
				"Cargo.toml": library(fmt.Sprintf("target-%d", i)), "src/lib.rs": reactor, ".cargo/config.toml": c.config,
			}))
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			m, err := wasmbin.Parse(module)
			if err != nil {
				t.Fatal(err)
			}
			if _, wasi := m.Export("on_wasi"); wasi != c.wasi {
				t.Errorf("built for WASI: %t, want %t", wasi, c.wasi)
			}
		})
	}
}

// TestRemap checks that a module, whose panic messages name files, contains no path of this machine, and that the author's own compiler flags stay in
// force, wherever they are set. It changes the environment, so it is not parallel.
func TestRemap(t *testing.T) {
	needTarget(t, "wasm32-unknown-unknown")
	const own = "rustflags = [\"--cfg\", \"own\"]\n"
	for i, c := range []struct{ name, config, env, flags string }{
		{"none", "", "", ""},
		{"of the build", "[build]\n" + own, "", ""},
		{"of the target", "[build]\nrustflags = [\"--cfg\", \"hidden\"]\n[target.wasm32-unknown-unknown]\n\nrunner = [\"a\"]\n" + own, "", ""},
		{"of a condition", "[target.'cfg(target_family = \"wasm\")']\n" + own, "", ""},
		{"flags of the target by a dotted key", "target.wasm32-unknown-unknown." + own, "", ""},
		{"of another target", "[target.x86_64-unknown-linux-gnu]\nrustflags = [\"--nonsense\"]\n[build]\n" + own, "", ""},
		{"of the environment", "[build]\nrustflags = [\"--cfg\", \"hidden\"]\n", "RUSTFLAGS", "--cfg  own"},
		{"flags of the environment, encoded", "", "CARGO_ENCODED_RUSTFLAGS", "--cfg\x1fown"},
		{"flags of the environment, empty", "[build]\nrustflags = [\"--cfg\", \"hidden\"]\n", "RUSTFLAGS", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := fmt.Sprintf("remap-%d", i)
			// A package in another folder is compiled under its full path, like packages from a registry.
			home := folder(t, map[string]string{
				"a dep/Cargo.toml": strings.Replace(program(name+"-dep"), "[workspace]\n", "", 1),
				"a dep/src/lib.rs": "pub fn at(n: i32) -> i32 { assert!(n != 7); n }\n",
			})
			t.Setenv("CARGO_HOME", home)
			if c.env != "" {
				t.Setenv(c.env, c.flags)
			}
			dir := folder(t, map[string]string{
				"Cargo.toml":         library(name) + "[dependencies]\n" + name + "-dep = { path = \"" + home + "/a dep\" }\n",
				".cargo/config.toml": c.config,
				"build.rs": `fn main() {
    let file = std::path::Path::new(&std::env::var("OUT_DIR").unwrap()).join("made.rs");
    std::fs::write(file, "pub fn made(n: i32) { assert!(n != 8); }").unwrap();
}`,
				"src/lib.rs": `include!(concat!(env!("OUT_DIR"), "/made.rs"));
#[no_mangle]
pub extern "C" fn toolsrv_call(tool: i32) -> i32 { made(tool); ` + strings.ReplaceAll(name, "-", "_") + `_dep::at(tool) }
#[cfg(own)]
#[no_mangle]
pub extern "C" fn own() {}
#[cfg(hidden)]
#[no_mangle]
pub extern "C" fn hidden() {}
`,
			})
			t.Setenv("CARGO_TARGET_DIR", filepath.Join(dir, "target"))
			module, said, err := compile(t, dir)
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			for _, path := range []string{home, dir} {
				if bytes.Contains(module, []byte(path)) {
					t.Errorf("the module names %s", path)
				}
			}
			for _, path := range []string{"/cargo/a dep/src/lib.rs", "/src/target/"} {
				if !bytes.Contains(module, []byte(path)) {
					t.Errorf("the module does not name %s", path)
				}
			}
			m, err := wasmbin.Parse(module)
			if err != nil {
				t.Fatal(err)
			}
			_, got := m.Export("own")
			if want := strings.Contains(c.config+c.flags, "own"); got != want {
				t.Errorf("the author's flags are in force: %t, want %t", got, want)
			}
			if _, ok := m.Export("hidden"); ok {
				t.Error("flags that Cargo would not use are in force")
			}
		})
	}
}

// TestRemapWorkspace has two tools of a workspace that share a crate: it is compiled once, and neither module names the workspace's folder.
func TestRemapWorkspace(t *testing.T) {
	needTarget(t, "wasm32-unknown-unknown")
	member := func(name string) string {
		return strings.Replace(library(name), "[workspace]\n", "", 1) + "[dependencies]\ncommon = { path = \"../common\" }\n"
	}
	const tool = `include!(concat!(env!("OUT_DIR"), "/made.rs"));
#[no_mangle]
pub extern "C" fn toolsrv_call(tool: i32) -> i32 { made(tool); common::at(tool) }
`
	const script = `fn main() {
    let file = std::path::Path::new(&std::env::var("OUT_DIR").unwrap()).join("made.rs");
    std::fs::write(file, "pub fn made(n: i32) { assert!(n != 8); }").unwrap();
}`
	root := folder(t, map[string]string{
		"Cargo.toml":        "[workspace]\nmembers = [\"common\", \"one\", \"two\"]\nresolver = \"2\"\n",
		"common/Cargo.toml": strings.Replace(program("common"), "[workspace]\n", "", 1),
		"common/src/lib.rs": "pub fn at(n: i32) -> i32 { assert!(n != 7); n }\n",
		"one/Cargo.toml":    member("one"), "one/build.rs": script, "one/src/lib.rs": tool,
		"two/Cargo.toml": member("two"), "two/build.rs": script, "two/src/lib.rs": tool,
	})
	t.Setenv("CARGO_TARGET_DIR", filepath.Join(root, "target"))
	for _, name := range []string{"one", "two"} {
		module, said, err := compile(t, filepath.Join(root, name))
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		if bytes.Contains(module, []byte(root)) || !bytes.Contains(module, []byte("/src/target/")) {
			t.Errorf("the module of %s names %s, or does not name /src/target/", name, root)
		}
		if got, want := strings.Contains(said, "Compiling common"), name == "one"; got != want {
			t.Errorf("%s compiled the common crate: %t, want %t\n%s", name, got, want, said)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	sdk, err := filepath.Abs("../../../sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	sdkMod := goMod + "\nrequire github.com/toolsrv/toolsrv/sdk/go v0.1.0\n\nreplace github.com/toolsrv/toolsrv/sdk/go => " + sdk + "\n"
	const sdkTool = `package main

import toolsrv "github.com/toolsrv/toolsrv/sdk/go"

var _ = toolsrv.Export(toolsrv.Module{})

func main() {}
`
	for _, c := range []struct {
		name, program, target string
		files                 map[string]string
		says, compilerSays    string
	}{
		{"go does not compile", "go", "", map[string]string{"go.mod": goMod, "main.go": "package main\n\nfunc main() { missing() }\n"},
			"go ended with exit status 1", "main.go:3:15: undefined: missing"},
		{"go without a module", "go", "", map[string]string{"main.go": "package main\n\nimport _ \"x.example/y\"\n"}, "does not compile", "go"},
		{"no package main", "go", "", map[string]string{"go.mod": goMod, "main.go": "package tool\n"}, "does not compile", "main package"},
		{"go without the SDK", "go", "", map[string]string{"go.mod": goMod, "main.go": "package main\n\nfunc main() {}\n"},
			"it is not a tool (nothing exports toolsrv_call): import github.com/toolsrv/toolsrv/sdk/go", ""},
		{"SDK and a manifest", "go", "", map[string]string{"go.mod": sdkMod, "main.go": sdkTool, "tool.json": shoutManifest}, "remove one of them", ""},
		{"wrong manifest", "go", "", map[string]string{"go.mod": goMod, "main.go": shoutGo, "tool.json": `{"abi": 2}`}, "tool.json: abi is 2", ""},
		{"no JSON", "go", "", map[string]string{"go.mod": goMod, "main.go": shoutGo, "tool.json": `{`}, "tool.json: ", ""},
		{"huge manifest", "go", "", map[string]string{"go.mod": goMod, "main.go": shoutGo, "tool.json": strings.Repeat(" ", 1<<20+1)}, "larger than", ""},
		{"two tools", "go", "", map[string]string{"go.mod": goMod, "main.go": shoutGo, "tool.json": `{"abi": 1, "tools": [
			{"name": "a", "description": "A.", "parameters": {}}, {"name": "b", "description": "B.", "parameters": {}}]}`}, "2 tools", ""},
		{"rust does not compile", "cargo", "wasm32-unknown-unknown", map[string]string{"Cargo.toml": library("broken"), "src/lib.rs": "fn f() { missing() }\n"},
			"cargo ended with exit status 101", "src/lib.rs:1:10"},
		{"an invalid Cargo.toml", "cargo", "wasm32-unknown-unknown", map[string]string{"Cargo.toml": "[package\n"}, "does not compile", "Cargo.toml"},
		{"no package", "cargo", "wasm32-unknown-unknown", map[string]string{"Cargo.toml": "[workspace]\n"}, "does not compile", "manifest"},
		{"rust without the SDK", "cargo", "wasm32-unknown-unknown", map[string]string{"Cargo.toml": library("bare"), "src/lib.rs": ""},
			"it is not a tool (nothing exports toolsrv_call): depend on the crate toolsrv", ""},
		{"no cdylib", "cargo", "wasm32-unknown-unknown", map[string]string{"Cargo.toml": program("rlib"), "src/lib.rs": reactor},
			`add a section [lib] with crate-type = ["cdylib"]`, ""},
		{"two modules", "cargo", "wasm32-unknown-unknown", map[string]string{"Cargo.toml": program("pair"), "src/bin/a.rs": "fn main() {}\n", "src/bin/b.rs": "fn main() {}\n"},
			"produces 2 .wasm files", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testkit.NeedBuild(t, c.program)
			if c.target != "" {
				needTarget(t, c.target)
			}
			module, said, err := compile(t, folder(t, c.files))
			if err == nil || !strings.Contains(err.Error(), c.says) || module != nil {
				t.Errorf("got %d bytes, %v, want an error with %q", len(module), err, c.says)
			}
			if !strings.Contains(said, c.compilerSays) {
				t.Errorf("the compiler said %q, want %q", said, c.compilerSays)
			}
		})
	}
}

// TestMissingTarget compiles while Rust lacks the standard library for a target.
func TestMissingTarget(t *testing.T) {
	t.Parallel()
	testkit.NeedBuild(t, "cargo", "rustup")
	_, said, err := compile(t, folder(t, map[string]string{
		"Cargo.toml": library("lacking"), "src/lib.rs": reactor, ".cargo/config.toml": "[build]\ntarget = \"wasm32-wasip2\"\n",
	}))
	if err == nil {
		t.Skip("every target is installed here")
	}
	if !strings.Contains(err.Error(), "run rustup target add wasm32-wasip2") {
		t.Errorf("got %v, want an error that says how to get it\n%s", err, said)
	}
}

// script puts a shell script with this name first in the PATH. The real programs stay behind it.
func script(t *testing.T, name, text string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for a compiler is a shell script")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// TestMissingProgram compiles without a compiler. It changes the environment, so it is not parallel.
func TestMissingProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		name  string
		files map[string]string
		says  string
	}{
		{"go", map[string]string{"main.go": "package main\n"}, "go is not installed, or its folder is not in PATH: install Go 1.24 or later from https://go.dev/dl/"},
		{"tinygo", map[string]string{"main.go": "//toolsrv:tinygo\npackage main\n"}, "tinygo is not installed, or its folder is not in PATH: install TinyGo 0.37 or later from https://tinygo.org/getting-started/install/"},
		{"rust", map[string]string{"Cargo.toml": ""}, "cargo is not installed, or its folder is not in PATH: install Rust from https://rustup.rs/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := compile(t, folder(t, c.files)); err == nil || err.Error() != c.says {
				t.Errorf("got %v, want %s", err, c.says)
			}
		})
	}
}

// TestCompileCancelled: all processes that a compiler has started end with it, even if they resist.
func TestCompileCancelled(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"obedient", "echo $$ >&2; exec sleep 1000\n"},
		{"stubborn", "trap '' INT; sleep 1000 & echo $! >&2; wait\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			script(t, "go", c.text)
			p, err := project.Open(folder(t, map[string]string{"main.go": "package main\n"}))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reader, writer := io.Pipe()
			pid := make(chan string, 1)
			go func() {
				line := make([]byte, 32)
				n, _ := reader.Read(line)
				pid <- strings.TrimSpace(string(line[:n]))
				cancel()
				_, _ = io.Copy(io.Discard, reader)
			}()
			_, err = p.Compile(ctx, writer)
			writer.Close()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the error of a cancelled context", err)
			}
			if runtime.GOOS != "linux" {
				return
			}
			child := <-pid
			for deadline := time.Now().Add(time.Minute); running(child); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("what the compiler has started still runs")
				}
			}
		})
	}
}

// TestMaxModule checks that the bound for a compiler's output equals the sandbox's bound, since this package can't import that.
func TestMaxModule(t *testing.T) {
	t.Parallel()
	if project.MaxModule != sandbox.MaxModule {
		t.Errorf("got %d, and the sandbox takes %d", project.MaxModule, sandbox.MaxModule)
	}
}

// running reports whether a process runs. A killed one may remain as a zombie if nobody waits for it.
func running(pid string) bool {
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}
