// Package fault says which of the service's errors any error is, and at which level the log tells it.
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

// codes are all of the service.
var codes = [...]wasmtools.Code{wasmtools.CodeUnauthorized, wasmtools.CodeForbidden, wasmtools.CodeHostNotAllowed, wasmtools.CodeOriginNotAllowed, wasmtools.CodeNotFound, wasmtools.CodeMethodNotAllowed, wasmtools.CodeChanged, wasmtools.CodeRateLimited, wasmtools.CodeRequestTimeout, wasmtools.CodeInputTooLarge, wasmtools.CodeUnsupportedMediaType,
	wasmtools.CodeInvalidArguments, wasmtools.CodeToolError, wasmtools.CodeToolTrapped, wasmtools.CodeToolBadOutput, wasmtools.CodeToolMemory, wasmtools.CodeToolStack, wasmtools.CodeToolFuel, wasmtools.CodeToolTimeout,
	wasmtools.CodeToolChanged, wasmtools.CodeToolDisabled, wasmtools.CodeToolNotGranted, wasmtools.CodeOverloaded, wasmtools.CodeNotReady, wasmtools.CodeCancelled, wasmtools.CodeInternal}

// Codes returns all codes of the service.
func Codes() []wasmtools.Code { return slices.Clone(codes[:]) }

// Level returns at which level the log tells that a request or a call ended with an error. LevelWarn and LevelError are what an
// operator should look at: a tool that broke or met a limit, a server that has no room, a fault of the service. What is a client's own
// doing, or was the operator's decision, is LevelInfo.
func Level(e *wasmtools.Error) slog.Level {
	switch e.Code {
	case wasmtools.CodeInternal:
		return slog.LevelError
	case wasmtools.CodeToolTrapped, wasmtools.CodeToolBadOutput, wasmtools.CodeToolMemory, wasmtools.CodeToolStack, wasmtools.CodeToolFuel, wasmtools.CodeToolTimeout, wasmtools.CodeOverloaded:
		return slog.LevelWarn
	case wasmtools.CodeToolError:
		if e.Status >= 500 || e.Err != nil { // it could not do its work, or what it said of that was not well-formed
			return slog.LevelWarn
		}
	}
	return slog.LevelInfo
}

// Of returns the service's error for any error of a call with ctx or of a request: the *wasmtools.Error that err is or wraps, if its code is
// one of the service's; what the end of ctx means, if err is that; or else one with CodeInternal and err as its cause. Where that is
// CodeCancelled, and who ended ctx gave a *wasmtools.Error as the cause, it has the words of that. err must not be nil.
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
	case errors.Is(err, context.Canceled): // a Go function may hand on what its context told it
		return &wasmtools.Error{Code: wasmtools.CodeCancelled, Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &wasmtools.Error{Code: wasmtools.CodeToolTimeout, Err: err}
	}
	return &wasmtools.Error{Code: wasmtools.CodeInternal, Err: err}
}
