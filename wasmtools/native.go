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

// NewTool returns a tool that is a Go function. Its name is its path without the first slash, such as "math/add"; by the
// description agents choose it, so let it say what the tool does and when to use it.
//
// In is the arguments, a struct or a map with string keys, and Out the result. Their schemas are derived as the SDK for Go
// derives those of its tools, by struct tags such as description:"…", default:"…", minimum:"0" and enum:"a,b": the page
// docs/tools.md has the tables. f gets no arguments that the schema refuses, with defaults filled in. It is called
// concurrently, and may return what its calls share: that is read and not written to.
//
// An error of f is the tool's word, and clients see it; [Caller] tells more. A result that JSON can't express, such as NaN,
// counts as CodeToolBadOutput. The other fields of the Tool may be set until a table has it.
//
// NewTool panics where the name is not valid, the description or f is missing, or a type can't be described: that is a
// mistake in the program, which it tells when it starts.
func NewTool[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) *Tool {
	if f == nil {
		return NewToolWithCall[In, Out](name, description, nil)
	}
	return NewToolWithCall(name, description, func(ctx context.Context, _ *Call, in In) (Out, error) { return f(ctx, in) })
}

// NewToolWithCall is [NewTool] for a function that needs to know of its call: who calls, as call.Principal, or whom to tell
// what it does before it is done, by call.Log. f must not keep the call.
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

// newTool is what NewTool does for all types alike.
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
	if result != nil { // a nil *schema.Schema would be a Schema that is not nil
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

// IsRunner tells that results are JSON, and errors as clients are told.
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

// maxMessage is the most of a plain error's text that clients see, in bytes, as in the SDKs.
const maxMessage = 8 << 10

// nativeOutcome returns what clients are told of a call that the tool's own code answered.
func nativeOutcome(ctx context.Context, result []byte, err error) ([]byte, error) {
	switch {
	case err != nil:
		return nil, nativeError(ctx, err)
	case len(result) > 0 && !(utf8.Valid(result) && json.Valid(result)):
		return nil, &Error{Code: CodeToolBadOutput, Err: errors.New("the result is not JSON in UTF-8: encode it with json.Marshal")}
	}
	return result, nil
}

// nativeError returns what clients are told of an error of the tool's own code.
func nativeError(ctx context.Context, err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		if own == nil || own == err || own.Code != CodeToolError || own.Err != nil { // a cause is in the text, and not for clients
			return err
		}
		whole := *own
		whole.Message = text.Clip(err.Error(), maxMessage)
		return &whole
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return err // the service's word, which the tool handed on
	}
	return &Error{Code: CodeToolError, Message: text.Clip(err.Error(), maxMessage)}
}
