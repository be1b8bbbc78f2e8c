package toolset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

// What clients before 2026-07-28 see of a tool is made here and in portable.go, from what package schema writes in flat.go. Nothing else
// needs these files.

// older returns the element of tools/list for those clients. input and output are the schemas as their author wrote them, and shown is
// the input as later clients see it.
func (e *entry) older(input, shown, output json.RawMessage) (json.RawMessage, error) {
	flat, rest, err := flatInput((*schemas.Schema)(e.tool.Parameters), input)
	if err != nil {
		return nil, fmt.Errorf("schema of the parameters: %w", err)
	}
	var plain json.RawMessage
	if e.tool.Result != nil {
		if plain, err = plainOutput((*schemas.Schema)(e.tool.Result), output); err != nil {
			return nil, fmt.Errorf("schema of the result: %w", err)
		}
	}
	if rest == "" && bytes.Equal(flat, shown) && bytes.Equal(plain, output) {
		return e.shown[Modern], nil // as nearly always; ten thousand tools save a copy
	}
	return e.element(flat, plain, withRest(e.tool.Description, rest))
}

// flatInput turns the author's schema of a tool's arguments into a plain object at its root: clients hand it to model APIs that refuse
// more. rest is a schema of what is left, or empty.
func flatInput(s *schemas.Schema, text json.RawMessage) (flat json.RawMessage, rest string, err error) {
	flat, left := s.Flat()
	if same(flat, s.JSON()) {
		return text, string(left), nil
	}
	flat, err = compact(flat)
	return flat, string(left), err
}

// plainOutput returns the schema of a tool's result, whose author wrote text: only where all results are objects, and if all
// clients can compile it, because some refuse the whole list otherwise.
func plainOutput(s *schemas.Schema, text json.RawMessage) (plain json.RawMessage, err error) {
	switch standalone := s.Standalone(); {
	case standalone == nil:
		return nil, nil
	case same(standalone, s.JSON()):
		plain = text
	default:
		if plain, err = compact(standalone); err != nil {
			return nil, err
		}
	}
	if !isPortable(plain) {
		return nil, nil
	}
	return plain, nil
}

// same reports whether two texts are one and the same.
func same(a, b json.RawMessage) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// withRest returns a tool's description with the schema that its own schema does not say, as far as there is room for it.
func withRest(description, rest string) string {
	if rest == "" {
		return description
	}
	for _, words := range []string{
		"The arguments must also fit this JSON Schema, whose references point into the schema of the arguments: " + rest,
		"The tool has more rules for its arguments than its schema shows. The error of a call that breaks one says which.",
	} {
		if all := strings.TrimLeft(description+"\n\n"+words, "\n"); utf8.RuneCountInString(all) <= maxDescription {
			return all
		}
	}
	return description
}
