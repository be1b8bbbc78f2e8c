// Package conformance_test runs the guests of every SDK through the vectors of testdata/abi, in the real host and behind
// the server's own validation. testdata/abi/README.md describes them.
package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

const kit = "../../testdata/abi/"

var update = flag.Bool("update", false, "write testdata/abi/manifest.json anew, from the Go guest")

// A vector is a call of a guest and how it must end.
type vector struct {
	Name, Guards, Tool, Needs string
	Arguments                 json.RawMessage
	Body                      *string
	Big                       struct {
		Text  string
		Times int
	}
	Limits struct{ Timeout string }
	Calls  int
	Want   struct {
		Result               json.RawMessage
		Code, Message, Check string
		Status               int
		ToolCode             string `json:"tool_code"`
		MessageHas           string `json:"message_has"`
		Data                 json.RawMessage
		Progress             []report
		Log                  *[][2]string
		LogHas               string `json:"log_has"`
	}
}

// A report is a progress report of a call: done, total and message.
type report [3]any

// A listener keeps the reports of a call.
type listener struct{ reports []report }

func (l *listener) Log(slog.Level, string, string) {}

func (l *listener) Progress(done, total float64, message string) {
	l.reports = append(l.reports, report{done, total, message})
}

// expand returns a text in which @big is replaced by a long text.
func (v *vector) expand(text []byte) []byte {
	if v.Big.Times == 0 || text == nil {
		return text
	}
	return bytes.ReplaceAll(text, []byte(`"@big"`), []byte(`"`+strings.Repeat(v.Big.Text, v.Big.Times)+`"`))
}

func vectors(t *testing.T) []vector {
	t.Helper()
	text, err := os.ReadFile(kit + "vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var all []vector
	if err := d.Decode(&all); err != nil {
		t.Fatalf("vectors.json: %v", err)
	}
	names := map[string]bool{}
	for _, v := range all {
		if v.Name == "" || v.Guards == "" || v.Tool == "" || names[v.Name] || (v.Arguments == nil) == (v.Body == nil) {
			t.Errorf("vector %q: it needs a name of its own, guards, a tool, and either arguments or a body", v.Name)
		}
		names[v.Name] = true
	}
	return all
}

// TestVectors tries every guest that can be built here.
func TestVectors(t *testing.T) {
	t.Parallel()
	all := vectors(t)
	for _, g := range guests() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			host := start(t, g.build(t))
			t.Run("manifest", host.checkManifest)
			for _, v := range all {
				t.Run(v.Name, func(t *testing.T) {
					t.Parallel()
					if slices.Contains(g.lacks, v.Needs) {
						t.Skipf("%s has no %s", g.name, v.Needs)
					}
					host.run(t, &v)
				})
			}
		})
	}
}

// A host has one guest loaded.
type host struct {
	program  *sandbox.Program
	text     []byte // of the manifest
	manifest *manifest.Manifest
	log      *record
}

func start(t *testing.T, module []byte) *host {
	t.Helper()
	h := &host{log: &record{}}
	engine := sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: sandboxtest.CodeDir(), Logger: slog.New(h.log)})
	h.program = sandboxtest.Load(t, engine, module)
	if err := h.program.Compile(t.Context()); err != nil { // not within a call's time limit
		t.Fatal(err)
	}
	var err error
	if h.text, err = h.program.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h.manifest, err = toolfile.ParseManifest(h.text); err != nil {
		t.Fatal(err)
	}
	return h
}

