package toolset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/fault"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// errorKey is the member of a result's _meta that says in structured form why the call failed. It is not in structuredContent, because clients
// validate that against the tool's output schema, even if the call has failed.
const errorKey = `"io.github.toolsrv/error"`

// maxInput is how many bytes of a wrong value a sentence repeats.
const maxInput = 100

// An errorDetail is the structured form of an error, with the same members as an error over REST.
type errorDetail struct {
	Code   wasmtools.Code `json:"code"`
	Detail any            `json:"detail"` // a sentence, or a list of violations
	Error  *toolError     `json:"error,omitempty"`
	// RetryAfter is how many seconds to wait before trying again. It is set for CodeRateLimited.
	RetryAfter int64 `json:"retry_after,omitempty"`
}

// toolError is what a tool added to its error message.
type toolError struct {
	Code string          `json:"code,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// failure returns what a client is told about an error: a result if a model can act on it, otherwise an *Error.
func failure(ctx context.Context, err error) (Result, error) {
	e := fault.Of(ctx, err)
	switch e.Code {
	case wasmtools.CodeInternal:
		return Result{}, &Error{Code: CodeInternal, Message: "Internal error", Err: e}
	case wasmtools.CodeCancelled:
		return Result{}, &Error{Code: CodeInternal, Message: cmp.Or(e.Message, "The request was cancelled"), Err: e}
	}
	sentence := e.Message
	if sentence == "" {
		sentence = sentenceOf(e.Code)
	}
	detail := errorDetail{Code: e.Code, Detail: sentence}
	if refusal, ok := errors.AsType[*rates.Refusal](e.Err); ok {
		detail.RetryAfter = refusal.Seconds()
	}
	switch {
	case e.Code == wasmtools.CodeInvalidArguments && len(e.Violations) > 0:
		detail.Detail = e.Violations
		sentence = inWords(e.Violations)
	case e.Code == wasmtools.CodeToolError:
		data, ok := readable(e.Data)
		if !ok || !json.Valid(data) {
			data = nil
		}
		if e.ToolCode != "" || data != nil {
			detail.Error = &toolError{e.ToolCode, data}
			if more, err := encode(detail.Error); err == nil {
				sentence += "\n" + string(more)
			}
		}
	}
	structured, err := encode(detail)
	if err != nil { // a violation's Input or Ctx is not JSON
		return Result{}, &Error{Code: CodeInternal, Message: "Internal error", Err: fmt.Errorf("encode error: %w", err)}
	}
	return Result{failed: e, sentence: sentence, json: structured}, nil
}

// inWords describes violations so that a model can correct its call: which member, what was expected, and what was found.
func inWords(violations []misfit.Violation) string {
	var out strings.Builder
	out.WriteString("The arguments do not fit the tool's schema:")
	for _, v := range violations {
		out.WriteString("\n- ")
		if reason, ok := v.Ctx["error"].(string); ok && v.Type == "json_invalid" && len(v.Loc) == 2 {
			fmt.Fprintf(&out, "%s at byte %v of the arguments: %s", v.Msg, v.Loc[1], reason) // a position between members has no name
			continue
		}
		out.WriteString(v.String())
		if input := string(v.Input); input != "" && v.Type != "missing" && len(input) <= maxInput {
			out.WriteString(" (got " + input + ")")
		}
	}
	return out.String()
}

// sentenceOf returns the text for an error without a message.
func sentenceOf(code wasmtools.Code) string {
	switch code {
	case wasmtools.CodeInputTooLarge:
		return "The arguments are too large"
	case wasmtools.CodeInvalidArguments:
		return "The arguments do not fit the tool's schema"
	case wasmtools.CodeToolError:
		return "The tool failed without a message"
	case wasmtools.CodeToolTrapped:
		return "The tool crashed"
	case wasmtools.CodeToolBadOutput:
		return "The tool returned no valid result"
	case wasmtools.CodeToolMemory:
		return "The tool ran out of memory"
	case wasmtools.CodeToolStack:
		return "The tool ran out of stack"
	case wasmtools.CodeToolFuel:
		return "The tool ran out of fuel"
	case wasmtools.CodeToolTimeout:
		return "The tool ran out of time"
	case wasmtools.CodeToolChanged:
		return "The tool has changed since the token was bound to it"
	case wasmtools.CodeToolDisabled:
		return "The tool is disabled"
	case wasmtools.CodeToolNotGranted:
		return "The tool was not granted what it needs"
	case wasmtools.CodeRateLimited:
		return "Too many calls were made; try again later"
	case wasmtools.CodeOverloaded:
		return "Too many calls are running; try again later"
	case wasmtools.CodeNotFound:
		return "Not found"
	}
	return "The call failed: " + string(code)
}
