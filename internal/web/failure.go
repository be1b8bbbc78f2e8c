package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/fault"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// statusClientClosed is nginx's status for a client that went away before the response. Usually only the log shows it.
const statusClientClosed = 499

// answerTo is the table of statuses: it returns the status for a code, and the detail for errors without a message.
func answerTo(code wasmtools.Code) (status int, detail string) {
	switch code {
	case wasmtools.CodeUnauthorized:
		// the token is missing or wrong | send `Authorization: Bearer …`
		return http.StatusUnauthorized, "Invalid or missing bearer token"
	case wasmtools.CodeForbidden:
		// the caller lacks the role that `detail` names, or asks for a token that may do more than its own | use other credentials
		return http.StatusForbidden, "The caller may not do this"
	case wasmtools.CodeHostNotAllowed:
		// the request names a host that is not the server's | see [Host names](#host-names)
		return http.StatusMisdirectedRequest, "The host is not allowed"
	case wasmtools.CodeOriginNotAllowed:
		// a page of another origin sent the request | see [Pages in browsers](#pages-in-browsers)
		return http.StatusForbidden, "The origin is not allowed"
	case wasmtools.CodeNotFound:
		// nothing is served at this path | look at `/tools`
		return http.StatusNotFound, "Not Found"
	case wasmtools.CodeMethodNotAllowed:
		// the path has other methods | see `Allow`
		return http.StatusMethodNotAllowed, "Method Not Allowed"
	case wasmtools.CodeChanged:
		// the current version is not the one that `If-Match` names | look at it again
		return http.StatusPreconditionFailed, "Somebody else has changed it"
	case wasmtools.CodeRequestTimeout:
		// the header and the body did not arrive within 30 seconds | send it again, faster
		return http.StatusRequestTimeout, "The body did not arrive in time"
	case wasmtools.CodeInputTooLarge:
		// the body is larger than the tool's limit, which `detail` gives, or checking it takes more memory than the server has | send less
		return http.StatusRequestEntityTooLarge, "The body is too large"
	case wasmtools.CodeUnsupportedMediaType:
		// the body is not JSON, has no type, or is compressed | send `Content-Type: application/json`
		return http.StatusUnsupportedMediaType, "The body must be application/json"
	case wasmtools.CodeInvalidArguments:
		// the body is not JSON, or does not fit the schema | [`detail`](#invalid_arguments) lists why
		return http.StatusUnprocessableEntity, "The arguments do not fit the tool's schema"
	case wasmtools.CodeToolError:
		// the tool refused | read `detail` and [`error`](#tool_error)
		return http.StatusBadRequest, "The tool failed without a message"
	case wasmtools.CodeToolTrapped:
		// the tool crashed | tell its author
		return http.StatusInternalServerError, "The tool crashed"
	case wasmtools.CodeToolBadOutput:
		// the result is not JSON, too long or missing | tell its author
		return http.StatusInternalServerError, "The tool returned no valid result"
	case wasmtools.CodeToolMemory:
		// the tool used up its memory, or needs more than `server.memory` gives to all tools together | send less, or have the limit raised
		return http.StatusInternalServerError, "The tool ran out of memory"
	case wasmtools.CodeToolStack:
		// the tool used up its stack | send less, or have the limit raised
		return http.StatusInternalServerError, "The tool ran out of stack"
	case wasmtools.CodeToolFuel:
		// the tool used up its fuel | send less, or have the limit raised
		return http.StatusInternalServerError, "The tool ran out of fuel"
	case wasmtools.CodeToolTimeout:
		// the tool ran out of time, waiting included | send less, or have the limit raised
		return http.StatusGatewayTimeout, "The tool ran out of time"
	case wasmtools.CodeToolChanged:
		// the tool is not the one whose [fingerprint](configuration.md#auth) the token has | don't call it; tell the operator
		return http.StatusConflict, "The tool has changed since the token was bound to it"
	case wasmtools.CodeToolDisabled:
		// the tool is switched off, and in no list; `detail` has the reason, if one was given | try later
		return http.StatusServiceUnavailable, "The tool is disabled"
	case wasmtools.CodeToolNotGranted:
		// the operator has not [granted](capabilities.md) what the tool needs, so it is in no list; `detail` names what is missing, such as `http
		// https://api.example.com` | tell the operator
		return http.StatusServiceUnavailable, "The tool was not granted what it needs"
	case wasmtools.CodeRateLimited:
		// the caller makes more calls than its [rate](configuration.md#rates), or more at the same time | try again after `Retry-After` seconds
		return http.StatusTooManyRequests, "The caller makes too many calls; try again later"
	case wasmtools.CodeOverloaded:
		// too many calls are running and waiting, there is no memory for a large body or result, or the arguments have waited 5 s to be checked | try
		// again after `Retry-After` seconds; `detail` says so if the tool has run
		return http.StatusServiceUnavailable, "Too many calls are running; try again later"
	case wasmtools.CodeNotReady:
		// the service is shutting down, or [still reading files](#404-and-405) | try again after `Retry-After` seconds, or another replica
		return http.StatusServiceUnavailable, "Not ready"
	case wasmtools.CodeCancelled:
		// the client went away, which only the log shows, or the server stopped waiting for the call and shut down | try another replica
		return statusClientClosed, "The request was cancelled"
	case wasmtools.CodeInternal:
		// the service failed; the log has the cause | tell the operator the `request_id` in the body
		return http.StatusInternalServerError, "Internal error; give the operator the request id"
	}
	panic("web: no status for the code " + string(code)) // fault.Of never returns any other code
}

