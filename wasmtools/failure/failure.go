// Package failure is how a request fails, as clients are told. It stands below the domain, so that a schema can say in these
// words what is wrong; package wasmtools has the same types under its own name, with all codes.
package failure

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// A Code tells clients, in a stable word, why a request failed.
type Code string

// InvalidArguments is the code of arguments that are not JSON or do not fit their schema.
const InvalidArguments Code = "invalid_arguments"

// An Error is a failure that a client may be told of.
type Error struct {
	// Code is why.
	Code Code
	// Message is a sentence for the client; it is the "detail" of the answer unless there are Violations.
	Message string
	// Status is the HTTP status that a tool asked for (tool_error only), 400 to 599, or 0 for 400.
	Status int
	// ToolCode and Data are what the tool said of its own failure (tool_error only); either may be empty.
	ToolCode string
	Data     json.RawMessage
	// Violations are all the reasons for InvalidArguments.
	Violations []Violation
	// Err is the cause, for the log. It is never shown to a client.
	Err error
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = string(e.Code)
	}
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A Violation is one way in which arguments do not fit their schema, in the shape that FastAPI's clients read.
type Violation struct {
	// Type is a stable word such as "missing" or "string_type".
	Type string `json:"type"`
	// Loc leads to the place: "body", then member names (string) and indices (int).
	Loc []any `json:"loc"`
	// Msg is a sentence.
	Msg string `json:"msg"`
	// Input is the offending value, JSON, shortened where it is long.
	Input json.RawMessage `json:"input"`
	// Ctx holds the numbers and words of Msg, or is nil.
	Ctx map[string]any `json:"ctx,omitempty"`
}

// Place writes the place as a program would, such as "items[2].name". It is empty for the arguments as a whole.
func (v Violation) Place() string {
	var out strings.Builder
	for i, step := range v.Loc {
		switch step := step.(type) {
		case int:
			out.WriteString("[" + strconv.Itoa(step) + "]")
		case string:
			if i == 0 && step == "body" {
				continue
			}
			if out.Len() > 0 {
				out.WriteByte('.')
			}
			out.WriteString(text.Short(step))
		}
	}
	return out.String()
}

// String says what is wrong, and where: "items[2].name: Field required".
func (v Violation) String() string {
	if place := v.Place(); place != "" {
		return place + ": " + v.Msg
	}
	return v.Msg
}
