package script_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

var _ catalog.Builder = script.Builder{}

// TestMain runs this program as a process that reads scripts, well or badly, if its first argument says so.
func TestMain(m *testing.M) {
	if len(os.Args) < 4 {
		os.Exit(m.Run())
	}
	err := func() error {
		var out io.Writer = os.Stdout
		file, args := os.Args[2], os.Args[3:]
		switch os.Args[1] {
		case "read": // read scripts, and count the processes
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = f.WriteString(".")
			}
			if err != nil {
				return err
			}
			f.Close()
		case "tell": // the process's oom_score_adj, once it is ready
			out = writer(func(text []byte) (int, error) {
				score, err := os.ReadFile("/proc/self/oom_score_adj")
				if err == nil {
					err = os.WriteFile(file, score, 0o600)
				}
				if err != nil {
					return 0, err
				}
				return os.Stdout.Write(text)
			})
		case "parent": // the parent of a process that does not end
			b := script.Builder{Readers: script.NewReaders([]string{"sh", "-c", "echo $$ >" + file + "; exec sleep 3600", "sh"}, 4<<30, nil)}
			_, _, err := b.Build(context.Background(), filepath.Dir(args[0]), args[0], nil)
			return err
		case "badly":
			return badly(file, args)
		default:
			os.Exit(m.Run())
		}
		return script.Serve(context.Background(), args, os.Stdin, out)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A writer is one function.
type writer func([]byte) (int, error)

// Write calls it.
func (w writer) Write(text []byte) (int, error) { return w(text) }

func TestLanguageOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]script.Language{
		"a.py": script.Python, "a.js": script.JavaScript, "a.mjs": script.JavaScript, "a.ts": script.TypeScript, "dir.py/a.mts": script.TypeScript,
		"a": "", "py": "", "a.PY": "", "a.pyc": "", "a.json": "", "a.wasm": "", "a.py/": "", "": "",
	} {
		if got := script.LanguageOf(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
		if ending := strings.TrimPrefix(filepath.Ext(name), "."); (want != "") != slices.Contains(script.Endings(), ending) {
			t.Errorf("%q: its ending is not what Endings says", name)
		}
	}
}

func TestIsPart(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"_a.py": true, "_a.ts": true, "__init__.py": true, "dir/_a.js": true,
		"test_a.py": true, "a_test.py": true, "conftest.py": true, "setup.py": true,
		"a.test.ts": true, "a.spec.mjs": true, "a.d.ts": true, "a.d.mts": true, "vite.config.js": true,
		"a.py": false, "a_.py": false, "test.py": false, "latest.py": false, "contest.py": false, "_dir/a.py": false,
		"test_a.ts": false, "conftest.js": false, "setup.ts": false, "a.ts": false, "d.ts": false, "test.ts": false, "config.js": false,
	} {
		if got := script.IsPart(name); got != want {
			t.Errorf("%q: got %t, want %t", name, got, want)
		}
	}
}

// toys returns toy engines under the names of real ones. Their scripts are manifests.
func toys(t *testing.T, name string) *engine.Set {
	t.Helper()
	parsed, err := wasmbin.Parse(testkit.Fixture(t, "script/toy"))
	if err != nil {
		t.Fatal(err)
	}
	about, _, err := parsed.Custom(engine.Section)
	if err != nil {
		t.Fatal(err)
	}
	toy, err := parsed.SetCustom(engine.Section, bytes.Replace(about, []byte(`"toy"`), []byte(`"`+name+`"`), 1))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(toy); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return engine.From(fstest.MapFS{name + ".wasm.gz": {Data: packed.Bytes()}})
}

const manifest = `{"abi": 1, "tools": [{"name": "told", "description": "Tells.", "parameters": {"type": "object"}}]}`

