// Package fault maps any error to one of the service's errors, and says at which level it is logged.
package fault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// codes are all error codes of the service.
var codes = [...]wasmtools.Code{wasmtools.CodeUnauthorized, wasmtools.CodeForbidden, wasmtools.CodeHostNotAllowed, wasmtools.CodeOriginNotAllowed, wasmtools.CodeNotFound, wasmtools.CodeMethodNotAllowed, wasmtools.CodeChanged, wasmtools.CodeRateLimited, wasmtools.CodeRequestTimeout, wasmtools.CodeInputTooLarge, wasmtools.CodeUnsupportedMediaType,
	wasmtools.CodeInvalidArguments, wasmtools.CodeToolError, wasmtools.CodeToolTrapped, wasmtools.CodeToolBadOutput, wasmtools.CodeToolMemory, wasmtools.CodeToolStack, wasmtools.CodeToolFuel, wasmtools.CodeToolTimeout,
	wasmtools.CodeToolChanged, wasmtools.CodeToolDisabled, wasmtools.CodeToolNotGranted, wasmtools.CodeOverloaded, wasmtools.CodeNotReady, wasmtools.CodeCancelled, wasmtools.CodeInternal}

// Codes returns all codes of the service.
func Codes() []wasmtools.Code { return slices.Clone(codes[:]) }

// Level returns the level at which an error of a request or a call is logged. LevelWarn and LevelError are for what an operator should look at: a
// tool that failed or reached a limit, a server without room, a fault of the service. LevelInfo is for what the client did wrong, or the operator has
// decided.
func Level(e *wasmtools.Error) slog.Level {
	switch e.Code {
	case wasmtools.CodeInternal:
		return slog.LevelError
	case wasmtools.CodeToolTrapped, wasmtools.CodeToolBadOutput, wasmtools.CodeToolMemory, wasmtools.CodeToolStack, wasmtools.CodeToolFuel, wasmtools.CodeToolTimeout, wasmtools.CodeOverloaded:
		return slog.LevelWarn
	case wasmtools.CodeToolError:
		if e.Status >= 500 || e.Err != nil { // the tool could not do its work, or reported that in a wrong form
			return slog.LevelWarn
		}
	}
	return slog.LevelInfo
}

// Of returns the service's error for any error of a request, or of a call with ctx. If err is or wraps a *wasmtools.Error with one of the service's
// codes, that is the result. If err says that ctx has ended, the code is the one for that; if this is CodeCancelled and the cause of ctx is a
// *wasmtools.Error, its message is used. Any other error becomes the cause of an error with CodeInternal. err must not be nil.
func Of(ctx context.Context, err error) *wasmtools.Error {
	e := of(ctx, err)
	if e.Code != wasmtools.CodeCancelled {
		return e
	}
	if cause, ok := errors.AsType[*wasmtools.Error](context.Cause(ctx)); ok && cause.Code == wasmtools.CodeCancelled {
		return &wasmtools.Error{Code: wasmtools.CodeCancelled, Message: cause.Message, Err: e.Err}
	}
	return e
}

func of(ctx context.Context, err error) *wasmtools.Error {
	e, ok := errors.AsType[*wasmtools.Error](err)
	switch {
	case ok && e == nil:
		err = errors.New("the error is a nil *wasmtools.Error")
	case ok && slices.Contains(codes[:], e.Code):
		return e
	case ok:
		err = fmt.Errorf("unknown code %q: %w", text.Clip(string(e.Code), 256), err)
	case ctx.Err() == nil:
	case errors.Is(err, context.Canceled): // a tool written in Go may return the error of its context
		return &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &wasmtools.Error{Code: wasmtools.CodeToolTimeout, Err: err}
	}
	return &wasmtools.Error{Code: wasmtools.CodeInternal, Err: err}
}
