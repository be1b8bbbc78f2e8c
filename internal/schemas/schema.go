// Package schemas compiles a tool's JSON Schema and validates bodies against it.
//
// Neither schemas nor bodies are trusted: a schema reaches nothing outside its own text, and the cost of checking is bounded. Libraries neither bound
// the work of one check nor report violations with their values. So this package checks bodies with its own code, and schemas with a table. Tests
// compare both with github.com/santhosh-tekuri/jsonschema.
package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// MaxSize is the size of the largest schema text, in bytes.
const MaxSize = 1 << 20

// A Schema is a compiled JSON Schema of draft 4, 6, 7, 2019-09 or 2020-12. It never changes and is safe for
// concurrent use.
type Schema struct {
	text     json.RawMessage
	root     *node
	draft    draft
	targets  map[int32]int32 // where references lead, as in a source
	argument bool            // compiled by CompileParameters
	size     int64           // bytes of memory that the schema keeps
}

// A Budget bounds what all schemas of one file may take together: the patterns and defaults, since a short text can give many megabytes of these, and
// the work of checking the defaults. It must be used by one goroutine at a time.
type Budget struct{ instructions, defaults, work int }

// A Budget holds this much: some tens of megabytes and half a second.
const (
	fileInstructions = 4 * maxInstructions
	fileDefaults     = 2 * maxDefaults
	fileDefaultWork  = 2 * maxDefaultWork
)

// NewBudget returns the budget of a file.
func NewBudget() *Budget { return &Budget{fileInstructions, fileDefaults, fileDefaultWork} }

// Compile compiles any JSON Schema. Its "$schema" may name draft 4, 6, 7, 2019-09 or 2020-12, which is the default. Formats are checked in every
// draft. The text is kept and must not be changed. An error says what is wrong, where in the schema, and what to do.
func Compile(text json.RawMessage) (*Schema, error) { return NewBudget().Compile(text) }

// Compile is like the function Compile, for one of several schemas of a file. It also fails if the schemas together exceed the budget.
func (b *Budget) Compile(text json.RawMessage) (*Schema, error) {
	from, err := readSource(string(text))
	if err != nil {
		return nil, err
	}
	s := &Schema{text: text, draft: from.draft}
	if s.root, s.size, err = compile(from, b); err != nil {
		return nil, err
	}
	if len(from.targets) > 0 {
		s.targets = from.targets
	}
	s.size += schemaSize + 2*int64(len(text)) + targetSize*int64(len(s.targets)) // twice, since names are substrings of a copy of the text
	return s, nil
}

// source returns the parsed schema, for documents. It is parsed again each time, since it takes some twenty times as much memory as the text, and
// documents are made only once.
func (s *Schema) source() *source {
	from := &source{draft: s.draft, targets: s.targets}
	if err := from.tree.Read(string(s.text)); err != nil {
		panic("schema: the text of a compiled schema can't be read back: " + err.Error()) // somebody has changed it
	}
	return from
}

// CompileParameters compiles the schema of a tool's arguments. It fails as Compile does, and if the schema allows anything other than objects.
func CompileParameters(text json.RawMessage) (*Schema, error) {
	return NewBudget().CompileParameters(text)
}

// CompileParameters is like the function CompileParameters, for one of several schemas of a file. It also fails if the schemas together exceed the
// budget.
func (b *Budget) CompileParameters(text json.RawMessage) (*Schema, error) {
	s, err := b.Compile(text)
	if err != nil {
		return nil, err
	}
	if !s.root.objectsOnly() {
		return nil, errors.New(`the schema allows values that are not objects, but arguments are always an object: add "type": "object" at the top level`)
	}
	s.argument = true
	return s, nil
}

// MustCompile is CompileParameters for the tools of a Go program: it panics if the schema is wrong.
func MustCompile(text string) *Schema {
	s, err := CompileParameters(json.RawMessage(text))
	if err != nil {
		panic("schema: " + err.Error())
	}
	return s
}

// JSON returns the schema as its author wrote it. The bytes must not be changed.
func (s *Schema) JSON() json.RawMessage { return s.text }

