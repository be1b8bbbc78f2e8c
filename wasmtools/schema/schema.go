// Package schema has the JSON Schemas of tools: what arguments and results are.
package schema

import (
	"encoding/json"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

// A Schema is a compiled JSON Schema of draft 4, 6, 7, 2019-09 or 2020-12. It never changes and is safe for
// concurrent use.
type Schema schemas.Schema

// Compile compiles any JSON Schema. Its "$schema" may name draft 4, 6, 7, 2019-09 or 2020-12, which is the default. Formats are asserted in
// every draft. The text has at most 1 MiB, is kept and must not be changed. An error says where in the schema it is, what is wrong, and
// what to do.
func Compile(text json.RawMessage) (*Schema, error) {
	s, err := schemas.Compile(text)
	return (*Schema)(s), err
}

// CompileParameters compiles the schema of a tool's arguments. It fails as Compile does, and also if the schema allows values other than objects.
func CompileParameters(text json.RawMessage) (*Schema, error) {
	s, err := schemas.CompileParameters(text)
	return (*Schema)(s), err
}

// MustCompile is CompileParameters for the tools of a Go program: it panics if the schema is wrong.
func MustCompile(text string) *Schema { return (*Schema)(schemas.MustCompile(text)) }

// JSON returns the schema as its author wrote it. The bytes must not be changed.
func (s *Schema) JSON() json.RawMessage { return (*schemas.Schema)(s).JSON() }

// Validate checks a body, a JSON object, and returns the bytes for the tool: body itself, or a copy in which missing members have their
// defaults, and integers of at most 309 digits such as 1.0 or 1e2 are written out. Everything else stays byte for byte as it was. A body
// without anything but white space counts as {}.
//
// An error is a *misfit.Error with 1 to 100 violations; if there are more, a further one counts the rest. The violations are in the order
// of the body, with what is missing first. The work is bounded by the size of the body; a check that would take more is refused.
func (s *Schema) Validate(body []byte) ([]byte, error) { return (*schemas.Schema)(s).Validate(body) }
