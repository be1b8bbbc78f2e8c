package sandbox_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// guests builds the guests in testdata with real compilers, each of them once.
type guests struct {
	mu    sync.Mutex
	built map[string][]byte
}

var built = guests{built: map[string][]byte{}}

func (g *guests) build(t testing.TB, name string, command ...string) []byte {
	t.Helper()
	if command[0] == "go" && testkit.Race(t) {
		t.Skip("compiling a module in Go takes 20 s with -race, and shows nothing more")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if module, ok := g.built[name]; ok {
		return module
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Skipf("there is no %s to build with: %v", command[0], err)
	}
	out := filepath.Join(t.TempDir(), name+".wasm")
	cmd := exec.Command(command[0], append(command[1:], "-o", out)...)
	if command[0] == "go" { // flags come before the package
		cmd = exec.Command("go", append(command[1:], "-ldflags=-s", "-o", out, "./testdata/"+name)...)
	}
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, text)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	g.built[name] = module
	return module
}

func goReactor(t testing.TB) []byte {
	return built.build(t, "reactor", "go", "build", "-buildmode=c-shared")
}

func goCommand(t testing.TB) []byte { return built.build(t, "command", "go", "build") }

// Proves: Nothing without a grant
func TestGoReactor(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	var r testkit.Log
	e := sandboxtest.Engine(t, sandbox.Config{Logger: r.Logger(slog.LevelDebug)})
	p := sandboxtest.Load(t, e, goReactor(t))
	ample := limits.Limits{Timeout: time.Minute}
	call := func(t *testing.T, index int32, limits limits.Limits, input string) (string, error) {
		out, err := p.Tool("go", index, limits).Call(t.Context(), sandbox.CallSpec{Input: []byte(input)})
		return string(out), err
	}
	if err := p.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}

	t.Run("echo", func(t *testing.T) {
		t.Parallel()
		out, err := call(t, 0, ample, `{"a":[1,"ü"]}`)
		if want := `{"a":[1,"ü"],"tool":"reactor"}`; err != nil || out != want {
			t.Errorf("got %s, %v, want %s", out, err, want)
		}
	})
	t.Run("nested", func(t *testing.T) {
		t.Parallel()
		// The deepest body that the service accepts is within the default limits of a guest in Go.
		const depth = 128
		value := strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1)
		out, err := call(t, 0, ample, `{"a":`+value+`}`)
		if want := `{"a":` + value + `,"tool":"reactor"}`; err != nil || out != want {
			t.Errorf("got %s, %v, want %s", out, err, want)
		}
	})
	t.Run("grants", func(t *testing.T) {
		t.Parallel()
		type answer struct {
			Args, Env, Year                     int
			Random                              []byte
			Slept, File, Directory, Write, Dial bool
		}
		var answers [2]answer
		for i := range answers {
			out, err := call(t, 1, ample, `{}`)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(out), &answers[i]); err != nil {
				t.Fatal(err)
			}
		}
		a := answers[0]
		if a.Args != 0 || a.Env != 0 || !a.File || !a.Directory || !a.Write || !a.Dial {
			t.Errorf("something is granted: %+v", a)
		}
		if !a.Slept || a.Year < 2024 {
			t.Errorf("the clock is wrong: %+v", a)
		}
		if string(a.Random) == string(answers[1].Random) {
			t.Errorf("randomness is the same in two calls: %x", a.Random)
		}
	})
	t.Run("goroutines", func(t *testing.T) {
		t.Parallel()
		if out, err := call(t, 2, ample, `{}`); err != nil || out != "4950" {
			t.Errorf("got %s, %v, want 4950", out, err)
		}
	})
	t.Run("log", func(t *testing.T) {
		t.Parallel()
		if out, err := call(t, 3, ample, `{}`); err != nil || out != "null" {
			t.Fatalf("got %s, %v, want null", out, err)
		}
		for _, line := range []string{`msg="to stdout" tool=go source=stdout`, `msg="to stderr" tool=go source=stderr`, `msg="no end" tool=go source=stdout`} {
			if !strings.Contains(r.String(), line) {
				t.Errorf("no line %s in the log", line)
			}
		}
	})
	broken := []struct {
		name     string
		index    int32
		limits   limits.Limits
		outcomes []sandbox.Outcome
	}{
		{"panic", 4, ample, []sandbox.Outcome{sandbox.ToolTrapped}},
		// Go's stack is in linear memory, so it depends on the compiler which limit is reached first.
		{"recursion", 5, ample, []sandbox.Outcome{sandbox.ToolStack, sandbox.ToolMemory}},
		{"memory", 6, ample, []sandbox.Outcome{sandbox.ToolMemory}},
		{"spin", 7, limits.Limits{Timeout: 200 * time.Millisecond}, []sandbox.Outcome{sandbox.ToolTimeout}},
		{"sleep", 8, limits.Limits{Timeout: 200 * time.Millisecond}, []sandbox.Outcome{sandbox.ToolTimeout}},
		{"deadlock", 9, ample, []sandbox.Outcome{sandbox.ToolTrapped}},
		{"exit", 10, ample, []sandbox.Outcome{sandbox.ToolTrapped}},
	}
	for _, test := range broken {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := call(t, test.index, test.limits, `{}`)
			for _, o := range test.outcomes[1:] {
				if e, ok := err.(*sandbox.Error); ok && e.Outcome == o {
					return
				}
			}
			wantError(t, err, test.outcomes[0], "")
		})
	}
}

