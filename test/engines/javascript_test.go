// Package engines_test runs the interpreters that this repository builds for scripts: their own projects' tests, and tests of what we
// put around them. make test-engines runs all of it.
package engines_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

var update = flag.Bool("update", false, "write the results of Node that the engine for JavaScript is compared with")

// need returns an engine, or skips the test if it would take too long.
func need(t testing.TB, name string) *engine.Engine {
	t.Helper()
	if testkit.Race(t) {
		t.Skip("runs an interpreter on one thread, which -race makes ten times slower; test/isolation runs interpreters with -race")
	}
	return enginetest.Open(t, name)
}

// A host runs scripts, which share their engine's code, and keeps what they log.
type host struct {
	engine *sandbox.Engine
	log    *testkit.Log
}

func newHost(t testing.TB) host {
	t.Helper()
	log := &testkit.Log{}
	return host{sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: sandboxtest.CodeDir(), Logger: log.Logger(slog.LevelDebug)}), log}
}

// A script is a loaded script with the log of its host.
type script struct {
	program *sandbox.Program
	log     *testkit.Log
}

// load loads a script, given as the files of its bundle.
func (h host) load(t testing.TB, e *engine.Engine, files ...engine.File) script {
	t.Helper()
	module, err := e.Append(files)
	if err != nil {
		t.Fatal(err)
	}
	p := sandboxtest.Load(t, h.engine, module)
	if err := p.Compile(t.Context()); err != nil { // on a busy machine, loading takes longer than a call may
		t.Fatal(err)
	}
	return script{p, h.log}
}

// javascript loads a script in JavaScript that needs no bundling. Its source map maps each line to itself.
func (h host) javascript(t testing.TB, name, source string) script {
	t.Helper()
	sourceMap := fmt.Sprintf(`{"script": %q, "sources": [[%q, null]]}`, name, name)
	for i := range strings.Count(source, "\n") + 1 {
		sourceMap += "\n0,0," + strconv.FormatInt(int64(i), 36) + ",0"
	}
	return h.load(t, need(t, "javascript"), engine.File{Name: name, Data: []byte(source)}, engine.File{Name: "source.map", Data: []byte(sourceMap)})
}

// call calls the script's first tool without arguments, and reads its result.
func (s script) call(t testing.TB, result any) error {
	t.Helper()
	return s.callWith(t, "{}", result)
}

// callWith calls the script's first tool with arguments.
func (s script) callWith(t testing.TB, arguments string, result any) error {
	t.Helper()
	output, err := s.program.Tool("test", 0, limits.Limits{Timeout: time.Minute, Memory: 512 << 20, Input: 16 << 20, Output: 16 << 20}).Call(t.Context(), sandbox.CallSpec{Input: []byte(arguments)})
	if err != nil {
		return err
	}
	return json.Unmarshal(output, result)
}
