package toolsrv

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/toolsrv/toolsrv/sdk/go/internal/typed"
)

// A Tool is a function with its name and description. Make one with [Func]; [Tool.With] adds what clients show of it.
type Tool struct {
	name, description string
	options           Options
	examples          []Example
	arguments, result reflect.Type
	run               func(c *Call, arguments []byte) ([]byte, error)
	warm              func()
}

// An Example is one call of a tool, for the documentation and for tests: Arguments is a JSON object, Result is JSON, or
// empty for a call whose result is not worth comparing (a time, a random number).
type Example struct {
	Arguments, Result string
}

// Func makes a tool from f. The name is 1 to 64 of the characters A-Z a-z 0-9 _ and -; agents choose the tool by its description, so say
// there what it does and when to use it.
//
// A is a struct (or a map with string keys): the arguments. Their schema follows encoding/json: names, embedding and order come from the
// struct; a member is required unless it is a pointer, has a default, or is marked omitempty or omitzero; a pointer also takes null, but to
// a named struct, slice or map; members that A does not have are refused. Struct tags add to it:
//
//	description:"…"   required:"true" or "false"   default:"…"   examples:"a,b"
//	enum:"a,b"        minimum:"0"  maximum:"9"     exclusiveMinimum:"0"  exclusiveMaximum:"9"
//	minLength:"1"     maxLength:"9"                minItems:"1"  maxItems:"9"
//	pattern:"^a"      format:"email"               contentEncoding:"base64"  contentMediaType:"image/png"
//
// A default, an enum and examples are plain text for a string and JSON otherwise; a list whose values hold a comma is written as a JSON
// array. Host and guest agree: f never sees arguments that the schema refuses.
//
// R is the result, any type that can be described; a nil slice or map in it is sent as [] or {}, never as null. A type with its own JSON
// form needs a method JSONSchema() string ([Describer]).
//
// An error of f fails the call; [Error] says how it reaches the client. A panic ends the call with status 500, and its message is only in
// the host's log.
func Func[A, R any](name, description string, f func(*Call, A) (R, error), examples ...Example) Tool {
	t := Tool{
		name:        name,
		description: description,
		examples:    examples,
		arguments:   reflect.TypeOf((*A)(nil)).Elem(),
		result:      reflect.TypeOf((*R)(nil)).Elem(),
	}
	if f == nil {
		return t // describe refuses it
	}
	results := typed.ResultsOf(t.result)
	t.run = func(c *Call, arguments []byte) ([]byte, error) {
		var in A
		if err := typed.Decode(arguments, &in); err != nil {
			return nil, &Error{Code: "invalid_arguments", Message: err.Error()}
		}
		out, err := f(c, in)
		if err != nil {
			return nil, err
		}
		text, err := results.Encode(&out)
		if err != nil {
			return nil, &brokenResult{err}
		}
		return text, nil
	}
	t.warm = func() {
		typed.Warm((*A)(nil))
		typed.Warm((*R)(nil))
	}
	return t
}

// brokenResult is the error of a result that JSON can't express, NaN for one: the tool's fault, not the caller's.
type brokenResult struct{ err error }

func (e *brokenResult) Error() string { return "the result can't be written as JSON: " + e.err.Error() }

func (e *brokenResult) Unwrap() error { return e.err }

// A Describer is a type that has a JSON form of its own and returns its JSON Schema (2020-12), an object, as text. The
// method is called on a zero value.
type Describer interface {
	JSONSchema() string
}

// manifestTool is a tool as the manifest has it.
type manifestTool struct {
	Name        string               `json:"name"`
	Title       string               `json:"title,omitempty"`
	Description string               `json:"description"`
	Annotations *manifestAnnotations `json:"annotations,omitempty"`
	Icons       []Icon               `json:"icons,omitempty"`
	Needs       *manifestNeeds       `json:"needs,omitempty"`
	Parameters  json.RawMessage      `json:"parameters"`
	Result      json.RawMessage      `json:"result,omitempty"`
	Examples    []manifestExample    `json:"examples,omitempty"`
}

type manifestExample struct {
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// describe returns the tool's part of the manifest.
func (t Tool) describe() (manifestTool, error) {
	out := manifestTool{
		Name: t.name, Title: t.options.Title, Description: t.description,
		Annotations: t.options.Annotations.describe(), Icons: t.options.Icons,
	}
	if t.run == nil {
		return out, errors.New("it has no function: make tools with toolsrv.Func, and pass it one")
	}
	if err := checkName(t.name); err != nil {
		return out, err
	}
	if strings.TrimSpace(t.description) == "" {
		return out, errors.New("it has no description: say what it does")
	}
	if err := t.options.check(); err != nil {
		return out, err
	}
	if t.options.Needs.Settings != nil {
		return out, errors.New("its needs have Settings: they are the module's, so declare them in Module.Needs")
	}
	var err error
	if out.Needs, err = t.options.Needs.describe(); err != nil {
		return out, err
	}
	if out.Parameters, err = typed.Arguments(t.arguments); err != nil {
		return out, err
	}
	if out.Result, err = typed.Result(t.result); err != nil {
		return out, err
	}
	for i, e := range t.examples {
		written, err := t.example(e)
		if err != nil {
			return out, fmt.Errorf("example %d: %w", i+1, err)
		}
		out.Examples = append(out.Examples, written)
	}
	return out, nil
}

// example checks an example against the types: a mistake there would mislead every agent that reads it.
func (t Tool) example(e Example) (out manifestExample, err error) {
	if !typed.IsObject(e.Arguments) {
		return out, fmt.Errorf("the arguments %s are not a JSON object", e.Arguments)
	}
	if err := typed.Fits(e.Arguments, t.arguments); err != nil {
		return out, fmt.Errorf("the arguments %s: %w", e.Arguments, err)
	}
	out.Arguments = json.RawMessage(e.Arguments)
	if e.Result == "" {
		return out, nil
	}
	if !json.Valid([]byte(e.Result)) {
		return out, fmt.Errorf("the result %s is not valid JSON", e.Result)
	}
	out.Result = json.RawMessage(e.Result)
	return out, nil
}
