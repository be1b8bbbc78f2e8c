package wasmtools_test

import (
	"context"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// anything is a schema that accepts every body.
var anything = schema.MustCompile(`{"type":"object"}`)

var echo = wasmtools.CallerFunc(func(_ context.Context, call *wasmtools.Call) ([]byte, error) { return call.Arguments, nil })

// tool returns a tool that can be served.
func tool(namespace, name string) *wasmtools.Tool {
	return &wasmtools.Tool{Namespace: namespace, Name: name, Description: "A tool.", Parameters: anything, Caller: echo}
}

// from returns a tool of a file.
func from(source, namespace, name string) *wasmtools.Tool {
	t := tool(namespace, name)
	t.Source = source
	return t
}

func TestToolNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ namespace, name, path, id string }{
		{"", "add", "/add", "add"},
		{"math", "add", "/math/add", "math-add"},
		{"math/basic", "add", "/math/basic/add", "math-basic-add"},
		{"a-b", "c_d", "/a-b/c_d", "a-b-c_d"},
	} {
		got := tool(c.namespace, c.name)
		if got.Path() != c.path || got.OperationID() != c.id {
			t.Errorf("%q %q: got %s %s, want %s %s", c.namespace, c.name, got.Path(), got.OperationID(), c.path, c.id)
		}
	}
}

func TestCallerFunc(t *testing.T) {
	t.Parallel()
	if got, err := echo.Call(t.Context(), &wasmtools.Call{Arguments: []byte("{}")}); string(got) != "{}" || err != nil {
		t.Errorf("got %s, %v, want {}", got, err)
	}
}
