// Package gotool makes tools from Go functions. A program that embeds the server can serve such tools alone, or beside the tools from
// files.
package gotool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/typed"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// New returns a tool that is a Go function. Its name is its path, such as "math/add"; the first slash may be missing. Agents
// choose the tool by its description, which should say what the tool does and when to use it.
//
// In is the type of the arguments, a struct or a map with string keys, and Out the type of the result. Their schemas are derived
// as in the SDK for Go, from struct tags such as description:"…", default:"…", minimum:"0" and enum:"a,b", which docs/go.md
// lists. f is called with arguments that the schema accepts, with the defaults filled in. It is called concurrently. What it
// returns may be shared by several calls: it is only read.
//
// Clients see an error of f: see [wasmtools.Caller]. A result that JSON cannot express, such as NaN, counts as wasmtools.CodeToolBadOutput. The
// other fields of the Tool may be set until it is in a table.
//
// New panics if the name is not valid, the description or f is missing, or a type cannot be described.
func New[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) *wasmtools.Tool {
	if f == nil {
		return NewWithCall[In, Out](name, description, nil)
	}
	return NewWithCall(name, description, func(ctx context.Context, _ *wasmtools.Call, in In) (Out, error) { return f(ctx, in) })
}

// NewWithCall is [New] for a function that needs its call: call.Principal is the caller, call.Log sends a line before the
// result, and call.Progress reports how far the call is. f must not keep the call.
func NewWithCall[In, Out any](name, description string, f func(ctx context.Context, call *wasmtools.Call, in In) (Out, error)) *wasmtools.Tool {
	n := &function[In, Out]{f: f}
	t, err := newTool(name, description, n, reflect.TypeFor[In](), reflect.TypeFor[Out]())
	if err == nil && f == nil {
		err = errors.New("it has no function")
	}
	if err != nil {
		panic(fmt.Sprintf("gotool.New %q: %v", name, err))
	}
	n.results = typed.ResultsOf(reflect.TypeFor[Out]())
	return t
}

// newTool is the part of New that does not depend on the types.
func newTool(name, description string, caller wasmtools.Caller, in, out reflect.Type) (*wasmtools.Tool, error) {
	t := &wasmtools.Tool{Name: strings.TrimPrefix(name, "/"), Description: description, Caller: caller}
	if i := strings.LastIndexByte(t.Name, '/'); i >= 0 {
		t.Namespace, t.Name = t.Name[:i], t.Name[i+1:]
	}
	if strings.TrimSpace(description) == "" {
		return nil, errors.New("it has no description: say what it does")
	}
	parameters, err := typed.Arguments(in)
	if err != nil {
		return nil, err
	}
	compiled, err := schema.CompileParameters(parameters)
	if err != nil {
		return nil, fmt.Errorf("the schema of the arguments: %w", err)
	}
	t.Parameters = compiled
	result, err := typed.Result(out)
	if err != nil {
		return nil, err
	}
	if result != nil {
		if t.Result, err = schema.Compile(result); err != nil {
			return nil, fmt.Errorf("the schema of the result: %w", err)
		}
	}
	return t, t.Check()
}

// A function is the Caller of a tool that is a Go function.
type function[In, Out any] struct {
	f       func(context.Context, *wasmtools.Call, In) (Out, error)
	results typed.Results
}

// IsRunner marks a Caller whose results are JSON, and whose errors clients may see as they are.
func (*function[In, Out]) IsRunner() {}

// Call decodes the arguments, calls the function and encodes its result.
func (n *function[In, Out]) Call(ctx context.Context, call *wasmtools.Call) ([]byte, error) {
	var in In
	if err := typed.Decode(call.Arguments, &in); err != nil {
		return nil, &wasmtools.Error{Code: wasmtools.CodeToolError, ToolCode: string(wasmtools.CodeInvalidArguments), Message: err.Error()}
	}
	var begun time.Time
	if call.Times != nil {
		begun = time.Now()
	}
	out, err := n.f(ctx, call, in)
	if call.Times != nil {
		call.Times.Run = time.Since(begun)
	}
	if err != nil {
		return nil, wasmtools.OwnError(ctx, err)
	}
	result, err := n.results.Encode(&out)
	if err != nil {
		return nil, &wasmtools.Error{Code: wasmtools.CodeToolBadOutput, Err: fmt.Errorf("the result can't be written as JSON: %w", err)}
	}
	return result, nil
}
