// Package misfit has the error that says why a value does not fit a schema.
package misfit

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// An Error is the error of a value that does not fit its schema.
type Error struct {
	// Message is a sentence.
	Message string
	// Violations are all the reasons, or the first of them if there are too many to list.
	Violations []Violation
}

// Error returns the message.
func (m *Error) Error() string { return m.Message }

// A Violation is one way in which arguments do not fit their schema, in the shape that FastAPI's clients read.
type Violation struct {
	// Type is a stable word such as "missing" or "string_type".
	Type string `json:"type"`
	// Loc leads to the place: "body", then member names (string) and indices (int).
	Loc []any `json:"loc"`
	// Msg is a sentence.
	Msg string `json:"msg"`
	// Input is the offending value, JSON, shortened if it is long.
	Input json.RawMessage `json:"input"`
	// Ctx holds the numbers and words of Msg, or is nil.
	Ctx map[string]any `json:"ctx,omitempty"`
}

// Place returns the place in the form of a program, such as "items[2].name". It is empty for the arguments as a whole.
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
