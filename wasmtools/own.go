package wasmtools

import (
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
)

// maxMessage is how many bytes of a plain error's text clients see, as in the SDKs.
const maxMessage = 8 << 10

// ownOutcome returns what clients see of a result or an error that the tool's own code returned.
func ownOutcome(ctx context.Context, result []byte, err error) ([]byte, error) {
	switch {
	case err != nil:
		return nil, OwnError(ctx, err)
	case len(result) > 0 && !(utf8.Valid(result) && json.Valid(result)):
		return nil, &Error{Code: CodeToolBadOutput, Err: errors.New("the result is not JSON in UTF-8: encode it with json.Marshal")}
	}
	return result, nil
}

// OwnError returns what clients see of an error that a tool's own code returned: see [Caller].
func OwnError(ctx context.Context, err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		if own == nil || own == err || own.Code != CodeToolError || own.Err != nil { // the text contains the cause, which is not for clients
			return err
		}
		whole := *own
		whole.Message = text.Clip(err.Error(), maxMessage)
		return &whole
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return err // the tool has returned why its call ended
	}
	return &Error{Code: CodeToolError, Message: text.Clip(err.Error(), maxMessage)}
}
