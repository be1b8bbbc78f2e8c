package wasmtools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/internal/typed"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// NewTool returns a tool that is a Go function. Its name is its path, such as "math/add"; the first slash may be missing. Agents
// choose the tool by its description, which should say what the tool does and when to use it.
//
// In is the type of the arguments, a struct or a map with string keys, and Out that of the result. Their schemas are derived
// as in the SDK for Go, from struct tags such as description:"…", default:"…", minimum:"0" and enum:"a,b", which docs/go.md
// lists. f is called with arguments that the schema accepts, with the defaults filled in. It is called concurrently. What it
// returns may be shared by several calls: it is only read.
//
// Clients see an error of f: see [Caller]. A result that JSON cannot express, such as NaN, counts as CodeToolBadOutput. The
// other fields of the Tool may be set until it is in a table.
//
// NewTool panics if the name is not valid, the description or f is missing, or a type cannot be described.
func NewTool[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) *Tool {
	if f == nil {
		return NewToolWithCall[In, Out](name, description, nil)
	}
	return NewToolWithCall(name, description, func(ctx context.Context, _ *Call, in In) (Out, error) { return f(ctx, in) })
}

// NewToolWithCall is [NewTool] for a function that needs its call: call.Principal is who calls, call.Log says something before the
// result, and call.Progress how far it is. f must not keep the call.
func NewToolWithCall[In, Out any](name, description string, f func(ctx context.Context, call *Call, in In) (Out, error)) *Tool {
	n := &native[In, Out]{f: f}
	t, err := newTool(name, description, n, reflect.TypeFor[In](), reflect.TypeFor[Out]())
	if err == nil && f == nil {
		err = errors.New("it has no function")
	}
	if err != nil {
		panic(fmt.Sprintf("wasmtools.NewTool %q: %v", name, err))
	}
	n.results = typed.ResultsOf(reflect.TypeFor[Out]())
	return t
}

// newTool is the part of NewTool that is the same for all types.
func newTool(name, description string, caller Caller, in, out reflect.Type) (*Tool, error) {
	t := &Tool{Name: strings.TrimPrefix(name, "/"), Description: description, Caller: caller}
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

// native is the Caller of NewTool.
type native[In, Out any] struct {
	f       func(context.Context, *Call, In) (Out, error)
	results typed.Results
}

// IsRunner says that results are JSON, and that errors are as clients see them.
func (*native[In, Out]) IsRunner() {}

// Call decodes the arguments, calls the function and encodes its result.
func (n *native[In, Out]) Call(ctx context.Context, call *Call) ([]byte, error) {
	var in In
	if err := typed.Decode(call.Arguments, &in); err != nil {
		return nil, &Error{Code: CodeToolError, ToolCode: string(CodeInvalidArguments), Message: err.Error()}
	}
	begun := call.start()
	out, err := n.f(ctx, call, in)
	call.ran(begun)
	if err != nil {
		return nil, nativeError(ctx, err)
	}
	result, err := n.results.Encode(&out)
	if err != nil {
		return nil, &Error{Code: CodeToolBadOutput, Err: fmt.Errorf("the result can't be written as JSON: %w", err)}
	}
	return result, nil
}

// maxMessage is how many bytes of a plain error's text clients see, as in the SDKs.
const maxMessage = 8 << 10

// nativeOutcome returns what clients see of a result or an error that the tool's own code returned.
func nativeOutcome(ctx context.Context, result []byte, err error) ([]byte, error) {
	switch {
	case err != nil:
		return nil, nativeError(ctx, err)
	case len(result) > 0 && !(utf8.Valid(result) && json.Valid(result)):
		return nil, &Error{Code: CodeToolBadOutput, Err: errors.New("the result is not JSON in UTF-8: encode it with json.Marshal")}
	}
	return result, nil
}

// nativeError returns what clients see of an error that the tool's own code returned.
func nativeError(ctx context.Context, err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		if own == nil || own == err || own.Code != CodeToolError || own.Err != nil { // a cause is part of the text, and not for clients
			return err
		}
		whole := *own
		whole.Message = text.Clip(err.Error(), maxMessage)
		return &whole
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return err // the tool handed on why its call ended
	}
	return &Error{Code: CodeToolError, Message: text.Clip(err.Error(), maxMessage)}
}
