package wasmtools

import (
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
)

// A Runner is a Caller that is part of the service and not a tool's own code, such as the sandbox's: what it returns is JSON,
// and an error of it that is no *Error is a failure of the service.
type Runner interface {
	Caller
	// IsRunner does nothing: it tells a Runner from other Callers.
	IsRunner()
}

// maxMessage is the most of a plain error's text that clients see, in bytes, as in the SDKs.
const maxMessage = 8 << 10

// Call runs the tool with arguments that its schema accepts, and makes of what its Caller returns what clients are told: see
// [Caller]. The caller owns the result.
func (t *Tool) Call(ctx context.Context, arguments []byte) (result []byte, err error) {
	result, err = t.Caller.Call(ctx, arguments)
	if _, ok := t.Caller.(Runner); !ok {
		result, err = nativeOutcome(ctx, result, err)
	}
	if err != nil {
		return nil, err
	}
	if len(result) == 0 {
		return nil, &Error{Code: CodeToolBadOutput, Message: "The tool returned no result"}
	}
	return result, nil
}

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
