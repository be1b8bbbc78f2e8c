package engines_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// cpython are the modules and packages of Lib/test that are run, for the parts of the standard library that scripts are promised.
var cpython = strings.Fields(`
	test_abc test_array test_asyncio test_base64 test_binascii test_bisect test_calendar test_cmath test_collections test_context test_contextlib
	test_copy test_coroutines test_csv test_dataclasses test_datetime test_decimal test_dict test_difflib test_float test_fractions
	test_functools test_generators test_graphlib test_gzip test_heapq test_hmac test_html test_htmlparser test_int test_itertools test_json
	test_list test_math test_operator test_pprint test_random test_re test_secrets test_statistics test_string test_struct test_textwrap
	test_typing test_urlparse test_uuid test_zlib test_zoneinfo`)

// helpers are files that tests read or import without naming them.
var helpers = strings.Fields(`
	unittest doctest.py py_compile.py subprocess.py selectors.py test/__init__.py test/support test/mathdata test/tokenizedata test/xmltestdata
	test/decimaltestdata test/datetimetester.py
	test/test_difflib_expect.html test/randv2_32.pck test/randv2_64.pck test/randv3.pck`)

// A skip is a line of testdata/cpython/skips.txt.
type skip struct{ pattern, reason string }

func skips(t *testing.T) (list []skip) {
	t.Helper()
	file, err := os.Open("testdata/cpython/skips.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		pattern, reason, ok := strings.Cut(line, " ")
		if !ok {
			t.Fatalf("testdata/cpython/skips.txt: %q has no reason", line)
		}
		list = append(list, skip{pattern, strings.TrimSpace(reason)})
	}
	return list
}

// TestCPython runs CPython's tests for the parts in the engine, each module in a separate call. testdata/cpython/skips.txt lists the skipped tests
// with the reasons; a line there that matches no test is an error.
func TestCPython(t *testing.T) {
	t.Parallel()
	e := need(t, "python")
	lib := os.Getenv("TOOLSRV_CPYTHON_LIB")
	if lib == "" {
		t.Skip("CPython's tests are with its sources: make test-engines")
	}
	source, err := os.ReadFile("testdata/cpython/suite.py")
	if err != nil {
		t.Fatal(err)
	}
	skips := skips(t)
	host := sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: sandboxtest.CodeDir(), Logger: slog.New(slog.DiscardHandler)})
	files := []engine.File{{Name: "suite.py", Data: source}}
	for _, part := range helpers {
		files = append(files, library(t, lib, part)...)
	}
	files = append(files, withImports(t, lib, cpython...)...)
	module, err := e.Append(files)
	if err != nil {
		t.Fatal(err)
	}
	program := sandboxtest.Load(t, host, module)
	for _, name := range cpython {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, part := range parts(files, name) {
				runCPython(t, program, part, skips)
			}
		})
	}
}

// withImports returns modules of Lib/test and all modules that they import from there, directly or not.
func withImports(t *testing.T, lib string, names ...string) (files []engine.File) {
	t.Helper()
	names = slices.Clone(names)
	for i := 0; i < len(names); i++ {
		for _, part := range []string{names[i], names[i] + ".py"} {
			for _, f := range library(t, lib, "test/"+part) {
				files = append(files, f)
				for _, m := range importOfTest.FindAllSubmatch(f.Data, -1) {
					for name := range strings.FieldsFuncSeq(string(m[1]), func(r rune) bool { return r == ',' || r == ' ' }) {
						if !slices.Contains(names, name) && name != "support" {
							names = append(names, name)
						}
					}
				}
			}
		}
	}
	return files
}

// importOfTest matches an import of a module of Lib/test.
var importOfTest = regexp.MustCompile(`(?m)^ *(?:from test import |from test\.|import test\.)(\w+(?:, *\w+)*)`)

// library returns a file or a folder of CPython's library, which need not exist.
func library(t *testing.T, lib, part string) (files []engine.File) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(lib, filepath.FromSlash(part)), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".pyc") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(lib, path)
		files = append(files, engine.File{Name: "lib/" + filepath.ToSlash(name), Data: content})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// parts returns the modules with the tests of a package, or a module itself.
func parts(files []engine.File, name string) (modules []string) {
	for _, f := range files {
		module, isPython := strings.CutSuffix(strings.TrimPrefix(f.Name, "lib/"), ".py")
		if inPackage := strings.HasPrefix(module, "test/"+name+"/"); isPython &&
			(module == "test/"+name || inPackage && strings.HasPrefix(filepath.Base(module), "test_")) {
			modules = append(modules, strings.ReplaceAll(module, "/", "."))
		}
	}
	if len(modules) == 0 { // a package whose tests are in the package itself
		modules = append(modules, "test."+name)
	}
	return modules
}

// runCPython runs one module's tests.
func runCPython(t *testing.T, program *sandbox.Program, module string, skips []skip) {
	t.Helper()
	var patterns []string
	for _, s := range skips {
		if strings.HasPrefix(s.pattern, module+".") {
			patterns = append(patterns, s.pattern)
		}
	}
	if slices.Contains(patterns, module+".*") {
		return
	}
	arguments, err := json.Marshal(map[string]any{"module": module, "skip": append([]string{}, patterns...)})
	if err != nil {
		t.Fatal(err)
	}
	output, err := program.Tool("test", 0, limits.Limits{Timeout: 20 * time.Minute, Memory: 1 << 30}).Call(t.Context(), sandbox.CallSpec{Input: arguments})
	if err != nil {
		t.Errorf("%s: %.1000v", module, err)
		return
	}
	var result struct {
		Ran, Skipped int
		Bad          map[string]string
		Used         []string
	}
	if err := json.NewDecoder(bytes.NewReader(output)).Decode(&result); err != nil {
		t.Fatal(err)
	}
	for test, said := range result.Bad {
		t.Errorf("%s: %s", test, said)
	}
	for _, pattern := range patterns {
		if !slices.Contains(result.Used, pattern) {
			t.Errorf("testdata/cpython/skips.txt: no test of %s fits %s", module, pattern)
		}
	}
	if result.Ran == 0 {
		t.Errorf("%s: no test was run", module)
	}
	t.Logf("%s: %d tests, %d of them not for this system", module, result.Ran, result.Skipped)
}
