package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/granted"
	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

func TestMain(m *testing.M) { testkit.Main(m, "wazero", "internal/runtime/sandbox.") }

// A world is a service with tools that call each other: the tools of a file, which only call others, and Go functions.
type world struct {
	table   *wasmtools.RouteTable
	service tools.Service
	log     testkit.Log
	tools   []*wasmtools.Tool
	engine  *sandbox.Engine
	limits  map[string]limits.Limits // by path
	all     limits.Limits            // the limits of tools that are not in limits
	more    []hostcall.Grant         // what else is granted to every tool

	observers []invoke.Observer
}

// callers are the tools of caller.wat, in its order.
var callers = []string{"once", "loops", "thrice", "wild", "long"}

// newWorld returns a service with Go functions and the tools of caller.wat in the namespaces "a" and "b". They may call each other, and
// everything in "go".
func newWorld(t *testing.T, c sandbox.Config, set func(w *world), natives ...*wasmtools.Tool) *world {
	t.Helper()
	w := &world{tools: natives, limits: map[string]limits.Limits{}}
	if set != nil {
		set(w)
	}
	w.table = &wasmtools.RouteTable{}
	c.Logger = w.log.Logger(slog.LevelDebug)
	w.engine = sandboxtest.Engine(t, c)
	w.service = tools.Service{
		Invoker: invoker.New(invoker.Options{Observers: w.observers}),
		Table:   func() *wasmtools.RouteTable { return w.table },
		Logger:  c.Logger,
	}
	for _, namespace := range []string{"a", "b"} {
		w.load(t, namespace)
	}
	table, err := wasmtools.NewRouteTable(w.tools...)
	if err != nil {
		t.Fatal(err)
	}
	w.table = table
	return w
}

// load adds the tools of caller.wat.
func (w *world) load(t *testing.T, namespace string) {
	t.Helper()
	m := manifest.Manifest{ABI: manifest.ABI, Namespace: namespace}
	for _, name := range callers {
		m.Tools = append(m.Tools, manifest.Tool{Name: name, Description: "Calls another.", Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	m.Needs = wasmtools.Needs{"tools": {Words: w.mayCall()}}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	file, err := toolfile.Load(w.engine, sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/caller"), text), toolfile.Place{Source: namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(file.Close)
	limitsFor := func(path string) limits.Limits { return limittable.Over(w.limits[path], w.all) }
	if err := file.Build(limitsFor, w); err != nil {
		t.Fatal(err)
	}
	w.tools = append(w.tools, file.Tools()...)
}

// mayCall returns the tools that others may call: all existing ones, and a missing one.
func (w *world) mayCall() []string {
	may := []string{"go/gone", "toolsrv/caller"}
	for _, t := range w.tools {
		if t.Namespace == "go" && t.Name != "private" {
			may = append(may, "go/"+t.Name)
		}
	}
	for _, name := range callers {
		may = append(may, "a/"+name, "b/"+name)
	}
	return may
}

// For grants every tool what it needs.
func (w *world) For(_ string, needs wasmtools.Needs) granted.Tool {
	return granted.Tool{Values: append([]hostcall.Grant{tools.Grant(&w.service, needs["tools"].Words...)}, w.more...), Waits: true}
}

// A failure is a failure as a guest sees it.
type failure struct {
	Code     string          `json:"code"`
	Message  string          `json:"message"`
	ToolCode string          `json:"tool_code"`
	Data     json.RawMessage `json:"data"`
}

// call makes the tool at a path call another one, and returns the other tool's answer.
func (w *world) call(t *testing.T, path string, p *wasmtools.Principal, id, arguments string) (string, *failure, error) {
	t.Helper()
	text, err := w.raw(t.Context(), &wasmtools.Call{Principal: p, Arguments: []byte(fmt.Sprintf(`{"id":"%s","args":%s}`, id, arguments))}, path)
	if err != nil {
		return "", nil, err
	}
	var answer struct {
		Result  json.RawMessage
		Failure *failure
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	return string(answer.Result), answer.Failure, nil
}

func (w *world) raw(ctx context.Context, call *wasmtools.Call, path string) ([]byte, error) {
	route, err := invoke.Find(w.table.Current(), path, call.Principal)
	if err != nil {
		return nil, err
	}
	return w.service.Invoker.Call(ctx, route, call)
}

// nested returns arguments that make the tools of caller.wat at a path call each other n deep. The last one calls id.
func nested(n int, path, id, arguments string) string {
	for range n - 1 {
		arguments = fmt.Sprintf(`{"id":"%s","args":%s}`, id, arguments)
		id = path
	}
	return fmt.Sprintf(`{"id":"%s","args":%s}`, id, arguments)
}

// wantCode checks that an error has a code.
func wantCode(t *testing.T, err error, code wasmtools.Code) {
	t.Helper()
	if e, ok := errors.AsType[*wasmtools.Error](err); !ok || e.Code != code {
		t.Errorf("got %v, want an error with the code %s", err, code)
	}
}

// wantFailure checks what a guest is told.
func wantFailure(t *testing.T, f *failure, code string, parts ...string) {
	t.Helper()
	if f == nil || f.Code != code {
		t.Fatalf("got %+v, want a failure with the code %s", f, code)
	}
	for _, part := range parts {
		if !strings.Contains(f.Message, part) {
			t.Errorf("got the message %q, want it to have %q", f.Message, part)
		}
	}
}
