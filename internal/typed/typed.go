// Package typed describes Go types in JSON: the schema of a type, and its values as arguments and results of tools.
//
// The SDK and the server describe types by this one package. It is written in the SDK's module, sdk/go/internal/typed, because
// guests are built from it alone, by TinyGo too; internal/typed of the server's module is a copy, which make typed makes and a
// test compares: sdk/RATIONALE.md says why.
package typed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Arguments returns the schema of a tool's arguments, which have the type t.
func Arguments(t reflect.Type) (json.RawMessage, error) {
	s, err := argumentsSchema(t)
	if err != nil {
		return nil, err
	}
	return Encode(s)
}

// Result returns the schema of a tool's result, which has the type t, or nil if the schema would say nothing.
func Result(t reflect.Type) (json.RawMessage, error) {
	s, err := resultSchema(t)
	if err != nil || s == nil {
		return nil, err
	}
	return Encode(s)
}

// Decode reads arguments, which the host has validated, into what in points to. What is refused here is what a schema can't
// say, such as a number beyond 64 bits. The error is for clients.
func Decode(arguments []byte, in any) error {
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	err := json.Unmarshal(arguments, in)
	if err == nil {
		return nil
	}
	message := err.Error()
	if mismatch, ok := err.(*json.UnmarshalTypeError); ok && mismatch.Field != "" {
		message = fmt.Sprintf("%s: a JSON %s does not fit %s", mismatch.Field, mismatch.Value, mismatch.Type)
	} else if name := culprit(arguments, reflect.TypeOf(in).Elem()); name != "" {
		message = name + ": " + message
	}
	return errors.New("arguments: " + message)
}

// culprit returns the first member of the arguments that t does not take by itself, or nothing: the errors of
// UnmarshalText and of base64 name none.
func culprit(arguments []byte, t reflect.Type) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(arguments, &members) != nil {
		return ""
	}
	found := ""
	for name, value := range members {
		alone, err := Encode(map[string]json.RawMessage{name: value})
		if err == nil && json.Unmarshal(alone, reflect.New(t).Interface()) != nil && (found == "" || name < found) {
			found = name
		}
	}
	return found
}

// Results writes results of one type.
type Results struct{ nils nils }

// ResultsOf returns the Results of t.
func ResultsOf(t reflect.Type) Results { return Results{findNils(t)} }

// Encode returns the JSON of the value that out, a pointer, points to. It fails if JSON can't express it. The value may get empty slices
// and maps for nil ones; what it refers to is left as it is.
func (r Results) Encode(out any) ([]byte, error) {
	v := reflect.ValueOf(out).Elem()
	if r.nils.any(v, 0) {
		r.nils.empty(v, 0)
	}
	for ; v.Kind() == reflect.Pointer; v = v.Elem() {
		if v.IsNil() {
			return nil, errors.New("it is a nil pointer")
		}
	}
	return Encode(out)
}

// Encode returns v as JSON, without the escapes that only HTML needs.
func Encode(v any) ([]byte, error) {
	var buffer bytes.Buffer
	e := json.NewEncoder(&buffer)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// Fits reports why the JSON text does not decode into a t, or nil.
func Fits(text string, t reflect.Type) error {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	return d.Decode(reflect.New(t).Interface())
}

// IsObject reports whether text is one JSON object.
func IsObject(text string) bool {
	return json.Valid([]byte(text)) && bytes.HasPrefix(bytes.TrimLeft([]byte(text), " \t\r\n"), []byte("{"))
}
