// Package isolation_test attacks the interpreters with scripts: what a call leaves behind must be gone in the next one, and endless work must end at
// a limit.
package isolation_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

func TestMain(m *testing.M) { testkit.Main(m, "wazero", "internal/runtime/sandbox.") }

// A language is a language of scripts.
type language struct {
	name   string
	script string // the file name of a script
}

var (
	python     = language{"python", "script.py"}
	javascript = language{"javascript", "script.js"}
)

// need returns the language's engine.
func (l language) need(t testing.TB) *engine.Engine {
	t.Helper()
	return enginetest.Open(t, l.name)
}

// write makes a module of a script.
func (l language) write(source string) ([]byte, error) {
	e, err := engine.Carried().Open(l.name)
	if err != nil {
		return nil, err
	}
	return e.Append([]engine.File{{Name: l.script, Data: []byte(source)}})
}

// load loads a script.
func (l language) load(t testing.TB, host *sandbox.Engine, source string) *sandbox.Program {
	t.Helper()
	l.need(t)
	module, err := l.write(source)
	if err != nil {
		t.Fatal(err)
	}
	p := sandboxtest.Load(t, host, module)
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, p, "{}", ample); err != nil { // which starts it
		t.Fatal(err)
	}
	return p
}

// shared is the sandbox that all concurrent tests use. It holds a script in each language, which keeps the engine's code in memory:
// compiling that takes seconds.
var shared struct {
	sync.Mutex
	host  *sandbox.Engine
	users int
}

// host returns a sandbox that tests share.
func host(t testing.TB) *sandbox.Engine {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.users == 0 {
		h, err := sandbox.New(context.Background(), sandbox.Config{Imports: toolfile.Imports(), CacheDir: sandboxtest.CodeDir()})
		if err != nil {
			t.Fatal(err)
		}
		shared.host = h
		for _, l := range []language{python, javascript} {
			if module, err := l.write(well[l]); err == nil {
				if _, err := h.Load(module, h.Modules()...); err != nil { // closed when the sandbox is
					t.Error(err)
				}
			}
		}
	}
	shared.users++
	t.Cleanup(func() {
		shared.Lock()
		defer shared.Unlock()
		if shared.users--; shared.users == 0 {
			if err := shared.host.Close(context.Background()); err != nil {
				t.Errorf("close the sandbox: %v", err)
			}
		}
	})
	return shared.host
}

// well are scripts that work.
var well = map[language]string{
	python:     "from toolsrv import tool\n@tool\ndef f() -> str:\n    \"\"\"Answers.\"\"\"\n    return 'well'\n",
	javascript: "import { tool } from 'toolsrv';\nexport const f = tool({ description: 'Answers.', run: () => 'well' });\n",
}

// ample are limits that no test here should come near.
var ample = limits.Limits{Timeout: time.Minute, Concurrency: 1}

// call calls the only tool of a script.
func call(t testing.TB, p *sandbox.Program, input string, l limits.Limits) (string, error) {
	t.Helper()
	output, err := p.Tool("script", 0, l).Call(t.Context(), sandbox.CallSpec{Input: []byte(input)})
	return string(output), err
}