// joined returns a module, checked to be the same as toolsrv build would write.
func joined(t *testing.T, made wasmbin.Made) []byte {
	t.Helper()
	address, ok := made.Module.Constant(engine.Region)
	if !ok {
		t.Fatal("it was not made of an engine")
	}
	module, err := made.Module.AppendData(address, made.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// TestBuild makes a tool file from a script that a server accepts.
func TestBuild(t *testing.T) {
	t.Parallel()
	file := testkit.Put(t, t.TempDir(), "hello.py", manifest)
	module, inputs, err := script.Build(t.Context(), file, script.Options{Engines: toys(t, "python")})
	if err != nil || !slices.Contains(inputs, file) {
		t.Fatalf("got the inputs %q, %v", inputs, err)
	}
	packed, said, err := toolfile.Pack(t.Context(), sandboxtest.Engine(t, sandbox.Config{}), module, nil)
	if err != nil || said.Engine != "toy 1.0 (0123abcd)" || said.Tools[0].Name != "told" {
		t.Errorf("got %+v, %v", said, err)
	}
	parsed, err := wasmbin.Parse(packed)
	if err != nil {
		t.Fatal(err)
	}
	if bundle, ok := parsed.Bundle(engine.Region); !ok {
		t.Errorf("the script is not the engine's bundle: %+v", bundle)
	}
	again, _, err := script.Builder{Engines: toys(t, "python")}.Build(t.Context(), filepath.Dir(file), file, nil)
	if err != nil || !bytes.Equal(joined(t, again), module) {
		t.Errorf("a Builder makes something else (%v)", err)
	}
}

// TestScriptError has a script fail when it is run. The error is the interpreter's own.
func TestScriptError(t *testing.T) {
	t.Parallel()
	const text = "hello.py:1:2: this is wrong\\n    !{}\\n     ^\\ndo something else"
	file := testkit.Put(t, t.TempDir(), "hello.py", `!{"message": "`+text+`"}`)
	module, _, err := script.Build(t.Context(), file, script.Options{Engines: toys(t, "python")})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = toolfile.Pack(t.Context(), sandboxtest.Engine(t, sandbox.Config{}), module, nil)
	if wrong, ok := errors.AsType[*toolfile.ScriptError](err); !ok || wrong.Text != strings.ReplaceAll(text, `\n`, "\n") {
		t.Errorf("got %v, want what the interpreter says", err)
	}
}

func TestBuildFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := testkit.Put(t, dir, "good.py", manifest)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		file   string
		set    *engine.Set
		says   string
		blamed bool // the script is
	}{
		"no script":           {t.Context(), testkit.Put(t, dir, "hello.rb", ""), toys(t, "python"), "is not a script: its name must end in .py", false},
		"missing":             {t.Context(), filepath.Join(dir, "missing.py"), toys(t, "python"), "missing.py", true},
		"a folder":            {t.Context(), filepath.Dir(testkit.Put(t, dir, "folder.py/x", "")), toys(t, "python"), "folder.py", true},
		"too large":           {t.Context(), testkit.Put(t, dir, "large.py", strings.Repeat("#", 70_000)), toys(t, "python"), "the engine accepts less than", true},
		"no engine":           {t.Context(), testkit.Put(t, dir, "hello.ts", ""), toys(t, "python"), "there is no engine for", false},
		"no engines at all":   {t.Context(), good, engine.From(fstest.MapFS{}), "there is no engine for", false},
		"a broken engine":     {t.Context(), good, engine.From(fstest.MapFS{"python.wasm.gz": {Data: []byte("x")}}), "unpack the engine", false},
		"interrupted":         {cancelled, good, toys(t, "python"), "context canceled", false},
		"a mistake in the JS": {t.Context(), testkit.Put(t, dir, "wrong.js", "let ="), toys(t, "javascript"), "wrong.js:1:", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module, _, err := script.Build(c.ctx, c.file, script.Options{Engines: c.set})
			if err == nil || module != nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %d bytes, %v; want an error with %q", len(module), err, c.says)
			}
			if _, ok := errors.AsType[*script.Error](err); ok != c.blamed {
				t.Errorf("got %T, want an error that blames the script: %t", err, c.blamed)
			}
		})
	}
}
