package catalog_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// own returns a tool of the program.
func own(namespace, name string) *wasmtools.Tool {
	return &wasmtools.Tool{Namespace: namespace, Name: name, Description: "Does " + name + ".", Parameters: schema.MustCompile(`{"type":"object"}`),
		Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte(`"of the program"`), nil })}
}

// TestToolsOfTheProgram checks that tools of the program are served beside those of files, from the first moment, whatever files come and go.
func TestToolsOfTheProgram(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "a.wasm", version(t, "v0001", "math", "add", "sub"))
	testkit.Put(t, directory, "b.wasm", version(t, "v0001", "math", "mul"))
	c := start(t, options{Directory: directory, Tools: []*wasmtools.Tool{own("math", "add"), own("", "now")}})
	for _, path := range []string{"/math/add", "/now"} {
		if _, ok := c.Table().Lookup(path); !ok {
			t.Errorf("%s is not served at once", path)
		}
	}
	// A file that wants the path of such a tool is refused with all of its tools.
	awaitTable(t, c, []string{"/math/add", "/math/mul", "/now"}, []string{"a.wasm"})
	if why := reason(c.Table().Current(), filepath.Join(directory, "a.wasm")); !strings.Contains(why, "path /math/add is taken: the program") {
		t.Errorf("a.wasm is refused with %q", why)
	}
	swap(t, directory, "a.wasm", version(t, "v0002", "math", "sub"))
	swap(t, directory, "b.wasm", version(t, "v0002", "math-add", "x"))
	awaitTable(t, c, []string{"/math-add/x", "/math/add", "/math/sub", "/now"}, nil)
	route, _ := c.Table().Lookup("/math/add")
	if got, err := route.Tool.Call(t.Context(), &wasmtools.Call{Arguments: []byte("{}")}); string(got) != `"of the program"` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if err := c.Reconfigure(catalog.Configuration{Policy: wasmtools.Policy{Disabled: []string{"now"}}}); err != nil {
		t.Fatal(err)
	}
	if route, _ := c.Table().Lookup("/now"); route.Enabled {
		t.Error("the policy does not reach a tool of the program")
	}
}

func TestToolsOfTheProgramRefused(t *testing.T) {
	t.Parallel()
	bad := own("", "bad")
	bad.Parameters = nil
	for want, tools := range map[string][]*wasmtools.Tool{
		"path /add is taken":          {own("", "add"), own("", "add")},
		"has no Parameters":           {bad},
		"is reserved for the service": {own("", "tools")},
	} {
		c, err := catalog.Start(t.Context(), catalog.Options{Sources: []catalog.Sourced{{Source: newDirectory(t, options{Directory: t.TempDir()})}}, Engine: sandboxtest.Engine(t, sandbox.Config{}), Tools: tools})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v, want an error with %q", c, err, want)
		}
	}
}