// checkManifest compares how the guest describes itself with the kit's manifest.
func (h *host) checkManifest(t *testing.T) {
	var got map[string]any
	if err := json.Unmarshal(h.text, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "sdk")
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update && strings.HasPrefix(h.manifest.SDK, "go/") {
		if err := os.WriteFile(kit+"manifest.json", text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(kit + "manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("the manifest differs from testdata/abi/manifest.json (go test ./test/conformance -update writes it from Go's):\n%s", difference(string(text), string(want)))
	}
}

// difference returns the first lines that differ.
func difference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	from := max(0, i-6)
	return fmt.Sprintf("line %d\ngot\n%s\nwant\n%s", i+1, strings.Join(a[from:min(i+6, len(a))], "\n"), strings.Join(b[from:min(i+6, len(b))], "\n"))
}

// run makes the vector's calls.
func (h *host) run(t *testing.T, v *vector) {
	limits := limits.Limits{Timeout: time.Minute}
	if v.Limits.Timeout != "" {
		d, err := time.ParseDuration(v.Limits.Timeout)
		if err != nil {
			t.Fatal(err)
		}
		limits.Timeout = d
	}
	index, parameters := h.tool(t, v.Tool)
	tool := h.program.Tool(v.Name, index, limits)
	body := v.expand(v.Arguments)
	if v.Body != nil {
		body = []byte(*v.Body)
	}
	seen := map[string]bool{}
	for range max(v.Calls, 1) {
		filled, err := parameters.Validate(body)
		var result []byte
		var heard listener
		if err == nil {
			result, err = tool.Call(t.Context(), sandbox.CallSpec{Input: filled, Listener: &heard})
		}
		v.check(t, result, err)
		if want := v.Want.Progress; !slices.Equal(heard.reports, want) {
			t.Errorf("got the progress %.200v, want %.200v; %s", heard.reports, want, v.Guards)
		}
		if v.Want.Check == "differs" && seen[string(result)] {
			t.Errorf("got %s twice", result)
		}
		seen[string(result)] = true
	}
	v.checkLog(t, h.log.of(v.Name))
}

func (h *host) tool(t *testing.T, name string) (int32, *schema.Schema) {
	t.Helper()
	for i, tool := range h.manifest.Tools {
		if tool.Name == name {
			parameters, err := schema.CompileParameters(tool.Parameters)
			if err != nil {
				t.Fatal(err)
			}
			return int32(i), parameters
		}
	}
	t.Fatalf("the guest has no tool %s", name)
	return 0, nil
}

// check compares the end of a call with the expected one.
func (v *vector) check(t *testing.T, result []byte, err error) {
	t.Helper()
	want := &v.Want
	if want.Code != "" {
		v.checkError(t, result, err)
		return
	}
	if err != nil {
		t.Fatalf("got the error %v, want a result; %s", err, v.Guards)
	}
	switch want.Check {
	case "":
		if text := v.expand(want.Result); !same(result, text) {
			t.Errorf("got %.200s, want %.200s; %s", result, text, v.Guards)
		}
	case "differs":
	case "now":
		checkBetween(t, result, time.Now().Add(-time.Minute).UnixMilli(), time.Now().UnixMilli())
	case "an hour":
		checkBetween(t, result, (59 * time.Minute).Milliseconds(), time.Hour.Milliseconds())
	default:
		t.Errorf("there is no check %q", want.Check)
	}
}

func checkBetween(t *testing.T, result []byte, least, most int64) {
	t.Helper()
	if n, err := strconv.ParseInt(string(result), 10, 64); err != nil || n < least || n > most {
		t.Errorf("got %s, want an integer from %d to %d", result, least, most)
	}
}

func (v *vector) checkError(t *testing.T, result []byte, err error) {
	t.Helper()
	want := &v.Want
	var failed *sandbox.Error
	var refused *misfit.Error
	switch {
	case errors.As(err, &refused):
		if got := string(wasmtools.CodeInvalidArguments); got != want.Code {
			t.Errorf("got the error %s (%v), want %s; %s", got, err, want.Code, v.Guards)
		}
		return
	case !errors.As(err, &failed):
		t.Fatalf("got %.200s, %v, want the error %s; %s", result, err, want.Code, v.Guards)
	}
	status := failed.Status
	if status == 0 && failed.Outcome == sandbox.ToolError {
		status = 400
	}
	if string(failed.Outcome) != want.Code || want.Status != status || failed.Code != want.ToolCode {
		t.Errorf("got %s, status %d, code %q (%v), want %s, %d, %q; %s", failed.Outcome, status, failed.Code, err, want.Code, want.Status, want.ToolCode, v.Guards)
	}
	if want.Message != "" && failed.Message != want.Message || !strings.Contains(failed.Message, want.MessageHas) {
		t.Errorf("got the message %.200q, want %q%s; %s", failed.Message, want.Message, want.MessageHas, v.Guards)
	}
	if data := v.expand(want.Data); (data != nil || failed.Outcome == sandbox.ToolError) && !same(failed.Data, data) {
		t.Errorf("got the data %.200s, want %.200s; %s", failed.Data, data, v.Guards)
	}
}

func (v *vector) checkLog(t *testing.T, got [][2]string) {
	t.Helper()
	if want := v.Want.Log; want != nil && fmt.Sprint(got) != fmt.Sprint(*want) {
		t.Errorf("got the log %q, want %q; %s", got, *want, v.Guards)
	}
	if v.Want.LogHas != "" && !strings.Contains(fmt.Sprint(got), v.Want.LogHas) {
		t.Errorf("got the log %q, want %q in it; %s", got, v.Want.LogHas, v.Guards)
	}
}

// A record keeps the log lines of each tool.
type record struct {
	mu    sync.Mutex
	lines map[string][][2]string
}

// Enabled keeps every level.
func (r *record) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs is not used by the sandbox.
func (r *record) WithAttrs([]slog.Attr) slog.Handler { return r }

// WithGroup is not used by the sandbox.
func (r *record) WithGroup(string) slog.Handler { return r }

// Handle keeps a line that a tool wrote.
func (r *record) Handle(_ context.Context, line slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	line.Attrs(func(a slog.Attr) bool {
		if a.Key == "tool" {
			if r.lines == nil {
				r.lines = map[string][][2]string{}
			}
			r.lines[a.Value.String()] = append(r.lines[a.Value.String()], [2]string{line.Level.String(), line.Message})
		}
		return true
	})
	return nil
}

func (r *record) of(tool string) [][2]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines[tool]
}