// commands are the cases for every plain WASI program in testdata.
func commands(t *testing.T, module []byte) {
	var r testkit.Log
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{Logger: r.Logger(slog.LevelDebug)}), module)
	tool := p.Tool("command", 0, limits.Limits{Timeout: 5 * time.Minute})
	out, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`{"a":1}`)})
	if want := `{"a":1}`; err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
	if !strings.Contains(r.String(), `msg="a log line" tool=command source=stderr`) {
		t.Errorf("stderr is not in the log: %s", r.String())
	}
	_, err = tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(`{"do":"fail"}`)})
	if e := wantError(t, err, sandbox.ToolError, "the reason"); e.Message != "the reason" {
		t.Errorf("got message %q, want the last line alone", e.Message)
	}
	big := `{"a":"` + strings.Repeat("x", 500_000) + `"}`
	if out, err = tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(big)}); err != nil || strings.TrimSpace(string(out)) != big {
		t.Errorf("got %d bytes, %v, want %d", len(out), err, len(big))
	}
}

func TestGoCommand(t *testing.T) {
	t.Parallel()
	commands(t, goCommand(t))
}

func TestRustCommand(t *testing.T) {
	t.Parallel()
	library, err := exec.Command("rustc", "--print", "target-libdir", "--target", "wasm32-wasip1").Output()
	if err == nil {
		_, err = os.Stat(strings.TrimSpace(string(library)))
	}
	if err != nil {
		t.Skip("no rustc with the target wasm32-wasip1: ", err)
	}
	commands(t, built.build(t, "rust", "rustc", "--edition=2021", "-O", "--target=wasm32-wasip1", "testdata/rust/command.rs"))
}

// TestCommand runs a plain WASI program. The test determines each of its steps.
func TestCommand(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/good/command"))
	tool := p.Tool("x", 0, limits.Limits{})
	for _, test := range []struct {
		name, input, output string
		outcome             sandbox.Outcome
		message             string
	}{
		{name: "returns", input: `{"a": "some more bytes"}`, output: `{"a": "some more bytes"}`},
		{name: "exits with 0", input: `0.12345678901234567890`, output: `0.12345678901234567890`},
		{name: "exits with a reason", input: `3`, outcome: sandbox.ToolError, message: "  the last line  "},
		{name: "exits without", input: `9`, outcome: sandbox.ToolError, message: "ended with exit code 9"},
		{name: "no input", input: ``, outcome: sandbox.ToolBadOutput, message: "without any output"},
		{name: "not JSON", input: `xyz`, outcome: sandbox.ToolBadOutput, message: "not valid JSON"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out, err := tool.Call(t.Context(), sandbox.CallSpec{Input: []byte(test.input)})
			if test.outcome != "" {
				wantError(t, err, test.outcome, strings.TrimSpace(test.message))
				return
			}
			if err != nil || string(out) != test.output {
				t.Errorf("got %s, %v, want %s", out, err, test.output)
			}
		})
	}
}