// errorBody is the body of every error.
type errorBody struct {
	Detail    any            `json:"detail"` // a sentence, or a list of violations
	Code      wasmtools.Code `json:"code"`
	Error     *toolFailure   `json:"error,omitempty"`
	RequestID string         `json:"request_id,omitempty"`
}

// toolFailure is what a tool added to the message of its error.
type toolFailure struct {
	Code string          `json:"code,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Failure returns the status and the body with which [Exchange.Fail] answers an error. It is for programs that report errors in the same way without
// HTTP. The body is one line of JSON.
func Failure(err error) (status int, body []byte) {
	status, answer, _ := answerOf(fault.Of(context.Background(), err))
	if body, err = JSON(answer); err != nil {
		return Failure(&wasmtools.Error{Code: wasmtools.CodeInternal})
	}
	return status, body
}

// Describe returns the status of an error, and a sentence that describes it.
func Describe(e *wasmtools.Error) (status int, sentence string) {
	status, sentence = answerTo(e.Code)
	if e.Message != "" && e.Code != wasmtools.CodeInternal {
		sentence = e.Message
	}
	return status, sentence
}

// answerOf returns the answer to an error. wrong says which invalid parts of the error it has left out.
func answerOf(e *wasmtools.Error) (status int, body errorBody, left error) {
	status, detail := answerTo(e.Code)
	body = errorBody{Detail: detail, Code: e.Code}
	if e.Message != "" {
		body.Detail = e.Message
	}
	switch e.Code {
	case wasmtools.CodeInvalidArguments:
		if len(e.Violations) > 0 {
			body.Detail = e.Violations
		}
	case wasmtools.CodeToolError:
		if e.Status >= 400 && e.Status <= 599 {
			status = e.Status
		}
		body.Error, left = failureOf(e)
	case wasmtools.CodeInternal:
		body.Detail = detail
	}
	return status, body, left
}

// A Failer writes the errors of a door.
type Failer interface {
	// Failure returns the status and the JSON body of the answer to an error. It must not show the error's cause or, if the code is CodeInternal, its
	// message.
	Failure(e *wasmtools.Error) (status int, body []byte)
}

// SetFailure tells the log why the request failed, if the door answers with its own body.
func (x *Exchange) SetFailure(e *wasmtools.Error) {
	x.failed = e
	if e.Code == wasmtools.CodeRateLimited && x.status == 0 {
		x.describeRate(e)
	}
}

// describeRate tells the client in the header when to try again.
func (x *Exchange) describeRate(e *wasmtools.Error) {
	if refusal, ok := errors.AsType[*rates.Refusal](e.Err); ok {
		refusal.Describe(x.Header())
		return
	}
	x.Header().Set("Retry-After", "1")
}

// Fail answers with an error. Clients see an *wasmtools.Error as it is, and any other error as an internal one. Causes go
// to the log only. If the header has been sent already, the connection is cut when Serve returns: nothing else tells
// the client that the body is incomplete.
func (x *Exchange) Fail(err error) {
	e := fault.Of(x.Context(), err)
	status, body, left := answerOf(e)
	x.failed = e
	if left != nil {
		x.failed = &wasmtools.Error{Code: e.Code, Message: e.Message, Err: errors.Join(e.Err, left)}
	}
	if x.status != 0 {
		x.broken = true
		return
	}
	h := x.Header()
	// A door may have set these headers for the response that failed.
	delete(h, "Etag")
	delete(h, "Last-Modified")
	delete(h, "Content-Encoding")
	switch e.Code {
	case wasmtools.CodeUnauthorized:
		if a := x.in.admission; a != nil {
			if all := a.challenges(x.request); all != nil {
				h["Www-Authenticate"] = all
			}
		}
	case wasmtools.CodeRateLimited:
		x.describeRate(e)
	case wasmtools.CodeOverloaded, wasmtools.CodeNotReady:
		h.Set("Retry-After", "1")
	case wasmtools.CodeInternal:
		body.RequestID = x.id[0]
	}
	if x.failer != nil {
		x.Send(x.failer.Failure(e))
		return
	}
	text, err := JSON(body)
	if err != nil { // a violation's Input or Ctx is not JSON
		var detail string
		status, detail = answerTo(wasmtools.CodeInternal)
		x.failed = &wasmtools.Error{Code: wasmtools.CodeInternal, Err: fmt.Errorf("encode error body: %w", err)}
		text, _ = JSON(errorBody{Detail: detail, Code: wasmtools.CodeInternal, RequestID: x.id[0]})
	}
	x.Send(status, text)
}

// Allow reports whether the request's method is one of these. If not, Allow answers: OPTIONS with 204, any other method
// with CodeMethodNotAllowed.
func (x *Exchange) Allow(methods ...string) bool {
	if slices.Contains(methods, x.request.Method) {
		return true
	}
	allowed := append(slices.Clone(methods), http.MethodOptions)
	slices.Sort(allowed)
	x.Header().Set("Allow", strings.Join(allowed, ", "))
	if x.request.Method == http.MethodOptions {
		x.WriteHeader(http.StatusNoContent)
	} else {
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeMethodNotAllowed})
	}
	return false
}

func failureOf(e *wasmtools.Error) (f *toolFailure, left error) {
	f = &toolFailure{Code: e.ToolCode, Data: e.Data}
	if len(f.Data) > 0 && !json.Valid(f.Data) {
		f.Data = nil
		left = errors.New("the tool's error has data that is not JSON, which was left out")
	}
	if f.Code == "" && len(f.Data) == 0 {
		return nil, left
	}
	return f, left
}

// JSON returns v as compact JSON. It does not escape <, > and &: schemas are shown as they were written, and the service sends no HTML that these
// could break.
func JSON(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