// Validate checks a body, a JSON object, and returns the bytes for the tool: body itself, or a copy in which missing members have their
// defaults, and integers of at most 309 digits such as 1.0 or 1e2 are written out. Everything else stays the same, byte for byte. A body that is
// empty or white space means {}.
//
// The error is a *Misfit with at least one violation. It has at most MaxViolations, and one more that says how many others there are. They are in the
// order of the body, with missing members first. The work is bounded by the size of the body: a check that would take more is refused.
func (s *Schema) Validate(body []byte) ([]byte, error) {
	valid, _, err := s.ValidateWithin(body, math.MaxInt64)
	return valid, err
}

// ValidateWithin is Validate with a bound on memory in bytes, in addition to the body and the schema. If the check takes more, ok is false and the
// other results have no meaning. [Need] returns a bound to begin with.
func (s *Schema) ValidateWithin(body []byte, memory int64) (valid []byte, ok bool, err error) {
	r := run{base: workBase, room: maxFilled, memory: memory}
	valid, err = s.validate(body, &r)
	return valid, r.memory >= 0, err
}

// ValidateLittle is Validate for callers that can't wait. ok is false, and the other results have no meaning, if the check takes more than a fraction
// of a millisecond plus 0.3 µs for each byte, fills in more than 16 KiB, or takes more than 4 MiB of memory.
func (s *Schema) ValidateLittle(body []byte) (valid []byte, ok bool, err error) {
	r := run{base: littleBase, room: littleFilled, memory: littleMemory}
	valid, err = s.validate(body, &r)
	return valid, r.work >= 0 && r.memory >= 0, err
}

func (s *Schema) validate(body []byte, r *run) (valid []byte, err error) {
	text := string(body)
	if blank(text) {
		text, body = "{}", []byte("{}")
	}
	r.work = r.base + workPerByte*len(text)
	if !r.mayRead(text) {
		return nil, nil
	}
	if err := r.tree.Read(text); err != nil {
		return nil, unreadable(err)
	}
	if r.tree.Values[0].Kind != jsontree.Object {
		return nil, invalid(notFitting, notObject(text))
	}
	if s.root.fills {
		r.fill(s.root, 0)
	}
	if !r.check(s.root, 0, nil, nil) || r.work < 0 {
		return nil, invalid(notFitting, r.violations(s.root)...)
	}
	if len(r.edits) > 0 {
		return r.splice(body), nil
	}
	return body, nil
}

// Check checks any JSON value, such as a result, as Validate checks a body, but does not fill in anything.
func (s *Schema) Check(value []byte) error {
	text := string(value)
	r := run{base: workBase, work: workBase + workPerByte*len(text), room: maxFilled, memory: math.MaxInt64}
	if err := r.tree.Read(text); err != nil {
		return unreadable(err)
	}
	if !r.check(s.root, 0, nil, nil) || r.work < 0 {
		return invalid("the value does not fit the schema", r.violations(s.root)...)
	}
	return nil
}

// blank reports whether s has only JSON white space.
func blank(s string) bool { return strings.Trim(s, " \t\r\n") == "" }

// notFitting is the message of an error for arguments that are valid JSON.
const notFitting = "the arguments do not fit the tool's schema"

func invalid(message string, violations ...misfit.Violation) error {
	return &misfit.Error{Message: message, Violations: violations}
}

// quoted shortens and quotes foreign text for an error message.
func quoted(s string) string {
	return strconv.Quote(text.Short(s))
}

// at adds to an error its place in a schema.
func at(pointer string, err error) error {
	if pointer == "" {
		pointer = "the top"
	}
	return fmt.Errorf("at %s: %w", pointer, err)
}

// Size returns about how many bytes of memory the schema takes: the author's text, and what checks need.
func (s *Schema) Size() int64 { return s.size }

// Need returns how many bytes of memory a check of a body takes with most schemas. Few schemas need more: for filling in defaults, or for remembering
// which members they have evaluated.
func (*Schema) Need(body []byte) int64 { return littleMemory/16 + needed(string(body)) }
